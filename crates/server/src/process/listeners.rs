//! Binding the listeners of a configuration, including those whose sockets were passed to the process.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use sandarac_config::{Config, ListenAddress as Configured};
use sandarac_net::{Inherited, ListenAddress, Listeners};

use crate::stderr::print_line;
use crate::takeover::TakenSockets;

/// The hint for a port that is refused.
const LOW_PORT: &str = "; a port below 1024 takes the capability CAP_NET_BIND_SERVICE \
                        (AmbientCapabilities=CAP_NET_BIND_SERVICE in a systemd unit)";

/// The listening sockets that a process need not bind.
#[derive(Clone, Copy)]
pub(super) struct Passed<'a> {
    /// Those of the process that started it, for as long as it lives.
    pub(super) inherited: &'a Inherited,
    /// Those of the process that it takes over from.
    pub(super) taken: &'a TakenSockets,
}

/// Binds the listeners of the configuration, each for this number of cores. `optional` holds those that
/// [`bind_optional`] has bound.
pub(super) fn bind_all(
    config: &Config,
    passed: Passed<'_>,
    cores: usize,
    optional: Vec<Listeners>,
) -> io::Result<Vec<Listeners>> {
    check_inherited(config, passed.inherited)?;
    let needed = config.listeners.iter().filter(|listener| !listener.is_optional);
    let mut bound = needed.map(|listener| bind(listener, passed, cores)).collect::<io::Result<Vec<_>>>()?;
    bound.extend(optional);
    Ok(bound)
}

/// Binds the optional listeners, and removes those from the configuration that cannot be bound. Reports both.
pub(super) fn bind_optional(config: &mut Config, passed: Passed<'_>, cores: usize) -> Vec<Listeners> {
    let mut all = Vec::new();
    config.listeners.retain(|listener| {
        if !listener.is_optional {
            return true;
        }
        let address = &listener.address;
        match bind(listener, passed, cores) {
            Ok(bound) => {
                print_line(format_args!(
                    "sandarac: --acme: {address} redirects to https and answers the CA's HTTP-01 challenges"
                ));
                all.push(bound);
                true
            }
            Err(error) => {
                print_line(format_args!(
                    "sandarac: warning: --acme: {error}; going on without it: nothing redirects to https, and the CA \
                     verifies names by TLS-ALPN-01 on port 443"
                ));
                false
            }
        }
    });
    all
}

/// Checks that every socket passed to the process has a listener in the configuration.
pub(super) fn check_inherited(config: &Config, inherited: &Inherited) -> io::Result<()> {
    let listens_at =
        |address: &&ListenAddress| config.listeners.iter().any(|listener| is_for(&listener.address, address));
    let unserved = "connections to it would wait for ever";
    let wrong = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    if let Some(stray) = inherited.addresses().find(|address| !listens_at(address)) {
        return wrong(format!(
            "a socket for {stray} was passed to this process (LISTEN_FDS), but no [[listen]] has that address: {unserved}"
        ));
    }
    for listener in &config.listeners {
        let mut passed = inherited.addresses().filter(|address| is_for(&listener.address, address));
        if let (Some(first), Some(second)) = (passed.next(), passed.next()) {
            return wrong(format!(
                "two sockets were passed to this process (LISTEN_FDS) for the [[listen]] {}, {first} and {second}, of which \
                 one is used: {unserved}",
                listener.address
            ));
        }
    }
    Ok(())
}

/// Whether a listener of the configuration may take a socket that is bound to `bound`.
fn is_for(listener: &Configured, bound: &ListenAddress) -> bool {
    match (listener, bound) {
        (Configured::Any(port), ListenAddress::Tcp(bound)) => {
            bound.ip().is_unspecified() && bound.port() == *port
        }
        (Configured::Tcp(address), ListenAddress::Tcp(bound)) => address == bound,
        (Configured::Unix(path), bound) => is_at(bound, path),
        _ => false,
    }
}

/// Whether a socket is bound to this path.
pub(super) fn is_at(address: &ListenAddress, path: &Path) -> bool {
    matches!(address, ListenAddress::Unix(bound, _) if bound == path)
}

/// Binds a listener, unless its socket was passed. A listener without a host takes all addresses: IPv6 and
/// IPv4 together, or only IPv4 if the system has no IPv6.
pub(super) fn bind(
    listener: &sandarac_config::Listener,
    passed: Passed<'_>,
    cores: usize,
) -> io::Result<Listeners> {
    let taken = passed.taken.take(&listener.address.to_string());
    if let Some(found) = taken.and_then(|taken| taken.find(|_| true, cores)) {
        let mut listeners = found?;
        if let ListenAddress::Unix(path, mode) = &mut listeners.listener.address {
            *mode = listener.mode;
            if let Some(mode) = listener.mode {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
            }
        }
        return Ok(listeners);
    }
    if let Some(found) = passed.inherited.find(|bound| is_for(&listener.address, bound), cores) {
        let mut listeners = found?;
        if let ListenAddress::Unix(path, mode) = &mut listeners.listener.address {
            *mode = listener.mode;
            warn_of_mode(path, listener.mode);
        }
        return Ok(listeners);
    }
    let tcp = |address: SocketAddr| Listeners::bind(&ListenAddress::Tcp(address), cores);
    let bound = match &listener.address {
        Configured::Any(port) => tcp((Ipv6Addr::UNSPECIFIED, *port).into()).or_else(|error| {
            let no_ipv6 = error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error())
                || error.kind() == io::ErrorKind::AddrNotAvailable;
            if no_ipv6 { tcp((Ipv4Addr::UNSPECIFIED, *port).into()) } else { Err(error) }
        }),
        Configured::Tcp(address) => tcp(*address),
        Configured::Unix(path) => Listeners::bind(&ListenAddress::Unix(path.clone(), listener.mode), cores),
    };
    bound.map_err(|error| {
        let is_tcp = !matches!(listener.address, Configured::Unix(_));
        let hint = if is_tcp && error.kind() == io::ErrorKind::PermissionDenied { LOW_PORT } else { "" };
        io::Error::new(error.kind(), format!("cannot listen on {}: {error}{hint}", listener.address))
    })
}

/// Reports a configured mode for a socket passed to the process, if its file has another.
pub(super) fn warn_of_mode(path: &Path, mode: Option<u32>) {
    let Some(mode) = mode else { return };
    if std::fs::metadata(path).is_ok_and(|metadata| metadata.mode() & 0o777 != mode) {
        print_line(format_args!(
            "sandarac: warning: [[listen]] mode = \"{mode:04o}\" has no effect: unix:{} was passed to this process \
             (LISTEN_FDS); set SocketMode= in the systemd socket unit",
            path.display()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_config::Flags;

    /// A configuration from flags whose optional listener is at `address`.
    fn config(address: SocketAddr) -> Config {
        let flags = Flags {
            listen: vec!["127.0.0.1:443".to_owned()],
            acme: vec!["a.example".to_owned()],
            backends: vec!["http://127.0.0.1:1".to_owned()],
            ..Flags::default()
        };
        let (mut config, _) = Config::from_flags(&flags).unwrap();
        config.listeners[1].address = Configured::Tcp(address);
        config
    }

    #[test]
    fn an_optional_listener_that_cannot_be_bound_is_gone_without() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut without = config(taken.local_addr().unwrap());
        let none = Inherited::default();
        let passed = Passed { inherited: &none, taken: &TakenSockets::default() };
        assert!(bind_optional(&mut without, passed, 1).is_empty());
        assert_eq!(without.listeners.len(), 1);

        let mut with = config("127.0.0.1:0".parse().unwrap());
        assert_eq!(bind_optional(&mut with, passed, 1).len(), 1);
        assert_eq!(with.listeners.len(), 2);
    }
}
