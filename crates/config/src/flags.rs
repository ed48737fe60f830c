//! Command-line flags that set or override settings of the file.

use std::fmt;

use sandarac_balance::{Address, Algorithm};
use sandarac_message::target::Scheme;

use crate::address::ListenAddress;
use crate::config::Listener;
use crate::file::{CacheChoice, File, ListenSettings, RouteSettings};
use crate::file_names::Attempt;
use crate::limited::Bounded;
use crate::pool::{BackendSettings, CheckSettings, PoolName, PoolSettings, Sources, StatusRange};
use crate::report::{At, Complaint, Report};
use crate::shared::SecretFile;
use crate::tls::{AcmeSettings, CertificateSettings, CertifiedName, ListenTlsSettings};
use crate::value::{Secret, Text};

/// The flags of the command line, each as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--listen`: addresses instead of the file's listeners.
    pub listen: Vec<String>,
    /// Which of the addresses in `listen` are not encrypted, whatever `certificates` hold; the others are `false` or
    /// missing.
    pub listen_in_clear: Vec<bool>,
    /// `--certificate` and `--key`: certificates for the addresses in `listen`, except for those with port 80, by the
    /// absolute paths of chain and key.
    pub certificates: Vec<(String, String)>,
    /// `--acme`: the names of a certificate by ACME for the addresses in `listen`, as for `certificates`. Port 80 redirects to
    /// https; beside port 443 it is listened on where it may be.
    pub acme: Vec<String>,
    /// `--acme-directory`: the CA of that certificate, as the URL of its directory; `staging` is Let's Encrypt's staging
    /// environment.
    pub acme_directory: Option<String>,
    /// `--acme-state`: the directory in which that certificate is kept, by absolute path.
    pub acme_state: Option<String>,
    /// The address of a listener for a file that has none, for commands that serve no clients.
    pub listen_unless_configured: Option<String>,
    /// `--backend`: backends instead of those of the file's only pool.
    pub backends: Vec<String>,
    /// `--files`: a directory, by absolute path, whose files answer all requests. With backends, they answer those without a
    /// file.
    pub files: Option<String>,
    /// `--php`: the directory of a PHP application, by absolute path, which answers all requests.
    pub php: Option<String>,
    /// `--php-fpm`, or what the caller has found: the address of the php-fpm of routes with `php` that name no pool.
    pub php_fpm: Option<String>,
    /// `--sockets`: a directory of workers' sockets, by absolute path, instead of the sources of the file's only pool.
    pub sockets: Option<String>,
    /// `--balance`: `balance` of the file's only pool.
    pub balance: Option<String>,
    /// `--memory`: `[cache] memory`.
    pub memory: Option<String>,
    /// `--memcached`: servers of the shared tier instead of those of the file.
    pub memcached: Vec<String>,
    /// `--shared-secret`: a file, by absolute path, instead of `[cache.shared] secret_file`.
    pub shared_secret: Option<String>,
    /// `--grace`: `[cache] grace`.
    pub grace: Option<String>,
    /// `--admin`: `[admin] listen`.
    pub admin: Option<String>,
    /// `--admin-token-file` or the environment: `[admin] token`.
    pub token: Option<AdminToken>,
    /// The token that a command presents to the process of a configuration; used if that has no token itself.
    pub presented: Option<AdminToken>,
    /// `--user`: `user`.
    pub user: Option<String>,
    /// `--threads`: `threads`.
    pub threads: Option<u32>,
    /// `--cache-profile`: `[cache] profile`.
    pub profile: Option<String>,
}

/// A token of the admin interface that does not come from the file. No listing or debug output shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct AdminToken {
    /// Its origin, as named in errors: a flag with its file, or an environment variable.
    pub from: String,
    /// The token; surrounding white space is not part of it.
    pub text: String,
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AdminToken from {}", self.from)
    }
}

/// Overrides settings of `file` with `flags`.
pub(crate) fn overlay(file: &mut File, flags: &Flags, report: &mut Report) {
    let mut put = |flag: &str, read: Result<(), Complaint>| {
        if let Err(complaint) = read {
            let error = report.error(None, format!("{flag}: {}", complaint.message));
            (error.help, error.flag) = (complaint.help, true);
        }
    };
    if !flags.listen.is_empty() {
        file.listen.clear();
    }
    for text in &flags.listen {
        put("--listen", listener(text).map(|listener| file.listen.push(listener)));
    }
    put(if flags.acme.is_empty() { "--certificate" } else { "--acme" }, certificates(file, flags));
    if file.listen.is_empty()
        && flags.listen.is_empty()
        && let Some(text) = &flags.listen_unless_configured
    {
        put("--listen", listener(text).map(|listener| file.listen.push(listener)));
    }
    let made = file.pool.0.is_empty();
    put("--backend", backends(file, &flags.backends));
    if let Some(directory) = &flags.sockets {
        put("--sockets", sockets(file, directory, made));
    }
    if let Some(directory) = &flags.files {
        put("--files", files(file, directory));
    }
    if let Some(directory) = &flags.php {
        put("--php", php(file, directory));
    }
    if let Some(address) = &flags.php_fpm {
        put("--php-fpm", fastcgi_address(address));
    }
    if let Some(text) = &flags.balance {
        put("--balance", balance(file, text));
    }
    if let Some(text) = &flags.memory {
        put("--memory", Text::from_text(text).map(|memory| file.cache.store.memory = memory));
    }
    put("--memcached", servers(file, &flags.memcached));
    if let Some(path) = &flags.shared_secret {
        put(SecretFile::FLAG, shared_secret(file, path));
    }
    if let Some(text) = &flags.grace {
        put("--grace", Text::from_text(text).map(|grace| file.cache.rules.grace = Some(grace)));
    }
    if let Some(text) = &flags.admin {
        put("--admin", Text::from_text(text).map(|address| file.admin.listen = Some(address)));
    }
    if let Some(AdminToken { from, text }) = &flags.token {
        let token = Text::from_text(text.trim()).and_then(|token: Secret| {
            if file.admin.read_token.as_ref() == Some(&token) {
                let complaint = Complaint::new("this is the `read_token` of [admin], which may only read");
                return Err(complaint.help("give the `token`, or none"));
            }
            file.admin.token = Some(token);
            Ok(())
        });
        put(from, token);
    }
    if let Some(AdminToken { from, text }) = &flags.presented {
        let token = Text::from_text(text.trim());
        let says_nothing = file.admin.token.is_none() && file.admin.read_token.is_none();
        put(
            from,
            token.map(|token| file.admin.token = file.admin.token.take().or(says_nothing.then_some(token))),
        );
    }
    if let Some(text) = &flags.user {
        put("--user", Text::from_text(text).map(|user| file.user = Some(user)));
    }
    if let Some(threads) = flags.threads {
        put("--threads", Bounded::checked(threads.into()).map(|threads| file.threads = Some(threads)));
    }
    if let Some(text) = &flags.profile {
        put("--cache-profile", Text::from_text(text).map(|profile| file.cache.store.profile = profile));
    }
}

fn listener(address: &str) -> Result<At<ListenSettings>, Complaint> {
    let address = Some(At::nowhere(Text::from_text(address)?));
    Ok(At::nowhere(ListenSettings { address, ..ListenSettings::default() }))
}

/// Sets the certificates of the listeners given as flags. Port 80 is for http.
fn certificates(file: &mut File, flags: &Flags) -> Result<(), Complaint> {
    if flags.certificates.is_empty() && flags.acme.is_empty() {
        return Ok(());
    }
    let names = flags.acme.iter().map(|name| Text::from_text(name).map(At::nowhere));
    let names: Vec<At<CertifiedName>> = names.collect::<Result<_, _>>()?;
    let mut acme = AcmeSettings { names, ..AcmeSettings::default() };
    match flags.acme_directory.as_deref() {
        Some("staging") => acme.staging = At::nowhere(true),
        Some(url) => acme.directory = Some(At::nowhere(Text::from_text(url)?)),
        None => {}
    }
    if let Some(state) = &flags.acme_state {
        acme.state = Text::from_text(state)?;
    }
    let acme = (!acme.names.is_empty()).then(|| At::nowhere(acme));
    let mut certificates = Vec::new();
    for (chain, key) in &flags.certificates {
        let chain = Some(At::nowhere(Text::from_text(chain)?));
        let key = Some(At::nowhere(Text::from_text(key)?));
        certificates.push(At::nowhere(CertificateSettings { chain, key, ..CertificateSettings::default() }));
    }
    let mut is_used = false;
    for (at, listener) in file.listen.iter_mut().enumerate().take(flags.listen.len()) {
        let in_clear = flags.listen_in_clear.get(at).copied().unwrap_or(false);
        let port = listener.value.address.as_ref().and_then(|address| port(&address.value));
        if !in_clear && port != Some(80) {
            let (certificates, acme) = (certificates.clone(), acme.clone());
            let tls = ListenTlsSettings { certificates, acme, ..ListenTlsSettings::default() };
            listener.value.tls = Some(At::nowhere(tls));
            is_used = true;
        } else if !in_clear && acme.is_some() {
            // Port 80, which is there for HTTP-01.
            listener.value.redirect_to_https = At::nowhere(true);
        }
    }
    match is_used {
        true => Ok(()),
        false => Err(Complaint::new("no --listen is for https").help("--listen :443")),
    }
}

/// The listener on port 80 that `--acme` implies beside one on port 443, unless the operator names what listens on
/// port 80. It redirects to https and answers HTTP-01.
pub(crate) fn port_80_for_acme(flags: &Flags, listeners: &[Listener]) -> Option<Listener> {
    let has_port = |listener: &&Listener, wanted| port(&listener.address) == Some(wanted);
    if flags.acme.is_empty() || listeners.iter().any(|listener| has_port(&listener, 80)) {
        return None;
    }
    let by_flags = listeners.iter().take(flags.listen.len());
    let https =
        by_flags.filter(|listener| listener.tls.is_some()).find(|listener| has_port(listener, 443))?;
    let address = match &https.address {
        ListenAddress::Tcp(address) => ListenAddress::Tcp((address.ip(), 80).into()),
        _ => ListenAddress::Any(80),
    };
    Some(Listener {
        address,
        tls: None,
        scheme: Scheme::Http,
        redirect_to_https: true,
        is_optional: true,
        ..https.clone()
    })
}

/// The port of an address; `None` for a Unix socket.
fn port(address: &ListenAddress) -> Option<u16> {
    match address {
        ListenAddress::Any(port) => Some(*port),
        ListenAddress::Tcp(address) => Some(address.port()),
        ListenAddress::Unix(_) => None,
    }
}

fn backend(address: &str) -> Result<At<BackendSettings>, Complaint> {
    Ok(At::nowhere(BackendSettings::at(At::nowhere(Text::from_text(address)?))))
}

/// Sets the backends of the only pool; creates the pool and a route to it if there is none.
fn backends(file: &mut File, backends: &[String]) -> Result<(), Complaint> {
    if backends.is_empty() {
        return Ok(());
    }
    let backends: Vec<_> = backends.iter().map(|text| backend(text)).collect::<Result<_, _>>()?;
    only_pool(file, "change the backends there")?.backends = backends;
    Ok(())
}

/// Makes `directory` the source of the only pool, which is created as for backends. A pool `made` by flags alone uses
/// `resume`, because workers with such directories keep résumés, and checks whether they answer at all: a worker that
/// hangs keeps its socket.
fn sockets(file: &mut File, directory: &str, made: bool) -> Result<(), Complaint> {
    let directory = Text::from_text(directory)?;
    let pool = only_pool(file, "set there what each of them discovers")?;
    pool.discover = Sources::directory(directory);
    if made {
        pool.balance = At::nowhere(Algorithm::Resume);
        pool.check = Some(CheckSettings { status: vec![StatusRange::ANY], ..CheckSettings::default() });
    }
    Ok(())
}

/// Serves the files of `directory`: by a route made for them, or by the one route that was made for backends, which then answer
/// requests without a file.
fn files(file: &mut File, directory: &str) -> Result<(), Complaint> {
    let directory = At::nowhere(Text::from_text(directory)?);
    match &mut file.route[..] {
        [] => {
            let route = RouteSettings { files: Some(directory), ..RouteSettings::default() };
            file.route.push(At::nowhere(route));
            Ok(())
        }
        // Made by --backend or --sockets.
        [At { value: route, place: None }] => {
            if let Some(pool) = route.pool.take() {
                route.r#try.push(At::nowhere(Attempt::Pool(pool.value)));
            }
            route.files = Some(directory);
            Ok(())
        }
        _ => Err(Complaint::new("the file has routes; set `files` of one of them there")),
    }
}

/// Serves the PHP application in `directory`.
fn php(file: &mut File, directory: &str) -> Result<(), Complaint> {
    if !file.route.is_empty() {
        return Err(Complaint::new("the file has routes; set `php` of one of them there"));
    }
    let directory = Some(At::nowhere(Text::from_text(directory)?));
    file.route.push(At::nowhere(RouteSettings { php: directory, ..RouteSettings::default() }));
    Ok(())
}

/// Checks an address of php-fpm.
fn fastcgi_address(address: &str) -> Result<(), Complaint> {
    let read: Address = Text::from_text(address)?;
    match read.is_fastcgi() {
        true => Ok(()),
        false => Err(Complaint::new(format!("{address} is not reached by FastCGI"))
            .help("fcgi+unix:/run/php/php-fpm.sock, or fcgi://127.0.0.1:9000")),
    }
}

/// The only pool, created with a route to it if there is none. With several, the error suggests `instead`.
fn only_pool<'a>(file: &'a mut File, instead: &str) -> Result<&'a mut PoolSettings, Complaint> {
    if file.pool.0.len() > 1 {
        return Err(Complaint::new(format!("the file has several pools; {instead}")));
    }
    if file.pool.0.is_empty() {
        file.pool.0.push((At::nowhere(PoolName("default".to_owned())), PoolSettings::default()));
    }
    let (name, pool) = &mut file.pool.0[0];
    if file.route.is_empty() {
        let pool = Some(At::nowhere(name.value.clone()));
        let route =
            RouteSettings { pool, cache: At::nowhere(CacheChoice::Lookup), ..RouteSettings::default() };
        file.route.push(At::nowhere(route));
    }
    Ok(pool)
}

/// Sets the servers of the shared tier, which is created if there is none.
fn servers(file: &mut File, servers: &[String]) -> Result<(), Complaint> {
    if servers.is_empty() {
        return Ok(());
    }
    let servers = servers.iter().map(|text| Text::from_text(text).map(At::nowhere));
    let servers = servers.collect::<Result<_, _>>()?;
    let shared = file.cache.store.shared.get_or_insert_default();
    (shared.value.servers, shared.value.discover) = (servers, None);
    Ok(())
}

/// Sets the secret of the shared tier.
fn shared_secret(file: &mut File, path: &str) -> Result<(), Complaint> {
    let path = Text::from_text(path)?;
    match &mut file.cache.store.shared {
        Some(shared) => shared.value.secret_file = vec![At::nowhere(path)],
        None => {
            let complaint = Complaint::new("there is no shared tier");
            return Err(complaint.help("--memcached 127.0.0.1:11211 makes one"));
        }
    }
    Ok(())
}

/// Sets `balance` of the only pool.
fn balance(file: &mut File, balance: &str) -> Result<(), Complaint> {
    match &mut file.pool.0[..] {
        [(_, pool)] => Text::from_text(balance).map(|algorithm| pool.balance = At::nowhere(algorithm)),
        [] => Err(Complaint::new("there is no pool").help("--backend http://127.0.0.1:8000 makes one")),
        _ => Err(Complaint::new("the file has several pools; set `balance` of each there")),
    }
}
