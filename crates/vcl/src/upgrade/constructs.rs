//! The constructs of VCL 2 and 3 that VCL 4.1 does not have, each defined once with its stable name.

/// A construct of the old dialects.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Construct {
    /// The name: lower-case words joined by `-`. Marked comments and lists use it.
    pub name: &'static str,
    /// Its successor, in one sentence.
    pub text: &'static str,
}

/// Defines each construct as a constant, and the list of all.
macro_rules! constructs {
    ($($constant:ident $name:literal $text:literal;)*) => {
        $(
            #[doc = $text]
            pub const $constant: Construct = Construct { name: $name, text: $text };
        )*

        /// All constructs.
        pub const ALL: &[&Construct] = &[$(&$constant),*];
    };
}

constructs! {
    ACTION "action" "Some actions have other names, and all stand in `return (…)`.";
    BACKEND_REQUEST "backend-request"
        "The request to the backend exists in the backend subs and in `vcl_pipe` only.";
    CACHEABLE "cacheable" "`cacheable` is `beresp.ttl > 0s` or `beresp.uncacheable`.";
    CLIENT_REQUEST "client-request" "The subs of the backend side read and set `bereq.*`, not `req.*`.";
    DIRECTOR "director" "Directors are objects of the module `directors`, made in `vcl_init`.";
    DIRECTOR_DEFAULT "director-default" "A director that comes first is not the default backend by itself.";
    DNS_DIRECTOR "dns-director" "Directors of the kind `dns` are gone; the module `dynamic` looks up names.";
    DURATION "duration" "Durations have a unit directly after the number.";
    ERROR "error" "`error` is the action `synth`, and `error` on the backend side.";
    ERROR_SUB "error-sub" "`vcl_error` is `vcl_synth` for `synth`, and `vcl_backend_error` for backends.";
    ESI "esi" "ESI is switched on by `beresp.do_esi` and off by `resp.do_esi`.";
    ESI_LEVEL "esi-level" "The backend side has no ESI level; a header field of the request carries it.";
    FETCH_IN_HIT "fetch-in-hit" "A hit becomes a fetch by a restart with `req.hash_always_miss`.";
    FETCH_SUB "fetch-sub" "`vcl_fetch` is `vcl_backend_response`.";
    FORWARDED_FOR "forwarded-for" "`X-Forwarded-For` has the address of the client before `vcl_recv`.";
    GONE "gone" "Some variables and statements have no successor.";
    HASH "hash" "`hash_data` adds to the key of an object.";
    HIT_FOR_PASS "hit-for-pass" "Responses that are not stored are marked by `beresp.uncacheable`.";
    IMPORT "import" "Modules are imported before they are used.";
    INLINE_C "inline-c" "Modules do the work of C.";
    LAST_USE "last-use" "The time of the last use of an object is not known.";
    LOG "log" "The module `std` writes to the log.";
    MODULE_FUNCTION "module-function" "Some functions of modules have other names and arguments.";
    OBJECT "object" "`obj` is the stored object, which cannot be changed; responses are `beresp` and `resp`.";
    PORT "port" "`std.port` returns the port of an address.";
    PREFETCH "prefetch" "Objects are refreshed by grace; no sub runs at the end of their life.";
    PURGE "purge" "`return (purge)` in `vcl_recv` purges, and `vcl_purge` answers.";
    BAN "ban" "Bans are added by `ban`.";
    PURGE_HASH "purge-hash" "Bans cannot test the key of an object.";
    HEALTHY "healthy" "`std.healthy` tests a backend.";
    REASON "reason" "The text of the status line is `reason`.";
    RENAMED "renamed" "Some variables have other names.";
    REQUEST_SET_IN_FETCH "request-set-in-fetch" "The backend side cannot change the request of the client.";
    RESTART "restart" "The backend side repeats a request by `retry`.";
    RESTART_OR_RETRY "restart-or-retry" "A retry does not run `vcl_recv` again.";
    SAINT_MODE "saint-mode" "The module `saintmode` keeps lists of what a backend failed to answer.";
    STORAGE "storage" "A storage is a symbol, not a text.";
    STRAY_SEMICOLON "stray-semicolon" "A block does not end with `;`.";
    SUB_FOR_BOTH_SIDES "sub-for-both-sides"
        "A sub that reads `req` or `obj` is of one side, so the other has a copy.";
    SYNTHETIC "synthetic" "`synthetic` takes its text in parentheses.";
    TEXTS_SIDE_BY_SIDE "texts-side-by-side" "Texts are joined with `+`.";
    TEXT_ESCAPES "text-escapes" "Texts have no escapes: `%20` is three characters.";
    UNSET "unset" "`remove` is `unset`.";
    VERSION "version" "A program begins with its version.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_words_and_texts_are_sentences() {
        for (at, construct) in ALL.iter().enumerate() {
            let is_word = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
            assert!(construct.name.bytes().all(is_word), "{construct:?}");
            assert!(construct.text.ends_with('.'), "{construct:?}");
            assert!(ALL[..at].iter().all(|other| other.name != construct.name), "{construct:?}");
        }
    }
}
