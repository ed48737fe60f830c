//! Tables of classes, which applications write and the upkeep reads again whenever they change.

use super::discover::backoff::Backoff;
use super::discover::file::follow_text;
use crate::shared::Shared;
use crate::site::Site;
use std::sync::Arc;

/// Follows the table of the pool at `place`, if its classifier goes by one, for as long as it is polled. A table that
/// cannot be read, or has an error in it, leaves the one before in force.
pub(super) async fn run(shared: Arc<Shared>, site: Arc<Site>, place: usize) {
    let config = &site.config.pools[place];
    let Some(classifier) = &config.classifier else { return };
    let Some(path) = classifier.table_path() else { return };
    let pool = &site.pools()[place];
    let say = |what: String| shared.say(&format!("pool {}: {what}", config.name));
    let mut backoff = Backoff::new(pool.live().settings().seed);
    let mut lost = None;
    let mut wrong = None;
    loop {
        let mut found = false;
        let loss = follow_text(path, sandarac_config::TABLE_BYTES as u64, |text| {
            found = true;
            match classifier.with_table(text) {
                Ok(read) => {
                    wrong = None;
                    let lines = match read.table_len().unwrap_or_default() {
                        1 => "1 line".to_owned(),
                        lines => format!("{lines} lines"),
                    };
                    if pool.classify_by(read) {
                        say(format!("classes by {lines} of {}", path.display()));
                    }
                }
                Err(error) if wrong.as_ref() == Some(&error) => {}
                Err(error) => {
                    say(format!("{error}; the table before stays in force"));
                    wrong = Some(error);
                }
            }
            pool.table_told();
        })
        .await;
        pool.table_told();
        if found || lost.as_ref() != Some(&loss) {
            say(format!("its table of classes is lost: {loss}; the one before stays in force"));
        }
        lost = Some(loss);
        tokio::time::sleep(backoff.pause(found)).await;
    }
}
