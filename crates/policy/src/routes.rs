//! Routes: the first that matches a request determines its treatment.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use crate::cache_rule::CacheRule;
use crate::compress_rule::CompressRule;
use crate::digest_once::DigestOnce;
use crate::edits::{Edits, FieldLine, ResponseEdits};
use crate::files::FileRule;
use crate::fragment_rule::FragmentRule;
use crate::pattern::{HostPattern, MethodName, PathPattern, bare_host, lower_case};
use crate::template::{RequestParts, Template};

/// Identifies a route within one configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RouteId(u32);

/// Identifies a pool within one configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(u32);

impl PoolId {
    /// The pool at this position in the configuration.
    pub fn at(place: usize) -> PoolId {
        PoolId(u32::try_from(place).expect("a configuration with fewer than 2^32 pools"))
    }

    /// Its position among the pools of the configuration.
    pub fn place(self) -> usize {
        self.0 as usize
    }
}

/// A set of requests and their treatment.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Conditions, any of which may match. Without any, the route matches every request.
    pub matches: Vec<Match>,
    /// The treatment of the requests.
    pub action: Action,
    /// Edits of the request before it goes to a backend.
    pub request: Edits,
    /// Edits of the response when it comes from a backend, before it is stored.
    pub response: ResponseEdits,
    /// Which bodies are sent in another coding; none if it is `None`.
    pub compress: Option<Box<CompressRule>>,
    /// Which responses are pages with fragments; none if it is `None`.
    pub fragments: Option<FragmentRule>,
    /// The value of `Strict-Transport-Security` (RFC 6797) for clients that came by https.
    pub hsts: Option<Box<str>>,
    /// Protocols that a connection may be upgraded to, in lower case.
    pub upgrade: Vec<String>,
    /// Whether `CONNECT` is forwarded and opens a tunnel.
    pub connect: bool,
    /// The treatment of a path with several readings.
    pub paths: PathReading,
    /// Whether request bodies are received before a backend is chosen; `None`: as is usual for the pool.
    pub gather: Option<bool>,
    /// The digest of the rules, once it was asked for.
    pub digest: DigestOnce,
}

/// The treatment of a path that servers read differently, if the readings lead to different routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathReading {
    /// The request is refused.
    #[default]
    Strict,
    /// It counts in the form in which it is compared, decoded once.
    Raw,
}

/// The conditions of a route. An empty list is no condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// Hosts, one of which must match.
    pub hosts: Vec<HostPattern>,
    /// Paths, one of which must match.
    pub paths: Vec<PathPattern>,
    /// Methods, one of which must match.
    pub methods: Vec<MethodName>,
}

/// The treatment of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A pool answers it, or the cache in its place.
    Forward(Forward),
    /// A file of a directory tree answers it.
    Files {
        /// Which file.
        rule: Arc<FileRule>,
        /// Answers requests for which there is no file.
        fallback: Option<Forward>,
    },
    /// No answer to a client. A response of a pool may name a file of this directory tree, which is then sent in its place.
    Internal(Arc<FileRule>),
    /// A fixed answer.
    Answer(FixedAnswer),
    /// A redirect.
    Redirect(Redirect),
}

/// Forwarding to a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Forward {
    /// The pool.
    pub pool: PoolId,
    /// The pool for requests whose method is not safe (RFC 9110 §9.2.1), if it differs.
    pub unsafe_pool: Option<PoolId>,
    /// The use of the cache; `None` if it is not used.
    pub cache: Option<Box<CacheRule>>,
}

/// A fixed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedAnswer {
    /// The status code.
    pub status: u16,
    /// The fields, except `Date` and `Content-Length`; includes `Content-Type` if there is a body.
    pub fields: Vec<FieldLine>,
    /// The body.
    pub body: String,
}

/// A redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// The status code.
    pub status: u16,
    /// The value of `Location`.
    pub to: Template,
}

impl Redirect {
    /// The value of `Location` for a request. A path never begins with two slashes, which a part without a value
    /// can cause, because it would lead to another host. Browsers take a backslash for a slash.
    pub fn location<'t>(&'t self, request: &RequestParts<'_>) -> Cow<'t, [u8]> {
        let to = self.to.fill(request);
        let slashes = to.iter().take_while(|byte| matches!(byte, b'/' | b'\\')).count();
        if self.to.is_constant() || slashes < 2 { to } else { Cow::Owned([b"/", &to[slashes..]].concat()) }
    }
}

impl Route {
    /// The pool that requests go to, if there is one.
    pub fn forward(&self) -> Option<&Forward> {
        match &self.action {
            Action::Forward(forward) => Some(forward),
            Action::Files { fallback, .. } => fallback.as_ref(),
            Action::Internal(_) | Action::Answer(_) | Action::Redirect(_) => None,
        }
    }

    /// The same, to be changed.
    pub fn forward_mut(&mut self) -> Option<&mut Forward> {
        match &mut self.action {
            Action::Forward(forward) => Some(forward),
            Action::Files { fallback, .. } => fallback.as_mut(),
            Action::Internal(_) | Action::Answer(_) | Action::Redirect(_) => None,
        }
    }

    /// The cache rule, if the cache is used.
    pub fn cache_rule(&self) -> Option<&CacheRule> {
        self.forward()?.cache.as_deref()
    }

    /// Whether this certainly matches every request that `other` matches.
    pub fn covers(&self, other: &Route) -> bool {
        let ours = self.matches_or_any();
        other.matches_or_any().iter().flat_map(Match::singles).all(|(host, path, method)| {
            ours.iter().any(|matcher| {
                let host =
                    matcher.hosts.is_empty() || matcher.hosts.iter().any(|pattern| pattern.covers(host));
                let path =
                    matcher.paths.is_empty() || matcher.paths.iter().any(|pattern| pattern.covers(path));
                host && path
                    && (matcher.methods.is_empty()
                        || method.is_some_and(|name| matcher.methods.contains(name)))
            })
        })
    }
}

impl Route {
    fn matches_or_any(&self) -> &[Match] {
        static ANY: [Match; 1] = [Match { hosts: Vec::new(), paths: Vec::new(), methods: Vec::new() }];
        if self.matches.is_empty() { &ANY } else { &self.matches }
    }
}

impl Match {
    /// Every combination of a host, a path and a method that this matches.
    fn singles(&self) -> impl Iterator<Item = (&HostPattern, &PathPattern, Option<&MethodName>)> {
        static ANY_PATH: LazyLock<[PathPattern; 1]> = LazyLock::new(|| [PathPattern::Below(Box::default())]);
        let hosts = if self.hosts.is_empty() { &[HostPattern::Any][..] } else { &self.hosts };
        let paths = if self.paths.is_empty() { &ANY_PATH[..] } else { &self.paths };
        let methods = move || {
            let any = self.methods.is_empty().then_some(None);
            any.into_iter().chain(self.methods.iter().map(Some))
        };
        hosts.iter().flat_map(move |host| {
            paths.iter().flat_map(move |path| methods().map(move |method| (host, path, method)))
        })
    }
}

/// Routes in order, with an index by host.
#[derive(Clone, Debug)]
pub struct Routes {
    routes: Vec<Route>,
    /// For every host that a route names: the matching routes.
    exact: BTreeMap<Box<[u8]>, Vec<Candidate>>,
    /// For every suffix that a route names: the routes of hosts under it that are neither in `exact` nor
    /// under a longer suffix.
    under: BTreeMap<Box<[u8]>, Vec<Candidate>>,
    /// For all other hosts.
    other: Vec<Candidate>,
}

/// A path of a route for some host; any path if there is none.
#[derive(Clone, Debug)]
struct Candidate {
    route: u32,
    matcher: u32,
    start: Start,
    path: Option<PathPattern>,
}

/// A required prefix of a path, for a first check that costs next to nothing and decides most cases: its
/// length, and its last eight bytes, in which the patterns of one site differ.
#[derive(Clone, Copy, Debug)]
struct Start {
    len: usize,
    last: u64,
    mask: u64,
}

impl Start {
    fn of(bytes: &[u8]) -> Start {
        let kept = bytes.len().min(8);
        let mask = u64::MAX.checked_shr(64 - 8 * kept as u32).unwrap_or(0);
        Start { len: bytes.len(), last: word(&bytes[bytes.len() - kept..]), mask }
    }

    /// Whether `path`, whose first bytes are `first`, may have this prefix. False is certain.
    fn may_begin(&self, path: &[u8], first: u64) -> bool {
        let at_end = match self.len.checked_sub(8).and_then(|from| path.get(from..self.len)) {
            Some(last) => word(last),
            None => first,
        };
        path.len() >= self.len && at_end & self.mask == self.last
    }
}

/// The first eight bytes, or as many as there are.
fn word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(eight) => u64::from_le_bytes(*eight),
        None => bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

impl std::ops::Index<RouteId> for Routes {
    type Output = Route;

    /// The route with this id, which MUST be from here.
    fn index(&self, id: RouteId) -> &Route {
        &self.routes[id.0 as usize]
    }
}

impl Routes {
    /// An index over `routes`, in this order. Pools that they refer to MUST be in the same configuration.
    pub fn new(routes: Vec<Route>) -> Routes {
        let hosts = || routes.iter().flat_map(|route| &route.matches).flat_map(|matcher| &matcher.hosts);
        let mut exact = BTreeMap::new();
        let mut under = BTreeMap::new();
        for host in hosts() {
            match host {
                HostPattern::Exact(name) => {
                    exact.entry(name.as_bytes().into()).or_insert_with(|| candidates(&routes, host));
                }
                HostPattern::Under(suffix) => {
                    under.entry(suffix.as_bytes().into()).or_insert_with(|| candidates(&routes, host));
                }
                HostPattern::Any => {}
            }
        }
        let other = candidates(&routes, &HostPattern::Any);
        Routes { routes, exact, under, other }
    }

    /// The routes in order.
    pub fn all(&self) -> &[Route] {
        &self.routes
    }

    /// The first route that matches. `host` may have a port and any letter case, and is empty if a request
    /// has none; `path` is decoded and without dot segments; `*` and the targets of `CONNECT` have the path
    /// `""`.
    pub fn find(&self, host: &[u8], path: &[u8], method: &[u8]) -> Option<RouteId> {
        let first = word(path);
        let candidate = self.for_host(host).iter().find(|candidate| {
            candidate.start.may_begin(path, first)
                && candidate.path.as_ref().is_none_or(|pattern| pattern.matches(path))
                && self.method_fits(candidate, method)
        })?;
        Some(RouteId(candidate.route))
    }

    fn method_fits(&self, candidate: &Candidate, method: &[u8]) -> bool {
        let matches = &self.routes[candidate.route as usize].matches;
        matches.get(candidate.matcher as usize).is_none_or(|matcher| {
            matcher.methods.is_empty()
                || matcher.methods.iter().any(|name| name.as_str().as_bytes() == method)
        })
    }

    fn for_host(&self, host: &[u8]) -> &[Candidate] {
        if self.exact.is_empty() && self.under.is_empty() {
            return &self.other;
        }
        let bare = bare_host(host);
        // No name in the DNS is longer (RFC 1035 §2.3.4), and neither is a pattern.
        if bare.len() > 255 {
            return &self.other;
        }
        let name = lower_case(bare);
        if let Some(candidates) = self.exact.get(&*name) {
            return candidates;
        }
        if !self.under.is_empty() {
            let dots = name.iter().enumerate().filter(|&(at, &byte)| byte == b'.' && at > 0);
            for (at, _) in dots {
                if let Some(candidates) = self.under.get(&name[at..]) {
                    return candidates;
                }
            }
        }
        &self.other
    }
}

/// The parts of `routes` for the hosts that `host` matches, in order.
fn candidates(routes: &[Route], host: &HostPattern) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for (route, matches) in routes.iter().map(|route| &route.matches).enumerate() {
        let mut add = |matcher: usize, path: Option<&PathPattern>| {
            candidates.push(Candidate {
                route: route as u32,
                matcher: matcher as u32,
                start: Start::of(path.map_or(&[], PathPattern::literal_start)),
                path: path.cloned(),
            });
        };
        if matches.is_empty() {
            add(0, None);
        }
        for (at, matcher) in matches.iter().enumerate() {
            if !matcher.hosts.is_empty() && !matcher.hosts.iter().any(|pattern| pattern.covers(host)) {
                continue;
            }
            if matcher.paths.is_empty() {
                add(at, None);
            }
            matcher.paths.iter().for_each(|path| add(at, Some(path)));
        }
    }
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(hosts: Vec<HostPattern>, path: &str, methods: &[&str]) -> Route {
        let paths = vec![PathPattern::Below(path.as_bytes().into())];
        let methods = methods.iter().map(|name| MethodName::new(name)).collect();
        Route {
            matches: vec![Match { hosts, paths, methods }],
            action: Action::Answer(FixedAnswer { status: 200, fields: Vec::new(), body: String::new() }),
            request: Edits::default(),
            response: ResponseEdits::default(),
            compress: None,
            fragments: None,
            hsts: None,
            upgrade: Vec::new(),
            connect: false,
            paths: PathReading::Strict,
            gather: None,
            digest: DigestOnce::default(),
        }
    }

    #[test]
    fn a_redirect_within_the_host_does_not_leave_it() {
        use crate::template::{TemplatePart, TemplatePiece};
        let literal = |text: &str| TemplatePiece::Literal(text.into());
        let part = TemplatePiece::Part;
        let empty_first = vec![literal("/"), part(TemplatePart::Query), part(TemplatePart::Path)];
        let below = vec![literal("/new"), part(TemplatePart::Target)];
        for (pieces, target, location) in [
            (empty_first.clone(), "/evil.example", "/evil.example"),
            (empty_first.clone(), "//evil.example", "/evil.example"),
            (empty_first.clone(), "/\\evil.example", "/evil.example"),
            (empty_first, "/a?b", "/?b/a"),
            (below, "//evil.example?x", "/new//evil.example?x"),
            (vec![literal("//cdn.example/")], "/", "//cdn.example/"),
        ] {
            let redirect = Redirect { status: 302, to: Template::new(pieces) };
            let parts = RequestParts { target: target.as_bytes(), ..RequestParts::default() };
            assert_eq!(str::from_utf8(&redirect.location(&parts)), Ok(location), "{target}");
        }
    }

    #[test]
    fn the_first_route_that_matches_counts() {
        let exact = || vec![HostPattern::Exact("a.example".into())];
        let routes = Routes::new(vec![
            route(exact(), "/blog", &["POST"]),
            route(vec![HostPattern::Under(".example".into())], "/blog", &[]),
            route(exact(), "", &[]),
            route(Vec::new(), "/longer/than/eight", &[]),
        ]);
        for (host, path, method, found) in [
            ("A.example.:80", "/blog/x", "POST", Some(0)),
            ("a.example", "/blog", "GET", Some(1)),
            ("a.example", "/", "GET", Some(2)),
            ("b.example", "/", "GET", None),
            ("b", "/longer/than/eight/x", "GET", Some(3)),
            ("b", "/longer/than/seven", "GET", None),
        ] {
            let id = routes.find(host.as_bytes(), path.as_bytes(), method.as_bytes());
            assert_eq!(id, found.map(RouteId), "{host} {path} {method}");
        }
    }

    #[test]
    fn a_route_covers_those_whose_requests_it_all_takes() {
        let under = || vec![HostPattern::Under(".example".into())];
        let exact = || vec![HostPattern::Exact("a.example".into())];
        assert!(route(under(), "/a", &[]).covers(&route(exact(), "/a/b", &["GET"])));
        assert!(!route(under(), "/a", &["GET"]).covers(&route(exact(), "/a/b", &[])));
        assert!(!route(exact(), "", &[]).covers(&route(under(), "/a", &[])));
    }
}
