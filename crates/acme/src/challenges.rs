//! The challenges of pending orders, in the state directory: every node that shares it answers them, whichever node
//! placed the order.
//!
//! A challenge is a file: `challenges/http-01/TOKEN` or `challenges/tls-alpn-01/NAME`. It names its end, so that the
//! challenges of a node that died are no longer answered.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sandarac_message::Timestamp;
use sandarac_message::dns_name::certifiable;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::files;
use crate::make::{ChallengeCertificate, challenge_certificate};
use crate::settings::ChallengeKind;

/// The longest token that is taken from a CA or looked up. Those in use have 43 characters.
const MAX_TOKEN: usize = 128;

/// The challenges of a state directory. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Challenges {
    directory: PathBuf,
}

/// The content of a file.
#[derive(Serialize, Deserialize)]
struct Record {
    name: String,
    /// The text that answers HTTP-01; for TLS-ALPN-01 the digest in Base64url.
    answer: String,
    /// In seconds since the epoch.
    expires: u64,
}

impl Challenges {
    /// The challenges of the state directory at `state`.
    pub fn new(state: &Path) -> Challenges {
        Challenges { directory: state.join("challenges") }
    }

    /// The body of the response to `/.well-known/acme-challenge/TOKEN`, a text of the type
    /// `application/octet-stream`; `None` if no order waits for this token.
    ///
    /// A token that is not Base64url of at most 128 characters touches no file; any other costs one attempt to open a
    /// file. If the directory is on a file system that may hang, call this on a thread that may wait.
    pub fn http01(&self, token: &str, now: Timestamp) -> Option<String> {
        if !is_token(token) {
            return None;
        }
        read(&self.path(ChallengeKind::Http01, token), now).map(|record| record.answer)
    }

    /// The certificate for a handshake that offers `acme-tls/1` for `name`; `None` if no order waits for it. It
    /// reads a file and makes a key, so its callers MUST ask for handshakes with that protocol only. For orders of this
    /// process, [`Sink::challenge`](crate::Sink::challenge) provides the same beforehand.
    pub fn tls_alpn01(&self, name: &str, now: Timestamp) -> Option<ChallengeCertificate> {
        let name = certifiable(name).ok()?;
        let record = read(&self.path(ChallengeKind::TlsAlpn01, &name), now)?;
        let digest: [u8; 32] = URL_SAFE_NO_PAD.decode(record.answer).ok()?.try_into().ok()?;
        challenge_certificate(&name, &digest).ok()
    }

    /// Makes the directories, and removes the challenges of orders that were abandoned.
    pub(crate) fn open(&self, now: Timestamp) -> Result<(), Fault> {
        for kind in [ChallengeKind::Http01, ChallengeKind::TlsAlpn01] {
            let directory = self.directory.join(kind.name());
            files::make_directory(&directory)?;
            files::clean(&directory, |path| {
                !path.to_string_lossy().ends_with(".unfinished") && read(path, now).is_none()
            });
        }
        Ok(())
    }

    /// Publishes the response of HTTP-01 for at most `lasts`.
    pub(crate) fn publish_http01(
        &self,
        name: &str,
        token: &str,
        answer: &str,
        lasts: Duration,
        now: Timestamp,
    ) -> Result<Published, Fault> {
        if !is_token(token) {
            return Err(Fault::BadToken(name.to_owned()));
        }
        self.publish(self.path(ChallengeKind::Http01, token), name, answer, lasts, now)
    }

    /// Publishes the digest of TLS-ALPN-01 for at most `lasts`. The name was checked.
    pub(crate) fn publish_tls_alpn01(
        &self,
        name: &str,
        digest: &[u8; 32],
        lasts: Duration,
        now: Timestamp,
    ) -> Result<Published, Fault> {
        let path = self.path(ChallengeKind::TlsAlpn01, name);
        self.publish(path, name, &URL_SAFE_NO_PAD.encode(digest), lasts, now)
    }

    fn publish(
        &self,
        path: PathBuf,
        name: &str,
        answer: &str,
        lasts: Duration,
        now: Timestamp,
    ) -> Result<Published, Fault> {
        let expires = now.plus(lasts).as_secs();
        let record = Record { name: name.to_owned(), answer: answer.to_owned(), expires };
        files::write(&path, &serde_json::to_string(&record).expect("text and a number become JSON"))?;
        Ok(Published(path))
    }

    fn path(&self, kind: ChallengeKind, file: &str) -> PathBuf {
        self.directory.join(kind.name()).join(file)
    }
}

/// A challenge that is answered until this is dropped.
pub(crate) struct Published(PathBuf);

impl Drop for Published {
    fn drop(&mut self) {
        files::remove(&self.0);
    }
}

/// Whether a token is what RFC 8555 §8.3 allows, which also makes it a safe name of a file.
pub(crate) fn is_token(token: &str) -> bool {
    (1..=MAX_TOKEN).contains(&token.len())
        && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn read(path: &Path, now: Timestamp) -> Option<Record> {
    let record: Record = serde_json::from_str(&files::read(path).ok()??).ok()?;
    (Timestamp::from_secs(record.expires) > now).then_some(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_test_support::TempDir;

    const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);
    const MINUTE: Duration = Duration::from_secs(60);

    fn opened(dir: &TempDir) -> Challenges {
        let challenges = Challenges::new(&dir.join("state"));
        challenges.open(NOW).expect("a writable directory");
        challenges
    }

    #[test]
    fn a_token_is_answered_while_its_order_is_pending() {
        let dir = TempDir::new();
        let challenges = opened(&dir);
        let other_node = Challenges::new(&dir.join("state"));
        let published = challenges.publish_http01("a.example", "tok-_1", "tok-_1.thumb", MINUTE, NOW);
        assert_eq!(other_node.http01("tok-_1", NOW), Some("tok-_1.thumb".to_owned()));
        assert_eq!(other_node.http01("tok-_2", NOW), None);
        assert_eq!(other_node.http01("tok-_1", NOW.plus(MINUTE)), None);
        drop(published);
        assert_eq!(other_node.http01("tok-_1", NOW), None);
    }

    #[test]
    fn texts_that_are_no_tokens_lead_to_no_file() {
        let dir = TempDir::new();
        let challenges = opened(&dir);
        std::fs::write(dir.join("state/challenges/secret"), "{}").expect("written");
        for token in
            ["", ".", "..", "../secret", "../../account", "a/b", "a\0", "a.b", "é", "a b", &"a".repeat(129)]
        {
            assert!(!is_token(token), "{token:?}");
            assert_eq!(challenges.http01(token, NOW), None);
            let published = challenges.publish_http01("a.example", token, "x", MINUTE, NOW).err();
            assert_eq!(published, Some(Fault::BadToken("a.example".to_owned())));
        }
        for name in ["", "..", "../http-01/x", "a/b", "*.example", "127.0.0.1", "a\0"] {
            assert!(challenges.tls_alpn01(name, NOW).is_none(), "{name:?}");
        }
    }

    #[test]
    fn the_certificate_of_a_challenge_is_made_on_any_node() {
        let dir = TempDir::new();
        let challenges = opened(&dir);
        let _published =
            challenges.publish_tls_alpn01("a.example", &[7; 32], MINUTE, NOW).expect("published");
        assert!(challenges.tls_alpn01("A.example.", NOW).is_some());
        assert!(challenges.tls_alpn01("b.example", NOW).is_none());
        assert!(challenges.tls_alpn01("a.example", NOW.plus(MINUTE)).is_none());
    }

    #[test]
    fn abandoned_and_damaged_challenges_are_removed() {
        let dir = TempDir::new();
        let challenges = opened(&dir);
        let leaked = challenges.publish_http01("a.example", "old", "x", MINUTE, NOW).expect("published");
        std::mem::forget(leaked);
        let directory = dir.join("state/challenges/http-01");
        std::fs::write(directory.join("damaged"), "{").expect("written");
        assert_eq!(challenges.http01("damaged", NOW), None);
        let _kept = challenges.publish_http01("a.example", "new", "x", 3 * MINUTE, NOW).expect("published");
        challenges.open(NOW.plus(2 * MINUTE)).expect("a writable directory");
        assert_eq!(std::fs::read_dir(&directory).expect("a directory").count(), 1);
    }
}
