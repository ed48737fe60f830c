//! Sandarac before php-fpm.

use std::ops::Deref;
use std::path::Path;

use sandarac_test_support::{PhpFpm, Sandarac, Setup};

/// A running php-fpm.
pub(crate) struct Fpm(PhpFpm);

impl Deref for Fpm {
    type Target = PhpFpm;

    fn deref(&self) -> &PhpFpm {
        &self.0
    }
}

impl Fpm {
    /// Starts php-fpm with this many processes.
    #[track_caller]
    pub(crate) fn start(processes: usize) -> Fpm {
        Fpm(PhpFpm::start(processes))
    }

    /// Sandarac before it, with these settings of the pool, of its `fastcgi`, and of the cache of the route.
    #[track_caller]
    pub(crate) fn site(&self, pool: &str, fastcgi: &str, cache: &str) -> Sandarac {
        self.site_at(&self.root(), pool, fastcgi, cache)
    }

    /// The same with another document root.
    #[track_caller]
    pub(crate) fn site_at(&self, root: &Path, pool: &str, fastcgi: &str, cache: &str) -> Sandarac {
        let (socket, root) = (self.socket(), root.display().to_string());
        let config = format!(
            "threads = 2\n[[listen]]\naddress = \"127.0.0.1:0\"\n[pool.php]\n\
             backends = [\"fcgi+unix:{}\"]\n{pool}\n[pool.php.fastcgi]\nroot = {root:?}\n{fastcgi}\n\
             [[route]]\npool = \"php\"\n{cache}\n",
            socket.display()
        );
        Setup::new(env!("CARGO_BIN_EXE_sandarac")).config(config).start()
    }
}
