//! The shared tier as the file writes it.

use crate::definition::settings;
use crate::limited::{Bounded, BoundedSize, BoundedTime};
use crate::path::AbsolutePath;
use crate::report::{At, Complaint};
use crate::setting::Kind;
use crate::shared::server::SharedServer;
use crate::shared::source::SharedSourceSettings;
use crate::value::Text;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Milliseconds.
const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

settings! {
    /// A shared tier.
    pub(crate) struct SharedSettings {
        /// The memcached servers: `host:port`, `host` (port 11211), or `unix:/path`. All nodes need the same
        /// list in the same words, because each key is placed by the names of the servers; their order does
        /// not matter.
        servers: Vec<At<SharedServer>> = Vec::new(), unset "the tier has a `discover`"
            "[\"10.0.0.1:11211\", \"10.0.0.2:11211\"]";
        /// A source of the servers, instead of `servers`. One that cannot be reached leaves the servers
        /// unchanged.
        discover: Option<At<SharedSourceSettings>> = None, unset "the tier has `servers`" "{ file = \"/etc/sandarac/servers\" }";
        /// A name that separates sites on the same servers: nodes with different namespaces share nothing.
        namespace: Namespace = Namespace(Box::default());
        /// A file of at least 32 random bytes, the same on all nodes. Entries are sealed with it, so that
        /// other users of the servers cannot forge them. Two files are for changing the secret: the first one
        /// seals, and entries sealed with either are accepted (docs/manual/shared.md has the steps). Without
        /// it, only servers on loopback addresses and Unix sockets are accepted.
        secret_file: Vec<At<AbsolutePath>> = Vec::new(), unset "entries are not sealed" "\"/etc/sandarac/secret\"";
        /// Whether servers that other machines can reach are accepted without a `secret_file`. Whoever
        /// reaches such a server can then change what all clients get.
        dangerous_unauthenticated: At<bool> = At::nowhere(false);
        /// The user to log in as, for servers started with `-Y`.
        user: Option<At<String>> = None, unset "the servers ask for none" "\"sandarac\"";
        /// The file of the user's password; a line end after it is not part of it.
        password_file: Option<At<AbsolutePath>> = None, unset "the servers ask for none" "\"/etc/sandarac/memcached-password\"";
        /// How long memory serves a copy before it is compared with the shared tier, and how often each
        /// server is asked for its purges. While the server of a key answers, memory is at most this and one
        /// `timeout` behind; while it does not, a copy is served as long as it is fresh.
        // The value of the published design.
        local_ttl: BoundedTime<100, { HOUR }> = BoundedTime::of::<{ 5 * SECOND }>();
        /// How long a server may take to answer. A value may take longer by its time at 4 MB/s. Without an
        /// answer in time, the key counts as missing.
        // Servers in one network answer within a millisecond; a request that waits in vain loses less than a
        // page takes.
        timeout: BoundedTime<1, { 10 * SECOND }> = BoundedTime::of::<50>();
        /// When a server is ejected because it does not answer. Its keys are then fetched from the backends.
        ejection: At<SharedEjectionSettings> = At::nowhere(SharedEjectionSettings::default());
        /// The largest response that is written to the shared tier; larger ones stay in memory.
        // A multiple of any page; the transfer of more would delay other entries for longer than a fetch
        // takes.
        max_object: At<BoundedSize<{ KIB }, { sandarac_wire::entry::MAX_BODY }>> = At::nowhere(BoundedSize::of::<{ 8 * MIB }>());
        /// How long a request waits while another node fetches the same response, before it is fetched here
        /// too; with `"0s"` it never waits.
        wait: BoundedTime<0, { 5 * MINUTE }> = BoundedTime::of::<{ 5 * SECOND }>();
        /// How long each node remembers its purges for servers that were away. A copy that could not be
        /// compared for longer is dropped instead of written back. It must be longer than `local_ttl`.
        purge_memory: BoundedTime<{ MINUTE }, { 7 * 24 * HOUR }> = BoundedTime::of::<{ HOUR }>();
        /// Whether text is compressed with zstd in the shared tier. Responses that are compressed already, or
        /// would hardly shrink, are stored as they are.
        compression: bool = true;
    }

    /// Ejection of servers.
    pub(crate) struct SharedEjectionSettings {
        /// How many operations in a row must fail: connection refused or lost, or no answer in time.
        // One lost packet fails what is in flight, not three attempts in a row.
        failures: Bounded<1, 1_000_000> = Bounded::of::<3>();
        /// How long it is ejected the first time. Each further ejection without a success in between lasts
        /// twice as long.
        // A restarted memcached answers within a second.
        first: BoundedTime<10, { HOUR }> = BoundedTime::of::<{ SECOND }>();
        /// The longest ejection.
        // A server that is back is found within half a minute, at the cost of one operation.
        longest: BoundedTime<10, { HOUR }> = BoundedTime::of::<{ 30 * SECOND }>();
    }
}

/// The name of a namespace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Namespace(pub(crate) Box<str>);

impl Text for Namespace {
    fn form() -> Kind {
        Kind::Text {
            name: "name",
            form: "a name of at most 64 letters, digits, `-`, `_` and `.`",
            examples: &["shop"],
        }
    }

    fn from_text(text: &str) -> Result<Namespace, Complaint> {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        match text.len() <= 64 && text.bytes().all(letter) {
            true => Ok(Namespace(text.into())),
            false => Err(Complaint::new(format!("{text:?} is not {}", Namespace::form().words()))),
        }
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}
