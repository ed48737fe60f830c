//! The source of the servers of the shared tier.

use sandarac_balance::Host;

use crate::definition::settings;
use crate::path::AbsolutePath;
use crate::pool::{EtcdSettings, Server, ServiceName, Source, ZooKeeperSettings, etcd, zookeeper};
use crate::report::{At, Complaint, Report};
use crate::setting::Kind;
use crate::shared::server::SharedServer;
use crate::value::Text;

settings! {
    /// A source of servers: one of `file`, `dns`, `srv`, `zookeeper` and `etcd`.
    pub(crate) struct SharedSourceSettings {
        /// A file of server addresses, one per line, which is watched. `#` begins a comment.
        file: Option<At<AbsolutePath>> = None, unset "another source" "\"/etc/sandarac/servers\"";
        /// A name and a port: each address of the name (A and AAAA) is a server of its own. The name is
        /// resolved again at its TTL.
        dns: Option<At<NamedServer>> = None, unset "another source" "\"cache.internal:11211\"";
        /// A service whose SRV records (RFC 2782) list names and ports. They are resolved again at their TTL.
        srv: Option<At<ServiceName>> = None, unset "another source" "\"_memcache._tcp.cache.internal\"";
        /// ZooKeeper: each node in `PATH/providers` is a server; it holds its address, or is named by it.
        zookeeper: Option<At<ZooKeeperSettings>> = None, unset "another source"
            "{ servers = [\"127.0.0.1:2181\"], path = \"/cache\" }";
        /// etcd (3.4 or later, by its JSON gateway): each key `PREFIX/providers/NAME` is a server; it holds
        /// its address, or is named by it.
        etcd: Option<At<EtcdSettings>> = None, unset "another source"
            "{ endpoints = [\"http://127.0.0.1:2379\"], prefix = \"/cache\" }";
    }
}

/// The source that `settings` describe.
pub(crate) fn shared_source(
    At { value: settings, place }: &At<SharedSourceSettings>,
    report: &mut Report,
) -> Option<Source> {
    let SharedSourceSettings { file, dns, srv, zookeeper: ensemble, etcd: cluster } = settings;
    let places = [
        file.as_ref().map(|at| &at.place),
        dns.as_ref().map(|at| &at.place),
        srv.as_ref().map(|at| &at.place),
        ensemble.as_ref().map(|at| &at.place),
        cluster.as_ref().map(|at| &at.place),
    ];
    let mut places: Vec<_> = places.into_iter().flatten().flatten().cloned().collect();
    places.sort_by_key(|place| place.start);
    if let [first, second, ..] = &places[..] {
        let error = report.error(Some(second.clone()), "the servers come from one source, not from two");
        error.also = Some((first.clone(), "the other".to_owned()));
        return None;
    }
    if let Some(path) = file {
        return Some(Source::File(path.value.to_path()));
    }
    if let Some(At { value: NamedServer { name, port }, .. }) = dns {
        return Some(Source::Dns { name: name.clone(), port: *port });
    }
    if let Some(name) = srv {
        return Some(Source::Srv(name.value.0.clone()));
    }
    match (ensemble, cluster) {
        (Some(settings), _) => zookeeper(settings, report),
        (_, Some(settings)) => etcd(settings, report),
        _ => {
            let message = "a source of servers needs a `file`, `dns`, `srv`, `zookeeper` or `etcd`";
            report.missing(place.clone(), message, "file = \"/etc/sandarac/servers\"");
            None
        }
    }
}

/// A server whose host is a name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NamedServer {
    name: Box<str>,
    port: u16,
}

impl Text for NamedServer {
    fn form() -> Kind {
        Kind::Text {
            name: "name and port",
            form: "a name with or without a port",
            examples: &["cache.internal:11211"],
        }
    }

    fn from_text(text: &str) -> Result<NamedServer, Complaint> {
        match SharedServer::from_text(text)? {
            SharedServer::Tcp(Server { host: Host::Name(name), port }) => Ok(NamedServer { name, port }),
            _ => Err(Complaint::new(format!("{text:?} has no name to look up"))
                .help("write it among the `servers`")),
        }
    }

    fn text(&self) -> String {
        format!("{}:{}", self.name, self.port)
    }
}
