//! Active checks: regular requests to each backend, to find out whether it is healthy.

use super::client::{Question, UpkeepClient};
use crate::Fault;
use crate::pool::SitePool;
use crate::shared::Shared;
use crate::site::Site;
use sandarac_balance::{BackendId, Checked, Pool};
use sandarac_config::CheckConfig;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

/// The most bytes of a response to a check that are read. Nothing is expected of a longer one except its
/// status.
const MAX_BODY: usize = 64 << 10;

/// Checks the backends of the pool at `place` for as long as it is polled.
pub(super) async fn run(shared: Arc<Shared>, site: Arc<Site>, place: usize, client: UpkeepClient) {
    let pool = &site.pools()[place];
    let Some(check) = &site.config.pools[place].check else {
        // Clear the results of checks from before a reload, because nothing would update them.
        pool.live().unchecked();
        return std::future::pending().await;
    };
    let mut rounds = tokio::time::interval(check.interval);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut running: JoinSet<(BackendId, Option<Result<(), String>>)> = JoinSet::new();
    let mut asked: HashSet<BackendId> = HashSet::new();
    let mut spared: HashSet<BackendId> = HashSet::new();
    loop {
        tokio::select! {
            _ = rounds.tick() => {
                let live = pool.live();
                for (&id, backend) in live.ids().iter().zip(live.backends()) {
                    if asked.insert(id) {
                        let (site, client, address) = (site.clone(), client.clone(), backend.address().clone());
                        running.spawn_local(async move {
                            let Some(check) = &site.config.pools[place].check else { return (id, None) };
                            (id, ask(check, &client, &address, &site.pools[place]).await)
                        });
                    }
                }
            }
            Some(done) = running.join_next() => {
                let Ok((id, result)) = done else { continue };
                asked.remove(&id);
                let Some(result) = result else { continue };
                let live = pool.live();
                let checked = live.checked(id, result.is_ok());
                let news = match checked {
                    Checked::Same => false,
                    Checked::Spared => spared.insert(id),
                    Checked::Up | Checked::Down | Checked::Recovered => true,
                };
                if result.is_ok() || checked == Checked::Down {
                    spared.remove(&id);
                }
                if news {
                    shared.log(&told(&live, id, checked, result.err()));
                }
            }
        }
    }
}

/// Checks one backend. Returns what is wrong with it, if anything; `None` if it could not be checked through
/// no fault of its own.
async fn ask(
    check: &CheckConfig,
    client: &UpkeepClient,
    address: &sandarac_balance::Address,
    pool: &SitePool,
) -> Option<Result<(), String>> {
    let question = Question {
        address,
        tls: pool.tls.as_ref(),
        host: check.host.as_deref(),
        target: &check.path,
        fields: &[],
        body: MAX_BODY,
        patience: check.timeout,
    };
    let status = match &pool.application {
        Some(application) if address.is_fastcgi() => client.get_status(&question, application).await,
        _ => client.get(&question).await.map(|answer| answer.status),
    };
    match status {
        Ok(status) if check.passes(status) => Some(Ok(())),
        Ok(status) => Some(Err(format!("it answered {status}"))),
        Err(Fault::NoDescriptors) => None,
        Err(fault) => Some(Err(fault.log_text())),
    }
}

fn told(pool: &Pool, id: BackendId, checked: Checked, why: Option<String>) -> String {
    let backend = pool.backend(id).map(|backend| backend.address().to_string()).unwrap_or_default();
    let why = why.map(|why| format!("; the last check: {why}")).unwrap_or_default();
    format!("pool {}: {backend} is {checked}{why}", pool.name())
}
