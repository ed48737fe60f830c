//! A process at the same admin address that is still draining.

use std::time::Duration;

use sandarac_config::Config;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::admin::client::AdminClient;
use crate::admin::{Endpoint, State};
use crate::signals::Signals;
use crate::stderr::print_line;

/// How often to check whether a draining process has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How long a process may take to report whether it is draining.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// The end of a wait for a predecessor.
pub(crate) enum Wait {
    /// No process drains: start. `running` is the id of one that has the admin interface and does not drain.
    Over { running: Option<u32> },
    /// A signal stops this process.
    Stopped,
}

/// Waits while a draining process has the admin interface of `config`.
pub(crate) async fn wait_for(config: &Config, signals: &mut Signals) -> Wait {
    let endpoint = Endpoint::of(config.admin.listen.as_ref());
    let token = config.admin.token.as_deref().or(config.admin.read_token.as_deref()).map(str::to_owned);
    let predecessor = AdminClient::new(endpoint, token).patience(ANSWER_TIMEOUT);
    let mut told = false;
    loop {
        let (told_by, status) = oneshot::channel();
        let asked = predecessor.clone();
        // On a detached thread, because a response may be slow.
        std::thread::spawn(move || {
            let _ = told_by.send(asked.standing());
        });
        let status = tokio::select! {
            status = timeout(ANSWER_TIMEOUT, status) => status,
            () = signals.stop() => return Wait::Stopped,
        };
        // Any other response, or none in time, is reported by the attempt to listen.
        let Ok(Ok(Ok(status))) = status else { return Wait::Over { running: None } };
        if status.state != State::Draining {
            return Wait::Over { running: Some(status.pid) };
        }
        if !told {
            print_line(format_args!(
                "sandarac: process {} is draining; this one starts when it has ended",
                status.pid
            ));
            told = true;
        }
        tokio::select! {
            () = sleep(POLL_INTERVAL) => {}
            () = signals.stop() => return Wait::Stopped,
        }
    }
}
