//! The built-in subs, sets of them, and the actions that each may return.

use std::fmt;
use std::ops::{BitAnd, BitOr};

/// A set of built-in subs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Subs(u16);

/// A built-in sub.
#[derive(Debug)]
pub struct SubRow {
    /// The name.
    pub name: &'static str,
    /// The set with this sub alone.
    pub subs: Subs,
    /// The state in one sentence.
    pub text: &'static str,
}

impl Subs {
    /// No sub.
    pub const NONE: Subs = Subs(0);
    /// `vcl_recv`
    pub const RECV: Subs = Subs(1);
    /// `vcl_pipe`
    pub const PIPE: Subs = Subs(1 << 1);
    /// `vcl_pass`
    pub const PASS: Subs = Subs(1 << 2);
    /// `vcl_hash`
    pub const HASH: Subs = Subs(1 << 3);
    /// `vcl_purge`
    pub const PURGE: Subs = Subs(1 << 4);
    /// `vcl_miss`
    pub const MISS: Subs = Subs(1 << 5);
    /// `vcl_hit`
    pub const HIT: Subs = Subs(1 << 6);
    /// `vcl_deliver`
    pub const DELIVER: Subs = Subs(1 << 7);
    /// `vcl_synth`
    pub const SYNTH: Subs = Subs(1 << 8);
    /// `vcl_backend_fetch`
    pub const BACKEND_FETCH: Subs = Subs(1 << 9);
    /// `vcl_backend_refresh`
    pub const BACKEND_REFRESH: Subs = Subs(1 << 10);
    /// `vcl_backend_response`
    pub const BACKEND_RESPONSE: Subs = Subs(1 << 11);
    /// `vcl_backend_error`
    pub const BACKEND_ERROR: Subs = Subs(1 << 12);
    /// `vcl_init`
    pub const INIT: Subs = Subs(1 << 13);
    /// `vcl_fini`
    pub const FINI: Subs = Subs(1 << 14);
    /// The subs on the client's side.
    pub const CLIENT: Subs = Subs(0x1ff);
    /// The subs `vcl_backend_*`.
    pub const BACKEND: Subs = Subs(0xf << 9);
    /// The subs that have a response of the backend.
    pub const RESPONSE: Subs = Subs(0b111 << 10);
    /// All subs.
    pub const ALL: Subs = Subs(0x7fff);

    /// Whether all of `other` are in it.
    pub const fn contains(self, other: Subs) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether it has no sub.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The rows of its subs.
    pub fn rows(self) -> impl Iterator<Item = &'static SubRow> {
        SUBS.iter().filter(move |row| self.contains(row.subs))
    }

    /// The set named by words of the table, such as `c` or `backend_fetch`.
    ///
    /// # Panics
    /// If a word is none of the table.
    pub(crate) fn named(words: &str) -> Subs {
        words.split_whitespace().fold(Subs::NONE, |set, word| {
            set | match word {
                "all" => Subs::ALL,
                "c" => Subs::CLIENT,
                "b" => Subs::BACKEND,
                "R" => Subs::RESPONSE,
                _ => {
                    let row = SUBS.iter().find(|row| row.name.strip_prefix("vcl_") == Some(word));
                    row.unwrap_or_else(|| panic!("no sub {word}")).subs
                }
            }
        })
    }
}

impl BitOr for Subs {
    type Output = Subs;

    fn bitor(self, other: Subs) -> Subs {
        Subs(self.0 | other.0)
    }
}

impl BitAnd for Subs {
    type Output = Subs;

    fn bitand(self, other: Subs) -> Subs {
        Subs(self.0 & other.0)
    }
}

impl fmt::Display for Subs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = *self;
        let mut parts: Vec<String> = Vec::new();
        if rest == Subs::ALL {
            return f.write_str("all subs");
        }
        if rest.contains(Subs::CLIENT) {
            parts.push("all subs on the client's side".into());
            rest = Subs(rest.0 & !Subs::CLIENT.0);
        }
        if rest.contains(Subs::BACKEND) {
            parts.push("all `vcl_backend_*`".into());
            rest = Subs(rest.0 & !Subs::BACKEND.0);
        }
        parts.extend(rest.rows().map(|row| format!("`{}`", row.name)));
        match parts.split_last() {
            None => f.write_str("no sub"),
            Some((last, [])) => f.write_str(last),
            Some((last, others)) => write!(f, "{} and {last}", others.join(", ")),
        }
    }
}

const fn row(name: &'static str, subs: Subs, text: &'static str) -> SubRow {
    SubRow { name, subs, text }
}

/// The built-in subs, in the order of a request.
#[rustfmt::skip]
pub const SUBS: &[SubRow] = &[
    row("vcl_recv", Subs::RECV, "A request has arrived."),
    row("vcl_pipe", Subs::PIPE, "The connection becomes a tunnel to a backend."),
    row("vcl_pass", Subs::PASS, "The request goes to a backend without the cache."),
    row("vcl_hash", Subs::HASH, "The key for the lookup is made."),
    row("vcl_purge", Subs::PURGE, "The objects of the key were removed."),
    row("vcl_miss", Subs::MISS, "The lookup found nothing that may be served."),
    row("vcl_hit", Subs::HIT, "The lookup found an object."),
    row("vcl_deliver", Subs::DELIVER, "The response goes to the client."),
    row("vcl_synth", Subs::SYNTH, "A response of our own goes to the client."),
    row("vcl_backend_fetch", Subs::BACKEND_FETCH, "A request goes to a backend."),
    row("vcl_backend_refresh", Subs::BACKEND_REFRESH, "A backend confirmed a stale object."),
    row("vcl_backend_response", Subs::BACKEND_RESPONSE, "The head of a response has arrived from a backend."),
    row("vcl_backend_error", Subs::BACKEND_ERROR, "No backend answered."),
    row("vcl_init", Subs::INIT, "The program is loaded, before any request."),
    row("vcl_fini", Subs::FINI, "The program is discarded, after the last request."),
];

/// Arguments of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionArguments {
    /// None.
    None,
    /// A status, and a reason that may be left out.
    Status,
    /// As [`ActionArguments::Status`], or none at all.
    OptionalStatus,
    /// A duration, or none at all.
    OptionalDuration,
    /// A text, or none at all.
    OptionalText,
    /// The name of a label.
    Label,
}

/// An action with the subs that may return it.
#[derive(Debug)]
pub struct ActionRow {
    /// The name.
    pub name: &'static str,
    /// The subs.
    pub subs: Subs,
    /// The arguments.
    pub arguments: ActionArguments,
}

const fn action(name: &'static str, subs: u16, arguments: ActionArguments) -> ActionRow {
    ActionRow { name, subs: Subs(subs), arguments }
}

const CLIENT_AND_BACKEND: u16 = Subs::CLIENT.0 | Subs::BACKEND.0;

/// The actions.
#[rustfmt::skip]
pub const ACTIONS: &[ActionRow] = &[
    action("abandon", Subs::BACKEND.0, ActionArguments::None),
    action("beresp", Subs::BACKEND_REFRESH.0, ActionArguments::None),
    action("deliver", Subs::HIT.0 | Subs::DELIVER.0 | Subs::SYNTH.0 | Subs::BACKEND_RESPONSE.0
        | Subs::BACKEND_ERROR.0, ActionArguments::None),
    action("error", Subs::BACKEND_FETCH.0 | Subs::BACKEND_REFRESH.0 | Subs::BACKEND_RESPONSE.0,
        ActionArguments::OptionalStatus),
    action("fail", CLIENT_AND_BACKEND | Subs::INIT.0, ActionArguments::OptionalText),
    action("fetch", Subs::PASS.0 | Subs::MISS.0 | Subs::BACKEND_FETCH.0, ActionArguments::None),
    action("hash", Subs::RECV.0, ActionArguments::None),
    action("lookup", Subs::HASH.0, ActionArguments::None),
    action("merge", Subs::BACKEND_REFRESH.0, ActionArguments::None),
    action("obj_stale", Subs::BACKEND_REFRESH.0, ActionArguments::None),
    action("ok", Subs::INIT.0 | Subs::FINI.0, ActionArguments::None),
    action("pass", Subs::RECV.0 | Subs::MISS.0 | Subs::HIT.0 | Subs::BACKEND_RESPONSE.0,
        ActionArguments::OptionalDuration),
    action("pipe", Subs::RECV.0 | Subs::PIPE.0, ActionArguments::None),
    action("purge", Subs::RECV.0, ActionArguments::None),
    action("restart", Subs::CLIENT.0 & !(Subs::PIPE.0 | Subs::HASH.0), ActionArguments::None),
    action("retry", Subs::RESPONSE.0, ActionArguments::None),
    action("synth", Subs::RECV.0 | Subs::PIPE.0 | Subs::PASS.0 | Subs::PURGE.0 | Subs::MISS.0 | Subs::HIT.0
        | Subs::DELIVER.0, ActionArguments::Status),
    action("vcl", Subs::RECV.0, ActionArguments::Label),
];

/// The subs of the built-in VCL that a program may define to change a part of it.
pub const BUILTIN_HOOKS: &[&str] = &[
    "vcl_req_url",
    "vcl_req_host",
    "vcl_req_method",
    "vcl_req_authorization",
    "vcl_req_cookie",
    "vcl_beresp_range",
    "vcl_beresp_stale",
    "vcl_beresp_cookie",
    "vcl_beresp_control",
    "vcl_beresp_vary",
    "vcl_beresp_hitmiss",
    "vcl_beresp_http10",
    "vcl_refresh_valid",
    "vcl_refresh_conditions",
    "vcl_refresh_status",
];
