//! The findings of `check` about FastCGI on this machine: document roots, front controllers, and sockets without a listener.

use std::fs;
use std::path::Path;

use sandarac_balance::Endpoint;
use sandarac_config::{Config, FastCgiConfig};

use crate::php_fpm;

/// The Unix sockets of the FastCGI applications in a configuration.
pub(crate) fn sockets(config: &Config) -> impl Iterator<Item = &Path> {
    let pools = config.pools.iter().filter(|pool| pool.fastcgi.is_some());
    pools.flat_map(|pool| &pool.backends).filter_map(|backend| match backend.address.endpoint() {
        Endpoint::Unix(path) => Some(path.as_path()),
        Endpoint::Tcp(..) => None,
    })
}

/// Warnings about the FastCGI applications in a configuration. What they are about may appear later.
pub(crate) fn warnings(config: &Config) -> Vec<String> {
    let mut warnings = Vec::new();
    for pool in &config.pools {
        if let Some(fastcgi) = pool.fastcgi.as_ref().filter(|fastcgi| fastcgi.local) {
            warnings.extend(without_script(fastcgi).map(|what| format!("the pool `{}`: {what}", pool.name)));
        }
    }
    warnings.extend(sockets(config).filter_map(|socket| php_fpm::probe(socket).err()));
    warnings
}

/// Why a pool cannot run what it should.
fn without_script(fastcgi: &FastCgiConfig) -> Option<String> {
    let root = fastcgi.root.display();
    match fs::metadata(&fastcgi.root) {
        Err(error) => {
            return Some(format!(
                "`root` {root}: {error}; if it is on another machine or in a container, local = false"
            ));
        }
        Ok(found) if !found.is_dir() => return Some(format!("`root` {root} is not a directory")),
        Ok(_) => {}
    }
    let name = fastcgi.front_controller.as_ref()?;
    let path = fastcgi.root.join(name.trim_start_matches('/'));
    let shown = path.display();
    match fs::metadata(&path) {
        Ok(found) if found.is_file() => None,
        Ok(_) => Some(format!("`front_controller` {shown} is not a file")),
        Err(error) => {
            Some(format!("`front_controller` {shown}: {error}; requests that lead to no script get 404"))
        }
    }
}
