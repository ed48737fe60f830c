//! The upkeep of pools: one thread that discovers backends, checks them, and fetches their résumés. No
//! request waits for it.

mod checks;
mod class_tables;
pub(crate) mod client;
mod mailbox;
mod pool_events;
mod resume_schedule;
mod resumes;
mod skill_files;
mod sources;
mod tier;

pub(crate) use mailbox::Mailbox;

use crate::origin::Origins;
use crate::shared::Shared;
use client::UpkeepClient;
use sandarac_net::Places;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// How long nothing is kept up after one of the tasks has panicked: the same may happen again at once.
const RESTART_AFTER: Duration = Duration::from_secs(1);

/// The thread. Dropping it ends it.
pub struct Upkeep {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Upkeep {
    /// Starts the upkeep of the pools of the configuration in force, and of those that follow it. It begins
    /// with each configuration a while before that is in force.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(shared: Arc<Shared>) -> io::Result<Upkeep> {
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("upkeep".to_owned()).spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
            match runtime {
                Ok(runtime) => runtime.block_on(run(shared, stopped)),
                Err(error) => shared.log(&format!("the upkeep of pools does not run: {error}")),
            }
        })?;
        Ok(Upkeep { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Waits until one of the tasks panics: all of them begin again then, because nobody else does its work.
async fn one_panicked(tasks: &mut JoinSet<()>) {
    while let Some(ended) = tasks.join_next().await {
        if ended.is_err() {
            return;
        }
    }
    std::future::pending().await
}

async fn run(shared: Arc<Shared>, mut stopped: oneshot::Receiver<()>) {
    let mut first = true;
    loop {
        let site = shared.tended();
        // Checks go on where requests take all places: theirs are among those that are reserved.
        let places = Places::new(usize::MAX);
        let origins = Origins::new(&site.config.dns, shared.upkeep_counters().clone(), places);
        let client = UpkeepClient::new(origins.clone(), shared.account.process());
        // Dropped with all their work when another site comes.
        let mut tasks = JoinSet::new();
        tasks.spawn_local(pool_events::run(shared.clone(), site.clone(), std::mem::take(&mut first)));
        tasks.spawn_local(tier::run(shared.clone(), site.clone(), origins));
        for place in 0..site.pools().len() {
            tasks.spawn_local(skill_files::run(shared.clone(), site.clone(), place));
            tasks.spawn_local(class_tables::run(shared.clone(), site.clone(), place));
            tasks.spawn_local(checks::run(shared.clone(), site.clone(), place, client.clone()));
            for source in 0..site.config.pools[place].discover.len() {
                tasks.spawn_local(sources::run(shared.clone(), site.clone(), place, source));
            }
        }
        tasks.spawn_local(resumes::run(shared.clone(), site, client));
        tokio::select! {
            () = shared.upkeep_mailbox.site_changed() => {}
            () = one_panicked(&mut tasks) => tokio::time::sleep(RESTART_AFTER).await,
            _ = &mut stopped => return,
        }
    }
}
