//! Inferred skills are saved, so that a restarted balancer need not learn them again.

use super::aside::aside;
use crate::complaints::Subject;
use crate::pool::SitePool;
use crate::shared::Shared;
use crate::site::Site;
use sandarac_balance::{SavedSkills, SavedWorker};
use sandarac_wire::resume::{class_key, class_of_key};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often they are saved: what is lost with a crash is learnt again in about that time.
const EVERY: Duration = Duration::from_secs(30);

/// How often it is looked whether backends are there whose skills were loaded.
const LOOK: Duration = Duration::from_secs(1);

/// The largest file that is read: a hundred thousand classes at a hundred workers.
const MAX_FILE: u64 = 1 << 30;

/// Reloads the skills of the pool at `place`, and saves them from time to time and when it is dropped.
pub(super) async fn run(shared: Arc<Shared>, site: Arc<Site>, place: usize) {
    let Some(path) = &site.config.pools[place].skills_file else { return };
    let pool = &site.pools()[place];
    let loaded = match aside(path, load).await.flatten() {
        Ok(loaded) => loaded,
        Err(error) if error.kind() == io::ErrorKind::NotFound => SavedSkills::default(),
        Err(error) => {
            let path = path.display();
            return shared.say(&format!("pool {}: skills are not kept in {path}: {error}", pool.name()));
        }
    };
    // Not before all was read: what nobody could read, and what was not read to its end, is not written over.
    let mut file = SkillFile { shared: &shared, pool, path, saved: SavedSkills::default(), waiting: loaded };
    loop {
        file.restore();
        tokio::time::sleep(if file.waiting.workers.is_empty() { EVERY } else { LOOK }).await;
        file.save();
    }
}

/// The file that the skills of a pool are kept in.
struct SkillFile<'a> {
    shared: &'a Shared,
    pool: &'a SitePool,
    path: &'a Path,
    /// What was saved last.
    saved: SavedSkills,
    /// What it said when it was read of backends that are not there yet.
    waiting: SavedSkills,
}

impl SkillFile<'_> {
    /// Gives backends that are there what the file says of them.
    fn restore(&mut self) {
        let live = self.pool.live();
        // Whose classes these are shows when the table of classes is there.
        let awaits_table = live.classifier().is_some_and(|classifier| classifier.table_len() == Some(0));
        if self.waiting.workers.is_empty() || awaits_table {
            return;
        }
        let (saved, in_force) = (self.waiting.classifier, live.settings().resume.classifier);
        if saved != in_force {
            self.waiting.workers.clear();
            let (pool, path) = (self.pool.name(), self.path.display());
            return self.shared.say(&format!(
                "pool {pool}: the skills in {path} are not used: they are of another classifier (fingerprint \
                 {saved:016x}, and {in_force:016x} is in force)"
            ));
        }
        let here: HashSet<String> =
            live.backends().iter().map(|backend| backend.address().to_string()).collect();
        let is_here = |worker: &mut SavedWorker| here.contains(&worker.address);
        let mut workers: Vec<SavedWorker> = self.waiting.workers.extract_if(.., is_here).collect();
        if !workers.is_empty() {
            leave_out(&mut workers, &live.save_skills().workers);
            live.restore_skills(&SavedSkills { classifier: saved, workers });
        }
    }

    fn save(&mut self) {
        let mut skills = self.pool.live().save_skills();
        if skills.workers.is_empty() {
            // There is nothing that the file does not say already.
            return;
        }
        if skills.classifier == self.waiting.classifier {
            skills.workers.extend(self.waiting.workers.iter().cloned());
        }
        if skills == self.saved {
            return;
        }
        match save(self.path, &skills) {
            Ok(()) => self.saved = skills,
            Err(error) => self.shared.complain(Subject::Saving(self.pool.name().into()), || {
                let path = self.path.display();
                format!("pool {}: its skills cannot be saved to {path}: {error}", self.pool.name())
            }),
        }
    }
}

/// Leaves out the classes that are `known` by now: what was learnt since counts more.
fn leave_out(workers: &mut [SavedWorker], known: &[SavedWorker]) {
    let known: HashMap<&str, HashSet<&[u8]>> = known
        .iter()
        .map(|worker| (&*worker.address, worker.skills.iter().map(|(class, ..)| &**class).collect()))
        .collect();
    for worker in workers {
        if let Some(known) = known.get(&*worker.address) {
            worker.skills.retain(|(class, ..)| !known.contains(&**class));
        }
    }
}

impl Drop for SkillFile<'_> {
    fn drop(&mut self) {
        self.save();
    }
}

/// Writes another file and puts it in the place of the one before, so that there is always a whole one.
fn save(path: &Path, skills: &SavedSkills) -> io::Result<()> {
    let workers = skills.workers.iter().map(|worker| {
        let skills = worker
            .skills
            .iter()
            .map(|(class, score, weight)| (class_key(class).into_owned(), json!([score, weight])));
        (worker.address.clone(), Value::Object(skills.collect::<Map<_, _>>()))
    });
    let document = json!({
        "by": format!("{:016x}", skills.classifier),
        "workers": workers.collect::<Map<_, _>>(),
    });
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let mut file = fs::File::create(&new)?;
    serde_json::to_writer(io::BufWriter::new(&mut file), &document)?;
    file.flush()?;
    file.sync_all()?;
    fs::rename(&new, path)
}

/// Reads what [`save`] wrote.
fn load(path: &Path) -> io::Result<SavedSkills> {
    if fs::metadata(path)?.len() > MAX_FILE {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is too large"));
    }
    let text = fs::read(path)?;
    serde_json::from_slice(&text).ok().as_ref().and_then(read).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, "this is no file of skills; remove it to begin anew")
    })
}

fn read(document: &Value) -> Option<SavedSkills> {
    let classifier = u64::from_str_radix(document.get("by")?.as_str()?, 16).ok()?;
    let worker = |(address, skills): (&String, &Value)| {
        let skill = |(key, value): (&String, &Value)| {
            let mut class = Vec::new();
            class_of_key(key, &mut class).ok()?;
            let score = value.get(0)?.as_f64()?;
            Some((class.into_boxed_slice(), score, value.get(1)?.as_f64()?))
        };
        let skills = skills.as_object()?.iter().map(skill).collect::<Option<_>>()?;
        Some(SavedWorker { address: address.clone(), skills })
    };
    let workers = document.get("workers")?.as_object()?.iter().map(worker).collect::<Option<_>>()?;
    Some(SavedSkills { classifier, workers })
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
        let saved = SavedSkills {
            classifier: 0x37a6_15b3_57eb_377f,
            workers: vec![
                worker("http://a", skills(&[(b":b", 0.001, 1.0), (b"\xff", 12.5, 16.0)])),
                worker("unix:/b", skills(&[(b"www", 1e9, 2.0)])),
            ],
        };
        let dir = std::env::temp_dir().join(format!("sandarac-skills-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("skills.json");
        save(&path, &saved).unwrap();
        let loaded = load(&path).unwrap();
        fs::write(&path, "{\"by\":1}").unwrap();
        let refused = load(&path).unwrap_err().to_string();
        fs::remove_dir_all(&dir).unwrap();
        let mut order = loaded.clone();
        order.workers.iter_mut().for_each(|worker| worker.skills.sort_by(|a, b| a.0.cmp(&b.0)));
        assert_eq!(order, saved);
        assert!(refused.contains("no file of skills"), "{refused}");
    }
}
