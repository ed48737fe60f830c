//! The account at the CA.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use instant_acme::{
    Account, AccountCredentials, CertificateIdentifier, Error, ExternalAccountKey, NewAccount, Problem,
};
use sandarac_message::Timestamp;
use serde::{Deserialize, Serialize};

use crate::client::{CaClient, Clock, Roots};
use crate::fault::{Fault, quoted};
use crate::files;
use crate::schedule::Window;
use crate::settings::Settings;

/// A conversation with the CA: its client, and the account.
pub(crate) struct Session {
    pub(crate) client: CaClient,
    pub(crate) account: Account,
    /// The file of the account.
    file: PathBuf,
}

/// The content of the file of an account.
#[derive(Serialize, Deserialize)]
struct Record {
    /// The CA's directory, for readers of the file.
    directory: String,
    contact: Option<String>,
    credentials: AccountCredentials,
}

/// A fault, and how long the CA wants to be left alone.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) fault: Fault,
    pub(crate) retry_after: Option<Duration>,
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        Refusal { fault, retry_after: None }
    }
}

impl Session {
    /// Opens the account in the state directory, or makes one, which accepts the CA's terms of service.
    pub(crate) async fn open(settings: &Settings, clock: &Clock) -> Result<Session, Refusal> {
        let roots = Roots::load(settings.ca.as_deref())?;
        let client = CaClient::new(&settings.directory, &roots, settings.limits.clone(), clock.clone());
        let file = account_file(&settings.state, &settings.directory);
        let recorded = match files::read(&file)? {
            Some(text) => Some(
                serde_json::from_str::<Record>(&text)
                    .map_err(|error| Fault::BadFile(file.clone(), error.to_string()))?,
            ),
            None => None,
        };
        let refused = |doing, error| refusal(&client, doing, error);
        let builder = Account::builder_with_http(Box::new(client.clone()));
        let account = match recorded {
            Some(record) => {
                let credentials = copy(&record.credentials);
                let account = builder.from_credentials(record.credentials).await;
                let account = account.map_err(|error| refused("the directory", error))?;
                if record.contact != settings.contact {
                    let contact = contact(settings);
                    let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
                    let updated = account.update_contacts(&contact).await;
                    updated.map_err(|error| refused("a new contact", error))?;
                    save(&file, settings, credentials)?;
                }
                account
            }
            None => {
                let (account, credentials) = {
                    let contact = contact(settings);
                    let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
                    let new = NewAccount {
                        contact: &contact,
                        terms_of_service_agreed: true,
                        only_return_existing: false,
                    };
                    let bound = external_account(settings)?;
                    let created = builder.create(&new, settings.directory.clone(), bound.as_ref()).await;
                    created.map_err(|error| refused("an account", error))?
                };
                save(&file, settings, credentials)?;
                account
            }
        };
        Ok(Session { client, account, file })
    }

    /// The address of the CA's terms of service.
    pub(crate) fn terms(&self) -> Option<String> {
        self.client.heard().meta.terms_of_service.map(|terms| quoted(&terms))
    }

    /// Asks for the window in which to renew a certificate, and returns when to ask again. `None` if the CA does not
    /// offer that (RFC 9773).
    pub(crate) async fn window(
        &self,
        id: &CertificateIdentifier<'static>,
    ) -> Result<Option<(Window, Duration)>, Refusal> {
        if !self.client.heard().offers_renewal_info {
            return Ok(None);
        }
        let info = self.account.renewal_info(id).await;
        let (info, again) = info.map_err(|error| self.refusal("renewal information", error))?;
        let at = |secs: i64| Timestamp::from_secs(u64::try_from(secs).unwrap_or(0));
        let start = at(info.suggested_window.start.unix_timestamp());
        let end = at(info.suggested_window.end.unix_timestamp());
        Ok(Some((Window { start, end }, again)))
    }

    /// The refusal for an error of instant-acme. An account that the CA does not know is forgotten.
    pub(crate) fn refusal(&self, doing: &'static str, error: Error) -> Refusal {
        let refusal = refusal(&self.client, doing, error);
        if matches!(refusal.fault, Fault::AccountUnknown(_)) {
            files::remove(&self.file);
        }
        refusal
    }
}

/// The file of the account at a CA.
fn account_file(state: &Path, directory: &str) -> PathBuf {
    let digest = blake3::hash(directory.as_bytes()).to_hex();
    state.join(format!("account-{}.json", &digest[..16]))
}

fn save(file: &Path, settings: &Settings, credentials: AccountCredentials) -> Result<(), Fault> {
    let record =
        Record { directory: settings.directory.clone(), contact: settings.contact.clone(), credentials };
    files::write(file, &serde_json::to_string(&record).expect("text becomes JSON"))
}

/// The credentials cannot be cloned.
fn copy(credentials: &AccountCredentials) -> AccountCredentials {
    let text = serde_json::to_string(credentials).expect("text becomes JSON");
    serde_json::from_str(&text).expect("what was just written")
}

fn contact(settings: &Settings) -> Vec<String> {
    settings.contact.iter().map(|address| format!("mailto:{address}")).collect()
}

fn external_account(settings: &Settings) -> Result<Option<ExternalAccountKey>, Fault> {
    let Some(account) = &settings.external_account else { return Ok(None) };
    let key = URL_SAFE_NO_PAD.decode(account.hmac_key.trim_end_matches('='));
    let key = key.map_err(|_| {
        Fault::BadSetting("acme: the key of external_account is not Base64url, as CAs give it".to_owned())
    })?;
    Ok(Some(ExternalAccountKey::new(account.key_id.clone(), &key)))
}

/// The fault of an error of instant-acme.
fn refusal(client: &CaClient, doing: &'static str, error: Error) -> Refusal {
    let heard = client.heard();
    let retry_after = heard.retry_after;
    let bad = |why: String| Fault::BadResponse { url: quoted(&heard.url), why: quoted(&why) };
    let fault = match error {
        Error::Api(problem) => problem_fault(doing, &problem),
        Error::Other(error) => match error.downcast::<Fault>() {
            Ok(fault) => *fault,
            Err(error) => bad(error.to_string()),
        },
        error => bad(error.to_string()),
    };
    Refusal { fault, retry_after }
}

/// The fault of a problem document (RFC 8555 §6.7).
pub(crate) fn problem_fault(doing: &'static str, problem: &Problem) -> Fault {
    let said = quoted(&problem.to_string());
    let kind = problem.r#type.as_deref().unwrap_or_default();
    match kind.strip_prefix("urn:ietf:params:acme:error:").unwrap_or_default() {
        "rateLimited" => Fault::RateLimited(said),
        "accountDoesNotExist" => Fault::AccountUnknown(said),
        "externalAccountRequired" => Fault::ExternalAccountRequired(said),
        "userActionRequired" => Fault::ActionRequired(said),
        _ if problem.status == Some(429) => Fault::RateLimited(said),
        _ if problem.status == Some(404) => Fault::OrderLost(said),
        _ => Fault::Refused(doing, said),
    }
}
