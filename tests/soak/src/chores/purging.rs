//! Purges and bans, after which what they removed must not be served.

use std::sync::Arc;
use std::time::Instant;

use sandarac_test_support::{Conn, request};

use super::{Chores, PATIENCE};
use crate::site::{Entry, HOST, Site};
use crate::stage::Stage;
use crate::verdict::Count;

/// What is removed, and how the process is told.
enum Removal {
    /// One page, by the method PURGE.
    ByMethod(usize),
    /// Pages, by the admin interface.
    Urls(Vec<usize>),
    /// A page, by the command line.
    Command(usize),
    Tag(String),
    All,
    /// Pages whose target begins like this, by a ban.
    Ban(String),
}

impl Chores {
    pub(super) fn purge_again_and_again(&mut self) {
        while self.rest(20, 250) {
            let removal = self.choose_removal();
            let soft = self.random.percent(20) && !matches!(removal, Removal::ByMethod(_) | Removal::Ban(_));
            self.remove(&removal, soft);
        }
    }

    fn choose_removal(&mut self) -> Removal {
        let stage = Arc::clone(&self.stage);
        let mut choose = || stage.site.choose(&mut self.random);
        let (one, other) = (choose(), choose());
        match self.random.below(100) {
            0..30 => Removal::ByMethod(one),
            30..58 => Removal::Urls(vec![one, other]),
            58..60 => Removal::Command(one),
            60..80 => match stage.site.entries[one].tags.first() {
                Some(tag) => Removal::Tag(tag.clone()),
                None => Removal::ByMethod(one),
            },
            80..83 => Removal::All,
            _ => Removal::Ban(format!("/c/{}", self.random.within(1, 99))),
        }
    }

    fn remove(&mut self, removal: &Removal, soft: bool) {
        let stage: Arc<Stage> = Arc::clone(&self.stage);
        let entries = removal.entries(&stage.site);
        for entry in &entries {
            // Not only what is new is purged.
            if entries.len() < 20 || self.random.percent(20) {
                entry.bump();
            }
        }
        let versions: Vec<u64> = entries.iter().map(|entry| entry.current()).collect();
        let began = Instant::now();
        let result = match removal {
            Removal::ByMethod(number) => self.purge_by_method(&stage.site.entries[*number].target),
            Removal::Command(number) => self.purge_by_command(&stage.site.entries[*number].target, soft),
            Removal::Urls(_) => {
                let urls: Vec<String> =
                    entries.iter().map(|entry| format!("http://{HOST}{}", entry.target)).collect();
                self.admin("/purge", &serde_json::json!({ "urls": urls, "soft": soft }).to_string())
            }
            Removal::Tag(tag) => {
                self.admin("/purge", &serde_json::json!({ "tags": [tag], "soft": soft }).to_string())
            }
            Removal::All => {
                self.admin("/purge", &serde_json::json!({ "all": true, "soft": soft }).to_string())
            }
            Removal::Ban(beginning) => {
                let expression = format!("host == \"{HOST}\" && path ~ \"^{beginning}\"");
                self.admin("/ban", &serde_json::json!({ "expr": expression }).to_string())
            }
        };
        if let Err(came) = result {
            return self.failed("a purge or a ban", came, began);
        }
        for (entry, version) in entries.iter().zip(versions) {
            if soft { entry.soften_before(version) } else { entry.forbid_before(version) }
        }
        let count = if matches!(removal, Removal::Ban(_)) { Count::Bans } else { Count::Purges };
        stage.verdict.count(count);
    }

    fn purge_by_method(&self, target: &str) -> Result<String, String> {
        let mut conn = Conn::try_to(&self.stage.entrances.plain)
            .map_err(|error| error.to_string())?
            .patient_for(PATIENCE);
        conn.try_send(request("PURGE", target).host(HOST).to_bytes()).map_err(|error| error.to_string())?;
        let response = conn.try_response("PURGE").map_err(|trouble| format!("{trouble:?}"))?;
        if response.status == 200 { Ok(response.text()) } else { Err(format!("{response:?}")) }
    }

    fn purge_by_command(&self, target: &str, soft: bool) -> Result<String, String> {
        let running = self.proxy.running();
        let Some(sandarac) = running.as_ref() else { return Err("no process".to_owned()) };
        let url = format!("http://{HOST}{target}");
        let arguments: &[&str] = if soft { &["purge", "--soft", &url] } else { &["purge", &url] };
        let output = sandarac.admin(arguments);
        if output.status.success() { Ok(output.stdout) } else { Err(format!("{output:?}")) }
    }
}

impl Removal {
    /// The pages that it concerns.
    fn entries<'a>(&self, site: &'a Site) -> Vec<&'a Entry> {
        let of = |holds: &dyn Fn(&Entry) -> bool| site.entries.iter().filter(|entry| holds(entry)).collect();
        match self {
            Removal::ByMethod(number) | Removal::Command(number) => vec![&site.entries[*number]],
            Removal::Urls(numbers) => numbers.iter().map(|&number| &site.entries[number]).collect(),
            Removal::Tag(tag) => of(&|entry| entry.tags.contains(tag)),
            Removal::All => of(&|_| true),
            Removal::Ban(beginning) => of(&|entry| entry.target.starts_with(beginning.as_str())),
        }
    }
}
