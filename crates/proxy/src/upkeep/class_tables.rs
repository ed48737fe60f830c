//! Tables of classes, which applications write and the upkeep reads again after each change.

use crate::shared::Shared;
use crate::site::Site;
use sandarac_discover::{JitteredBackoff, follow_text, reappears};
use std::sync::Arc;

/// Follows the table of the pool at `place`, if its classifier uses one, for as long as it is polled. A table
/// that cannot be read, has an error, or has no class in it leaves the previous one in force.
pub(super) async fn run(shared: Arc<Shared>, site: Arc<Site>, place: usize) {
    let config = &site.config.pools[place];
    let Some(classifier) = &config.classifier else { return };
    let Some(path) = classifier.table_path() else { return };
    let pool = &site.pools()[place];
    let log = |what: String| shared.log(&format!("pool {}: {what}", config.name));
    let in_force = || match pool.table_lines() {
        Some(0) | None => "requests have no class until there is one",
        Some(_) => "the one before stays in force",
    };
    let mut backoff = JitteredBackoff::new(pool.live().settings().seed);
    let mut lost = None;
    let mut wrong = None;
    loop {
        let mut found = false;
        let loss = follow_text(path, sandarac_config::TABLE_BYTES as u64, |text| {
            found = true;
            match sandarac_config::read_class_table(classifier, text) {
                Ok(read) => {
                    let lines = match read.table_len() {
                        Some(1) => "1 line".to_owned(),
                        lines => format!("{} lines", lines.unwrap_or_default()),
                    };
                    let was_missed = wrong.take().is_some() | lost.take().is_some();
                    if pool.classify_by(read) || was_missed {
                        log(format!("classes by {lines} of {}", path.display()));
                    }
                    pool.table_told(None);
                }
                Err(error) => {
                    if wrong.as_ref() != Some(&error) {
                        log(format!("its table of classes is rejected: {error}; {}", in_force()));
                    }
                    pool.table_told(Some(error.to_string()));
                    wrong = Some(error);
                }
            }
        })
        .await;
        pool.table_told(Some(loss.to_string()));
        if found || lost.as_ref() != Some(&loss) {
            log(format!("its table of classes is lost: {loss}; {}", in_force()));
        }
        lost = Some(loss);
        reappears(path, backoff.pause(found)).await;
    }
}
