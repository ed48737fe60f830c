//! The whole file as settings, before conversion to a [`Config`](crate::Config).

use sandarac_message::target::Scheme;
use sandarac_policy::{FileName, HostPattern, MethodName, PathPattern, PathReading, Symlinks, Template};
use std::time::Duration;

use crate::address::{ListenAddress, Mode, Network, User};
use crate::compress::CompressChoice;
use crate::definition::{Value, settings};
use crate::edits::EditSettings;
use crate::field::{FieldName, FieldValue, Token};
use crate::file_names::{Attempt, IndexName, PageName, VALID};
use crate::fragments::FragmentChoice;
use crate::limited::Bounded;
use crate::path::AbsolutePath;
use crate::pool::{PoolName, PoolSettings};
use crate::quoted::quoted;
use crate::report::{At, Complaint, Node, Report};
use crate::rules::{CacheSettings, RuleSettings};
use crate::section::{Admin, Dns, Forwarded, Limits, Log, Purge, SpoolSettings, Timeouts};
use crate::setting::Kind;
use crate::shared::SharedChoice;
use crate::tls::{HstsChoice, ListenTlsSettings};
use crate::value::{Map, Text, choice};

settings! {
    /// The whole file.
    pub(crate) struct File {
        /// The user whose rights the process keeps when root starts it: it takes them before it opens anything but this file, so
        /// that what works at a start works at each reload, too. Of root's rights it keeps that to listen on ports below 1024.
        user: Option<User> = None, unset "the one who starts it" "\"www-data\"" => fixed;
        /// How many cores to use.
        threads: Option<Bounded<1, 1024>> = None, unset "all cores" "4" => fixed;
        /// Listeners for clients; at least one.
        listen: Vec<At<ListenSettings>> = Vec::new(), required "";
        /// Groups of backends that can all answer the same requests, each under a name of your choice.
        pool: Map<PoolName, PoolSettings> = Map::default(), required "";
        /// How requests are handled; at least one. The first route that matches a request counts; a request without a
        /// matching route is answered with 404.
        route: Vec<At<RouteSettings>> = Vec::new(), required "";
        /// The cache that all routes share, and the rules for routes without their own.
        cache: CacheSettings = CacheSettings::default();
        /// Timeouts for clients.
        timeouts: Timeouts = Timeouts::default();
        /// Limits on what clients and backends may send.
        limits: Limits = Limits::default();
        /// Where bodies wait for slow clients, so that these do not hold workers. Such bodies are in memory at first, which
        /// counts toward `cache.memory` and is an eighth of it at most, and then in files.
        spool: SpoolSettings = SpoolSettings::default();
        /// Fields that inform backends about the client and the path of a request. A client's own values of these
        /// fields are replaced, unless it is among the `trusted_proxies` of the listener: then they are extended.
        forwarded: Forwarded = Forwarded::default();
        /// How the names of backends are resolved.
        dns: Dns = Dns::default();
        /// HTTP requests with the method `PURGE`, as Varnish and nginx users send them.
        purge: Purge = Purge::default();
        /// How `sandarac status`, `purge`, `reload` and the others reach the running process, and where `/metrics` is.
        admin: Admin = Admin::default();
        /// Which logs are written, and where.
        log: Log = Log::default();
    }

    /// A listener.
    pub(crate) struct ListenSettings {
        /// The address to listen on: `:8080` (all addresses), `127.0.0.1:8080`, `[::1]:8080` or `unix:/path`. With port
        /// 0 the system chooses the port; `sandarac status` shows it.
        address: Option<At<ListenAddress>> = None, required "\":8080\"";
        /// The permissions of a Unix socket, as for `chmod`. A socket passed by a service manager keeps its own mode.
        mode: Option<At<Mode>> = None, unset "the process's umask decides" "\"0660\"";
        /// Whether every connection begins with a PROXY header (version 1 or 2), which is trusted for the client's
        /// address. Make sure that only peers that send such a header can reach this address. Other connections are
        /// closed, counted (`proxy_headers_missing` in `sandarac stats`) and reported on standard error.
        proxy_protocol: bool = false;
        /// The scheme that clients use to reach this address: `https` if it has `tls`, or if TLS is terminated in front
        /// of it. A trusted proxy's `X-Forwarded-Proto`, or else `Forwarded`, takes precedence.
        scheme: At<Scheme> = At::nowhere(Scheme::Http);
        /// TLS: which certificates clients get, and what is accepted from them.
        tls: Option<At<ListenTlsSettings>> = None, unset "connections are not encrypted"
            "{ directory = \"/etc/sandarac/certificates\" }";
        /// Whether clients may speak HTTP/2. With `tls` they negotiate it; in clear, a client that begins with it must know
        /// that it may (prior knowledge), and `Upgrade: h2c` is ignored.
        http2: Option<bool> = None, unset "clients may with `tls`, and not in clear" "true";
        /// Whether requests that came by http, and for which there is a route, are answered with a redirect (308) to the
        /// same URL with https on the usual port. A request without a host gets 400.
        redirect_to_https: At<bool> = At::nowhere(false);
        /// Proxies in front of this one, whose `X-Forwarded-*` and `Forwarded` are trusted and extended, and whose
        /// `Client-Cert` and `Client-Cert-Chain` are forwarded; for responses that may be stored, only keyed fields and
        /// `X-Forwarded-For` are forwarded. `unix` stands for any peer on the
        /// Unix socket. In logs, the client is the last address in `X-Forwarded-For` that does not belong to them.
        trusted_proxies: Vec<Network> = Vec::new();
    }

    /// A route: requests and their handling.
    pub(crate) struct RouteSettings {
        /// The requests that match. A string such as `"/blog"`, `"example.com"`, `"*.example.com/static/"` or `"POST
        /// /api"`, or a table of `host`, `path` and `method`, or an array of these, any of which may match. Without it,
        /// every request matches.
        r#match: Vec<RouteMatch> = Vec::new();
        /// The pool that answers them.
        pool: Option<At<PoolName>> = None, unset "the route has `files`, an `answer` or a `redirect`" "\"app\"";
        /// The pool for requests whose method is not safe (RFC 9110 §9.2.1): a primary, if the backends of `pool` are
        /// replicas. GET, HEAD, OPTIONS and TRACE stay with `pool`.
        unsafe_pool: Option<At<PoolName>> = None, unset "`pool` answers them" "\"app\"";
        /// An answer made here.
        answer: Option<At<AnswerSettings>> = None, unset "the route has a `pool`, `files` or a `redirect`"
            "{ status = 403, body = \"Not here.\" }";
        /// A redirect made here.
        redirect: Option<At<RedirectSettings>> = None, unset "the route has a `pool`, `files` or an `answer`"
            "{ to = \"https://{host}{target}\" }";
        /// The directory tree whose files answer them. Nothing outside of it is served, and no hidden file (a name that
        /// begins with a dot) except `.well-known`.
        files: Option<At<AbsolutePath>> = None, unset "the route has a `pool`, an `answer` or a `redirect`"
            "\"/srv/www\"";
        /// Whether no client reaches the `files` of this route (404): a response of a pool with `x_accel_redirect` names one of
        /// them, which is sent in place of its body.
        internal: At<bool> = At::nowhere(false);
        /// The directory of a PHP application: its files are served, its scripts are run by php-fpm, and every other request
        /// goes to its `index.php`. It stands for `files` and a `pool` with `fastcgi` in `try`. `pool` beside it names a pool
        /// of its own; without one, the pool `php` is used, or made with the php-fpm of this machine (docs/manual/php.md).
        php: Option<At<AbsolutePath>> = None, unset "the route has `files`, a `pool`, an `answer` or a `redirect`" "\"/srv/wiki\"";
        /// The files that are tried in order, as paths below the directory, with `{path}` for the path of the request. The
        /// last may be a pool, `pool:NAME`, for requests for which there is no file, and for methods other than GET and
        /// HEAD. Without a pool, they are answered with 404, and with 405.
        r#try: Vec<At<Attempt>> = vec![At::nowhere(Attempt::File(FileName::path()))];
        /// The page for GET and HEAD of what is not there, as a path below the directory: it is sent with the status 404,
        /// without the edits of `response`.
        not_found: Option<At<PageName>> = None, unset "a line of text" "\"/404.html\"";
        /// The files that stand for their directory, in order.
        index: At<Vec<IndexName>> = At::nowhere(vec![IndexName::literal(IndexName::USUAL)]);
        /// Whether a directory without a file of `index` is answered with a list of its files.
        listing: At<bool> = At::nowhere(false);
        /// Which symbolic links are followed: `"inside"`, those that lead to a place inside the tree or inside a tree of
        /// `also`; `"never"`, none.
        symlinks: At<Symlinks> = At::nowhere(Symlinks::Inside);
        /// Further directory trees that symbolic links may lead to.
        also: Vec<At<AbsolutePath>> = Vec::new(), unset "none" "[\"/var/lib/mediawiki\"]";
        /// Whether a file `NAME.br`, `NAME.zst` or `NAME.gz` beside `NAME` is sent in its place to clients that accept the
        /// coding. Of several, the smallest is sent. One that is more than a minute older than `NAME` is not used.
        precompressed: At<bool> = At::nowhere(true);
        /// How long an open file, or the absence of one, is used before the directory is looked at again. A change is seen
        /// after this time at the latest; with `"0s"` at once.
        files_valid: At<Duration> = At::nowhere(VALID);
        /// `"lookup"`: use the cache where possible, by the rules of `[cache]`. `"pass"`: never use or fill the cache.
        /// A table: use the cache where possible, by these rules, with those of `[cache]` as defaults.
        cache: At<CacheChoice> = At::nowhere(CacheChoice::Lookup);
        /// Whether the route uses the shared tier: `true`, `false`, or `"read"` to use its entries and write
        /// none, for example on a node that tries a new version.
        shared: Option<At<SharedChoice>> = None, unset "`true` if the route uses the cache and there is a shared tier"
            "false";
        /// Whether bodies are sent in a coding (zstd, brotli, gzip) that the client accepts: `true`, `false`, or a table. Each
        /// coding of a stored response is made once, at its first request. Applies to responses of a pool.
        compress: At<CompressChoice> = At::nowhere(CompressChoice::Off);
        /// Whether pages are assembled from fragments (ESI 1.0, docs/manual/fragments.md): `true`, all HTML and XML of the
        /// route; `"announced"`, only what comes with `Surrogate-Control: content="ESI/1.0"`; `false`, nothing. Anyone who can
        /// put an ESI tag into such a page can put any page of the site into it. Requests for parts (`Range`) get the whole.
        fragments: At<FragmentChoice> = At::nowhere(FragmentChoice(None));
        /// Edits of the request before it is sent to a backend. On a route with a cache they can set neither `Range`
        /// nor conditions (`If-None-Match` and the like), because the cache sets its own.
        request: EditSettings = EditSettings::default();
        /// Edits of the response from a backend, before it is stored.
        response: EditSettings = EditSettings::default();
        /// Edits, after those of `response`, of responses that are stored. They change what clients get; lifetime,
        /// variants, validators, tags and bans use the unedited response. `remove = ["Set-Cookie"]` also lets a
        /// response be stored that only its cookie would exclude; a response that is not stored keeps its cookies.
        stored_response: EditSettings = EditSettings::default();
        /// Edits, after those of `response`, of responses that are not stored.
        passed_response: EditSettings = EditSettings::default();
        /// How long browsers reach the host by https only (`Strict-Transport-Security`, RFC 6797): a duration, or a table.
        /// It is sent to clients that came by https, in place of a backend's own, and not while the listener has a
        /// self-signed certificate. Begin with a short time: browsers cannot be told to forget it by http. `"0s"` makes
        /// them forget it.
        hsts: Option<At<HstsChoice>> = None, unset "that of the backend, if it sends one" "\"365d\"";
        /// Whether a request body of up to the pool's `gather_limit` is received before a backend is chosen, so that a slow
        /// client does not hold a worker. Not for pools with a backend whose address begins with `h2`, and not for gRPC to
        /// backends with which `tls.alpn` offers HTTP/2 only.
        gather: Option<bool> = None, unset "`true` if the pool has `fastcgi`" "true";
        /// Protocols to which a connection may be upgraded; it then becomes a tunnel.
        upgrade: Vec<At<Token>> = vec![At::nowhere(Token::literal(Token::WEBSOCKET))];
        /// How to handle a path that servers read differently (an encoded slash, a backslash, `;`, a dot at the end of
        /// a segment) if its readings lead to different routes. `"strict"`: refuse the request. `"raw"`, set in all of
        /// these routes: use the path as it is compared, decoded once, if the backends read it so.
        paths: PathReading = PathReading::Strict;
        /// Whether `CONNECT` is passed to the backend and turns the connection into a tunnel. Any client of the
        /// listener can then reach everything that the backend connects to.
        connect: bool = false;
    }

    /// The requests of a route; each key may hold several alternatives.
    pub(crate) struct Matcher {
        /// Hosts: `example.com`, or `*.example.com` for all names below it. Ports are ignored.
        host: Vec<HostPattern> = Vec::new();
        /// Paths, compared decoded: `/blog` is that path and all below it, `/blog/` all paths that begin so, `=/blog`
        /// only that path; a star matches any run of characters including slashes, and the pattern then applies to the
        /// whole path: `/*.php`.
        path: Vec<PathPattern> = Vec::new();
        /// Methods, in capital letters as in requests.
        method: Vec<MethodName> = Vec::new();
    }

    /// An answer made here.
    pub(crate) struct AnswerSettings {
        /// The status code.
        status: Bounded<200, 599> = Bounded::of::<200>();
        /// The fields, besides `Date` and `Content-Length`. `{host}` and the like have no meaning here or in the body.
        fields: Map<FieldName, FieldValue> = Map::default();
        /// The body.
        body: String = String::new();
    }

    /// A redirect made here.
    pub(crate) struct RedirectSettings {
        /// The target URL. `{host}`, `{target}` (path and query), `{path}` and `{query}` (with its question mark) stand
        /// for those of the request.
        to: Option<Template> = None, required "\"https://{host}{target}\"";
        /// The status code.
        status: RedirectStatus = RedirectStatus(308);
    }
}

/// A [`Matcher`], as a table or a string.
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

/// A [`Matcher`] as a string: `[METHOD[|METHOD…] ][HOST][PATH]`.
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
        let is_expression = text.starts_with('^') && !text.contains(' ');
        if let Some(expression) = text.strip_prefix('~').or(is_expression.then_some(text)) {
            let complaint = Complaint::new(format!("{text:?} is a regular expression, and `match` has none"));
            return Err(match expression.contains("php") {
                true => complaint.help(
                    "php = \"/srv/app\" on a route runs the scripts of a directory and serves its files; or match = \"/*.php\"",
                ),
                false => complaint.help("a star matches any run of characters: \"/images/*.png\""),
            });
        }
        refuse_habits(text)?;
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
        // No host ends in these, but people often think of paths by their suffix.
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

/// Refuses what other servers read as something else, and a route would take literally.
fn refuse_habits(text: &str) -> Result<(), Complaint> {
    let first = text.split_ascii_whitespace().next().unwrap_or_default();
    let complaint = if let Some((_, rest)) = text.split_once("://") {
        Complaint::new(format!("{text:?} has a scheme")).help(format!("leave out the scheme: \"{rest}\""))
    } else if text == "_" {
        Complaint::new("\"_\" would be a host")
            .help("without a host, a route is for all of them: match = \"/\"")
    } else if first != text && first.starts_with(['^', '=']) {
        let complaint = Complaint::new(format!("{first:?} is not a method"));
        complaint.help("\"/static/\" is everything below that path, \"=/static\" that path alone; the longer path is taken first")
    } else if first != text && first.contains('.') {
        let complaint = Complaint::new(format!("{first:?} is not a method"));
        complaint.help("several hosts: match = { host = [\"example.org\", \"www.example.org\"] }")
    } else if let Some(sign) =
        text[text.find('/').unwrap_or(text.len())..].matches(['(', ')', '[', ']', '^', '$', '\\']).next()
    {
        let complaint =
            Complaint::new(format!("{sign:?} would be taken literally: `match` has no regular expressions"));
        complaint.help(format!(
            "a star matches any run of characters: \"/images/*.png\"; if {sign:?} is meant: {{ path = … }}"
        ))
    } else {
        return Ok(());
    };
    Err(complaint)
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
        let switched = match node.get_ref().as_str() {
            Some("on" | "yes" | "true") => Some(true),
            Some("off" | "no" | "false" | "none") => Some(false),
            _ => node.get_ref().as_bool(),
        };
        if let Some(on) = switched {
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

/// [`CacheChoice`] as a word.
#[derive(Clone, Copy, PartialEq)]
enum CacheWord {
    Lookup,
    Pass,
}

choice!(CacheWord { "lookup" => CacheWord::Lookup, "pass" => CacheWord::Pass });
