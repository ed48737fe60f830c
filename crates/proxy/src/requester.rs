//! The requester: the client of a request, as rules and origins see it.

use sandarac_message::target::Scheme;
use std::net::IpAddr;

/// The client of a request, as origins are told of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requester<'a> {
    /// The address of the connection, or the one that the PROXY protocol announced.
    pub(crate) ip: Option<IpAddr>,
    /// The address of the visitor, as logs name it, where an edit of the request takes it.
    pub(crate) visitor: Option<IpAddr>,
    /// Whether what it says in forwarding fields is believed.
    pub(crate) trusted: bool,
    pub(crate) scheme: Scheme,
    /// The host asked for, as received; as it is keyed where the response may be stored, since applications write it into
    /// pages. Empty where none was named.
    pub(crate) host: &'a [u8],
}

impl Requester<'_> {
    /// The same of a request for `host`.
    pub(crate) fn asking_for(self, host: &[u8]) -> Requester<'_> {
        let Requester { ip, visitor, trusted, scheme, host: _ } = self;
        Requester { ip, visitor, trusted, scheme, host }
    }
}
