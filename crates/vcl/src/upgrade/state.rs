//! The states of a request, each with the subs of the old and the new dialects that run in it.

/// A state. The old `vcl_error` is two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum State {
    Recv,
    Pipe,
    Pass,
    Hash,
    Hit,
    Miss,
    Purge,
    Deliver,
    Synth,
    Fetch,
    BackendError,
    Init,
    Fini,
}

/// The subs of the end of an object's life, which VCL 4 does not have.
pub(super) const GONE_SUBS: &[&str] = &["vcl_prefetch", "vcl_timeout", "vcl_discard"];

impl State {
    /// The states in which a sub of the old dialects runs; none for a sub of the user.
    pub(super) fn of_sub(name: &str) -> &'static [State] {
        match name {
            "vcl_recv" => &[State::Recv],
            "vcl_pipe" => &[State::Pipe],
            "vcl_pass" => &[State::Pass],
            "vcl_hash" => &[State::Hash],
            "vcl_hit" => &[State::Hit],
            "vcl_miss" => &[State::Miss],
            "vcl_fetch" => &[State::Fetch],
            "vcl_deliver" => &[State::Deliver],
            "vcl_error" => &[State::Synth, State::BackendError],
            "vcl_init" => &[State::Init],
            "vcl_fini" => &[State::Fini],
            _ => &[],
        }
    }

    /// Whether only the request to the backend exists.
    pub(super) fn is_backend(self) -> bool {
        matches!(self, State::Fetch | State::BackendError)
    }

    /// The name of the sub in VCL 4.
    pub(super) fn sub(self) -> &'static str {
        match self {
            State::Recv => "vcl_recv",
            State::Pipe => "vcl_pipe",
            State::Pass => "vcl_pass",
            State::Hash => "vcl_hash",
            State::Hit => "vcl_hit",
            State::Miss => "vcl_miss",
            State::Purge => "vcl_purge",
            State::Deliver => "vcl_deliver",
            State::Synth => "vcl_synth",
            State::Fetch => "vcl_backend_response",
            State::BackendError => "vcl_backend_error",
            State::Init => "vcl_init",
            State::Fini => "vcl_fini",
        }
    }

    /// The state that stands for all in which a sub of the user can be the same text.
    pub(super) fn group(self) -> State {
        match self {
            State::Synth | State::Fetch | State::BackendError | State::Pipe | State::Miss | State::Pass => {
                self
            }
            State::Init | State::Fini => State::Init,
            _ => State::Recv,
        }
    }
}
