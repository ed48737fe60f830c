//! Reload of the configuration while the process runs.

use std::fs;
use std::mem;
use std::path::PathBuf;

use sandarac_cache::Settings;
use sandarac_config::{Config, Listener as ConfiguredListener};
use sandarac_net::{ListenAddress, Listener, ListenerId, Listeners};
use sandarac_proxy::Site;
use sandarac_tls::WhenExpired;

use super::descriptors::descriptor_limits;
use super::listeners::{Passed, bind, check_inherited, is_at, warn_of_mode};
use super::log_target::log_target;
use super::site::{DISCOVERY_PATIENCE, site};
use super::snapshot;
use super::socket_files::{identity, set_mode, socket_files};
use super::state::ProcessState;
use crate::admin::{Refusal, Reloaded};
use crate::check;
use crate::service_manager;
use crate::stderr::print_line;
use crate::takeover::TakenSockets;
use crate::tls;

impl ProcessState {
    /// Reads the configuration again and applies it if it is valid; otherwise nothing changes. Exchanges in flight end
    /// under the old one, and the store is kept. The result is always reported on standard error, too.
    pub(super) fn reload(&self) -> Result<Reloaded, Refusal> {
        if self.draining_since.get().is_some() {
            self.log.reopen();
            let refusal = Refusal::failed("nothing is reloaded: this process is draining and ends");
            print_line(format_args!("sandarac: {refusal}"));
            return Err(refusal.instead("start another process; it takes over when this one has ended"));
        }
        self.refuse_during_upgrade()
            .inspect_err(|refusal| print_line(format_args!("sandarac: not reloaded: {refusal}")))?;
        let _one_at_a_time = self.reloading.lock();
        service_manager::reloading();
        let outcome = self.take_up();
        match &outcome {
            Ok(reloaded) => {
                for warning in &reloaded.warnings {
                    print_line(warning);
                }
                print_line(format_args!("sandarac: reloaded {}", reloaded.config));
                service_manager::reloaded("reloaded");
            }
            Err(refusal) => {
                print_line(format_args!(
                    "sandarac: not reloaded, the configuration in force stays: {refusal}"
                ));
                service_manager::reloaded(format_args!("not reloaded: {}", refusal.what));
            }
        }
        outcome
    }

    /// Executes a command to a pool, but not during a reload, whose new pool would not know of it, nor when another process
    /// takes over, which would not.
    pub(super) fn order<T>(&self, order: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
        self.refuse_during_upgrade()?;
        let _no_reload = self.reloading.lock();
        if self.draining_since.get().is_some() {
            return Err(Refusal::failed("this process ends")
                .instead("say it to the one that has taken over, or to the next one"));
        }
        order()
    }

    fn refuse_during_upgrade(&self) -> Result<(), Refusal> {
        match self.upgrading.try_lock() {
            Some(_) => Ok(()),
            None => {
                Err(Refusal::failed("an upgrade is in progress").instead("repeat it when that has ended"))
            }
        }
    }

    fn take_up(&self) -> Result<Reloaded, Refusal> {
        self.log.reopen();
        let args = self.args.as_ref().filter(|args| args.config.is_some());
        let args = args.ok_or_else(|| {
            Refusal::failed(
                "there is no configuration file to read again: this process was started with flags",
            )
        })?;
        let (mut config, warnings) = check::effective(args)?;
        let mut warnings: Vec<String> =
            warnings.iter().map(|warning| warning.to_string().trim_end().to_owned()).collect();
        let before = self.shared.site();
        // Those are bound at a start or not at all.
        let is_bound = |listener: &ConfiguredListener| {
            before.config.listeners.iter().any(|one| one.address == listener.address)
        };
        config.listeners.retain(|listener| !listener.is_optional || is_bound(listener));
        let credentials = check::credentials(&config)?.map(|(credentials, found)| {
            warnings.extend(found.iter().map(|warning| warning.to_string().trim_end().to_owned()));
            credentials
        });
        let served = self.shared.site().tls().flat_map(|(_, tls)| tls.digests()).collect();
        let tls = tls::load(&config, &self.tls.loading(WhenExpired::Keep(served)))?;
        let mut others = tls.warnings;
        let opened = self.acme.open(&config).map_err(|fault| Refusal::failed(fault.to_string()))?;
        for setting in config.needs_restart(&before.config) {
            others.push(format!("`{setting}` takes effect only at the next start"));
        }
        let log = self.log.prepare(log_target(&config.log));
        let log = log.map_err(|error| Refusal::failed(error.to_string()).at("[log] access"))?;
        check_inherited(&config, &self.inherited).map_err(|error| Refusal::failed(error.to_string()))?;
        let binding = self.bind(&config, &before)?;
        if let Some(log) = log {
            self.log.exchange(log);
        }
        // Without a new token, callers of an interface on TCP, which stays until the next start, keep theirs.
        if config.admin.token.is_some() || config.admin.read_token.is_some() {
            self.token.set(config.admin.token.as_deref());
            self.read_token.set(config.admin.read_token.as_deref());
        }
        self.shared.store.configure(Settings::new(config.cache.memory.get()));
        if let Some(path) =
            config.cache.snapshot.as_ref().filter(|_| config.cache.snapshot != before.config.cache.snapshot)
        {
            snapshot::discard(path);
        }
        let (descriptors, low) = descriptor_limits(&config, self.cores.count());
        self.shared.limit_descriptors(&descriptors);
        others.extend(low);
        let site = site(config, credentials, tls.site, &binding.bound, Some(&before));
        // New pools find their backends before the site gets any requests.
        self.shared.set_site(site, DISCOVERY_PATIENCE);
        others.extend(self.listen_on(binding));
        let applied = self.acme.apply(&self.shared.site().config, opened, self.tls.runtime());
        others.extend(applied.err().map(|error| error.to_string()));
        // Those of the file say by themselves what they are.
        warnings.extend(others.iter().map(|warning| format!("warning: {warning}")));
        let name = args.config.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        Ok(Reloaded { config: name, warnings })
    }

    /// Binds new listeners. If one cannot be bound, nothing changes.
    fn bind(&self, config: &Config, before: &Site) -> Result<Binding, Refusal> {
        let mut current = self.listeners.lock();
        let mut kept = vec![false; current.len()];
        let mut bound = Vec::with_capacity(config.listeners.len());
        let mut fresh = Vec::new();
        let mut modes = Vec::new();
        let places = kept_places(&config.listeners, &before.config.listeners);
        for (listener, place) in config.listeners.iter().zip(places) {
            match place {
                Some(at) => {
                    kept[at] = true;
                    if let ListenAddress::Unix(path, mode) = &current[at].address
                        && *mode != listener.mode
                    {
                        modes.push((path.clone(), listener.mode));
                    }
                    bound.push(current[at].clone());
                }
                None => {
                    let passed = Passed { inherited: &self.inherited, taken: &TakenSockets::default() };
                    let sockets = bind(listener, passed, self.cores.count()).map_err(|error| {
                        fresh.iter().for_each(|sockets| self.remove_file(sockets));
                        Refusal::failed(error.to_string())
                    })?;
                    bound.push(sockets.listener.clone());
                    fresh.push(sockets);
                }
            }
        }
        let before = mem::replace(&mut *current, bound.clone());
        let gone = before.into_iter().zip(kept).filter(|(_, kept)| !kept).map(|(listener, _)| listener.id);
        Ok(Binding { bound, fresh, modes, gone: gone.collect() })
    }

    /// Removes the file of a Unix socket that is bound and not taken into service.
    fn remove_file(&self, sockets: &Listeners) {
        if let ListenAddress::Unix(path, _) = &sockets.listener.address
            && !self.inherited.has(&sockets.listener.address)
            && let Err(error) = fs::remove_file(path)
        {
            print_line(format_args!("sandarac: cannot remove the socket {}: {error}", path.display()));
        }
    }

    /// Listens on the bound sockets, and closes removed listeners. Returns the failures.
    fn listen_on(&self, binding: Binding) -> Vec<String> {
        // Done while the sockets are open, so that no other file can be taken for theirs.
        let mut files = socket_files(&binding.bound, &self.inherited);
        let mut current = self.socket_files.lock();
        // Another process may have replaced the file of a socket that stays.
        for (path, file) in &mut files {
            *file = current.get(path).copied().unwrap_or(*file);
        }
        let before = mem::replace(&mut *current, files);
        let files = current.clone();
        drop(current);
        for (path, file) in before {
            let is_gone = !binding.bound.iter().any(|bound| is_at(&bound.address, &path));
            if is_gone
                && identity(&path) == Some(file)
                && let Err(error) = fs::remove_file(&path)
            {
                print_line(format_args!("sandarac: cannot remove the socket {}: {error}", path.display()));
            }
        }
        let mut failed = Vec::new();
        for (path, mode) in binding.modes {
            let done = match (files.get(&path), mode) {
                (Some(file), Some(mode)) => set_mode(&path, *file, mode),
                (Some(_), None) => Ok(()),
                // The socket was passed to the process.
                (None, mode) => {
                    warn_of_mode(&path, mode);
                    Ok(())
                }
            };
            if let Err(error) = done {
                failed.push(format!("cannot set the mode of the socket {}: {error}", path.display()));
                continue;
            }
            for listener in self.listeners.lock().iter_mut() {
                match &mut listener.address {
                    ListenAddress::Unix(bound, bound_mode) if *bound == path => *bound_mode = mode,
                    _ => {}
                }
            }
        }
        for listener in binding.gone {
            self.sockets.lock().remove(&listener);
            self.cores.unlisten(listener);
        }
        for sockets in binding.fresh {
            let address = sockets.listener.address.clone();
            let (id, copies) = (sockets.listener.id, sockets.copies());
            let listening = copies.and_then(|copies| {
                self.sockets.lock().insert(id, copies);
                self.cores.listen(sockets)
            });
            if let Err(error) = listening {
                failed.push(format!("cannot listen on {address}: {error}"));
            }
        }
        failed
    }
}

/// For each listener of a configuration, the index of the previous one whose socket it keeps. An unchanged listener
/// keeps its own before any other of the same address: several may use port 0.
fn kept_places(listeners: &[ConfiguredListener], before: &[ConfiguredListener]) -> Vec<Option<usize>> {
    let mut is_free = vec![true; before.len()];
    let mut places = vec![None; listeners.len()];
    let is_unchanged = |one: &ConfiguredListener, other: &ConfiguredListener| one == other;
    let is_at_same_address =
        |one: &ConfiguredListener, other: &ConfiguredListener| one.address == other.address;
    for is_same in [is_unchanged, is_at_same_address] {
        for (listener, place) in listeners.iter().zip(&mut places).filter(|(_, place)| place.is_none()) {
            *place = (0..before.len()).find(|&at| is_free[at] && is_same(listener, &before[at]));
            if let Some(at) = *place {
                is_free[at] = false;
            }
        }
    }
    places
}

/// The changes to listeners for another configuration.
struct Binding {
    /// The listeners, in the order of the configuration.
    bound: Vec<Listener>,
    /// The sockets of new listeners.
    fresh: Vec<Listeners>,
    /// The paths of sockets that stay, and their new mode, if one is configured.
    modes: Vec<(PathBuf, Option<u32>)>,
    /// The removed listeners.
    gone: Vec<ListenerId>,
}
