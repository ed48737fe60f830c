//! Reading configuration files, and the subcommands `check` and `config`.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::Access;
use sandarac_config::{
    AdminToken, Config, Credentials, Flags, ListenAddress, LogTarget, SecretContent, SecretFile, Warning,
    read_class_table,
};
use sandarac_policy::Action;
use sandarac_tls::WhenExpired;

use crate::acme_check;
use crate::cli::{self, CheckArgs, ConfigArgs, RunArgs};
use crate::failure::Failure;
use crate::fastcgi_check;
use crate::human;
use crate::php_fpm;
use crate::process::{core_count, descriptors};
use crate::stderr::print_line;
use crate::tls::{self, LoadedTls, TlsState};
use crate::user;

/// Reads the file at `path`; the admin token may come from elsewhere.
pub fn load(path: &Path, token: Option<AdminToken>) -> Result<(Config, Vec<Warning>), Failure> {
    load_with(path, &Flags { token, ..Flags::default() })
}

/// Reads the file at `path`, with `flags` over it.
pub(crate) fn load_with(path: &Path, flags: &Flags) -> Result<(Config, Vec<Warning>), Failure> {
    let name = path.display().to_string();
    let bytes = fs::read(path).map_err(|error| Failure::Usage(format!("cannot read {name}: {error}")))?;
    Config::from_bytes_and_flags(&name, &bytes, &with_php_fpm(flags)).map_err(Failure::Configuration)
}

/// The flags, with the php-fpm of this machine if they name none.
fn with_php_fpm(flags: &Flags) -> Flags {
    let php_fpm = flags.php_fpm.clone().or_else(php_fpm::find);
    Flags { php_fpm, ..flags.clone() }
}

/// The configuration given by the command line.
pub fn effective(args: &RunArgs) -> Result<(Config, Vec<Warning>), Failure> {
    let (mut config, warnings) = match &args.config {
        Some(path) => load_with(path, &args.flags()?)?,
        None => Config::from_flags(&with_php_fpm(&args.flags()?)).map_err(Failure::Configuration)?,
    };
    check_directories(args, &config)?;
    args.apply(&mut config);
    Ok((config, warnings))
}

/// Checks what the command line says of this machine. A file may name what appears later; who types a command sees at once that
/// it cannot work.
fn check_directories(args: &RunArgs, config: &Config) -> Result<(), Failure> {
    for (flag, directory) in [("--files", &args.files), ("--php", &args.php)] {
        let Some(directory) = directory else { continue };
        let refuse = |why: String| Err(Failure::Usage(format!("{flag}: {}{why}", directory.display())));
        match fs::metadata(directory) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return refuse(" is not a directory".to_owned()),
            Err(error) => return refuse(format!(": {error}")),
        }
    }
    match args.php.is_some() {
        true => fastcgi_check::sockets(config).try_for_each(php_fpm::probe).map_err(Failure::Usage),
        false => Ok(()),
    }
}

/// `check`.
pub fn check(args: &CheckArgs) -> Result<(), Failure> {
    let mut warnings = Vec::new();
    let found = find_mistakes(args, &mut warnings);
    if !args.quiet {
        warnings.iter().for_each(print_line);
    }
    let (config, tls, acme) = found?;
    if !args.quiet {
        let mut out = io::stdout().lock();
        out.write_all(sandarac_config::explain(&config).as_bytes())?;
        out.write_all(tls.explain(&config).as_bytes())?;
        out.write_all(acme.as_bytes())?;
        let held = sandarac_cache::most_lent(config.cache.memory.get());
        let held = human::bytes(held as u64);
        writeln!(out, "Clients may hold up to {held} in memory: half of the cache's, and 16 MiB beside it.")?;
        out.write_all(descriptors::explain(&config, core_count(&config)).as_bytes())?;
    }
    Ok(())
}

/// The configuration, its certificates, and the text about ACME. Warnings are added to `warnings`, also if there is an error.
fn find_mistakes(
    args: &CheckArgs,
    warnings: &mut Vec<String>,
) -> Result<(Config, LoadedTls, String), Failure> {
    let (config, found) = load(&args.config, cli::token("", None)?)?;
    warnings.extend(found.iter().map(ToString::to_string));
    warnings.extend(user::warning(&config).map(str::to_owned));
    user::look_as_user(&config, &args.config)?;
    check_tables(&config, warnings)?;
    if let Some((_, found)) = credentials(&config)? {
        warnings.extend(found.iter().map(ToString::to_string));
    }
    let tls = tls::load(&config, &TlsState::new(None).loading(WhenExpired::Refuse))?;
    let expiring: Vec<String> = tls.expiring().iter().map(ToString::to_string).collect();
    let of_tls = tls.warnings.iter().cloned().chain(expiring);
    warnings.extend(of_tls.map(|warning| format!("warning: {warning}")));
    let acme = acme_check::explain(&config)?;
    check_machine(&config, warnings)?;
    check_files(&config, warnings);
    let low =
        descriptors::warning(&config, core_count(&config)).map(|low| format!("{low} (if started from here)"));
    let others = fastcgi_check::warnings(&config).into_iter().chain(low);
    warnings.extend(others.map(|warning| format!("warning: {warning}")));
    Ok((config, tls, acme))
}

/// Reads the tables of classes. The running process works without a table that does not exist yet.
fn check_tables(config: &Config, warnings: &mut Vec<String>) -> Result<(), Failure> {
    for classifier in config.pools.iter().filter_map(|pool| pool.classifier.as_ref()) {
        let Some(path) = classifier.table_path() else { continue };
        match fs::read(path) {
            Ok(text) => {
                read_class_table(classifier, &text).map_err(|error| Failure::Usage(error.to_string()))?;
            }
            Err(error) => warnings.push(format!(
                "warning: no request has a class yet: cannot read {}: {error}",
                path.display()
            )),
        }
    }
    Ok(())
}

/// Reads the secrets and the password of the shared tier, if one is configured. They are read anew each time,
/// because a secret is replaced in its file.
pub(crate) fn credentials(config: &Config) -> Result<Option<(Credentials, Vec<Warning>)>, Failure> {
    let Some(shared) = &config.cache.shared else { return Ok(None) };
    shared.credentials(read_secret).map(Some).map_err(Failure::Configuration)
}

/// Reads a file of a secret, up to the bytes that show that it is none.
fn read_secret(path: &Path) -> io::Result<SecretContent> {
    let file = fs::File::open(path)?;
    let mode = file.metadata()?.permissions().mode();
    let mut bytes = Vec::new();
    file.take(SecretFile::MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(SecretContent { bytes, mode })
}

/// Checks the machine's requirements for a configuration: places for the log and the admin socket, and memory.
fn check_machine(config: &Config, warnings: &mut Vec<String>) -> Result<(), Failure> {
    if let LogTarget::File(path) = &config.log.access {
        // An existing file is appended to; otherwise one is created.
        let needed = if path.exists() { path } else { directory(path) };
        if let Err(error) = rustix::fs::access(needed, Access::WRITE_OK) {
            let error = io::Error::from(error);
            let what = format!("the access log {} cannot be written: {error}", path.display());
            warnings.push(missing(path, what)?);
        }
    }
    if let Some(path) = &config.cache.snapshot
        && let Err(error) = rustix::fs::access(directory(path), Access::WRITE_OK)
    {
        let error = io::Error::from(error);
        let what = format!("the cache cannot be kept in {}: {error}", path.display());
        warnings.push(missing(path, what)?);
    }
    if let Some(ListenAddress::Unix(path)) = &config.admin.listen
        && !directory(path).is_dir()
    {
        let what = format!("the admin socket {} has no directory to be in", path.display());
        warnings.push(missing(path, what)?);
    }
    let wanted = config.cache.memory.get() as u64;
    if let Some(there) = usable_memory().filter(|there| wanted > *there) {
        warnings.push(format!(
            "warning: the cache may hold {}, more than the {} of this machine",
            config.cache.memory,
            human::bytes(there)
        ));
    }
    Ok(())
}

/// Warns of directories of files that cannot be served. They may appear later.
fn check_files(config: &Config, warnings: &mut Vec<String>) {
    for route in config.routes.all() {
        let (Action::Files { rule, .. } | Action::Internal(rule)) = &route.action else { continue };
        for directory in std::iter::once(&rule.root).chain(&rule.also) {
            // To find a file, a directory has to be entered only; to list it, it is read too.
            let needed = if rule.listing { Access::READ_OK | Access::EXEC_OK } else { Access::EXEC_OK };
            let name = directory.display();
            match fs::metadata(directory) {
                Ok(about) if !about.is_dir() => {
                    warnings.push(format!("warning: {name} is not a directory: no file in it is served"));
                }
                Ok(_) => {
                    if let Err(error) = rustix::fs::access(directory, needed) {
                        let error = io::Error::from(error);
                        warnings.push(format!("warning: {name} cannot be read by this user: {error}"));
                    }
                }
                Err(error) => warnings.push(format!("warning: no file in {name} is served: {error}")),
            }
        }
        if let Some(page) = &rule.not_found
            && rule.root.is_dir()
            && !rule.root.join(page.to_string().trim_start_matches('/')).exists()
        {
            let root = rule.root.display();
            warnings.push(format!(
                "warning: {page} is not in {root}: what is not there is answered with a line of text, not with `not_found`"
            ));
        }
    }
}

/// An error; or a warning if systemd creates the directory when the service starts (RuntimeDirectory=, LogsDirectory=).
fn missing(path: &Path, what: String) -> Result<String, Failure> {
    let made = !directory(path).exists()
        && ["/run", "/var/lib", "/var/log"].iter().any(|made| path.starts_with(made));
    if !made {
        return Err(Failure::Usage(what));
    }
    Ok(format!("warning: {what}, unless the service makes it when it starts"))
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The memory of the machine, or the limit of this process's control group, in bytes.
fn usable_memory() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let total: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let limit = limit.and_then(|text| text.trim().parse::<u64>().ok());
    Some((total * 1024).min(limit.unwrap_or(u64::MAX)))
}

/// `config`.
pub fn config(args: &ConfigArgs) -> Result<(), Failure> {
    let text = if args.schema {
        sandarac_config::schema()
    } else if args.manual {
        sandarac_config::manual()
    } else {
        sandarac_config::defaults()
    };
    writeln!(io::stdout(), "{}", text.trim_end())?;
    Ok(())
}
