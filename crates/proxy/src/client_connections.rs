//! The connections of each client address.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// How many connections each client has open.
#[derive(Debug, Default)]
pub(crate) struct ClientConnections(Mutex<HashMap<IpAddr, u32>>);

/// One of them, counted while this lives.
#[derive(Debug)]
pub(crate) struct Counted {
    all: Arc<ClientConnections>,
    client: IpAddr,
}

impl ClientConnections {
    /// Counts one more of `client`, unless it has `most` already.
    pub(crate) fn admit(self: &Arc<ClientConnections>, client: IpAddr, most: u32) -> Option<Counted> {
        let client = network(client);
        let mut open = self.0.lock();
        let connections = open.entry(client).or_default();
        if *connections >= most {
            return None;
        }
        *connections += 1;
        Some(Counted { all: self.clone(), client })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut open = self.all.0.lock();
        if let Some(connections) = open.get_mut(&self.client) {
            *connections -= 1;
            if *connections == 0 {
                open.remove(&self.client);
                if open.len() * 4 < open.capacity() {
                    open.shrink_to_fit();
                }
            }
        }
    }
}

/// The network that one client has: of IPv6 commonly 64 bits, in which it chooses its address (RFC 8981).
fn network(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(_) => client,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_so_many_and_one_more_for_each_that_ends() {
        let all = Arc::new(ClientConnections::default());
        let admit = |client: &str| all.admit(client.parse().unwrap(), 2);
        let (first, _second) = (admit("192.0.2.1").unwrap(), admit("192.0.2.1").unwrap());
        assert!(admit("192.0.2.1").is_none() && admit("192.0.2.2").is_some());
        drop(first);
        assert!(admit("192.0.2.1").is_some());
        let _of_one_network = (admit("2001:db8::1").unwrap(), admit("2001:db8::2").unwrap());
        assert!(admit("2001:db8::3").is_none() && admit("2001:db8:0:1::3").is_some());
        drop((_second, _of_one_network));
        assert!(all.0.lock().is_empty());
    }
}
