//! The state of a running process.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::{Mutex, RwLock};
use sandarac_message::Timestamp;
use sandarac_net::{Inherited, Listener, ListenerId};
use sandarac_proxy::Shared;
use tokio::sync::{Notify, watch};

use super::cores::Cores;
use super::relatives::{ListeningToOlder, Relatives};
use super::socket_files::FileIdentity;
use crate::acme::AcmeThreads;
use crate::admin::{AdminSocket, Token};
use crate::cli::RunArgs;
use crate::logs::{AccessLog, Feed};
use crate::service_manager::Noted;
use crate::takeover::Older;
use crate::tls::TlsState;

/// The state on which the admin interface and the signals act.
pub(super) struct ProcessState {
    pub(super) shared: Arc<Shared>,
    pub(super) cores: Cores,
    /// The addresses bound, in the order of the configuration's listeners.
    pub(super) listeners: Mutex<Vec<Listener>>,
    /// The files of Unix sockets created by this process, each with its identity.
    pub(super) socket_files: Mutex<HashMap<PathBuf, FileIdentity>>,
    /// Listening sockets that were passed to the process.
    pub(super) inherited: Inherited,
    pub(super) tls: TlsState,
    pub(super) acme: Arc<AcmeThreads>,
    pub(super) log: AccessLog,
    pub(super) feed: Feed,
    /// The arguments for a reload; `None` without a file.
    pub(super) args: Option<RunArgs>,
    pub(super) started: Instant,
    pub(super) started_at: Timestamp,
    pub(super) admin: Mutex<String>,
    /// The token for callers of the admin interface on TCP.
    pub(super) token: Token,
    /// The token for read-only callers.
    pub(super) read_token: Token,
    /// When the process began to drain, if it did.
    pub(super) draining_since: OnceLock<Instant>,
    /// Held during a reload.
    pub(super) reloading: Mutex<()>,
    /// Copies of the listening sockets, for a process that takes over.
    pub(super) sockets: Mutex<HashMap<ListenerId, Vec<OwnedFd>>>,
    /// The part of the admin interface that such a process takes.
    pub(super) admin_server: Mutex<Option<AdminSocket>>,
    /// Held during an upgrade.
    pub(super) upgrading: Mutex<()>,
    /// A notice that another process has taken over, and one that this one has to end.
    pub(super) handed_over: Notify,
    pub(super) has_to_end: Arc<Notify>,
    /// Whether that process has died.
    pub(super) is_orphan: Arc<AtomicBool>,
    /// The sign that the service manager has taken note of that.
    pub(super) noted: Mutex<Option<Noted>>,
    /// Whether what is stored is being written for the next process. Held while something is purged by
    /// command.
    pub(super) is_saving: RwLock<bool>,
    /// Whether objects are on their way to that process, which this one has to wait for.
    pub(super) is_moving: watch::Sender<bool>,
    /// Held while objects are on their way to this process.
    pub(super) arriving: Arriving,
    /// Those that forget what this one forgets, and the other way round.
    pub(super) relatives: Arc<Relatives>,
    pub(super) listening_to_older: ListeningToOlder,
    /// The processes that this one has taken over from, and that may have connections left.
    pub(super) older: Mutex<Vec<Older>>,
}

/// A mark that is held while objects are on their way to a process.
#[derive(Clone, Default)]
pub(super) struct Arriving(Arc<()>);

impl Arriving {
    /// Holds it until the result is dropped.
    pub(super) fn hold(&self) -> Arriving {
        self.clone()
    }

    pub(super) fn is_held(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}
