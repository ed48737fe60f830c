//! Records of a purge log.

use super::reader::{Reader, put_text};
use super::seal::{SEAL_LEN, Sealed};
use super::{EntryError, EntryKey, LogId, MAX_LEN, Sealer};
use bytes::Bytes;
use sandarac_message::Timestamp;

/// The random number of a record: a record that is delivered twice is one purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordId(pub [u8; 16]);

/// A purge in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its random number.
    pub id: RecordId,
    /// When it was made, by the clock of the node that made it, in whole seconds. It only determines when the
    /// record is dropped from the log: clocks may differ by minutes.
    pub made: Timestamp,
    /// What happens to the responses.
    pub effect: Effect,
    /// The responses it applies to.
    pub purge: Purge,
}

/// What a purge does to stored responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// They are removed.
    Hard,
    /// They become stale.
    Soft,
}

/// The responses that a purge applies to. Hosts are in lower case, without the default port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purge {
    /// Those of one target, under both schemes.
    Target {
        /// The host.
        host: Bytes,
        /// The path and query.
        path: Bytes,
    },
    /// Those that carry a tag, or belong to a group.
    Tag(u64),
    /// Those of a host whose path and query begin like this.
    Prefix {
        /// The host.
        host: Bytes,
        /// The beginning of the path and query.
        path: Bytes,
    },
    /// Those of a host.
    Host(Bytes),
    /// Those whose host, and path and query, match patterns in which `*` stands for any run of bytes.
    Glob {
        /// The pattern of the host.
        host: Bytes,
        /// The pattern of the path and query.
        path: Bytes,
    },
    /// All.
    All,
    /// Those for which the expression of a ban holds. The reader parses it.
    Ban(String),
}

/// The bytes of a record after its length and before its fields: the key id and the seal.
const SEALED_FROM: usize = 1 + SEAL_LEN;
/// The most bytes of a record after its length: identity, time, effect, form and two texts.
const MAX_RECORD: usize = SEALED_FROM + 16 + 8 + 1 + 1 + 2 * (2 + MAX_LEN);

impl Record {
    /// The bytes of the record, to be appended to the log with this id under this server key.
    pub fn encode(&self, sealer: &Sealer, key: &EntryKey, log: &LogId) -> Result<Vec<u8>, EntryError> {
        let mut out = vec![0; 4];
        out.push(sealer.key_id());
        out.extend_from_slice(&[0; SEAL_LEN]);
        out.extend_from_slice(&self.id.0);
        out.extend_from_slice(&self.made.as_secs().to_le_bytes());
        out.push(match self.effect {
            Effect::Hard => 0,
            Effect::Soft => 1,
        });
        self.purge.encode(&mut out)?;
        let len = (out.len() - 4) as u32;
        out[..4].copy_from_slice(&len.to_le_bytes());
        let (before, after) = out.split_at(5);
        let seal = sealer.seal(&sealed(key, log, before, &after[SEAL_LEN..]));
        out[5..5 + SEAL_LEN].copy_from_slice(&seal);
        Ok(out)
    }

    /// Takes the first record of `records`, after verifying it.
    pub(super) fn verify(
        sealer: &Sealer,
        key: &EntryKey,
        log: &LogId,
        records: &mut Bytes,
    ) -> Result<bool, EntryError> {
        let Some(len) = records.first_chunk() else { return Err(EntryError::Truncated) };
        let len = u32::from_le_bytes(*len) as usize;
        if len > MAX_RECORD {
            return Err(EntryError::TooLarge);
        }
        if len < SEALED_FROM || records.len() < 4 + len {
            return Err(EntryError::Truncated);
        }
        let (before, after) = records[..4 + len].split_at(5);
        let (seal, after) = after.split_first_chunk().expect("as long as checked");
        let is_sealed_anew = sealer.verify(before[4], seal, &sealed(key, log, before, after))?;
        Record::take(records).map(|_| is_sealed_anew)
    }

    /// Takes the first record of `records`, which was verified before.
    pub(super) fn take(records: &mut Bytes) -> Result<Record, EntryError> {
        let Some(len) = records.first_chunk() else { return Err(EntryError::Truncated) };
        let end = 4 + u32::from_le_bytes(*len) as usize;
        let mut record = Reader::new(records.slice(4 + SEALED_FROM..end));
        let id = RecordId(record.array()?);
        let seconds = record.u64()?;
        let made = Timestamp::from_secs(seconds);
        if made.as_secs() != seconds {
            return Err(EntryError::Purge);
        }
        let effect = match record.u8()? {
            0 => Effect::Hard,
            1 => Effect::Soft,
            _ => return Err(EntryError::Purge),
        };
        let purge = Purge::decode(&mut record)?;
        record.finish()?;
        *records = records.slice(end..);
        Ok(Record { id, made, effect, purge })
    }
}

fn sealed<'a>(key: &'a EntryKey, log: &'a LogId, before: &'a [u8], after: &'a [u8]) -> Sealed<'a> {
    Sealed { key, log: Some(log), before, after, body: &[] }
}

impl Purge {
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), EntryError> {
        out.push(match self {
            Purge::Target { .. } => 1,
            Purge::Tag(_) => 2,
            Purge::Prefix { .. } => 3,
            Purge::Host(_) => 4,
            Purge::Glob { .. } => 5,
            Purge::All => 6,
            Purge::Ban(_) => 7,
        });
        match self {
            Purge::Target { host, path } | Purge::Prefix { host, path } | Purge::Glob { host, path } => {
                put_text(out, host)?;
                put_text(out, path)
            }
            Purge::Tag(tag) => {
                out.extend_from_slice(&tag.to_le_bytes());
                Ok(())
            }
            Purge::Host(host) => put_text(out, host),
            Purge::All => Ok(()),
            Purge::Ban(expression) => put_text(out, expression.as_bytes()),
        }
    }

    fn decode(record: &mut Reader) -> Result<Purge, EntryError> {
        Ok(match record.u8()? {
            1 => Purge::Target { host: record.text()?, path: record.text()? },
            2 => Purge::Tag(record.u64()?),
            3 => Purge::Prefix { host: record.text()?, path: record.text()? },
            4 => Purge::Host(record.text()?),
            5 => Purge::Glob { host: record.text()?, path: record.text()? },
            6 => Purge::All,
            7 => {
                let expression = std::str::from_utf8(&record.text()?).map(str::to_owned);
                Purge::Ban(expression.map_err(|_| EntryError::Purge)?)
            }
            _ => return Err(EntryError::Purge),
        })
    }
}
