//! Files of inferred skills, kept so that a restarted balancer need not learn them again.

use crate::pool::{AbsentSkills, AbsentWorker, SitePool, unix_seconds};
use crate::report::log_throttle::LogTopic;
use crate::shared::Shared;
use crate::site::Site;
use parking_lot::Mutex;
use sandarac_balance::{SavedSkills, SavedWorker};
use sandarac_discover::on_file_thread;
use sandarac_wire::resume::{class_key, class_of_key};
use serde_json::{Map, Value, json};
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How often they are saved. Skills lost in a crash are learnt again in about that time.
const SAVE_INTERVAL: Duration = Duration::from_secs(30);

/// How often to check whether the table of classes for the loaded skills has arrived.
const TABLE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The largest file that is read: a hundred thousand classes at a hundred workers.
const MAX_FILE: u64 = 1 << 30;

/// How long the end of the process, or of a configuration, waits for a save: a file system may block.
const SAVE_TIMEOUT: Duration = Duration::from_secs(3);

/// Reloads the skills of the pool at `place`, and saves them from time to time and when it is dropped.
pub(super) async fn run(shared: Arc<Shared>, site: Arc<Site>, place: usize) {
    let Some(path) = &site.config.pools[place].skills_file else { return };
    let pool = &site.pools()[place];
    let loaded = match on_file_thread(path, |path| load(path, unix_seconds())).await.flatten() {
        Ok(loaded) => loaded,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Ok(Some(error)) = on_file_thread(path, missing_directory).await {
                let path = path.display();
                shared.log(&format!("pool {}: its skills cannot be saved to {path}: {error}", pool.name()));
            }
            AbsentSkills::default()
        }
        Err(error) => {
            let path = path.display();
            return shared.log(&format!("pool {}: skills are not kept in {path}: {error}", pool.name()));
        }
    };
    // Only after a successful read, so that a file that could not be read to its end is not overwritten.
    let mut file =
        SkillFile { shared: &shared, pool, path, saved: None, loaded: Some(loaded), writing: Arc::default() };
    while !file.recall() {
        tokio::time::sleep(TABLE_POLL_INTERVAL).await;
    }
    loop {
        tokio::time::sleep(SAVE_INTERVAL).await;
        file.save().await;
    }
}

/// Why no file can be created at `path`: the error of its directory, if that is missing.
fn missing_directory(path: &Path) -> Option<io::Error> {
    fs::metadata(path.parent()?).err()
}

/// The saved state: the skills of present and of absent backends.
type Skills = (SavedSkills, AbsentSkills);

/// The file that the skills of a pool are kept in.
struct SkillFile<'a> {
    shared: &'a Shared,
    pool: &'a SitePool,
    path: &'a Path,
    /// What was saved last.
    saved: Option<Skills>,
    /// The content of the file, until the pool can take it.
    loaded: Option<AbsentSkills>,
    /// Held while writing, so that a write that was abandoned as too slow cannot overwrite a later one.
    writing: Arc<Mutex<()>>,
}

impl SkillFile<'_> {
    /// Gives the pool the skills of the file. Returns whether that was possible.
    fn recall(&mut self) -> bool {
        let live = self.pool.live();
        // Without the table of classes, the classifier of the skills cannot be compared.
        if live.classifier().is_some_and(|classifier| classifier.table_len() == Some(0)) {
            return false;
        }
        let Some(loaded) = self.loaded.take().filter(|loaded| !loaded.absent.is_empty()) else { return true };
        let (saved, in_force) = (loaded.classifier, live.settings().resume.classifier);
        if saved == in_force {
            self.pool.recall(loaded);
        } else {
            let (pool, path) = (self.pool.name(), self.path.display());
            self.shared.log(&format!(
                "pool {pool}: the skills in {path} are not used: they are of another classifier (fingerprint \
                 {saved:016x}, and {in_force:016x} is in force)"
            ));
        }
        true
    }

    async fn save(&mut self) {
        if let Some((skills, write)) = self.news() {
            let written = on_file_thread(self.path, write).await.flatten();
            self.is_saved(skills, written);
        }
    }

    /// The skills to save and a closure that saves them, if they have changed.
    fn news(&mut self) -> Option<(Skills, impl FnOnce(&Path) -> io::Result<()> + Send + use<>)> {
        if !self.recall() {
            return None;
        }
        let skills = self.pool.skills();
        let (here, away) = &skills;
        let knows_some =
            !here.workers.is_empty() || here.classifier == away.classifier && !away.absent.is_empty();
        if !knows_some || self.saved.as_ref() == Some(&skills) {
            return None;
        }
        let (document, writing) = (document(&skills.0, &skills.1), self.writing.clone());
        let write = move |path: &Path| {
            let _one_after_the_other = writing.lock();
            write(path, &document)
        };
        Some((skills, write))
    }

    fn is_saved(&mut self, skills: Skills, written: io::Result<()>) {
        match written {
            Ok(()) => self.saved = Some(skills),
            Err(error) => self.shared.log_throttled(LogTopic::Saving(self.pool.name().into()), || {
                let path = self.path.display();
                format!("pool {}: its skills cannot be saved to {path}: {error}", self.pool.name())
            }),
        }
    }
}

impl Drop for SkillFile<'_> {
    fn drop(&mut self) {
        let Some((skills, write)) = self.news() else { return };
        let (done, written) = mpsc::channel();
        let path = self.path.to_owned();
        let writer = std::thread::Builder::new().name("skills-writer".to_owned());
        let written = writer.spawn(move || done.send(write(&path))).and_then(|_| {
            let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it takes too long");
            written.recv_timeout(SAVE_TIMEOUT).map_err(late).flatten()
        });
        self.is_saved(skills, written);
    }
}

/// The document that [`load`] reads.
fn document(here: &SavedSkills, away: &AbsentSkills) -> Value {
    let skills = |worker: &SavedWorker| {
        let skills = worker
            .skills
            .iter()
            .map(|(class, score, weight)| (class_key(class).into_owned(), json!([score, weight])));
        (worker.address.clone(), Value::Object(skills.collect::<Map<_, _>>()))
    };
    let absent = away.absent.iter().filter(|_| away.classifier == here.classifier);
    let workers = here.workers.iter().chain(absent.clone().map(|absent| &absent.worker)).map(skills);
    let since = absent.map(|absent| (absent.worker.address.clone(), json!(absent.since)));
    json!({
        "by": format!("{:016x}", here.classifier),
        "workers": workers.collect::<Map<_, _>>(),
        "away_since": since.collect::<Map<_, _>>(),
    })
}

/// Writes a new file and renames it over the previous one, so that there is always a complete one. No other
/// process uses the new file's name.
fn write(path: &Path, document: &Value) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{:016x}.new", RandomState::new().build_hasher().finish()));
    let new = path.with_file_name(name);
    let mut file = fs::File::create_new(&new)?;
    let mut writer = io::BufWriter::new(&mut file);
    let written = serde_json::to_writer(&mut writer, document).map_err(io::Error::from);
    // Dropping the writer would ignore errors, and an incomplete file would replace a complete one.
    let written = written.and_then(|()| writer.flush());
    drop(writer);
    let placed = written.and_then(|()| file.sync_all()).and_then(|()| fs::rename(&new, path));
    if placed.is_err() {
        let _ = fs::remove_file(&new);
    }
    placed
}

/// Reads a file of [`write`]. Backends that were present when it was written count as absent since `now`.
fn load(path: &Path, now: u64) -> io::Result<AbsentSkills> {
    if fs::metadata(path)?.len() > MAX_FILE {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is too large"));
    }
    let text = fs::read(path)?;
    serde_json::from_slice(&text).ok().and_then(|document| read(&document, now)).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, "this is not a file of skills; remove it to start anew")
    })
}

fn read(document: &Value, now: u64) -> Option<AbsentSkills> {
    let classifier = u64::from_str_radix(document.get("by")?.as_str()?, 16).ok()?;
    let away_since = |address: &str| document.get("away_since")?.get(address)?.as_u64();
    let worker = |(address, skills): (&String, &Value)| {
        let skill = |(key, value): (&String, &Value)| {
            let mut class = Vec::new();
            class_of_key(key, &mut class).ok()?;
            let score = value.get(0)?.as_f64()?;
            Some((class.into_boxed_slice(), score, value.get(1)?.as_f64()?))
        };
        let skills = skills.as_object()?.iter().map(skill).collect::<Option<_>>()?;
        let worker = SavedWorker { address: address.clone(), skills };
        Some(AbsentWorker { since: away_since(address).unwrap_or(now), worker })
    };
    let absent = document.get("workers")?.as_object()?.iter().map(worker).collect::<Option<_>>()?;
    Some(AbsentSkills { classifier, absent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_what_is_loaded() {
        let skills = |skills: &[(&[u8], f64, f64)]| {
            skills.iter().map(|&(class, score, weight)| (class.into(), score, weight)).collect()
        };
        let worker = |address: &str, skills| SavedWorker { address: address.to_owned(), skills };
        let classifier = 0x37a6_15b3_57eb_377f;
        let here = worker("http://a", skills(&[(b":b", 0.001, 1.0), (b"\xff", 12.5, 16.0)]));
        let absent = AbsentWorker { worker: worker("unix:/b", skills(&[(b"www", 1e9, 2.0)])), since: 17 };
        let away = AbsentSkills { classifier, absent: vec![absent.clone()] };
        let dir = std::env::temp_dir().join(format!("sandarac-skills-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("skills.json");
        write(&path, &document(&SavedSkills { classifier, workers: vec![here.clone()] }, &away)).unwrap();
        let loaded = load(&path, 18).unwrap();
        let names: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        fs::write(&path, "{\"by\":1}").unwrap();
        let refused = load(&path, 18).unwrap_err().to_string();
        fs::remove_dir_all(&dir).unwrap();
        let mut order = loaded.clone();
        order.absent.iter_mut().for_each(|absent| absent.worker.skills.sort_by(|a, b| a.0.cmp(&b.0)));
        assert_eq!(
            order,
            AbsentSkills { classifier, absent: vec![AbsentWorker { worker: here, since: 18 }, absent] }
        );
        assert_eq!(names, ["skills.json"]);
        assert!(refused.contains("not a file of skills"), "{refused}");
    }

    /// Regression: two processes with one file wrote into the same temporary file, and corrupted it.
    #[test]
    fn whoever_writes_at_the_same_time_leaves_a_whole_file() {
        let dir = std::env::temp_dir().join(format!("sandarac-skills-of-two-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("skills.json");
        let document =
            document(&SavedSkills { classifier: 7, workers: Vec::new() }, &AbsentSkills::default());
        let write_often = || (0..50).map(|_| write(&path, &document)).collect::<io::Result<Vec<()>>>();
        let written = std::thread::scope(|scope| {
            let writers = [(); 4].map(|()| scope.spawn(write_often));
            writers.map(|writer| writer.join().unwrap().is_ok())
        });
        let loaded = load(&path, 0).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!((written, loaded.classifier), ([true; 4], 7));
    }
}
