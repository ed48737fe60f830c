//! The secrets and the login of the shared tier, from their files.

use std::io;
use std::path::Path;

use sandarac_wire::entry::{Sealer, Secret};
use sandarac_wire::memcached::Login;

use crate::diagnostics::{Diagnostics, Severity, Warning, judge};
use crate::report::Complaint;
use crate::shared::secret_file::{SecretContent, SecretFile};
use crate::shared::tier::{SharedConfig, SharedLogin};

/// What protects the shared tier and admits to it.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// Seals and verifies entries.
    pub sealer: Sealer,
    /// The login, if the servers ask for one.
    pub login: Option<Login>,
}

impl SharedConfig {
    /// Reads the files of the secrets and of the password by `reader`, and checks them. What is wrong is
    /// reported with the line that names the file; no message contains a secret.
    ///
    /// # Errors
    /// A file that cannot be read, a secret that is too short, or a password that memcached does not accept.
    pub fn credentials(
        &self,
        mut reader: impl FnMut(&Path) -> io::Result<SecretContent>,
    ) -> Result<(Credentials, Vec<Warning>), Diagnostics> {
        let mut found = Vec::new();
        let mut secrets: Vec<(Vec<u8>, Secret)> = Vec::new();
        for file in &self.secret_files {
            let read = file.read(&mut reader, &mut found, || making(file));
            match read.and_then(|bytes| Ok((secret(&bytes, file)?, bytes))) {
                Ok((_, bytes)) if secrets.iter().any(|(other, _)| *other == bytes) => {
                    let complaint = Complaint::new("both files hold the same secret");
                    found.push(file.diagnostic(Severity::Warning, complaint.help("one of them is enough")));
                }
                Ok((secret, bytes)) => secrets.push((bytes, secret)),
                Err(complaint) => found.push(file.diagnostic(Severity::Error, complaint)),
            }
        }
        let login = self.login.as_ref().and_then(|SharedLogin { user, password_file: file }| {
            let read = file.read(&mut reader, &mut found, || "it holds the password of the user".to_owned());
            let login = read.and_then(|bytes| login(user, &bytes, file));
            login.map_err(|complaint| found.push(file.diagnostic(Severity::Error, complaint))).ok()
        });
        let mut secrets = secrets.into_iter().map(|(_, secret)| secret);
        let sealer = match secrets.next() {
            None => Sealer::checksum(),
            Some(first) => Sealer::keyed(first, secrets.next()),
        };
        let mut files = self.secret_files.iter().chain(self.login.as_ref().map(|login| &login.password_file));
        match files.next() {
            None => Ok((Credentials { sealer, login }, Vec::new())),
            Some(file) => judge(file.source().clone(), found, Some(Credentials { sealer, login })),
        }
    }
}

fn secret(bytes: &[u8], file: &SecretFile) -> Result<Secret, Complaint> {
    let path = file.path().display();
    Secret::new(bytes).map_err(|short| Complaint::new(format!("{path} holds {short}")).help(making(file)))
}

/// How a secret is made.
fn making(file: &SecretFile) -> String {
    let path = file.path().display();
    format!("make one with: (umask 077; openssl rand -hex 32 > {path}), and copy it to all nodes")
}

fn login(user: &str, password: &[u8], file: &SecretFile) -> Result<Login, Complaint> {
    let path = file.path().display();
    let text = std::str::from_utf8(password).map_err(|_| Complaint::new(format!("{path} is not UTF-8")))?;
    let line = text.strip_suffix('\n').unwrap_or(text);
    let password = line.strip_suffix('\r').unwrap_or(line);
    Login::new(user, password)
        .map_err(|error| Complaint::new(format!("the password in {path} cannot be used: {error}")))
}
