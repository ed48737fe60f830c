//! The pools of the configuration, told apart by host.

/// A pool, with the host whose requests it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Pool {
    /// The cached site and private pages.
    Cache,
    /// A backend without faults, past the cache.
    Steady,
    /// The same backend, through the cache: one URL for all, and answers that cannot be shared.
    Shared,
    /// Backends of which some die, hang, truncate, reset and close, with retries.
    Retry,
    Hedge,
    /// Few places, and a queue.
    Queue,
    Sticky,
    /// Workers of a single version.
    Version,
    /// A backend on a Unix socket.
    Unix,
    Upload,
    /// Backends that send responses that nobody asked for.
    Stray,
    Tunnel,
    /// FastCGI applications.
    Cgi,
    /// No backend: files.
    Files,
}

impl Pool {
    pub(crate) const ALL: [Pool; 14] = [
        Pool::Cache,
        Pool::Steady,
        Pool::Shared,
        Pool::Retry,
        Pool::Hedge,
        Pool::Queue,
        Pool::Sticky,
        Pool::Version,
        Pool::Unix,
        Pool::Upload,
        Pool::Stray,
        Pool::Tunnel,
        Pool::Cgi,
        Pool::Files,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Pool::Cache => "cache",
            Pool::Steady => "steady",
            Pool::Shared => "shared",
            Pool::Retry => "retry",
            Pool::Hedge => "hedge",
            Pool::Queue => "queue",
            Pool::Sticky => "sticky",
            Pool::Version => "version",
            Pool::Unix => "unix",
            Pool::Upload => "upload",
            Pool::Stray => "stray",
            Pool::Tunnel => "tunnel",
            Pool::Cgi => "cgi",
            Pool::Files => "files",
        }
    }

    pub(crate) const fn host(self) -> &'static str {
        match self {
            Pool::Cache => crate::site::HOST,
            Pool::Steady => "steady.example",
            Pool::Shared => "shared.example",
            Pool::Retry => "retry.example",
            Pool::Hedge => "hedge.example",
            Pool::Queue => "queue.example",
            Pool::Sticky => "sticky.example",
            Pool::Version => "version.example",
            Pool::Unix => "unix.example",
            Pool::Upload => "upload.example",
            Pool::Stray => "stray.example",
            Pool::Tunnel => "tunnel.example",
            Pool::Cgi => "cgi.example",
            Pool::Files => "files.example",
        }
    }

    /// How many backends it has.
    pub(crate) const fn backends(self) -> usize {
        match self {
            Pool::Files => 0,
            Pool::Steady | Pool::Shared | Pool::Unix | Pool::Tunnel => 1,
            Pool::Cache | Pool::Hedge | Pool::Queue | Pool::Upload | Pool::Stray | Pool::Cgi => 2,
            Pool::Retry | Pool::Sticky | Pool::Version => 3,
        }
    }

    /// Whether the backend of this number is behind a gateway that speaks HTTP/2.
    pub(crate) const fn is_behind_gateway(self, number: usize) -> bool {
        number == 1 && matches!(self, Pool::Cache | Pool::Retry | Pool::Hedge | Pool::Queue | Pool::Sticky)
    }

    /// Whether every request is answered well, unless the process itself is disturbed.
    pub(crate) const fn is_steady(self) -> bool {
        matches!(self, Pool::Steady | Pool::Shared | Pool::Hedge | Pool::Unix | Pool::Tunnel | Pool::Files)
    }

    /// Whether its backends are killed now and then.
    pub(crate) const fn is_killed(self) -> bool {
        matches!(self, Pool::Cache | Pool::Retry | Pool::Sticky | Pool::Version | Pool::Cgi)
    }

    /// Its settings beside the backends.
    const fn settings(self) -> &'static str {
        match self {
            Pool::Hedge => "hedge_after = \"20ms\"\n",
            Pool::Queue => "max_in_flight = 2\nqueue = 12\nqueue_timeout = \"300ms\"\n",
            Pool::Sticky => "sticky = { cookie = \"home\" }\n",
            Pool::Version => "balance = \"resume\"\nclass = \"{path}\"\nsingle_version = true\n",
            Pool::Cgi => "fastcgi = { root = \"/soak\", local = false, front_controller = \"/index.php\" }\n",
            _ => "",
        }
    }

    /// The rule for the cache.
    const fn cache(self) -> &'static str {
        if matches!(self, Pool::Cache | Pool::Shared) { "lookup" } else { "pass" }
    }

    /// The tables of the pool and of its route, with `backends` as URLs.
    pub(crate) fn tables(self, backends: &[String]) -> String {
        let (name, host, settings, cache) = (self.name(), self.host(), self.settings(), self.cache());
        let backends = backends.join("\", \"");
        // Backends that never hang are given the time that a busy machine may take.
        let patience = if self.is_steady() { "15s" } else { "2s" };
        format!(
            "[pool.{name}]\nbackends = [\"{backends}\"]\nconnect_timeout = \"{patience}\"\n\
             first_byte_timeout = \"{patience}\"\nbetween_bytes_timeout = \"{patience}\"\nidle_timeout = \"2s\"\n{settings}\
             ejection = {{ first = \"200ms\", longest = \"1s\" }}\n\n\
             [[route]]\nmatch = \"{host}\"\npool = \"{name}\"\ncache = \"{cache}\"\n\n"
        )
    }
}
