//! The flags of a run.

use std::path::{Path, PathBuf};

use clap::Args;
use sandarac_config::{Config, Flags, LogFormat, LogTarget};

use super::backend_url::{as_fastcgi_url, as_url};
use super::token::token;
use crate::failure::Failure;

/// The flags of a run. All except `config`, `access_log` and `log_format` are strings for [`Flags`], which reads them
/// by the same rules as a file.
#[derive(Args, Clone, Debug, Default)]
pub struct RunArgs {
    /// The configuration; flags override it
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where to listen: `:8080`, `127.0.0.1:8080`, `[::1]:80` or `unix:/path`. Port 0 takes a free one. Can be repeated
    #[arg(short = 'a', long, value_name = "ADDRESS", value_parser = Listen::of)]
    pub listen: Vec<Listen>,
    /// A certificate in PEM, followed by those of its issuers, for every --listen except port 80 and `ADDRESS,http`.
    /// Can be repeated
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub certificate: Vec<PathBuf>,
    /// The private key of the --certificate before it. Without, the file of the certificate holds it
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub key: Vec<PathBuf>,
    /// A name for which a certificate is obtained by ACME, for every --listen except port 80, which redirects to https, and
    /// `ADDRESS,http`. With port 443, port 80 is listened on too where it may be. Can be repeated. Using it accepts the terms
    /// of service of the CA, Let's Encrypt
    #[arg(long, value_name = "NAME", requires = "listen")]
    pub acme: Vec<String>,
    /// The CA of --acme, by the URL of its directory, or `staging` for Let's Encrypt's staging environment
    #[arg(long, value_name = "URL|staging", requires = "acme")]
    pub acme_directory: Option<String>,
    /// The directory that keeps the account and the certificate of --acme (default: /var/lib/sandarac/acme)
    #[arg(long, value_name = "DIR", requires = "acme")]
    pub acme_state: Option<PathBuf>,
    /// A backend application: `http://host:8000`, `https://host` or `unix:/path`. Several are balanced
    #[arg(short, long, value_name = "URL")]
    pub backend: Vec<String>,
    /// A directory of Unix sockets, one per worker, as kept by `sandarac-worker`. Workers may come and go
    #[arg(long, value_name = "DIR")]
    pub sockets: Option<PathBuf>,
    /// A directory whose files are served. With --backend, that answers the requests without a file
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,
    /// The directory of a PHP application, such as a wiki: its files are served, php-fpm runs its scripts, and `index.php` gets
    /// every other request
    #[arg(long, value_name = "DIR", conflicts_with_all = ["backend", "sockets", "files"])]
    pub php: Option<PathBuf>,
    /// Where php-fpm listens, for --php and routes with `php`: `/path`, `host:9000` or `fcgi://host:9000` (default: its socket
    /// at the usual place)
    #[arg(long, value_name = "ADDRESS")]
    pub php_fpm: Option<String>,
    /// How a backend is chosen: by default least_requests, and resume for workers in a directory
    #[arg(long, value_name = "NAME")]
    pub balance: Option<String>,
    /// The most memory for the cache, such as `512MiB`
    #[arg(long, value_name = "SIZE", conflicts_with = "storage")]
    pub memory: Option<String>,
    /// The same in varnishd's syntax: `malloc,512m`
    #[arg(short, value_name = "malloc,SIZE", value_parser = storage)]
    pub storage: Option<String>,
    /// A memcached server of the shared tier: `host:port` or `unix:/path`. Can be repeated; the same on all nodes
    #[arg(long, value_name = "ADDRESS")]
    pub memcached: Vec<String>,
    /// A file with the secret of the shared tier, at least 32 random bytes, the same on all nodes
    #[arg(long, value_name = "FILE")]
    pub shared_secret: Option<PathBuf>,
    /// How long a stale object may be served while a new one is fetched, such as `30s`
    #[arg(long, value_name = "TIME")]
    pub grace: Option<String>,
    /// Where `status`, `purge` and the like reach this process: a socket path, or an address (needs a token)
    #[arg(long, value_name = "PATH|ADDRESS")]
    pub admin: Option<String>,
    /// A file that holds the token for an admin address on TCP. SANDARAC_TOKEN holds the token itself
    #[arg(long, value_name = "FILE")]
    pub admin_token_file: Option<PathBuf>,
    /// Takes the place of the process that runs with the same admin address, if there is one: its sockets and its cache. It ends
    /// with its last connection. `sandarac upgrade` does the same from the other side
    #[arg(long)]
    pub take_over: bool,
    /// The user whose rights to keep when root starts this, such as www-data
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// How many cores to use (default: all)
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// `safe`: requests with cookies or a login are not cached unless a rule allows it. `rfc`: everything that RFC 9111
    /// allows is cached
    #[arg(long, value_name = "safe|rfc")]
    pub cache_profile: Option<String>,
    /// Where to write a line for each request: a path, `stdout`, `stderr` or `off`
    #[arg(long, value_name = "FILE", value_parser = log_target)]
    pub access_log: Option<LogTarget>,
    /// Its format: `combined`, as in Apache and nginx, or `json`
    #[arg(long, value_name = "combined|json", value_parser = log_format)]
    pub log_format: Option<LogFormat>,
}

impl RunArgs {
    /// Whether neither a configuration nor backends nor files are given.
    pub fn lacks_everything(&self) -> bool {
        let served = [&self.sockets, &self.files, &self.php];
        self.config.is_none() && self.backend.is_empty() && served.iter().all(|directory| directory.is_none())
    }

    /// The flags as settings of a file, with the token read from its source.
    pub fn flags(&self) -> Result<Flags, Failure> {
        let token = token("--admin-token-file", self.admin_token_file.as_deref())?;
        Ok(Flags {
            token,
            presented: None,
            listen: self.listen.iter().map(|listen| listen.address.clone()).collect(),
            listen_in_clear: self.listen.iter().map(|listen| listen.http).collect(),
            certificates: self.certificates()?,
            acme: self.acme.clone(),
            acme_directory: self.acme_directory.clone(),
            acme_state: absolute("--acme-state", self.acme_state.as_deref())?,
            listen_unless_configured: None,
            backends: self.backend.iter().map(|backend| as_url(backend)).collect(),
            files: absolute("--files", self.files.as_deref())?,
            php: absolute("--php", self.php.as_deref())?,
            php_fpm: self.php_fpm.as_deref().map(as_fastcgi_url),
            sockets: absolute("--sockets", self.sockets.as_deref())?,
            balance: self.balance.clone(),
            memory: self.memory.clone().or_else(|| self.storage.clone()),
            memcached: self.memcached.clone(),
            shared_secret: absolute("--shared-secret", self.shared_secret.as_deref())?,
            grace: self.grace.clone(),
            admin: self.admin.clone(),
            user: self.user.clone(),
            threads: self.threads,
            profile: self.cache_profile.clone(),
        })
    }

    /// The certificates, each with its key.
    fn certificates(&self) -> Result<Vec<(String, String)>, Failure> {
        if !self.key.is_empty() && self.key.len() != self.certificate.len() {
            let (certificates, keys) = (self.certificate.len(), self.key.len());
            let text =
                format!("{certificates} --certificate and {keys} --key: give each certificate its key");
            return Err(Failure::Usage(text));
        }
        let mut pairs = Vec::new();
        for (at, chain) in self.certificate.iter().enumerate() {
            let key = self.key.get(at).unwrap_or(chain);
            let pair = (absolute("--certificate", Some(chain))?, absolute("--key", Some(key))?);
            pairs.extend(pair.0.zip(pair.1));
        }
        Ok(pairs)
    }

    /// Applies the flags that are not part of [`Flags`].
    pub fn apply(&self, config: &mut Config) {
        if let Some(target) = &self.access_log {
            config.log.access = target.clone();
        }
        if let Some(format) = self.log_format {
            config.log.format = format;
        }
        // Flags replace the file's listeners, one for one.
        for (listen, listener) in self.listen.iter().zip(&mut config.listeners) {
            listener.proxy_protocol |= listen.proxy;
            listener.mode = listen.mode;
        }
    }
}

/// An address with the options of varnishd: `[NAME=]ADDRESS[,HTTP|,PROXY][,mode=OCTAL]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The address, which [`Flags`] reads.
    address: String,
    /// Whether connections begin with a PROXY header.
    proxy: bool,
    /// Whether http is spoken, even if there are certificates.
    http: bool,
    /// The mode of a Unix socket.
    mode: Option<u32>,
}

impl Listen {
    fn of(text: &str) -> Result<Listen, String> {
        let mut rest = text;
        let (mut proxy, mut http, mut mode) = (false, false, None);
        // A path may contain commas: only varnishd's options are removed from its end.
        while let Some((address, option)) = rest.rsplit_once(',') {
            match option.split_once('=') {
                None if option.eq_ignore_ascii_case("proxy") => proxy = true,
                None if option.eq_ignore_ascii_case("http") => http = true,
                Some(("mode", octal)) => {
                    let parsed = u32::from_str_radix(octal, 8).ok().filter(|mode| *mode <= 0o777);
                    mode =
                        Some(parsed.ok_or_else(|| {
                            format!("{octal:?} is not an octal mode up to 777, such as 660")
                        })?);
                }
                Some((name @ ("user" | "group"), _)) => {
                    return Err(format!(
                        "{name}= is not supported: a socket belongs to the user that runs sandarac, and mode=660 admits their group"
                    ));
                }
                _ => break,
            }
            rest = address;
        }
        let named =
            rest.split_once('=').filter(|(name, _)| name.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        let address = named.map_or(rest, |(_, address)| address).to_owned();
        if mode.is_some() && !address.starts_with(['/', '.']) && !address.starts_with("unix:") {
            return Err("only a Unix socket has a mode".to_owned());
        }
        Ok(Listen { address, proxy, http, mode })
    }
}

/// The absolute path of a path on the command line, given by `flag`.
fn absolute(flag: &str, path: Option<&Path>) -> Result<Option<String>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let absolute = std::path::absolute(path).ok().and_then(|path| path.into_os_string().into_string().ok());
    match absolute {
        Some(absolute) => Ok(Some(absolute)),
        None => Err(Failure::Usage(format!("{flag}: {} is empty or not UTF-8", path.display()))),
    }
}

/// The size in varnishd's `[NAME=]malloc,SIZE`.
fn storage(text: &str) -> Result<String, String> {
    let kind_and_size = text.split_once('=').map_or(text, |(_, rest)| rest);
    match kind_and_size.split_once(',') {
        Some(("malloc" | "default", size)) => Ok(size.to_owned()),
        Some((kind, rest)) => {
            // `file,PATH,SIZE` and others have more before the size.
            let size = rest.split(',').find(|part| part.starts_with(|first: char| first.is_ascii_digit()));
            let size = size.unwrap_or("512m");
            Err(format!("there is no storage {kind:?}; the cache is in memory: malloc,{size}"))
        }
        None => Err("expected malloc,SIZE, such as malloc,512m".to_owned()),
    }
}

fn log_target(text: &str) -> Result<LogTarget, String> {
    Ok(match text {
        "off" => LogTarget::Off,
        "stdout" | "-" => LogTarget::Stdout,
        "stderr" => LogTarget::Stderr,
        "" => return Err("expected a path, `stdout`, `stderr` or `off`".to_owned()),
        path => LogTarget::File(path.into()),
    })
}

fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "combined" => Ok(LogFormat::Combined),
        "json" => Ok(LogFormat::Json),
        _ => Err("expected `combined` or `json`".to_owned()),
    }
}
