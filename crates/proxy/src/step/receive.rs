//! Receive: target, requester and route of a request, and the verdict of the rules.

use crate::Fault;
use crate::report::file_refusal::FileRefusal;
use crate::report::pass_reason::PassReason;
use crate::request::client_certificate::{is_client_certificate, keys_certificate};
use crate::request::received::{Received, host_text, normal_host};
use crate::request::requester::Requester;
use crate::request::unkeyed::is_keyed;
use crate::respond::{METHODS, Synthetic};
use crate::site::Site;
use bytes::Bytes;
use sandarac_message::caching::{BypassReason, StoreUse, store_use};
use sandarac_message::forwarding;
use sandarac_message::hop::{self, MaxForwards};
use sandarac_message::target::{Form, PathError, Scheme, Target, other_readings, route_path};
use sandarac_message::{Fields, FieldsBuf, Method, Name, RequestHead, Version};
use sandarac_net::Peer;
use sandarac_policy::{
    Action, CacheRule, FixedAnswer, Forward, PathReading, PoolId, RequestParts, Route, RouteId, Routes,
};
use sandarac_wire::resume::WELL_KNOWN;
use std::borrow::Cow;

/// The step that a request takes.
pub(crate) enum Verdict {
    /// Look up a stored response by the route's cache rule, else fetch one from this pool.
    Lookup(PoolId),
    /// Answer with what is stored for everybody, else fetch from this pool for this client alone: its request
    /// has a field for which, with this reason, it may share nothing else.
    Apart(PoolId, BypassReason),
    /// Forward to this pool without the store.
    Pass(PoolId, PassReason),
    /// Become a tunnel to a backend of this pool.
    Pipe(PoolId),
    /// Answer with a file of the route's directory tree.
    Files,
    /// Answer with this response.
    Synth(Box<Synthetic>),
    /// Remove what is stored for the target.
    Purge,
}

/// Reads the target, determines the requester, and finds the route. `stated` is the scheme beside the target,
/// in HTTP/2.
pub(crate) fn receive<'a>(
    site: &'a Site,
    peer: &'a Peer,
    request: &RequestHead<'a>,
    stated: Option<Scheme>,
) -> Result<Received<'a>, Fault> {
    let target = Target::of(request).map_err(Fault::BadTarget)?;
    let ip = peer.client.map(|address| address.ip());
    let trusted = site.trusts(peer.listener, ip);
    let told = || forwarding::told_scheme(request.fields);
    let listener_scheme = site.scheme(peer.listener);
    match target.scheme.or(stated) {
        // Only a proxy before us, or the listener's configuration, can state that the client's connection was
        // another (RFC 9110 §7.4).
        Some(Scheme::Https)
            if !trusted && listener_scheme == Scheme::Http && request.method != Method::Purge =>
        {
            return Err(Fault::Misdirected);
        }
        Some(Scheme::Http) if !trusted && peer.tls.is_some() && request.method != Method::Purge => {
            return Err(Fault::Misdirected);
        }
        _ => {}
    }
    // A proxy before us may state the scheme of its own connection to us, or that of its client: the former
    // is http.
    let stated = || stated.filter(|scheme| *scheme == Scheme::Https);
    let scheme = match target.scheme {
        Some(scheme) => scheme,
        None => trusted.then(|| told().or_else(stated)).flatten().unwrap_or(listener_scheme),
    };
    let host = normal_host(&target, scheme);
    let path = match target.form {
        Form::Origin | Form::Absolute => route_path(target.path()).map_err(Fault::BadPath)?,
        Form::Authority | Form::Asterisk => Cow::Borrowed(&b""[..]),
    };
    if may_tell_resume(&path) {
        // Worker reports are for balancers only.
        return Err(Fault::NoRoute);
    }
    let routes = &site.config.routes;
    let route = routes.find(&host, &path, request.method_text);
    if matches!(target.form, Form::Origin | Form::Absolute) {
        let readings = other_readings(target.path(), &path);
        if !readings.is_empty() {
            agree(routes, route, &readings, &host, request.method_text)?;
        }
    }
    if request.method == Method::Other {
        // Methods are case-sensitive (RFC 9110 §9.1), which not all applications know.
        let upper = request.method_text.to_ascii_uppercase();
        if upper != request.method_text && routes.find(&host, &path, &upper) != route {
            return Err(Fault::BadMethod);
        }
    }
    let route_id = route.ok_or(Fault::NoRoute)?;
    let route = &routes[route_id];
    let needs_visitor = route.request.needs_client() || site.speaks_fastcgi;
    let visitor = needs_visitor.then(|| site.visitor(peer, request.fields)).flatten();
    let requester = Requester {
        ip,
        port: peer.client.map(|client| client.port()),
        visitor,
        trusted,
        scheme,
        host: host_text(&target),
        tls: peer.tls.as_deref(),
        certificate_forward: site.certificate_forward(peer),
    };
    Ok(Received { target, host, requester, route, route_id })
}

/// Checks that every reading of a path leads to `route`. If one leads to another route, a request could evade
/// the rules of one of them at a backend with that reading. This is allowed only if all of these routes are
/// configured as raw.
fn agree(
    routes: &Routes,
    route: Option<RouteId>,
    readings: &[Vec<u8>],
    host: &[u8],
    method: &[u8],
) -> Result<(), Fault> {
    let is_raw = |route: Option<RouteId>| route.is_some_and(|id| routes[id].paths == PathReading::Raw);
    let others = readings.iter().map(|reading| routes.find(host, reading, method));
    let mut all_raw = is_raw(route);
    let mut differ = false;
    for other in others {
        differ |= other != route;
        all_raw &= is_raw(other);
    }
    if differ && !all_raw { Err(Fault::BadPath(PathError::Ambiguous)) } else { Ok(()) }
}

/// Whether a worker might read `path`, as routes see it, as that of its résumé. WSGI and CGI decode an
/// encoded slash for applications.
fn may_tell_resume(path: &[u8]) -> bool {
    // Few paths end like this.
    const END: &[u8] = WELL_KNOWN.as_bytes().split_at(WELL_KNOWN.len() - "resume".len()).1;
    let path = path.strip_suffix(b"/").unwrap_or(path);
    if !path.ends_with(END) {
        return false;
    }
    let path = String::from_utf8_lossy(path).replace("%2F", "/");
    // Some servers merge several slashes into one.
    path.split('/').filter(|segment| !segment.is_empty()).eq(WELL_KNOWN.split('/').skip(1))
}

/// The step that a request takes.
pub(crate) fn verdict(
    site: &Site,
    peer: &Peer,
    received: &Received<'_>,
    request: &RequestHead<'_>,
) -> Result<Verdict, Fault> {
    let may_purge = || sandarac_config::contains(&site.config.purge.allow, received.requester.ip);
    if request.method == Method::Purge && !site.config.purge.allow.is_empty() {
        return if may_purge() { Ok(Verdict::Purge) } else { Err(Fault::PurgeDenied) };
    }
    if request.method == Method::Other && is_of_varnish(request.method_text) && may_purge() {
        return Ok(Verdict::Purge);
    }
    if request.method == Method::Purge {
        return Err(Fault::MethodNotAllowed);
    }
    if hop::max_forwards(request.method, request.fields) == MaxForwards::Answer {
        return Ok(Verdict::Synth(Box::new(last_stop(request))));
    }
    if received.requester.scheme == Scheme::Http
        && site.listener(peer.listener).is_some_and(|listener| listener.redirects_to_https)
    {
        return redirect_to_https(received);
    }
    match &received.route.action {
        // Success without a tunnel would mislead the client (RFC 9110 §9.3.6).
        Action::Answer(FixedAnswer { status: 200..=299, .. }) if request.method == Method::Connect => {
            Err(Fault::TunnelNotAllowed)
        }
        Action::Answer(FixedAnswer { status: 200..=299, .. }) if is_extended_connect(request) => {
            Err(Fault::ProtocolNotAllowed)
        }
        Action::Answer(answer) => Ok(Verdict::Synth(Box::new(Synthetic {
            status: answer.status,
            fields: answer.fields.iter().map(|(name, value)| (name, value)).collect(),
            body: Bytes::copy_from_slice(answer.body.as_bytes()),
        }))),
        Action::Redirect(redirect) if redirect.to.needs_host() && received.requester.host.is_empty() => {
            Err(Fault::NoHost)
        }
        Action::Redirect(redirect) => {
            let to = redirect.location(&RequestParts {
                scheme: received.requester.scheme.text(),
                host: received.requester.host,
                target: received.target.path_and_query,
                ..RequestParts::default()
            });
            let mut fields = FieldsBuf::new();
            fields.add(Name::Location, &to).map_err(|_| Fault::HeadTooLarge)?;
            Ok(Verdict::Synth(Box::new(Synthetic { status: redirect.status, fields, body: Bytes::new() })))
        }
        Action::Forward(to) => forward(received, request, to),
        // To a client it is not there.
        Action::Internal(_) => Err(Fault::NoRoute),
        Action::Files { .. } if matches!(request.method, Method::Get | Method::Head) => Ok(Verdict::Files),
        Action::Files { fallback: Some(to), .. } => forward(received, request, to),
        Action::Files { fallback: None, .. } => Err(Fault::File(FileRefusal::Method)),
    }
}

/// The step that a request to a pool takes.
pub(crate) fn forward(
    received: &Received<'_>,
    request: &RequestHead<'_>,
    Forward { pool, unsafe_pool, cache }: &Forward,
) -> Result<Verdict, Fault> {
    let pool = unsafe_pool.filter(|_| !request.method.is_safe()).unwrap_or(*pool);
    match cache {
        _ if request.method == Method::Connect && received.route.connect => Ok(Verdict::Pipe(pool)),
        _ if request.method == Method::Connect => Err(Fault::TunnelNotAllowed),
        _ if is_upgrade(received.route, request) => Ok(Verdict::Pipe(pool)),
        _ if is_extended_connect(request) => Err(Fault::ProtocolNotAllowed),
        None => Ok(Verdict::Pass(pool, PassReason::Rule)),
        Some(rule) => Ok(match store_use(request, &rule.policy) {
            StoreUse::Bypass(why) => Verdict::Pass(pool, PassReason::Bypass(why)),
            _ if is_of_certificate(received, request.fields, rule) => {
                Verdict::Pass(pool, PassReason::ClientCertificate)
            }
            StoreUse::Apart(why) => Verdict::Apart(pool, why),
            StoreUse::Shared => Verdict::Lookup(pool),
        }),
    }
}

/// Whether the response may depend on a certificate of the client that the rule does not key: of its
/// connection, or named by a trusted proxy, whose own certificate says nothing of its client.
fn is_of_certificate(received: &Received<'_>, fields: Fields<'_>, rule: &CacheRule) -> bool {
    let Requester { tls, trusted, .. } = received.requester;
    if trusted {
        return fields.iter().any(|field| is_client_certificate(&field) && !is_keyed(&field, rule));
    }
    tls.is_some_and(|tls| !tls.certificates.is_empty()) && !keys_certificate(&rule.key)
}

/// Whether the certificates of the connection have to take the place of those in the fields, because the rule
/// keys them.
pub(crate) fn takes_certificate(received: &Received<'_>, fields: Fields<'_>) -> bool {
    let Requester { tls, trusted, .. } = received.requester;
    received.route.cache_rule().is_some_and(|rule| !rule.key.fields.is_empty() && keys_certificate(&rule.key))
        && !trusted
        && (tls.is_some_and(|tls| !tls.certificates.is_empty())
            || fields.iter().any(|field| is_client_certificate(&field)))
}

/// A redirect to the same URL with https, on the usual port.
fn redirect_to_https(received: &Received<'_>) -> Result<Verdict, Fault> {
    let Some(authority) = received.target.authority else { return Err(Fault::NoHost) };
    let to = [&b"https://"[..], authority.host, received.target.path_and_query].concat();
    let mut fields = FieldsBuf::new();
    fields.add(Name::Location, &to).map_err(|_| Fault::HeadTooLarge)?;
    Ok(Verdict::Synth(Box::new(Synthetic { status: 308, fields, body: Bytes::new() })))
}

/// Whether the request came as an extended CONNECT (RFC 8441 §4), which has become a GET with Upgrade. No
/// other request over HTTP/2 has that field.
pub(crate) fn is_extended_connect(request: &RequestHead<'_>) -> bool {
    request.version == Version::Http2 && request.fields.has(Name::Upgrade)
}

/// Whether the request asks for a protocol that the route allows. HTTP/1.0 knows no upgrades (RFC 9110 §7.8).
fn is_upgrade(route: &Route, request: &RequestHead<'_>) -> bool {
    !route.upgrade.is_empty()
        && request.version != Version::Http10
        && hop::upgrade(request.fields).is_some_and(|protocols| {
            sandarac_message::members(protocols).all(|protocol| {
                route.upgrade.iter().any(|allowed| protocol.eq_ignore_ascii_case(allowed.as_bytes()))
            })
        })
}

/// The response to OPTIONS or TRACE with Max-Forwards 0 (RFC 9110 §7.6.2).
fn last_stop(request: &RequestHead<'_>) -> Synthetic {
    let mut fields = FieldsBuf::new();
    let short = "a short field fits a head";
    if request.method == Method::Options {
        fields.add(Name::Allow, METHODS).expect(short);
        return Synthetic { status: 200, fields, body: Bytes::new() };
    }
    // Fields that a client might not want echoed are omitted (RFC 9110 §9.3.8).
    let mut body = Vec::new();
    let mut head = sandarac_wire::h1::encode::Head::request(&mut body, request.method_text, request.target);
    for field in request.fields.iter() {
        if !matches!(field.id, Name::Cookie | Name::Authorization | Name::ProxyAuthorization) {
            head.field(field.name, field.value);
        }
    }
    head.finish();
    fields.add(Name::ContentType, b"message/http").expect(short);
    Synthetic { status: 200, fields, body: body.into() }
}

/// Whether applications use this method to purge responses from Varnish, by a VCL of their own. An
/// application behind this proxy might respond 200 to it, and the sender would believe that its pages are
/// purged.
fn is_of_varnish(method: &[u8]) -> bool {
    [&b"BAN"[..], b"FULLBAN", b"URIBAN", b"PURGEKEYS"].contains(&method)
}
