//! The whole file as settings, before it is made a [`Config`](crate::Config).

use sandarac_message::target::Scheme;
use sandarac_policy::{HostPattern, MethodName, PathPattern, PathReading, Template};

use crate::address::{ListenAddress, Mode, Network};
use crate::definition::{Value, settings};
use crate::edits::EditSettings;
use crate::field::{FieldName, FieldValue, Token};
use crate::limited::Bounded;
use crate::pool::{PoolName, PoolSettings};
use crate::quoted::quoted;
use crate::report::{At, Complaint, Node, Report};
use crate::rules::{CacheSettings, RuleSettings};
use crate::section::{Admin, Dns, Forwarded, Limits, Log, Purge, Timeouts};
use crate::setting::Kind;
use crate::value::{Map, Text, choice};

settings! {
    /// The whole file.
    pub(crate) struct File {
        /// How many cores to use.
        threads: Option<Bounded<1, 1024>> = None, unset "all there are" "4" => fixed;
        /// Where clients are listened for; at least one.
        listen: Vec<At<ListenSettings>> = Vec::new(), required "";
        /// Groups of backends that can all answer the same requests, each by a name of your choice.
        pool: Map<PoolName, PoolSettings> = Map::default(), required "";
        /// What is done with which requests; at least one. The first route that matches a request is the one that counts;
        /// what no route matches is answered with 404.
        route: Vec<At<RouteSettings>> = Vec::new(), required "";
        /// The cache that all routes share, and the rules for routes that have none of their own.
        cache: CacheSettings = CacheSettings::default();
        /// How long clients are waited for.
        timeouts: Timeouts = Timeouts::default();
        /// How much of anything clients and backends may send.
        limits: Limits = Limits::default();
        /// What backends are told of the client and of the way a request took. What a client says in these fields is
        /// replaced, unless it is among the `trusted_proxies` of the listener: then it is added to.
        forwarded: Forwarded = Forwarded::default();
        /// How the names of backends are looked up.
        dns: Dns = Dns::default();
        /// HTTP requests with the method `PURGE`, as Varnish and nginx users send them.
        purge: Purge = Purge::default();
        /// How `sandarac status`, `purge`, `reload` and the others reach the running process, and where `/metrics` is.
        admin: Admin = Admin::default();
        /// What is written down.
        log: Log = Log::default();
    }

    /// A listener.
    pub(crate) struct ListenSettings {
        /// Where to listen: `:8080` (all addresses), `127.0.0.1:8080`, `[::1]:8080` or `unix:/path`. Port 0 lets the system
        /// choose; `sandarac status` tells what it chose.
        address: Option<At<ListenAddress>> = None, required "\":8080\"";
        /// Who may open a Unix socket, as `chmod` takes it. One that a service manager passes has the mode that it gave it.
        mode: Option<At<Mode>> = None, unset "the process's umask decides" "\"0660\"";
        /// Whether every connection begins with a PROXY header (version 1 or 2), whose word on the client's address is
        /// taken. Only what sends such a header may be able to reach this address.
        proxy_protocol: bool = false;
        /// The scheme by which clients reach this address: `https` where TLS ends before it. What a trusted proxy says in
        /// `X-Forwarded-Proto`, or else in `Forwarded`, counts more.
        scheme: Scheme = Scheme::Http;
        /// Proxies before this one, whose `X-Forwarded-*` and `Forwarded` are believed and added to, though where a response
        /// may be stored only what is keyed goes on besides `X-Forwarded-For`; `unix` stands for whoever may open the Unix
        /// socket. The last address in `X-Forwarded-For` that is none of theirs is the client's in logs.
        trusted_proxies: Vec<Network> = Vec::new();
    }

    /// A route: which requests, and what is done with them.
    pub(crate) struct RouteSettings {
        /// Which requests. A string such as `"/blog"`, `"example.com"`, `"*.example.com/static/"` or `"POST /api"`, or a
        /// table of `host`, `path` and `method`, or an array of such, any of which may match. Every request, if not
        /// written.
        r#match: Vec<RouteMatch> = Vec::new();
        /// The pool that answers them.
        pool: Option<At<PoolName>> = None, unset "the route has an `answer` or a `redirect`" "\"app\"";
        /// The pool that answers those whose method is not safe (RFC 9110 §9.2.1): a primary, where the backends of `pool`
        /// are replicas. GET, HEAD, OPTIONS and TRACE stay with `pool`.
        unsafe_pool: Option<At<PoolName>> = None, unset "`pool` answers them" "\"app\"";
        /// An answer made here.
        answer: Option<At<AnswerSettings>> = None, unset "the route has a `pool` or a `redirect`"
            "{ status = 403, body = \"Not here.\" }";
        /// A redirect made here.
        redirect: Option<At<RedirectSettings>> = None, unset "the route has a `pool` or an `answer`"
            "{ to = \"https://{host}{target}\" }";
        /// `"lookup"`: from the cache where possible, by the rules of `[cache]`. `"pass"`: never from the cache and never
        /// into it. A table: from the cache where possible, by these rules, and those of `[cache]` for what is not written.
        cache: At<CacheChoice> = At::nowhere(CacheChoice::Lookup);
        /// Edits of the request before it goes to a backend. On a route with a cache they write neither `Range` nor conditions
        /// (`If-None-Match` and the like), because the cache has its own.
        request: EditSettings = EditSettings::default();
        /// Edits of the response when it comes from a backend, before it is stored.
        response: EditSettings = EditSettings::default();
        /// Edits, after those, of responses that are stored. They change what clients get; lifetime, variants, validators, tags and
        /// bans go by the response as it was before. `remove = ["Set-Cookie"]` also lets a response be stored that only its cookie
        /// would keep out; a response that is not stored keeps its cookies.
        stored_response: EditSettings = EditSettings::default();
        /// Edits, after those of `response`, of responses that are not stored.
        passed_response: EditSettings = EditSettings::default();
        /// Protocols that a connection may be upgraded to; it is a tunnel from then on.
        upgrade: Vec<At<Token>> = vec![At::nowhere(Token::literal(Token::WEBSOCKET))];
        /// What is done with a path that servers read differently (an encoded slash, a backslash, `;`, a dot at the end of a
        /// segment), where the readings lead to different routes. `"strict"`: the request is refused. `"raw"`, in all of these
        /// routes: the path counts as it is compared, decoded once; the backends read it so.
        paths: PathReading = PathReading::Strict;
        /// Whether `CONNECT` is passed to the backend and makes the connection a tunnel. Whoever can reach the listener can
        /// then reach whatever the backend connects them to.
        connect: bool = false;
    }

    /// Which requests a route is for; each key may hold one or several, of which one has to match.
    pub(crate) struct Matcher {
        /// Hosts: `example.com`, or `*.example.com` for all names below it. Ports are not looked at.
        host: Vec<HostPattern> = Vec::new();
        /// Paths, compared decoded: `/blog` is that path and all below it, `/blog/` all that begin so, `=/blog` it alone; a
        /// star stands for any run of characters, slashes too, and the pattern is then for the whole path: `/*.php`.
        path: Vec<PathPattern> = Vec::new();
        /// Methods, in capital letters as requests have them.
        method: Vec<MethodName> = Vec::new();
    }

    /// An answer made here.
    pub(crate) struct AnswerSettings {
        /// The status code.
        status: Bounded<200, 599> = Bounded::of::<200>();
        /// The fields, beside `Date` and `Content-Length`. Neither here nor in the body does `{host}` or the like stand for
        /// anything.
        fields: Map<FieldName, FieldValue> = Map::default();
        /// The body.
        body: String = String::new();
    }

    /// A redirect made here.
    pub(crate) struct RedirectSettings {
        /// Where to. `{host}`, `{target}` (path and query), `{path}` and `{query}` (with its question mark) stand for those
        /// of the request.
        to: Option<Template> = None, required "\"https://{host}{target}\"";
        /// The status code.
        status: RedirectStatus = RedirectStatus(308);
    }
}

/// A [`Matcher`], written as a table or in short.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RouteMatch(pub(crate) Matcher);

impl Value for RouteMatch {
    fn kind() -> Kind {
        Kind::Either(vec![ShortMatch::form(), Matcher::kind()])
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<RouteMatch> {
        let matcher = match node.get_ref().is_str() {
            true => ShortMatch::read(node, report)?.0,
            false => Matcher::read(node, report)?,
        };
        Some(RouteMatch(matcher))
    }

    fn show(&self) -> Option<String> {
        None
    }
}

/// A [`Matcher`] in short: `[METHOD[|METHOD…] ][HOST][PATH]`.
struct ShortMatch(Matcher);

impl Text for ShortMatch {
    fn form() -> Kind {
        Kind::Text {
            name: "host and path",
            form: "a host, a path, or both, with a method before them or not",
            examples: &["/blog", "example.com", "*.example.com/static/", "GET|HEAD /api"],
        }
    }

    fn from_text(text: &str) -> Result<ShortMatch, Complaint> {
        let mut words = text.split_ascii_whitespace();
        let (methods, place) = match (words.next(), words.next(), words.next()) {
            (Some(place), None, None) => ("", place),
            (Some(start), Some(_), _) if start.contains('/') => {
                let complaint = Complaint::new(format!("{text:?} has a blank in its path"));
                return Err(complaint.help(format!("write it in full: {{ path = {} }}", quoted(text))));
            }
            (Some(methods), Some(place), None) => (methods, place),
            _ => return Err(Complaint::new(format!("{text:?} is not {}", ShortMatch::form().words()))),
        };
        let method = methods.split('|').filter(|method| !method.is_empty()).map(MethodName::from_text);
        let (host, path) = place.split_at(place.find(['/', '=']).unwrap_or(place.len()));
        // No host ends in these, but paths are often thought of by their ends.
        const ENDINGS: [&str; 12] =
            ["php", "css", "js", "png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "html", "woff2"];
        if path.is_empty() && host.strip_prefix("*.").is_some_and(|end| ENDINGS.contains(&end)) {
            let complaint = Complaint::new(format!("{place:?} would be a host"));
            return Err(complaint.help(format!("a path begins with a slash: \"/{place}\"")));
        }
        Ok(ShortMatch(Matcher {
            method: method.collect::<Result<_, _>>()?,
            host: if host.is_empty() { Vec::new() } else { vec![HostPattern::from_text(host)?] },
            path: if path.is_empty() { Vec::new() } else { vec![PathPattern::from_text(path)?] },
        }))
    }

    fn text(&self) -> String {
        String::new()
    }
}

choice!(PathReading { "strict" => PathReading::Strict, "raw" => PathReading::Raw });
choice!(Scheme { "http" => Scheme::Http, "https" => Scheme::Https });

/// The status of a redirect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RedirectStatus(pub(crate) u16);

impl Value for RedirectStatus {
    fn kind() -> Kind {
        Kind::Integer { least: 301, most: 308 }
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<RedirectStatus> {
        let number = <Bounded<301, 308> as Value>::read(node, report)?.get();
        if !matches!(number, 301 | 302 | 303 | 307 | 308) {
            let error = report.error(Some(node.span()), format!("{number} is not the status of a redirect"));
            error.help =
                Some("301 and 308 are permanent, 302 and 307 temporary, 303 makes it a GET".to_owned());
            return None;
        }
        Some(RedirectStatus(number as u16))
    }

    fn show(&self) -> Option<String> {
        Some(self.0.to_string())
    }
}

/// How a route uses the cache.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CacheChoice {
    Lookup,
    Pass,
    Rules(Box<RuleSettings>),
}

impl Value for CacheChoice {
    fn kind() -> Kind {
        Kind::Either(vec![Kind::Choice(vec!["lookup", "pass"]), RuleSettings::kind()])
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<CacheChoice> {
        if node.get_ref().is_table() {
            return report.section(node).map(|rules| CacheChoice::Rules(Box::new(rules)));
        }
        if let Some(on) = node.get_ref().as_bool() {
            let word = if on { "lookup" } else { "pass" };
            report.unexpected(node, &CacheChoice::kind()).help = Some(format!("cache = {word:?}?"));
            return None;
        }
        <CacheWord as Value>::read(node, report).map(|word| match word {
            CacheWord::Lookup => CacheChoice::Lookup,
            CacheWord::Pass => CacheChoice::Pass,
        })
    }

    fn show(&self) -> Option<String> {
        match self {
            CacheChoice::Lookup => CacheWord::Lookup.show(),
            CacheChoice::Pass => CacheWord::Pass.show(),
            CacheChoice::Rules(_) => None,
        }
    }
}

/// [`CacheChoice`] where it is one word.
#[derive(Clone, Copy, PartialEq)]
enum CacheWord {
    Lookup,
    Pass,
}

choice!(CacheWord { "lookup" => CacheWord::Lookup, "pass" => CacheWord::Pass });
