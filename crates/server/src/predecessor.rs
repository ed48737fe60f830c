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

/// The user who listens at `endpoint`, if it is on TCP and that is neither this user nor root. On a port of its own choice, a
/// stranger could wait for the token. A Unix socket is looked at by the client.
pub(crate) fn stranger(endpoint: &Endpoint) -> Option<u32> {
    let Endpoint::Tcp(address) = endpoint else { return None };
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| std::fs::read_to_string(table).unwrap_or_default());
    let own = rustix::process::geteuid().as_raw();
    tables.iter().flat_map(|table| listeners(table, address.port())).find(|&user| user != own && user != 0)
}

/// The users who listen on a port, by a table of sockets (proc_pid_net(5)).
fn listeners(table: &str, port: u16) -> Vec<u32> {
    const LISTENS: &str = "0A";
    let listener = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (_, local) = words.nth(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(local, 16) == Ok(port) && words.nth(1)? == LISTENS;
        words.nth(3)?.parse().ok().filter(|_| is_it)
    };
    table.lines().filter_map(listener).collect()
}

/// Waits while a draining process has the admin interface of `config`.
pub(crate) async fn wait_for(config: &Config, signals: &mut Signals) -> Wait {
    let endpoint = Endpoint::of(config.admin.listen.as_ref());
    if let Some(user) = stranger(&endpoint) {
        print_line(format_args!(
            "sandarac: warning: user {user} listens at {endpoint}, and is not told the token"
        ));
        return Wait::Over { running: None };
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_listening_socket_is_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0\n   \
                     1: 0100007F:1F90 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1001        0 12 1 0\n   \
                     2: 00000000:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 13 1 0\n";
        assert_eq!(listeners(table, 8080), [1000]);
        assert_eq!(listeners(table, 8081), [0]);
        assert!(listeners(table, 80).is_empty());
        let own = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(stranger(&Endpoint::Tcp(own.local_addr().unwrap())), None);
    }
}
