//! A file system whose reads wait until the test lets them go on.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::left_out::unless_left_out;

use crate::PATIENCE;

/// A file system with one file, `file.txt`. All is answered at once, except that reads of the file wait for
/// [`SlowFileSystem::answer_reads`].
pub struct SlowFileSystem {
    at: PathBuf,
    server: Arc<Server>,
}

/// The server's side of the protocol of FUSE, of which it knows what it needs.
struct Server {
    asked: File,
    content: Vec<u8>,
    reads: Mutex<Reads>,
    changed: Condvar,
}

#[derive(Default)]
struct Reads {
    may_go: bool,
    /// Reads that wait: their ids, offsets and sizes.
    waiting: Vec<(u64, u64, u32)>,
}

const ROOT: u64 = 1;
const FILE: u64 = 2;
const NO_ENTRY: i32 = 2;
const NOT_SUPPORTED: i32 = 38;

impl SlowFileSystem {
    /// Mounts it on an empty directory. `None` where such tests are left out.
    pub fn on(directory: &Path, content: Vec<u8>) -> Option<SlowFileSystem> {
        std::fs::create_dir_all(directory).expect("a directory can be made");
        let asked = unless_left_out(OpenOptions::new().read(true).write(true).open("/dev/fuse"))?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0\0", asked.as_raw_fd());
        let options = std::ffi::CStr::from_bytes_with_nul(options.as_bytes()).expect("one that ends in 0");
        unless_left_out(mount("slow", directory, "fuse", MountFlags::empty(), options))?;
        let server = Server { asked, content, reads: Mutex::default(), changed: Condvar::new() };
        let server = Arc::new(server);
        let serving = server.clone();
        std::thread::spawn(move || serving.serve());
        Some(SlowFileSystem { at: directory.to_owned(), server })
    }

    /// Waits until a read waits.
    ///
    /// # Panics
    /// If none comes.
    #[track_caller]
    pub fn awaits_read(&self) {
        let reads = self.server.reads.lock().expect("no panic");
        let none = |reads: &mut Reads| reads.waiting.is_empty();
        let waited = self.server.changed.wait_timeout_while(reads, PATIENCE, none).expect("no panic");
        assert!(!waited.1.timed_out(), "nobody reads the file");
    }

    /// Answers the reads that wait, and all later ones at once.
    pub fn answer_reads(&self) {
        let mut reads = self.server.reads.lock().expect("no panic");
        reads.may_go = true;
        for (id, offset, size) in std::mem::take(&mut reads.waiting) {
            self.server.answer_read(id, offset, size);
        }
    }
}

impl Drop for SlowFileSystem {
    fn drop(&mut self) {
        self.answer_reads();
        let _ = unmount(&self.at, UnmountFlags::DETACH);
    }
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
}

impl Server {
    fn serve(&self) {
        let mut buffer = vec![0; 1 << 20];
        while let Ok(len) = (&self.asked).read(&mut buffer) {
            self.request(&buffer[..len]);
        }
    }

    fn request(&self, request: &[u8]) {
        let operation = u32::from_ne_bytes(number(request, 4));
        let id = u64::from_ne_bytes(number(request, 8));
        let node = u64::from_ne_bytes(number(request, 16));
        let body = request.get(40..).unwrap_or_default();
        match operation {
            // FORGET, INTERRUPT, DESTROY and BATCH_FORGET have no answer.
            2 | 36 | 38 | 42 => {}
            // LOOKUP
            1 => match body.strip_suffix(b"\0") {
                Some(b"file.txt") => {
                    let mut entry = Vec::new();
                    [FILE, 1, 1, 1].iter().for_each(|number: &u64| entry.extend(number.to_ne_bytes()));
                    entry.extend([0; 8]);
                    entry.extend(self.attributes(FILE));
                    self.answer(id, &entry);
                }
                _ => self.refuse(id, NO_ENTRY),
            },
            // GETATTR
            3 => {
                let mut attributes = 1u64.to_ne_bytes().to_vec();
                attributes.extend([0; 8]);
                attributes.extend(self.attributes(node));
                self.answer(id, &attributes);
            }
            // OPEN, OPENDIR
            14 | 27 => self.answer(id, &[0; 16]),
            // READ
            15 => {
                let (offset, size) =
                    (u64::from_ne_bytes(number(body, 8)), u32::from_ne_bytes(number(body, 16)));
                let mut reads = self.reads.lock().expect("no panic");
                if reads.may_go {
                    self.answer_read(id, offset, size);
                } else {
                    reads.waiting.push((id, offset, size));
                    self.changed.notify_all();
                }
            }
            // STATFS
            17 => self.answer(id, &[0; 80]),
            // RELEASE, FLUSH, RELEASEDIR, ACCESS
            18 | 25 | 29 | 34 => self.answer(id, &[]),
            // INIT: version 7.31, no read-ahead, writes of 4 KiB.
            26 => {
                let mut out = Vec::new();
                [7u32, 31, 0, 0, 0, 4096, 1].iter().for_each(|number| out.extend(number.to_ne_bytes()));
                out.resize(64, 0);
                self.answer(id, &out);
            }
            _ => self.refuse(id, NOT_SUPPORTED),
        }
    }

    fn attributes(&self, node: u64) -> Vec<u8> {
        let (size, mode) = if node == ROOT { (0, 0o40755) } else { (self.content.len() as u64, 0o100_644) };
        let mut out = Vec::new();
        [node, size, size.div_ceil(512), 1, 1, 1].iter().for_each(|number| out.extend(number.to_ne_bytes()));
        [0u32, 0, 0, mode, 1, 0, 0, 0, 4096, 0].iter().for_each(|number| out.extend(number.to_ne_bytes()));
        out
    }

    fn answer_read(&self, id: u64, offset: u64, size: u32) {
        let from = self.content.len().min(offset as usize);
        let to = self.content.len().min(from + size as usize);
        self.answer(id, &self.content[from..to]);
    }

    fn answer(&self, id: u64, body: &[u8]) {
        self.write(id, 0, body);
    }

    fn refuse(&self, id: u64, error: i32) {
        self.write(id, -error, &[]);
    }

    fn write(&self, id: u64, error: i32, body: &[u8]) {
        let mut out = (16 + body.len() as u32).to_ne_bytes().to_vec();
        out.extend(error.to_ne_bytes());
        out.extend(id.to_ne_bytes());
        out.extend(body);
        // A request that was given up has no answer.
        let _ = (&self.asked).write_all(&out);
    }
}
