//! Conversion of the settings of ACME.

use std::path::PathBuf;

use crate::path::AbsolutePath;
use crate::report::{At, Report};
use crate::tls::acme_settings::{AcmeSettings, ExternalAccountSettings};

/// The directories of Let's Encrypt, and of its staging environment.
const LETS_ENCRYPT: [&str; 2] = [
    "https://acme-v02.api.letsencrypt.org/directory",
    "https://acme-staging-v02.api.letsencrypt.org/directory",
];

/// A certificate by ACME.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeConfig {
    /// The names, in lower case, each once.
    pub names: Vec<Box<str>>,
    /// A mail address for notices.
    pub contact: Option<Box<str>>,
    /// The URL of the CA's directory.
    pub directory: Box<str>,
    /// The directory of account, certificates and pending orders.
    pub state: PathBuf,
    /// A file with roots for the CA's own server; those of the system if `None`.
    pub ca: Option<PathBuf>,
    /// The credentials of a customer of the CA.
    pub external_account: Option<ExternalAccountConfig>,
}

/// The credentials of a customer of a CA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalAccountConfig {
    /// The identifier of the key.
    pub key_id: Box<str>,
    /// A file with the HMAC key in Base64url.
    pub key_file: PathBuf,
}

/// A certificate by ACME; `None` on an error.
pub(crate) fn acme(settings: &At<AcmeSettings>, report: &mut Report) -> Option<AcmeConfig> {
    let At { value: acme, place } = settings;
    if acme.names.is_empty() {
        report.missing(
            place.clone(),
            "`acme` needs `names`",
            "names = [\"example.org\", \"www.example.org\"]",
        );
        return None;
    }
    if acme.names.len() > 100 {
        report.error(place.clone(), "a certificate has at most 100 names");
    }
    if acme.staging.value
        && let Some(directory) = &acme.directory
    {
        let message = "`staging` is for Let's Encrypt, and `directory` names a CA";
        let error = report.error(acme.staging.place.clone(), message);
        error.also = directory.place.clone().map(|place| (place, "the other".to_owned()));
    }
    let mut names: Vec<Box<str>> = Vec::new();
    for At { value: name, place } in &acme.names {
        if names.contains(&name.0) {
            report.warning(place.clone(), format!("{} is listed twice", name.0));
        } else {
            names.push(name.0.clone());
        }
    }
    let own = || LETS_ENCRYPT[usize::from(acme.staging.value)].into();
    Some(AcmeConfig {
        names,
        contact: acme.contact.as_ref().map(|contact| contact.value.0.clone()),
        directory: acme.directory.as_ref().map_or_else(own, |directory| directory.value.0.clone()),
        state: acme.state.to_path(),
        ca: acme.ca.as_ref().map(AbsolutePath::to_path),
        external_account: acme
            .external_account
            .as_ref()
            .and_then(|account| external_account(account, report)),
    })
}

fn external_account(
    settings: &At<ExternalAccountSettings>,
    report: &mut Report,
) -> Option<ExternalAccountConfig> {
    let At { value: ExternalAccountSettings { key_id, key_file }, place } = settings;
    let (Some(key_id), Some(key_file)) = (key_id, key_file) else {
        let help = "external_account = { key_id = \"kid-1\", key_file = \"/etc/sandarac/eab\" }";
        report.missing(place.clone(), "`external_account` needs a `key_id` and a `key_file`", help);
        return None;
    };
    Some(ExternalAccountConfig { key_id: (*key_id.value).into(), key_file: key_file.value.to_path() })
}
