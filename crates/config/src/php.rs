//! `php` of routes: files, FastCGI, and the order in which they are tried, from one directory.

use sandarac_policy::FileName;

use crate::file::File;
use crate::file_names::{Attempt, IndexName};
use crate::path::AbsolutePath;
use crate::pool::{BackendSettings, FastCgiSettings, PoolName, PoolSettings};
use crate::report::{At, Report};
use crate::value::Text;

/// The pool of routes with `php` that name none.
const POOL: &str = "php";

/// The files that stand for their directory, in the order of other servers.
const INDEX: [&str; 2] = ["index.php", "index.html"];

/// Replaces `php` of each route by `files`, `try`, `index` and a pool with `fastcgi`. `php_fpm` is the address of php-fpm for
/// pools that are made here.
pub(crate) fn expand_php(file: &mut File, php_fpm: Option<&str>, report: &mut Report) {
    let File { route, pool: pools, .. } = file;
    let pools = &mut pools.0;
    let mut made = Vec::new();
    for At { value: route, place } in route.iter_mut() {
        let Some(root) = route.php.clone() else { continue };
        if let Some(files) = &route.files {
            let error = report.error(files.place.clone(), "`php` serves the files of its directory already");
            error.also = root.place.clone().map(|place| (place, "here".to_owned()));
            continue;
        }
        let name = match route.pool.take() {
            Some(name) => name,
            None => {
                let place = root.place.clone().or_else(|| place.clone());
                let Some(name) = pool_of(&root.value, pools, &mut made, php_fpm) else {
                    report.missing(
                        place,
                        "no php-fpm was found on this machine",
                        "install it (Debian: apt install php-fpm) or start it (systemctl start 'php*-fpm'); or give its \
                         address in --php-fpm, or in a pool: [pool.php] backends = [\"fcgi+unix:/run/php/php-fpm.sock\"]",
                    );
                    // So that the route is not reported as empty, too.
                    route.files = Some(root);
                    continue;
                };
                At { value: name, place }
            }
        };
        if let Some((_, pool)) = pools.iter_mut().find(|(pool, _)| pool.value == name.value) {
            run_scripts(&root, &name, pool, report);
        }
        if route.index.place.is_none() {
            route.index.value = INDEX.map(IndexName::literal).to_vec();
        }
        if route.r#try.iter().all(|attempt| attempt.place.is_none()) {
            route.r#try = vec![At::nowhere(Attempt::File(FileName::path()))];
        }
        if !route.r#try.iter().any(|attempt| matches!(attempt.value, Attempt::Pool(_))) {
            route.r#try.push(At { value: Attempt::Pool(name.value), place: name.place });
        }
        route.files = Some(root);
    }
}

/// The pool for the scripts of `root` on a route that names none: the file's pool `php`, else one that is made at `php_fpm`.
/// `made` are those made so far, with their roots. `None` if there is no php-fpm.
fn pool_of(
    root: &AbsolutePath,
    pools: &mut Vec<(At<PoolName>, PoolSettings)>,
    made: &mut Vec<(AbsolutePath, PoolName)>,
    php_fpm: Option<&str>,
) -> Option<PoolName> {
    if let Some((_, name)) = made.iter().find(|(other, _)| other == root) {
        return Some(name.clone());
    }
    let usual = PoolName(POOL.to_owned());
    let is_taken = |name: &PoolName| pools.iter().any(|(pool, _)| pool.value == *name);
    if made.is_empty() && is_taken(&usual) {
        return Some(usual);
    }
    let numbered = (2..).map(|number| PoolName(format!("{POOL}-{number}")));
    let name = std::iter::once(usual).chain(numbered).find(|name| !is_taken(name))?;
    let address = Text::from_text(php_fpm?).ok()?;
    let backends = vec![At::nowhere(BackendSettings::at(At::nowhere(address)))];
    let pool = PoolSettings { backends, ..PoolSettings::default() };
    pools.push((At::nowhere(name.clone()), pool));
    made.push((root.clone(), name.clone()));
    Some(name)
}

/// Makes a pool run the scripts of `root`, unless it says more about them itself.
fn run_scripts(root: &At<AbsolutePath>, name: &At<PoolName>, pool: &mut PoolSettings, report: &mut Report) {
    let Some(fastcgi) = &pool.fastcgi else {
        pool.fastcgi = Some(At::nowhere(FastCgiSettings::of_site(root.value.clone())));
        return;
    };
    let Some(other) = fastcgi.value.root().filter(|other| other.value != root.value) else { return };
    let message = format!(
        "the pool `{}` runs the scripts of {}, not of {}",
        name.value.0,
        other.value.text(),
        root.value.text()
    );
    let error = report.error(root.place.clone(), message);
    error.also = other.place.clone().map(|place| (place, "here".to_owned()));
    error.help = Some("name another pool with the same backends in this route: pool = \"NAME\"".to_owned());
}
