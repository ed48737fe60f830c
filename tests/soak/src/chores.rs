//! Changes to the process and to backends during the load.

mod hoarding;
mod purging;

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sandarac_test_support::{Conn, Signal, request};

use crate::origin::Backend;
use crate::pool::Pool;
use crate::proxy::Proxy;
use crate::random::Random;
use crate::stage::{Disturbance, Stage};
use crate::verdict::{Count, Rule};

/// How long a chore waits for the process to do what it is told.
const PATIENCE: Duration = Duration::from_secs(15);

/// A load shorter than this has no restart and no lack of descriptors: there is too little time beside them.
const SHORT: u64 = 15;

/// What each chore has.
pub(crate) struct Chores {
    stage: Arc<Stage>,
    proxy: Arc<Proxy>,
    backends: Arc<Vec<Backend>>,
    random: Random,
    /// How long the load lasts.
    load: Duration,
}

impl Chores {
    /// Starts all chores of a load of so many seconds.
    pub(crate) fn start(
        stage: &Arc<Stage>,
        proxy: &Arc<Proxy>,
        backends: Arc<Vec<Backend>>,
        seconds: u64,
    ) -> Vec<JoinHandle<()>> {
        let mut works: Vec<fn(&mut Chores)> = vec![
            Chores::purge_again_and_again,
            Chores::change_versions,
            Chores::reload,
            Chores::kill,
            Chores::hoard,
        ];
        if !proxy.tier().is_empty() {
            works.push(Chores::disturb_tier);
        }
        if seconds >= SHORT {
            works.push(Chores::restart_and_starve);
        }
        let start = |(number, work): (usize, fn(&mut Chores))| {
            let mut chores = Chores {
                stage: Arc::clone(stage),
                proxy: Arc::clone(proxy),
                backends: Arc::clone(&backends),
                random: Random::new(stage.seed, (1 << 40) + number as u64),
                load: Duration::from_secs(seconds),
            };
            thread::spawn(move || work(&mut chores))
        };
        works.into_iter().enumerate().map(start).collect()
    }

    /// Sleeps for some time up to `longest`. `false` when the load is over.
    fn rest(&mut self, shortest: u64, longest: u64) -> bool {
        let pause = self.random.within(shortest, longest);
        self.stage.verdict.sleep(Duration::from_millis(pause));
        !self.stage.verdict.is_stopping()
    }

    /// New versions that nobody announces.
    fn change_versions(&mut self) {
        while self.rest(5, 60) {
            let number = self.stage.site.choose(&mut self.random);
            self.stage.site.entries[number].bump();
        }
    }

    fn reload(&mut self) {
        let stage = Arc::clone(&self.stage);
        while self.rest(300, 1500) {
            self.proxy.choose_config(&mut self.random);
            let began = Instant::now();
            match stage.disturbances.during(Disturbance::Reload, || self.reload_once()) {
                Ok(()) => stage.verdict.count(Count::Reloads),
                Err(came) => self.failed("reload", came, began),
            }
        }
    }

    fn reload_once(&mut self) -> Result<(), String> {
        if self.random.percent(60) {
            return self.admin("/reload", "").map(|_| ());
        }
        if let Some(sandarac) = self.proxy.running().as_ref() {
            sandarac.signal(Signal::Hangup);
        }
        Ok(())
    }

    /// Kills a backend, or all of a pool, and revives it.
    fn kill(&mut self) {
        let pools: Vec<Pool> = Pool::ALL.into_iter().filter(|pool| pool.is_killed()).collect();
        let backends = Arc::clone(&self.backends);
        let stage = Arc::clone(&self.stage);
        while self.rest(300, 2000) {
            let pool = self.random.pick(&pools);
            let of_pool: Vec<&Backend> = backends.iter().filter(|backend| backend.pool == pool).collect();
            let victims = if self.random.percent(15) { of_pool } else { vec![self.random.pick(&of_pool)] };
            stage.disturbances.during(Disturbance::Down(pool), || {
                victims.iter().for_each(|backend| backend.kill());
                stage.verdict.add(Count::Kills, victims.len() as u64);
                self.rest(50, 1200);
                victims.iter().for_each(|backend| backend.revive());
            });
        }
    }

    /// Freezes or kills a server of the shared tier, or both, and brings them back. No client may notice.
    fn disturb_tier(&mut self) {
        let proxy = Arc::clone(&self.proxy);
        while self.rest(500, 3000) {
            let mut tier = proxy.tier();
            let both = self.random.percent(15);
            let one = self.random.below(tier.len() as u64) as usize;
            let is_freeze = self.random.percent(60);
            let is_victim = |at: usize| both || at == one;
            for (_, server) in tier.iter_mut().enumerate().filter(|(at, _)| is_victim(*at)) {
                if is_freeze { server.freeze() } else { server.kill() }
            }
            self.rest(20, 1500);
            for (_, server) in tier.iter_mut().enumerate().filter(|(at, _)| is_victim(*at)) {
                if is_freeze { server.thaw() } else { server.restart() }
            }
            // A process that ends now would take purges with it that no server knows of.
            self.rest(2500, 3000);
        }
    }

    /// Ends the process and starts it again, and takes its descriptors away for a while, in turns. The last process gets a
    /// third of the load, so that the checks at the end say something.
    fn restart_and_starve(&mut self) {
        let stage = Arc::clone(&self.stage);
        while self.rest(5000, 8000) {
            stage.disturbances.during(Disturbance::Drought, || self.starve());
            if !self.rest(6000, 9000) || self.stage.verdict.elapsed() > self.load * 2 / 3 {
                return;
            }
            let proxy = Arc::clone(&self.proxy);
            let _no_fault = proxy.tier();
            stage.disturbances.during(Disturbance::Restart, || {
                self.proxy.stop(&stage.verdict);
                self.proxy.start();
                stage.verdict.count(Count::Restarts);
            });
        }
    }

    fn starve(&mut self) {
        let proxy = Arc::clone(&self.proxy);
        let running = proxy.running();
        let Some(sandarac) = running.as_ref() else { return };
        let usual = sandarac.descriptor_limit();
        let few = sandarac.open_descriptors() as u64 + self.random.below(6);
        sandarac.limit_descriptors(few);
        self.stage.verdict.count(Count::Droughts);
        let pause = self.random.within(200, 800);
        thread::sleep(Duration::from_millis(pause));
        sandarac.limit_descriptors(usual);
    }

    /// Posts to the admin interface, and gives the body of an answer with status 200.
    fn admin(&self, path: &str, body: &str) -> Result<String, String> {
        let address = self.proxy.admin().ok_or("no process")?;
        let mut conn = Conn::try_to(&address).map_err(|error| error.to_string())?.patient_for(PATIENCE);
        let asked = request("POST", path).body(body);
        conn.try_send(asked.to_bytes()).map_err(|error| error.to_string())?;
        let response = conn.try_response("POST").map_err(|trouble| format!("{trouble:?}"))?;
        if response.status == 200 { Ok(response.text()) } else { Err(format!("{response:?}")) }
    }

    /// Reports a chore that failed, unless the process was disturbed.
    fn failed(&self, what: &str, came: String, began: Instant) {
        if !self.stage.disturbances.explain(began) && !self.stage.verdict.is_stopping() {
            let lines = [("asked", what.to_owned()), ("came", came), ("expected", "success".to_owned())];
            self.stage.verdict.violation(Rule::Chore, &lines);
        }
    }
}
