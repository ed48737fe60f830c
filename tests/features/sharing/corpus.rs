//! Ordinary applications, and the mistakes that they make: each answers by something of the request, and says too little of
//! it. What is one visitor's own is never shared by default; what only has the wrong language or form is, and
//! `sandarac probe` names it.

use sandarac_test_support::{Reply, Request, reply};

use super::with;
use crate::before;

/// Whether the second visitor may get what the first one got.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sharing {
    /// It is the first one's own.
    Never,
    /// It is the same for both, or said to be.
    Shared,
    /// It is not what the second one wanted, and harms nobody; nothing in the messages says so.
    Wrong,
}

use Sharing::{Never, Shared, Wrong};

/// The fields of a request or a response.
type Lines = &'static [(&'static str, &'static str)];

struct Case {
    what: &'static str,
    /// The fields of the two visitors' requests.
    one: Lines,
    other: Lines,
    /// The fields of every response.
    says: Lines,
    sharing: Sharing,
}

const fn case(what: &'static str, one: Lines, other: Lines, says: Lines, sharing: Sharing) -> Case {
    Case { what, one, other, says, sharing }
}

const HTML: (&str, &str) = ("Content-Type", "text/html; charset=utf-8");
const JSON: (&str, &str) = ("Content-Type", "application/json");
const MINUTE: (&str, &str) = ("Cache-Control", "max-age=60");
const PUBLIC: (&str, &str) = ("Cache-Control", "public, max-age=60");
const NOBODY: Lines = &[];

const CASES: [Case; 66] = [
    // Sessions.
    case("a session cookie, a page without a lifetime", &[("Cookie", "session=1")], NOBODY, &[HTML], Never),
    case(
        "a session cookie, a page with one",
        &[("Cookie", "PHPSESSID=1")],
        &[("Cookie", "PHPSESSID=2")],
        &[HTML, MINUTE],
        Never,
    ),
    case(
        "a session cookie, a page that says public",
        &[("Cookie", "sid=1")],
        &[("Cookie", "sid=2")],
        &[HTML, PUBLIC],
        Never,
    ),
    case(
        "a session cookie beside one of statistics",
        &[("Cookie", "_ga=1; s=1")],
        &[("Cookie", "_ga=2; s=2")],
        &[HTML],
        Never,
    ),
    case("a new session for each visitor", NOBODY, NOBODY, &[HTML, ("Set-Cookie", "session=1")], Never),
    case(
        "a new session, with a lifetime",
        NOBODY,
        NOBODY,
        &[HTML, PUBLIC, ("Set-Cookie", "session=1")],
        Never,
    ),
    case(
        "a token of a form in a cookie",
        NOBODY,
        NOBODY,
        &[HTML, ("Set-Cookie", "csrftoken=x; SameSite=Lax")],
        Never,
    ),
    case("a cart", &[("Cookie", "cart=1")], &[("Cookie", "cart=2")], &[HTML], Never),
    case("a cookie with a language", &[("Cookie", "lang=de")], &[("Cookie", "lang=fr")], &[HTML], Never),
    case(
        "a cookie that Vary names",
        &[("Cookie", "s=1")],
        &[("Cookie", "s=2")],
        &[HTML, MINUTE, ("Vary", "Cookie")],
        Never,
    ),
    // Credentials.
    case(
        "HTTP Basic",
        &[("Authorization", "Basic YTph")],
        &[("Authorization", "Basic Yjpi")],
        &[HTML, MINUTE],
        Never,
    ),
    case("a bearer token, no lifetime", &[("Authorization", "Bearer a")], NOBODY, &[JSON], Never),
    case(
        "a bearer token and public",
        &[("Authorization", "Bearer a")],
        &[("Authorization", "Bearer b")],
        &[JSON, PUBLIC],
        Never,
    ),
    case("credentials for a proxy", &[("Proxy-Authorization", "Basic YTph")], NOBODY, &[HTML, MINUTE], Never),
    case("X-API-Key", &[("X-API-Key", "a")], &[("X-API-Key", "b")], &[JSON, MINUTE], Never),
    case("X-API-Key, then a stranger", &[("X-API-Key", "a")], NOBODY, &[JSON, MINUTE], Never),
    case("a stranger, then X-API-Key", NOBODY, &[("X-API-Key", "a")], &[JSON, MINUTE], Never),
    case("X-API-Key on a page", &[("X-API-Key", "a")], &[("X-API-Key", "b")], &[HTML], Never),
    case("apikey", &[("apikey", "a")], &[("apikey", "b")], &[JSON, MINUTE], Never),
    case("Api-Token", &[("Api-Token", "a")], NOBODY, &[JSON, MINUTE], Never),
    case("X-Auth-Token", &[("X-Auth-Token", "a")], &[("X-Auth-Token", "b")], &[JSON, MINUTE], Never),
    case("Private-Token", &[("Private-Token", "a")], NOBODY, &[JSON, MINUTE], Never),
    case("X-Session-Id", &[("X-Session-Id", "1")], &[("X-Session-Id", "2")], &[HTML, MINUTE], Never),
    case("DPoP", &[("DPoP", "a")], &[("DPoP", "b")], &[JSON, MINUTE], Never),
    case(
        "a signed request",
        &[("Signature", "a=:b:"), ("Signature-Input", "a=()")],
        NOBODY,
        &[JSON, MINUTE],
        Never,
    ),
    case("X-Amz-Security-Token", &[("X-Amz-Security-Token", "a")], NOBODY, &[JSON, MINUTE], Never),
    case(
        "a certificate, as another proxy names it",
        &[("X-SSL-Client-S-DN", "CN=a")],
        &[("X-SSL-Client-S-DN", "CN=b")],
        &[HTML, MINUTE],
        Never,
    ),
    // Login proxies.
    case(
        "X-Forwarded-User",
        &[("X-Forwarded-User", "ann")],
        &[("X-Forwarded-User", "bob")],
        &[HTML, MINUTE],
        Never,
    ),
    case("X-Forwarded-Email", &[("X-Forwarded-Email", "a@b.example")], NOBODY, &[HTML], Never),
    case(
        "X-Auth-Request-User",
        &[("X-Auth-Request-User", "ann")],
        &[("X-Auth-Request-User", "bob")],
        &[HTML],
        Never,
    ),
    case("Remote-User", &[("Remote-User", "ann")], &[("Remote-User", "bob")], &[HTML, MINUTE], Never),
    case("X-Remote-User", &[("X-Remote-User", "ann")], NOBODY, &[HTML], Never),
    case(
        "Cloudflare Access",
        &[("CF-Access-Authenticated-User-Email", "a@b.example")],
        NOBODY,
        &[HTML, MINUTE],
        Never,
    ),
    case(
        "Amazon's balancer",
        &[("X-Amzn-Oidc-Identity", "ann")],
        &[("X-Amzn-Oidc-Identity", "bob")],
        &[HTML, MINUTE],
        Never,
    ),
    case("Google's proxy", &[("X-Goog-Authenticated-User-Email", "a")], NOBODY, &[HTML, MINUTE], Never),
    case("Authelia", &[("Remote-Groups", "admins")], &[("Remote-Groups", "users")], &[HTML, MINUTE], Never),
    case(
        "Tailscale",
        &[("Tailscale-User-Login", "ann")],
        &[("Tailscale-User-Login", "bob")],
        &[HTML, MINUTE],
        Never,
    ),
    case("From", &[("From", "ann@a.example")], &[("From", "bob@a.example")], &[HTML, MINUTE], Never),
    // Devices and tenants.
    case("X-Device-Id of an app", &[("X-Device-Id", "1")], &[("X-Device-Id", "2")], &[JSON, MINUTE], Never),
    case("X-Tenant", &[("X-Tenant", "a")], &[("X-Tenant", "b")], &[JSON, MINUTE], Never),
    case("X-User-Id", &[("X-User-Id", "1")], &[("X-User-Id", "2")], &[HTML], Never),
    case("a carrier's X-MSISDN", &[("X-MSISDN", "49170")], NOBODY, &[HTML], Never),
    case("X-CSRF-Token", &[("X-CSRF-Token", "a")], &[("X-CSRF-Token", "b")], &[HTML, MINUTE], Never),
    case("X-WP-Nonce", &[("X-WP-Nonce", "a")], NOBODY, &[JSON, MINUTE], Never),
    case(
        "an idempotency key",
        &[("Idempotency-Key", "a")],
        &[("Idempotency-Key", "b")],
        &[JSON, MINUTE],
        Never,
    ),
    case("a Signal of a feature", &[("X-Feature-Flags", "new")], NOBODY, &[HTML, MINUTE], Never),
    case(
        "a script, fetched with an unknown field",
        &[("X-Corp-Gateway", "1")],
        NOBODY,
        &[("Content-Type", "text/javascript"), MINUTE],
        Never,
    ),
    case(
        "a picture of a user",
        &[("X-Forwarded-User", "ann")],
        &[("X-Forwarded-User", "bob")],
        &[("Content-Type", "image/png"), MINUTE],
        Never,
    ),
    // Streams, polls and data.
    case("an event stream", NOBODY, NOBODY, &[("Content-Type", "text/event-stream"), PUBLIC], Never),
    case(
        "a camera",
        NOBODY,
        NOBODY,
        &[("Content-Type", "multipart/x-mixed-replace; boundary=x"), MINUTE],
        Never,
    ),
    case("a long poll", NOBODY, NOBODY, &[JSON], Never),
    case("a long poll with an ETag", NOBODY, NOBODY, &[JSON, ("ETag", "\"a\"")], Never),
    case(
        "a document of CouchDB, as text",
        NOBODY,
        NOBODY,
        &[("Content-Type", "text/plain; charset=utf-8"), ("ETag", "\"a\"")],
        Never,
    ),
    case("an export", NOBODY, NOBODY, &[("Content-Type", "text/csv")], Never),
    case("a download", NOBODY, NOBODY, &[("Content-Type", "application/octet-stream")], Never),
    case("private", NOBODY, NOBODY, &[HTML, ("Cache-Control", "private, max-age=60")], Never),
    case(
        "PHP's session_start",
        NOBODY,
        NOBODY,
        &[HTML, ("Cache-Control", "no-store, no-cache, must-revalidate")],
        Never,
    ),
    // Forms of one URL.
    case("htmx", &[("HX-Request", "true")], NOBODY, &[HTML, PUBLIC], Never),
    case("XMLHttpRequest", &[("X-Requested-With", "XMLHttpRequest")], NOBODY, &[HTML], Never),
    case("Next.js", &[("RSC", "1")], NOBODY, &[("Content-Type", "text/x-component"), PUBLIC], Never),
    case(
        "an origin of CORS",
        &[("Origin", "https://a.example")],
        &[("Origin", "https://b.example")],
        &[JSON, PUBLIC, ("Access-Control-Allow-Origin", "https://a.example")],
        Never,
    ),
    case("Accept without Vary, no lifetime", NOBODY, &[("Accept", "application/json")], &[HTML], Never),
    // Wrong, and harmless.
    case(
        "a language without Vary",
        &[("Accept-Language", "de")],
        &[("Accept-Language", "fr")],
        &[HTML],
        Wrong,
    ),
    case("a device without Vary", &[("User-Agent", "Mobile")], &[("User-Agent", "Desktop")], &[HTML], Wrong),
    // Right.
    case(
        "a script, then an unknown field",
        NOBODY,
        &[("X-Corp-Gateway", "1")],
        &[("Content-Type", "text/javascript"), MINUTE],
        Shared,
    ),
    case(
        "a list that says public",
        &[("X-App-Version", "3")],
        &[("X-App-Version", "4")],
        &[JSON, PUBLIC],
        Shared,
    ),
];

/// An application that says who asked, and when.
fn answer(request: &Request) -> Reply {
    let case = &CASES[request.path()[1..].parse::<usize>().expect("the number of a case")];
    case.says
        .iter()
        .fold(reply(200), |reply, (name, value)| reply.with(name, value))
        .body(request.serial.to_string())
}

#[test]
fn what_is_private_is_never_shared_by_default() {
    let (proxy, _origin) = before(answer);
    for (number, case) in CASES.iter().enumerate() {
        let ask = |fields: Lines| proxy.exchange(&with(&format!("/{number}"), fields)).expect(200).text();
        let (one, other) = (ask(case.one), ask(case.other));
        assert_eq!(one == other, case.sharing != Never, "{}: {:?}", case.what, case.sharing);
        let (one_again, other_again) = (ask(case.one), ask(case.other));
        if case.sharing == Never && case.one != case.other {
            // An asset that was fetched without such a field is for those with one, too.
            assert!(
                other_again != one && (one_again != other || case.other == NOBODY),
                "{}: later",
                case.what
            );
        }
    }
}
