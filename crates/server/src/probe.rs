//! The subcommand `probe`: what pages depend on, and what of it a cache cannot see.
//!
//! Each URL is asked for twice past the cache, plainly and with one thing changed at a time: a session, a language, a
//! device, a key. Where the two differ, both are asked for through the cache, its memory empty, in both orders. If the
//! second is a hit of the first, one visitor would get the other's page.

mod ask;
mod compare;

use std::io::{self, Write};
use std::path::Path;

use sandarac_config::{Config, ListenAddress, Listener, LogTarget};
use sandarac_message::target::Scheme;
use sandarac_policy::{Action, Forward, Route, Routes, SharedUse};

use crate::check;
use crate::cli::{ProbeArgs, as_url, header, no_header};
use crate::failure::Failure;
use crate::human::count;
use crate::process::Process;
use ask::{Asker, Url};
use compare::{Pages, differ};

/// A thing that pages may depend on.
struct Change {
    name: String,
    value: String,
    /// The remedy for pages that depend on it and are shared.
    remedy: String,
}

impl Change {
    fn of(name: &str, value: &str, remedy: &str) -> Change {
        Change { name: name.to_owned(), value: value.to_owned(), remedy: remedy.to_owned() }
    }

    /// One of the command line.
    fn read(line: &str) -> Result<Change, Failure> {
        let (name, value) = header(line)?;
        if !sandarac_message::is_token(name.as_bytes()) || value.chars().any(char::is_control) {
            return Err(no_header(line));
        }
        Ok(match name.eq_ignore_ascii_case("cookie") {
            true => Change::of(name, value, COOKIES),
            false => Change::of(name, value, &by_field(name)),
        })
    }
}

/// The remedy for cookies.
const COOKIES: &str = "name the cookie in `bypass_cookies` or `key_cookies`";

fn by_field(name: &str) -> String {
    format!("send `Vary: {name}`, or set `key_fields = [\"{name}\"]`")
}

/// The changes that are always tried.
fn changes() -> Vec<Change> {
    let languages = "send `Vary: Accept-Language`, or use a URL for each language";
    let devices = "send `Vary: User-Agent`, or one page for all devices";
    let phone =
        "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 Chrome/140.0.0.0 Mobile Safari/537.36";
    let mut changes = vec![
        Change::of("Cookie", "session=probe", COOKIES),
        Change::of("Authorization", "Bearer probe", "set `bypass_authorization = true`"),
        Change::of("Accept-Language", "de", languages),
        Change::of("Accept-Language", "ja", languages),
        Change::of("User-Agent", phone, devices),
        Change::of("Accept", "application/json", "send `Vary: Accept`"),
    ];
    let others = [
        ("Sec-CH-UA-Mobile", "?1"),
        ("X-API-Key", "probe"),
        ("X-Forwarded-User", "probe"),
        ("Origin", "https://probe.example"),
        ("X-Requested-With", "XMLHttpRequest"),
        ("HX-Request", "true"),
    ];
    changes.extend(others.map(|(name, value)| Change::of(name, value, &by_field(name))));
    changes
}

/// The outcome of one change.
enum Found {
    Same,
    /// The pages differ, and each visitor gets the right one.
    Apart,
    /// The pages differ, and one visitor gets the other's.
    Shared,
}

/// `probe`.
pub fn probe(args: &ProbeArgs) -> Result<(), Failure> {
    let urls = args.urls.iter().map(|url| Url::read(url)).collect::<Result<Vec<_>, _>>()?;
    let mut changes = changes();
    for line in &args.headers {
        changes.push(Change::read(line)?);
    }
    let config = config(args)?;
    let start = |config| {
        Process::start(config, None)
            .map_err(|error| Failure::Failed(format!("cannot start the cache to probe with: {error}")))
    };
    let (cached, bare) = (start(alone(&config, true))?, start(alone(&config, false))?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Failed(format!("cannot start the runtime: {error}")))?;
    let mut shared = 0;
    let mut out = io::stdout().lock();
    for url in &urls {
        let mut asker = Asker::new(url, &cached, &bare)?;
        let probed = runtime.block_on(async { probe_one(&mut asker, &changes).await });
        let (lines, wrong) = probed.map_err(|fault| Failure::Failed(format!("{}: {fault}", url.text)))?;
        writeln!(out, "{}: {lines}", url.text)?;
        shared += wrong;
    }
    out.flush()?;
    match shared {
        0 => Ok(()),
        _ => Err(Failure::Failed(format!(
            "{} shared although the page depends on it, or cannot be told",
            if shared == 1 { "one thing is".to_owned() } else { format!("{} are", count(shared, "thing")) }
        ))),
    }
}

/// Tries all changes of one URL. What to print, and how many things are shared wrongly.
async fn probe_one(asker: &mut Asker, changes: &[Change]) -> Result<(String, u64), String> {
    let plain = asker.pages(None).await?;
    let mut lines = vec![asker.keeping().await?];
    if !plain.is_comparable() {
        lines.push(
            "  CANNOT BE COMPARED: it is another page each time it is asked for, in nearly every line".into(),
        );
        return Ok((lines.join("\n"), 1));
    }
    if plain.changes() {
        lines.push(
            "  changes from one request to the next; if it is stored, all its visitors get the same".into(),
        );
    }
    let (mut same, mut wrong) = (Vec::new(), 0);
    for change in changes {
        let field = format!("{}: {}", change.name, change.value);
        match try_change(asker, &plain, change).await? {
            Found::Same => same.push(change.name.as_str()),
            Found::Apart => lines.push(format!("  differs, and is not shared   {field}")),
            Found::Shared => {
                wrong += 1;
                lines.push(format!("  DIFFERS, AND IS SHARED       {field}\n      {}", change.remedy));
            }
        }
    }
    same.dedup();
    if !same.is_empty() {
        lines.push(format!("  the same with                {}", same.join(", ")));
    }
    Ok((lines.join("\n"), wrong))
}

async fn try_change(asker: &mut Asker, plain: &Pages, change: &Change) -> Result<Found, String> {
    let field = Some((change.name.as_str(), change.value.as_str()));
    let changed = asker.pages(field).await?;
    if !differ(plain, &changed) {
        return Ok(Found::Same);
    }
    let shares = asker.shares(None, field).await? || asker.shares(field, None).await?;
    Ok(if shares { Found::Shared } else { Found::Apart })
}

/// The configuration of the command line.
fn config(args: &ProbeArgs) -> Result<Config, Failure> {
    match (&args.config, &args.backend[..]) {
        (Some(path), []) => Ok(check::load(Path::new(path), None)?.0),
        (None, [_, ..]) => {
            let backends: Vec<_> = args.backend.iter().map(|url| as_url(url)).collect();
            let text = format!(
                "[[listen]]\naddress = \"127.0.0.1:0\"\n[pool.app]\nbackends = {backends:?}\n[[route]]\npool = \"app\"\n"
            );
            let read = Config::from_toml("the command line", &text).map_err(Failure::Configuration)?;
            Ok(read.0)
        }
        _ => Err(Failure::Usage(
            "nothing to ask\n  help: name a configuration, `-c FILE`, or an application, `-b http://localhost:8000`".into(),
        )),
    }
}

/// `config` for a process of its own on loopback, by http and by https in clear: it shares nothing with the one that serves,
/// writes no logs and saves nothing. If not `cached`, every route bypasses the cache.
fn alone(config: &Config, cached: bool) -> Config {
    let mut config = config.clone();
    let listener = |scheme| Listener {
        address: ListenAddress::Tcp(([127, 0, 0, 1], 0).into()),
        mode: None,
        proxy_protocol: false,
        scheme,
        trusted_proxies: Vec::new(),
        http2: false,
        tls: None,
        redirect_to_https: false,
        is_optional: false,
    };
    config.listeners = [Scheme::Http, Scheme::Https].map(listener).into();
    config.threads = Some(1);
    config.log.access = LogTarget::Off;
    config.cache.shared = None;
    config.cache.cache_status = true;
    config.pools.iter_mut().for_each(|pool| pool.skills_file = None);
    let routes = config.routes.all().iter().cloned().map(|mut route: Route| {
        if let Action::Forward(forward) | Action::Files { fallback: Some(forward), .. } = &mut route.action {
            let Forward { cache, .. } = forward;
            match cache.as_mut().filter(|_| cached) {
                Some(rule) => rule.shared = SharedUse::Off,
                None => *cache = None,
            }
        }
        route
    });
    config.routes = Routes::new(routes.collect());
    config
}
