//! A file that is ready to be sent: open, or in memory if it is small, with the head of its response.

use super::tree::{Absent, On, Tree, id};
use crate::report::file_refusal::FileRefusal;
use bytes::Bytes;
use rustix::fs::{Stat, fstat};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use sandarac_message::{
    FieldsBuf, FileRange, Name, OpenFile, Piece, StoredHead, Timestamp, TooLarge, date, decimal,
};
use sandarac_net::{Moment, Places, StoredBlock, is_in_memory};
use sandarac_policy::{Edits, RequestParts};
use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Files of at most this many bytes are held in memory: sending them takes one call of the system, and no
/// descriptor is held. Above, sending from the file costs no more.
const SMALL: u64 = 16 * 1024;

/// So many milliseconds what was seen in memory of the system is taken to be there still: what was used last
/// is dropped last. Looking takes a call of the system for each 128 KiB, which is a twentieth of sending
/// them.
const STAYS_IN_MEMORY: u64 = 1000;

/// How often a small file that changes while it is read is read again.
const ATTEMPTS: usize = 3;

/// The coding of a file that was compressed beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Brotli,
    Zstd,
    Gzip,
}

impl Coding {
    pub(super) const ALL: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

    /// The ending of the names of such files.
    pub(super) const fn ending(self) -> &'static [u8] {
        match self {
            Coding::Brotli => b".br",
            Coding::Zstd => b".zst",
            Coding::Gzip => b".gz",
        }
    }

    /// The name in Content-Encoding (RFC 9110 §8.4.1).
    pub(super) const fn name(self) -> &'static [u8] {
        match self {
            Coding::Brotli => b"br",
            Coding::Zstd => b"zstd",
            Coding::Gzip => b"gzip",
        }
    }
}

/// The edits of a response, and the parts of the request that they may use.
#[derive(Clone, Copy)]
pub(super) struct EditsOf<'a> {
    pub(super) edits: &'a Edits,
    pub(super) request: RequestParts<'a>,
}

/// The means to make files ready.
#[derive(Clone, Copy)]
pub(super) struct Means<'a> {
    pub(super) tree: &'a Arc<Tree>,
    pub(super) edits: EditsOf<'a>,
    /// The descriptors of files.
    pub(super) places: &'a Arc<Places>,
    pub(super) on: On,
}

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    id: (u64, u64),
    len: u64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Stamp {
    #[allow(clippy::unnecessary_cast, reason = "the types differ between architectures")]
    fn of(stat: &Stat) -> Stamp {
        Stamp {
            id: id(stat),
            len: stat.st_size as u64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u64),
        }
    }
}

/// A file that is ready to be sent.
pub(super) struct Representation {
    stamp: Stamp,
    coding: Option<Coding>,
    /// Whether the response depends on Accept-Encoding.
    varies: bool,
    /// The head of the response with the whole file.
    pub(super) head: StoredHead,
    /// The same for HTTP/2, once a client of HTTP/2 has got it.
    block: OnceLock<Vec<u8>>,
    content: Content,
    /// When the system had all of it in memory, in milliseconds of [`Moment`]; 0 if that was not seen.
    in_memory: AtomicU64,
}

#[derive(Clone)]
enum Content {
    Small(Bytes),
    Open { file: Arc<OpenFile>, may_wait: bool },
}

/// A file that was opened, before it is ready.
pub(super) struct Found {
    pub(super) file: File,
    pub(super) stat: Stat,
    pub(super) coding: Option<Coding>,
}

impl Found {
    /// Makes it ready, or returns the one of `known` that is the same. `name` is that of the file without the
    /// ending of its coding. One that is not small takes a place until it was sent for the last time.
    pub(super) fn ready(
        self,
        means: &Means<'_>,
        name: &[u8],
        varies: bool,
        known: &[Arc<Representation>],
    ) -> Result<Arc<Representation>, Absent> {
        let stamp = Stamp::of(&self.stat);
        let is_same = |known: &&Arc<Representation>| {
            known.stamp == stamp && known.coding == self.coding && known.varies == varies
        };
        if let Some(known) = known.iter().find(is_same) {
            return Ok(known.clone());
        }
        let may_wait = means.tree.may_wait(&self.stat, &self.file);
        let (small, stamp) = match stamp.len <= SMALL {
            true => read_small(&self.file, stamp, may_wait, means.on)?,
            false => (None, stamp),
        };
        let head = head(name, &stamp, self.coding, varies, &means.edits);
        let head = head.map_err(|TooLarge| Absent::Refused(FileRefusal::Unreadable))?;
        let content = match small {
            Some(bytes) => Content::Small(bytes),
            None => {
                let place = means.places.take().ok_or(Absent::Refused(FileRefusal::NoDescriptors))?;
                Content::Open { file: Arc::new(OpenFile::with(self.file, place)), may_wait }
            }
        };
        Ok(Arc::new(Representation {
            stamp,
            coding: self.coding,
            varies,
            head,
            block: OnceLock::new(),
            content,
            in_memory: AtomicU64::new(0),
        }))
    }
}

impl StoredBlock for Representation {
    fn block(&self, make: fn(&StoredHead) -> Vec<u8>) -> Option<&[u8]> {
        Some(self.block.get_or_init(|| make(&self.head)))
    }
}

impl Representation {
    /// The same file under another head.
    pub(super) fn under(&self, head: StoredHead) -> Representation {
        let Representation { stamp, coding, varies, ref content, .. } = *self;
        let (block, in_memory) = (OnceLock::new(), AtomicU64::new(0));
        Representation { stamp, coding, varies, head, block, content: content.clone(), in_memory }
    }

    pub(super) fn len(&self) -> u64 {
        self.stamp.len
    }

    pub(super) fn coding(&self) -> Option<Coding> {
        self.coding
    }

    /// Whether it holds a descriptor.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.content, Content::Open { .. })
    }

    /// Bytes held in memory.
    pub(super) fn held(&self) -> usize {
        let small = match &self.content {
            Content::Small(bytes) => bytes.len(),
            Content::Open { .. } => 0,
        };
        small + self.head.encoded().len() + size_of::<Representation>()
    }

    /// The content in `range`, which MUST lie within it.
    pub(super) fn piece(&self, range: std::ops::Range<u64>) -> Piece {
        match &self.content {
            Content::Small(bytes) => bytes.slice(range.start as usize..range.end as usize).into(),
            Content::Open { file, may_wait } => Piece::File(FileRange {
                file: file.clone(),
                start: range.start,
                len: usize::try_from(range.end - range.start).unwrap_or(usize::MAX),
                may_wait: *may_wait && !self.is_in_memory(file),
            }),
        }
    }

    /// Whether the system has all of it in memory, or had so a moment ago.
    fn is_in_memory(&self, file: &Arc<OpenFile>) -> bool {
        let now = Moment::now().timestamp().as_millis();
        if now < self.in_memory.load(Ordering::Relaxed) + STAYS_IN_MEMORY {
            return true;
        }
        let Ok(len) = usize::try_from(self.stamp.len) else { return false };
        let is_in_memory = is_in_memory(&FileRange { file: file.clone(), start: 0, len, may_wait: true });
        if is_in_memory {
            self.in_memory.store(now, Ordering::Relaxed);
        }
        is_in_memory
    }

    /// A number that differs between files.
    pub(super) fn seed(&self) -> u128 {
        let Stamp { id: (device, number), modified: (seconds, nanoseconds), .. } = self.stamp;
        let place = u128::from(number.rotate_left(20) ^ device);
        place << 64 | u128::from((seconds as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ nanoseconds)
    }
}

/// The content of a small file, and the state in which that was read; none if it changes all the time.
fn read_small(file: &File, first: Stamp, may_wait: bool, on: On) -> Result<(Option<Bytes>, Stamp), Absent> {
    let unreadable = |_| Absent::Refused(FileRefusal::Unreadable);
    let mut before = first;
    for _ in 0..ATTEMPTS {
        let mut content = vec![0; before.len as usize];
        let flags = if may_wait && on == On::Core { ReadWriteFlags::NOWAIT } else { ReadWriteFlags::empty() };
        let read = match flags.is_empty() {
            true => file.read_at(&mut content, 0).map_err(|_| Absent::Refused(FileRefusal::Unreadable))?,
            false => match preadv2(file, &mut [IoSliceMut::new(&mut content)], 0, flags) {
                Ok(read) => read,
                Err(Errno::AGAIN | Errno::OPNOTSUPP) => return Err(Absent::Waits),
                Err(_) => return Err(Absent::Refused(FileRefusal::Unreadable)),
            },
        };
        let after = Stamp::of(&fstat(file).map_err(unreadable)?);
        if after == before && read as u64 == before.len {
            return Ok((Some(content.into()), before));
        }
        if on == On::Core {
            return Err(Absent::Waits);
        }
        before = after;
        if before.len > SMALL {
            break;
        }
    }
    Ok((None, before))
}

/// The head of the response with the whole file.
fn head(
    name: &[u8],
    stamp: &Stamp,
    coding: Option<Coding>,
    varies: bool,
    edits: &EditsOf<'_>,
) -> Result<StoredHead, TooLarge> {
    let mut fields = FieldsBuf::new();
    fields.add(Name::ContentType, media_type(name).as_bytes())?;
    if let Some(coding) = coding {
        fields.add(Name::ContentEncoding, coding.name())?;
    }
    fields.add_with(Name::ContentLength, |out| decimal::append(out, stamp.len))?;
    let (seconds, nanoseconds) = stamp.modified;
    // A time in the future is no validator (RFC 9110 §8.8.2.1).
    let modified = Timestamp::from_millis(seconds.max(0) as u64 * 1000 + nanoseconds / 1_000_000);
    if modified <= sandarac_net::wall() {
        fields.add(Name::LastModified, &date::format(modified))?;
    }
    let ending = coding.map_or("", |coding| std::str::from_utf8(coding.name()).unwrap_or_default());
    let dash = if ending.is_empty() { "" } else { "-" };
    // Without the number of the file, so that all machines with a copy of the tree agree.
    let nanos = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    fields.add(Name::Etag, format!("\"{nanos:x}-{:x}{dash}{ending}\"", stamp.len).as_bytes())?;
    fields.add(Name::AcceptRanges, b"bytes")?;
    if varies {
        fields.add(Name::Vary, b"Accept-Encoding")?;
    }
    edits.edits.apply(&mut fields, &edits.request)?;
    StoredHead::new(200, b"OK", &fields)
}

/// The media type by the ending of a name. Text is in UTF-8, as nearly all is.
fn media_type(name: &[u8]) -> String {
    let path = Path::new(std::ffi::OsStr::from_bytes(name));
    let Some(guess) = mime_guess::from_path(path).first_raw() else {
        return "application/octet-stream".to_owned();
    };
    // The table has old names of these, or another meaning of the ending.
    let guess = match guess {
        // RFC 9239 §6.
        "application/javascript" => "text/javascript",
        // RFC 8081 §4.4.
        "application/font-woff" => "font/woff",
        "application/font-sfnt" if name.ends_with(b".otf") => "font/otf",
        // RFC 8216 §10.
        "audio/x-mpegurl" if name.ends_with(b".m3u8") => "application/vnd.apple.mpegurl",
        "video/vnd.dlna.mpeg-tts" => "video/mp2t",
        "audio/x-pn-realaudio-plugin" => "application/x-rpm",
        guess => guess,
    };
    let is_text = guess.starts_with("text/")
        || matches!(guess, "application/xml" | "application/xhtml+xml" | "image/svg+xml");
    if is_text { format!("{guess}; charset=utf-8") } else { guess.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_follow_the_ending_and_text_has_a_charset() {
        for (name, expected) in [
            ("/index.html", "text/html; charset=utf-8"),
            ("/a.css", "text/css; charset=utf-8"),
            ("/a.js", "text/javascript; charset=utf-8"),
            ("/a.mjs", "text/javascript; charset=utf-8"),
            ("/a.svg", "image/svg+xml; charset=utf-8"),
            ("/a.json", "application/json"),
            ("/a.wasm", "application/wasm"),
            ("/a.woff", "font/woff"),
            ("/a.woff2", "font/woff2"),
            ("/a.otf", "font/otf"),
            ("/a.ts", "video/mp2t"),
            ("/a.m3u8", "application/vnd.apple.mpegurl"),
            ("/a.rpm", "application/x-rpm"),
            ("/A.PNG", "image/png"),
            ("/a.webp", "image/webp"),
            ("/a.avif", "image/avif"),
            ("/README", "application/octet-stream"),
            ("/a.unknown-ending", "application/octet-stream"),
        ] {
            assert_eq!(media_type(name.as_bytes()), expected, "{name}");
        }
    }
}
