//! Sources of backends outside the file.

use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use sandarac_balance::{Address, Endpoint, Host};
use toml::de::DeValue;

use crate::definition::{Value, settings};
use crate::limited::Timeout;
use crate::path::AbsolutePath;
use crate::report::{At, Complaint, Node, Report};
use crate::setting::Kind;
use crate::value::Text;

settings! {
    /// A source of backends: one of `directory`, `file`, `dns`, `srv`, `zookeeper` and `etcd`.
    pub(crate) struct SourceSettings {
        /// A directory of Unix sockets, which is watched: each socket in it is a backend. `sandarac-worker` maintains
        /// one.
        directory: Option<At<AbsolutePath>> = None, unset "another source" "\"/run/app\"";
        /// A file of backend addresses, one per line with an optional weight, which is watched. `#` begins a comment.
        file: Option<At<AbsolutePath>> = None, unset "another source" "\"/etc/sandarac/backends\"";
        /// A name and a port: each address of the name (A and AAAA) is a backend of its own. The name is resolved again
        /// at its TTL.
        dns: Option<At<NamedPort>> = None, unset "another source" "\"http://app.internal:8000\"";
        /// A service whose SRV records (RFC 2782) list names, ports and weights. They are resolved again at their TTL.
        /// Of several priorities the lowest is used; `fallback` uses all, in their order.
        srv: Option<At<ServiceName>> = None, unset "another source" "\"_http._tcp.app.internal\"";
        /// ZooKeeper: each node in `PATH/providers`, usually an ephemeral one, is a backend; it holds its address, or
        /// is named by it. The node `PATH` may hold a JSON object with settings of `resume` by name, which override the
        /// file's.
        zookeeper: Option<At<ZooKeeperSettings>> = None, unset "another source"
            "{ servers = [\"127.0.0.1:2181\"], path = \"/app\" }";
        /// etcd (3.4 or later, by its JSON gateway): each key `PREFIX/providers/NAME`, usually one with a lease, is a
        /// backend; it holds its address, or is named by it. The key `PREFIX/settings` may hold a JSON object with
        /// settings of `resume` by name, which override the file's.
        etcd: Option<At<EtcdSettings>> = None, unset "another source"
            "{ endpoints = [\"http://127.0.0.1:2379\"], prefix = \"/app\" }";
    }

    /// ZooKeeper as a source of addresses.
    pub(crate) struct ZooKeeperSettings {
        /// The servers of the ensemble, on port 2181 unless another is given.
        servers: Vec<Server> = Vec::new(), required "[\"127.0.0.1:2181\"]";
        /// The node of the application. Each node in `providers` below it has an address.
        path: Option<NodePath> = None, required "\"/app\"";
        /// How long the servers keep a session without hearing from the client.
        // ZooKeeper grants 2 to 20 ticks, of 2 s each unless configured otherwise.
        session_timeout: Timeout = Timeout::secs::<10>();
    }

    /// etcd as a source of addresses.
    pub(crate) struct EtcdSettings {
        /// The members of the cluster.
        endpoints: Vec<At<Address>> = Vec::new(), required "[\"http://127.0.0.1:2379\"]";
        /// The prefix of the application's keys; a slash at its end does not matter.
        prefix: Option<KeyPrefix> = None, required "\"/app\"";
        /// The user to authenticate as.
        user: Option<At<String>> = None, unset "etcd asks for none" "\"sandarac\"";
        /// The user's password.
        password: Option<At<Password>> = None, unset "etcd asks for none" "\"…\"";
    }
}

/// A source of backends outside the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The Unix sockets in a directory, by absolute path.
    Directory(PathBuf),
    /// The lines of a file, by absolute path.
    File(PathBuf),
    /// The addresses of a name, at a port.
    Dns {
        /// The name, in lower case.
        name: Box<str>,
        /// The port.
        port: u16,
    },
    /// The SRV records of a service: `_http._tcp.app.internal`, in lower case.
    Srv(Box<str>),
    /// The ephemeral nodes below a node of ZooKeeper.
    ZooKeeper {
        /// The servers of the ensemble; at least one.
        servers: Vec<Server>,
        /// The node of the application. It begins with a slash and does not end in one.
        path: Box<str>,
        /// How long the servers keep a session without hearing from the client.
        session_timeout: Duration,
    },
    /// The keys of etcd that begin with a prefix.
    Etcd {
        /// The members of the cluster, all reached by TCP; at least one.
        endpoints: Vec<Address>,
        /// The prefix of the keys; not empty.
        prefix: Box<str>,
        /// User and password, if etcd requires them.
        login: Option<(String, Password)>,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Directory(path) => write!(f, "sockets in {}", path.display()),
            Source::File(path) => write!(f, "addresses in {}", path.display()),
            Source::Dns { name, port } => write!(f, "addresses of {name}, port {port}"),
            Source::Srv(name) => write!(f, "SRV records of {name}"),
            Source::ZooKeeper { path, .. } => write!(f, "ZooKeeper {path}"),
            Source::Etcd { prefix, .. } => write!(f, "etcd {prefix}"),
        }
    }
}

/// The sources of a pool: one table, or an array of such.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sources(Vec<At<SourceSettings>>);

impl Value for Sources {
    fn kind() -> Kind {
        let table = SourceSettings::kind();
        Kind::Either(vec![table.clone(), Kind::List(Box::new(table))])
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<Sources> {
        match node.get_ref() {
            DeValue::Array(_) => Value::read(node, report).map(Sources),
            _ => Value::read(node, report).map(|source| Sources(vec![source])),
        }
    }

    fn show(&self) -> Option<String> {
        None
    }
}

impl Sources {
    /// A directory alone.
    pub(crate) fn directory(path: AbsolutePath) -> Sources {
        let directory = Some(At::nowhere(path));
        Sources(vec![At::nowhere(SourceSettings { directory, ..SourceSettings::default() })])
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn make(&self, report: &mut Report) -> Vec<Source> {
        self.0.iter().filter_map(|settings| source(settings, report)).collect()
    }
}

fn source(At { value: settings, place }: &At<SourceSettings>, report: &mut Report) -> Option<Source> {
    let SourceSettings { directory, file, dns, srv, zookeeper, etcd } = settings;
    let places = [
        directory.as_ref().map(|at| at.place.clone()),
        file.as_ref().map(|at| at.place.clone()),
        dns.as_ref().map(|at| at.place.clone()),
        srv.as_ref().map(|at| at.place.clone()),
        zookeeper.as_ref().map(|at| at.place.clone()),
        etcd.as_ref().map(|at| at.place.clone()),
    ];
    let mut places: Vec<_> = places.into_iter().flatten().flatten().collect();
    places.sort_by_key(|place| place.start);
    if let [first, second, ..] = &places[..] {
        let error = report.error(Some(second.clone()), "a source is one of several kinds, not two at once");
        error.also = Some((first.clone(), "the other".to_owned()));
        error.help = Some("write [[pool.NAME.discover]] once for each source".to_owned());
        return None;
    }
    if let Some(path) = directory {
        return Some(Source::Directory(path.value.to_path()));
    }
    if let Some(path) = file {
        return Some(Source::File(path.value.to_path()));
    }
    if let Some(At { value: NamedPort { name, port }, .. }) = dns {
        return Some(Source::Dns { name: name.clone(), port: *port });
    }
    if let Some(name) = srv {
        return Some(Source::Srv(name.value.0.clone()));
    }
    match (zookeeper, etcd) {
        (Some(settings), _) => self::zookeeper(settings, report),
        (_, Some(settings)) => self::etcd(settings, report),
        _ => {
            let message = "a source needs a `directory`, a `file`, `dns`, `srv`, `zookeeper` or `etcd`";
            report.missing(place.clone(), message, "directory = \"/run/app\"");
            None
        }
    }
}

pub(crate) fn zookeeper(settings: &At<ZooKeeperSettings>, report: &mut Report) -> Option<Source> {
    let At { value: ZooKeeperSettings { servers, path, session_timeout }, place } = settings;
    if servers.is_empty() {
        report.missing(place.clone(), "ZooKeeper needs `servers`", "servers = [\"127.0.0.1:2181\"]");
    }
    let Some(path) = path else {
        report.missing(place.clone(), "ZooKeeper needs a `path`", "path = \"/app\"");
        return None;
    };
    Some(Source::ZooKeeper {
        servers: servers.clone(),
        path: path.0.clone(),
        session_timeout: **session_timeout,
    })
}

pub(crate) fn etcd(settings: &At<EtcdSettings>, report: &mut Report) -> Option<Source> {
    let At { value: EtcdSettings { endpoints, prefix, user, password }, place } = settings;
    if endpoints.is_empty() {
        report.missing(place.clone(), "etcd needs `endpoints`", "endpoints = [\"http://127.0.0.1:2379\"]");
    }
    for endpoint in endpoints {
        if matches!(endpoint.value.endpoint(), Endpoint::Unix(_)) {
            report.error(endpoint.place.clone(), "etcd is reached by http://, not by a Unix socket");
        } else if endpoint.value.is_http2() {
            report.error(endpoint.place.clone(), "etcd is reached by http://, not by h2://");
        }
    }
    let login = match (user, password) {
        (Some(user), Some(password)) => Some((user.value.clone(), password.value.clone())),
        (Some(At { place, .. }), None) => {
            report.missing(place.clone(), "a `user` needs a `password`", "password = \"…\"");
            None
        }
        (None, Some(At { place, .. })) => {
            report.missing(place.clone(), "a `password` needs a `user`", "user = \"sandarac\"");
            None
        }
        (None, None) => None,
    };
    let Some(prefix) = prefix else {
        report.missing(place.clone(), "etcd needs a `prefix`", "prefix = \"/app\"");
        return None;
    };
    let endpoints = endpoints.iter().map(|endpoint| endpoint.value.clone()).collect();
    Some(Source::Etcd { endpoints, prefix: prefix.0.clone(), login })
}

/// A name and a port, as a backend address.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NamedPort {
    name: Box<str>,
    port: u16,
}

impl Text for NamedPort {
    fn form() -> Kind {
        Kind::Text {
            name: "backend address with a name",
            form: "a backend address with a name",
            examples: &["http://app.internal:8000"],
        }
    }

    fn from_text(text: &str) -> Result<NamedPort, Complaint> {
        match Address::from_text(text)?.endpoint() {
            Endpoint::Tcp(Host::Name(name), port) => Ok(NamedPort { name: name.clone(), port: *port }),
            _ => {
                let complaint = Complaint::new(format!("{text:?} has no name to look up"));
                Err(complaint.help("write it among the `backends`"))
            }
        }
    }

    fn text(&self) -> String {
        format!("http://{}:{}", self.name, self.port)
    }
}

/// The name of a service (RFC 2782), in lower case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServiceName(pub(crate) Box<str>);

impl Text for ServiceName {
    fn form() -> Kind {
        Kind::Text {
            name: "name of a service",
            form: "the name of a service",
            examples: &["_http._tcp.app.internal"],
        }
    }

    fn from_text(text: &str) -> Result<ServiceName, Complaint> {
        let name = text.trim().to_ascii_lowercase();
        let not = || Complaint::new(format!("{text:?} is not {}", ServiceName::form().words()));
        // A host name is whatever a backend address accepts as one.
        Address::from_text(&format!("http://{name}")).map_err(|_| not())?;
        let labels: Vec<_> = name.split('.').collect();
        match labels[..] {
            [service, protocol, _, ..] if service.starts_with('_') && protocol.starts_with('_') => {
                Ok(ServiceName(name.into()))
            }
            _ => Err(not().help(format!("did you mean \"_http._tcp.{name}\"?"))),
        }
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// A server, by host and port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// The host, by name or by number.
    pub host: Host,
    /// The port.
    pub port: u16,
}

impl Server {
    /// The default port of ZooKeeper for clients.
    const ZOOKEEPER: u16 = 2181;

    /// Reads a server that is on port `default` unless another is given.
    pub(crate) fn read(text: &str, default: u16) -> Result<Server, Complaint> {
        let not = || Complaint::new(format!("{text:?} is not {}", Server::form().words()));
        if let Some((_, host)) = text.split_once("://") {
            return Err(not().help(format!("did you mean \"{host}\"?")));
        }
        let text = text.trim();
        let port =
            text.rsplit_once(':').is_some_and(|(before, _)| !before.contains(':') || before.ends_with(']'));
        let whole = if port { format!("http://{text}") } else { format!("http://{text}:{default}") };
        match Address::from_text(&whole).map_err(|_| not())?.endpoint() {
            Endpoint::Tcp(host, port) if !text.contains('/') => {
                Ok(Server { host: host.clone(), port: *port })
            }
            _ => Err(not()),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Name(name) => write!(f, "{name}:{}", self.port),
            Host::Ip(std::net::IpAddr::V6(ip)) => write!(f, "[{ip}]:{}", self.port),
            Host::Ip(ip) => write!(f, "{ip}:{}", self.port),
        }
    }
}

impl Text for Server {
    fn form() -> Kind {
        Kind::Text {
            name: "host and port",
            form: "a host with or without a port",
            examples: &["127.0.0.1:2181", "zookeeper.internal"],
        }
    }

    fn from_text(text: &str) -> Result<Server, Complaint> {
        Server::read(text, Server::ZOOKEEPER)
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// The path of a node of ZooKeeper.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NodePath(Box<str>);

impl Text for NodePath {
    fn form() -> Kind {
        Kind::Text { name: "path of a node", form: "the path of a node", examples: &["/app"] }
    }

    fn from_text(text: &str) -> Result<NodePath, Complaint> {
        let not = || Complaint::new(format!("{text:?} is not {}", NodePath::form().words()));
        let Some(names) = text.strip_prefix('/') else {
            return Err(not().help(format!("a path begins with a slash: \"/{text}\"")));
        };
        if text.ends_with('/') && text.len() > 1 {
            return Err(not().help(format!("did you mean \"{}\"?", text.trim_end_matches('/'))));
        }
        let bad = |name: &str| matches!(name, "" | "." | "..") || name.chars().any(char::is_control);
        match names.split('/').any(bad) || text.len() > 1024 {
            false => Ok(NodePath(text.into())),
            true => Err(not()),
        }
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// A prefix of etcd keys.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeyPrefix(Box<str>);

impl Text for KeyPrefix {
    fn form() -> Kind {
        Kind::Text { name: "beginning of keys", form: "what keys begin with", examples: &["/app"] }
    }

    fn from_text(text: &str) -> Result<KeyPrefix, Complaint> {
        match text.is_empty() || text.len() > 1024 {
            false => Ok(KeyPrefix(text.into())),
            true => Err(Complaint::new("a prefix has 1 to 1024 bytes")
                .help("an empty one would make every key of the cluster a backend")),
        }
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// A password, which no listing or debug output shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl From<String> for Password {
    fn from(text: String) -> Password {
        Password(text)
    }
}

impl Deref for Password {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

impl Text for Password {
    const IS_SECRET: bool = true;

    fn form() -> Kind {
        Kind::Text { name: "password", form: "a password", examples: &[] }
    }

    fn from_text(text: &str) -> Result<Password, Complaint> {
        Ok(Password(text.to_owned()))
    }

    fn text(&self) -> String {
        "…".to_owned()
    }
}
