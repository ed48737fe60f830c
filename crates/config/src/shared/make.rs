//! Conversion of the settings of the shared tier to a [`SharedConfig`].

use std::collections::HashMap;
use std::sync::Arc;

use sandarac_policy::ByteSize;
use sandarac_wire::memcached::Login;

use crate::diagnostics::SourceText;
use crate::path::AbsolutePath;
use crate::report::{At, Place, Report};
use crate::shared::secret_file::SecretFile;
use crate::shared::server::SharedServer;
use crate::shared::settings::SharedSettings;
use crate::shared::source::shared_source;
use crate::shared::tier::{SharedConfig, SharedEjection, SharedLogin, SharedServers};

/// The shared tier that `settings` describe, in front of which RAM holds up to `memory`; `None` on an error.
pub(crate) fn shared_config(
    At { value: settings, place }: &At<SharedSettings>,
    memory: ByteSize,
    source: &Arc<SourceText>,
    report: &mut Report,
) -> Option<SharedConfig> {
    check_secret_files(&settings.secret_file, report);
    check_amounts(settings, place, memory, report);
    let servers = servers(settings, place, report);
    check_trust(settings, report);
    Some(SharedConfig {
        servers: servers?,
        namespace: settings.namespace.0.clone(),
        secret_files: settings.secret_file.iter().map(|file| SecretFile::new(file, source)).collect(),
        login: login(settings, source, report),
        local_ttl: settings.local_ttl.get(),
        timeout: settings.timeout.get(),
        ejection: SharedEjection {
            failures: settings.ejection.value.failures.get(),
            first: settings.ejection.value.first.get(),
            longest: settings.ejection.value.longest.get(),
        },
        max_object: settings.max_object.value.size(),
        wait: settings.wait.get(),
        purge_memory: settings.purge_memory.get(),
        compression: settings.compression,
    })
}

fn servers(settings: &SharedSettings, place: &Option<Place>, report: &mut Report) -> Option<SharedServers> {
    let mut seen: HashMap<&SharedServer, &Option<Place>> = HashMap::new();
    for At { value: server, place } in &settings.servers {
        if let Some(first) = seen.insert(server, place) {
            let error = report.error(place.clone(), format!("the server {server} is listed twice"));
            error.also = first.clone().map(|place| (place, "here already".to_owned()));
        }
    }
    match (&settings.discover, settings.servers.first()) {
        (Some(source), None) => shared_source(source, report).map(SharedServers::Discovered),
        (Some(source), Some(first)) => {
            let message = "the shared tier has `servers` or a `discover`, not both";
            let error = report.error(source.place.clone(), message);
            error.also = first.place.clone().map(|place| (place, "the other".to_owned()));
            None
        }
        (None, Some(_)) => {
            let servers = settings.servers.iter().map(|server| server.value.clone());
            Some(SharedServers::Listed(servers.collect()))
        }
        (None, None) => {
            report.missing(
                place.clone(),
                "the shared tier has no servers",
                "servers = [\"127.0.0.1:11211\"]",
            );
            None
        }
    }
}

fn check_secret_files(files: &[At<AbsolutePath>], report: &mut Report) {
    if let [first, second, ..] = files
        && first.value == second.value
    {
        let error = report.error(second.place.clone(), "the same file twice");
        error.also = first.place.clone().map(|place| (place, "here already".to_owned()));
        error.help =
            Some("one of them is enough; the other is for the secret that is being replaced".to_owned());
    }
    if let [_, _, third, ..] = files {
        let error =
            report.error(third.place.clone(), "there are at most two secrets, the new one and the old");
        error.help = Some("drop the oldest".to_owned());
    }
}

/// Checks that only those who may change what clients get can reach the servers.
fn check_trust(settings: &SharedSettings, report: &mut Report) {
    let dangerous = &settings.dangerous_unauthenticated;
    let open = settings.servers.iter().find(|server| !server.value.is_local());
    let open = match (&settings.discover, open) {
        (Some(source), _) => Some((source.place.clone(), "the servers that a source lists".to_owned())),
        (None, Some(server)) => Some((server.place.clone(), server.value.to_string())),
        (None, None) => None,
    };
    let sealed = !settings.secret_file.is_empty();
    match open {
        Some((place, server)) if !sealed && !dangerous.value => {
            let message = format!(
                "other machines may reach {server}, and there is no secret: whoever does can change what all clients \
                 get"
            );
            let help = format!(
                "give all nodes a secret, in `secret_file` or {} FILE; or set `dangerous_unauthenticated = true` in \
                 [cache.shared]",
                SecretFile::FLAG
            );
            report.missing(place, message, help);
        }
        _ if dangerous.value && sealed => {
            report.warning(
                dangerous.place.clone(),
                "`dangerous_unauthenticated` has no effect beside a `secret_file`",
            );
        }
        None if dangerous.value => {
            let message =
                "`dangerous_unauthenticated` has no effect: only this machine can reach the servers";
            report.warning(dangerous.place.clone(), message);
        }
        _ => {}
    }
}

fn login(settings: &SharedSettings, source: &Arc<SourceText>, report: &mut Report) -> Option<SharedLogin> {
    match (&settings.user, &settings.password_file) {
        (Some(user), Some(file)) => {
            // A password of one letter leaves only the user to be wrong.
            if let Err(error) = Login::new(&user.value, "a") {
                report.error(user.place.clone(), format!("{:?} cannot be a user: {error}", user.value));
            }
            Some(SharedLogin {
                user: user.value.as_str().into(),
                password_file: SecretFile::new(file, source),
            })
        }
        (Some(At { place, .. }), None) => {
            let help = "password_file = \"/etc/sandarac/memcached-password\"";
            report.missing(place.clone(), "a `user` needs a `password_file`", help);
            None
        }
        (None, Some(At { place, .. })) => {
            report.missing(place.clone(), "a `password_file` needs a `user`", "user = \"sandarac\"");
            None
        }
        (None, None) => None,
    }
}

/// Checks times and sizes against each other.
fn check_amounts(settings: &SharedSettings, place: &Option<Place>, memory: ByteSize, report: &mut Report) {
    let ejection = &settings.ejection;
    if ejection.value.first.get() > ejection.value.longest.get() {
        report.error(ejection.place.clone(), "`first` is more than `longest`");
    }
    if settings.local_ttl.get() >= settings.purge_memory.get() {
        let message =
            "`local_ttl` is not less than `purge_memory`: a purge would be forgotten before it is read";
        report.error(place.clone(), message);
    }
    let At { value: largest, place } = &settings.max_object;
    if place.is_some() && largest.size() > memory {
        let message = format!("`max_object` is more than the whole cache may hold in memory, {memory}");
        report.warning(place.clone(), message);
    }
}
