//! Tables of settings that need no conversion.

use sandarac_policy::ByteSize;

use crate::address::{Group, ListenAddress, Mode, NameServer, Network};
use crate::definition::settings;
use crate::field::Token;
use crate::limited::{Bounded, BoundedSize, Timeout};
use crate::path::AbsolutePath;
use crate::value::{Secret, choice};

const KIB: u64 = 1 << 10;

settings! {
    /// Timeouts for clients.
    pub struct Timeouts {
        /// How long a request head may take from its first byte to its last, after which it is answered with 408; and
        /// how long a new connection may take to send that first byte, or its PROXY header, before it is closed.
        // Browsers send a head in one packet; this bounds what a deliberately slow client can hold.
        head: Timeout = Timeout::secs::<10>();
        /// How long a connection may stay open after a response without another request.
        // An idle connection costs about a kilobyte, and a new one costs the client a round trip.
        idle: Timeout = Timeout::secs::<60>();
        /// How long a client may pause between two pieces of an expected request body. Exceeding it is answered with
        /// 408.
        body: Timeout = Timeout::secs::<30>();
        /// How long a client may accept no byte of a response before it is cut off.
        // As nginx: the system of a client that reads a few kilobytes a second may take nothing for half a minute, and
        // then much at once.
        write: Timeout = Timeout::secs::<60>();
        /// How long a tunnel (for example a WebSocket) may be idle in both directions.
        tunnel: Timeout = Timeout::secs::<3600>();
        /// How long exchanges in flight may take to finish after SIGTERM.
        drain: Timeout = Timeout::secs::<30>();
        /// How long connections of an old process may last after a new one has taken over (`sandarac upgrade`):
        /// downloads, WebSockets and other tunnels.
        drain_tunnels: Timeout = Timeout::secs::<3600>();
    }

    /// Limits on what clients and backends may send.
    pub struct Limits {
        /// The longest request head: request line and fields. Longer ones are answered with 431.
        // Four times nginx's limit for a field line, because single sign-on cookies grow.
        head: BoundedSize<{ KIB }, { 60 * KIB }> = BoundedSize::of::<{ 32 * KIB }>();
        /// The most fields in a head, of a request or a response.
        fields: Bounded<8, 1000> = Bounded::of::<128>();
        /// The longest request target. Longer ones are answered with 414.
        target: BoundedSize<256, { 60 * KIB }> = BoundedSize::of::<{ 8 * KIB }>();
        /// The largest request body. Larger ones are answered with 413.
        body: Option<ByteSize> = None, unset "no limit" "\"100MiB\"";
        /// The longest response head. A longer one is answered with 502.
        response_head: BoundedSize<{ KIB }, { 60 * KIB }> = BoundedSize::of::<{ 60 * KIB }>();
        /// The most client connections at a time. For one more, that which has been idle longest is closed;
        /// if none is, it is answered with 503 and closed.
        connections: Option<Bounded<1, { u32::MAX }>> = None, unset "as many as the limit on open files allows" "10000";
        /// The most connections at a time of one client: an IPv4 address, or a network of 64 bits of IPv6.
        /// One more is answered with 503 and closed; over TLS it is closed. Behind one address may be a whole
        /// office or mobile network, and a browser opens up to six connections over HTTP/1.1: with the
        /// suggested number, thirty of them.
        connections_per_client: Option<Bounded<1, { u32::MAX }>> = None, unset "no limit" "200";
        /// The networks whose clients `connections_per_client` leaves alone, such as your own proxies. The
        /// `trusted_proxies` of a listener are always left alone.
        connections_per_client_exempt: Vec<Network> = Vec::new();
        /// The most requests on one client connection, which is closed gracefully after the last.
        requests_per_connection: Option<Bounded<1, { u32::MAX }>> = None, unset "no limit" "10000";
        /// The lowest rate at which a client must send a request body, in bytes per second, after `min_rate_after`.
        /// Slower ones are answered with 408; `"0B"` disables the limit.
        min_rate_in: ByteSize = ByteSize(500);
        /// The lowest rate at which a client must take a response that has more bytes for it, in bytes per second,
        /// after `min_rate_after`. Slower ones are cut off; `"0B"` disables the limit.
        min_rate_out: ByteSize = ByteSize(500);
        /// How long a body may be in progress before its rate counts.
        min_rate_after: Timeout = Timeout::secs::<20>();
    }

    /// Where bodies wait for slow clients, so that these do not hold workers. Such bodies are in memory at first, which counts
    /// toward `cache.memory` and is an eighth of it at most, and then in files.
    pub(crate) struct SpoolSettings {
        /// The directory of the files, which have no names. If it is full or gone, bodies go on at the pace of their clients,
        /// which is counted (`spool_failures` in `sandarac stats`).
        // On most systems /tmp is memory.
        directory: AbsolutePath = AbsolutePath::of("/var/tmp");
        /// The most bytes of all files together. With `"0B"` there are none.
        // Four thousand slow clients, each with a megabyte.
        disk: ByteSize = ByteSize(4 << 30);
    }

    /// Fields that inform backends about the client and the path of a request. A client's own values of these fields
    /// are replaced, unless it is among the `trusted_proxies` of the listener: then they are extended.
    pub struct Forwarded {
        /// Whether to send `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`.
        x_forwarded: bool = true;
        /// Whether to send `Forwarded` (RFC 7239).
        forwarded: bool = true;
        /// Whether request fields whose names have underscores are forwarded. With CGI, FastCGI and WSGI `X_User` is
        /// `X-User`, which a rule may have removed or set. Those in `key_fields` are forwarded if a response may be
        /// stored.
        underscores: bool = false;
        /// The name of this proxy in `Via`, `Cache-Status` and `Proxy-Status`.
        name: Token = Token::literal("sandarac");
    }

    /// How the names of backends are resolved.
    pub struct Dns {
        /// Name servers, on port 53 unless another is given. `/etc/hosts` is always consulted first.
        servers: Vec<NameServer> = Vec::new(), unset "those of `/etc/resolv.conf`" "[\"10.0.0.2\", \"127.0.0.1:5353\"]";
    }

    /// HTTP requests with the method `PURGE`, as Varnish and nginx users send them.
    pub struct Purge {
        /// The addresses that may `PURGE`, compared with the address of the connection or in a PROXY header, never with
        /// a forwarding field; `unix` stands for any peer on the Unix socket. Requests from other addresses are
        /// refused.
        allow: Vec<Network> = Vec::new();
    }

    /// How `sandarac status`, `purge`, `reload` and the others reach the running process, and where `/metrics` is.
    pub struct Admin {
        /// The address to listen on: a Unix socket, which only its owner may open unless `mode` or `group` says
        /// otherwise, or an address, which needs a token.
        listen: Option<ListenAddress> = None, unset "a socket in the runtime directory of the user"
            "\"unix:/run/sandarac/admin.sock\"" => fixed;
        /// The mode of the Unix socket. Any user who may open it may purge and reload, so the mode may not include all
        /// users.
        mode: Option<Mode> = None, unset "`0600`, or `0660` with a `group`" "\"0660\"" => fixed;
        /// The group of the Unix socket, by name or number. The process must be a member, or run as root.
        group: Option<Group> = None, unset "that of the process" "\"adm\"" => fixed;
        /// The token that a caller over TCP must present as `Authorization: Bearer TOKEN`. `--admin-token-file FILE`
        /// and the environment variable `SANDARAC_TOKEN` override it.
        token: Option<Secret> = None, unset "none; an address needs this or `read_token`"
            "\"0123456789abcdef0123456789abcdef\"";
        /// The token for callers over TCP that may only read status, counters, metrics, pools and the live log, for
        /// example Prometheus. Without a `token` beside it, purging and reloading over that address are not possible.
        read_token: Option<Secret> = None, unset "none" "\"fedcba9876543210fedcba9876543210\"";
    }

    /// Which logs are written, and where.
    pub struct Log {
        /// Where to log each exchange: `stdout`, `stderr`, a file, or `off`.
        access: LogTarget = LogTarget::Off;
        /// The format: `combined` as in Apache and nginx, or `json`, one object per line.
        format: LogFormat = LogFormat::Combined;
    }
}

/// Where a log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// Nowhere.
    Off,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file, opened for appending.
    File(std::path::PathBuf),
}

impl crate::value::Text for LogTarget {
    fn form() -> crate::setting::Kind {
        let examples = &["stdout", "stderr", "off", "/var/log/sandarac/access.log"];
        crate::setting::Kind::Text {
            name: "path of a file, or one of these words",
            form: "\"stdout\", \"stderr\", \"off\" or the path of a file",
            examples,
        }
    }

    fn from_text(text: &str) -> Result<LogTarget, crate::report::Complaint> {
        match text {
            "off" => Ok(LogTarget::Off),
            "stdout" => Ok(LogTarget::Stdout),
            "stderr" => Ok(LogTarget::Stderr),
            // A bare word is more likely a mistake than a file.
            path if path.contains('/') && !path.contains('\0') => Ok(LogTarget::File(path.into())),
            other => {
                let kind = LogTarget::form();
                let complaint = crate::report::Complaint::new(format!("{other:?} is not {}", kind.words()));
                Err(complaint.help(match crate::suggest::closest(other, &["stdout", "stderr", "off"]) {
                    Some(name) => format!("did you mean \"{name}\"?"),
                    None => format!("a file in the working directory is written \"./{other}\""),
                }))
            }
        }
    }

    fn text(&self) -> String {
        match self {
            LogTarget::Off => "off".to_owned(),
            LogTarget::Stdout => "stdout".to_owned(),
            LogTarget::Stderr => "stderr".to_owned(),
            LogTarget::File(path) => path.display().to_string(),
        }
    }
}

/// The format of the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// NCSA combined.
    Combined,
    /// JSON lines.
    Json,
}

choice!(LogFormat { "combined" => LogFormat::Combined, "json" => LogFormat::Json });
