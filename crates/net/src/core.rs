//! One thread for each core: its runtime, its listening sockets, its sessions.

use crate::http1::{self, NewConnection};
use crate::service::Service;
use crate::sessions::{Ending, Sessions};
use crate::{Acceptor, CoreSockets, ListenerId, Moment};
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

/// How long a core waits after accepting failed: descriptors come back as connections end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The most connections that are closed for a new one: another core may take the place, a session may have a
/// request, and after a reload there may be more connections than a lower limit allows.
const ROOM_ATTEMPTS: usize = 1024;

/// The most threads of a core that open and read files that are not in memory. They exist while there is work
/// for them. A disk gains nothing from more requests at a time; a mount that hangs takes them all.
const MAX_FILE_THREADS: usize = 16;

/// A command to a core.
#[derive(Debug)]
pub enum Command {
    /// Accept connections from these sockets.
    Listen(CoreSockets),
    /// Stop accepting at a listener.
    Unlisten(ListenerId),
    /// Stop accepting, and have all connections end like this; reply when none is left.
    Drain(Ending, oneshot::Sender<()>),
    /// End now.
    Stop,
}

/// Runs a core on this thread until [`Command::Stop`], or until the sender of commands is gone.
///
/// `build` makes the service inside the runtime, so that it may start tasks.
pub fn run_core<S: Service>(
    mut commands: UnboundedReceiver<Command>,
    build: impl FnOnce() -> Rc<S>,
) -> io::Result<()> {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().max_blocking_threads(MAX_FILE_THREADS).thread_name("files");
    let runtime = builder.build_local(LocalOptions::default())?;
    runtime.block_on(async move {
        let sessions = Rc::new(Sessions::default());
        let service = build();
        tokio::task::spawn_local(make_room_for_others(service.clone(), sessions.clone()));
        let mut accepting: HashMap<ListenerId, Vec<Accepting>> = HashMap::new();
        while let Some(command) = commands.recv().await {
            match command {
                Command::Listen(sockets) => {
                    let id = sockets.listener.id;
                    let begin = |acceptor| {
                        let stop = Rc::new(Notify::new());
                        let task = accept_loop(acceptor, id, service.clone(), sessions.clone(), stop.clone());
                        Accepting { task: tokio::task::spawn_local(task), stop }
                    };
                    match sockets.acceptors() {
                        Ok(acceptors) => _ = accepting.insert(id, acceptors.into_iter().map(begin).collect()),
                        Err(error) => service.accept_failed(&error),
                    }
                }
                Command::Unlisten(listener) => {
                    let ended = accepting.remove(&listener).into_iter().flatten();
                    ended.for_each(|Accepting { stop, .. }| stop.notify_one());
                    sessions.leave(listener);
                }
                Command::Drain(ending, done) => {
                    sessions.end(ending);
                    let sessions = sessions.clone();
                    let accepting = accepting.drain().flat_map(|(_, accepting)| accepting);
                    let accepting: Vec<_> = accepting.map(|accepting| accepting.task).collect();
                    tokio::task::spawn_local(async move {
                        for task in accepting {
                            let _ = task.await;
                        }
                        while sessions.count() > 0 {
                            tokio::time::sleep(Duration::from_millis(10)).await;
                        }
                        let _ = done.send(());
                    });
                }
                Command::Stop => break,
            }
        }
    });
    // A thread that waits for a disk must not hold up the end.
    runtime.shutdown_background();
    Ok(())
}

/// A listener from which a core accepts connections.
struct Accepting {
    task: JoinHandle<()>,
    /// Notified when the listener is taken out.
    stop: Rc<Notify>,
}

async fn accept_loop<S: Service>(
    acceptor: Acceptor,
    listener: ListenerId,
    service: Rc<S>,
    sessions: Rc<Sessions>,
    stop: Rc<Notify>,
) {
    loop {
        let accepted = tokio::select! {
            biased;
            accepted = acceptor.accept() => accepted,
            // Connections that the kernel had accepted by then were taken: closing the socket would reset
            // them.
            () = sessions.ended() => return,
            () = stop.notified() => return,
        };
        match accepted {
            Ok((stream, remote)) => {
                let connection = NewConnection { transport: stream.into(), remote, listener };
                if service.admit() || make_room(&*service, &sessions).await {
                    let membership = sessions.enter();
                    tokio::task::spawn_local(http1::serve(connection, service.clone(), membership));
                    continue;
                }
                service.refused();
                match sessions.linger() {
                    // Without a handshake there is no way to tell the client.
                    _ if service.tls(listener).is_some() => {}
                    place @ Some(_) => {
                        let turned_away = http1::turn_away(connection, service.clone(), place);
                        tokio::task::spawn_local(turned_away);
                    }
                    None => http1::turn_away(connection, service.clone(), None).await,
                }
            }
            Err(error) => {
                service.accept_failed(&error);
                if !is_one_connections_fault(&error) {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Admits a connection for which there is no place, at the cost of another: a handshake of which there are
/// too many, or the session that has been idle longest, here or on another core, or one that never had a
/// request. Whether there is one.
async fn make_room<S: Service>(service: &S, sessions: &Sessions) -> bool {
    sessions.handshakes.end_stalled();
    // Sessions that are to end do so now.
    tokio::task::yield_now().await;
    for _ in 0..ROOM_ATTEMPTS {
        if service.admit() {
            return true;
        }
        if !sessions.end_longest_idle() {
            if service.cores().ask_others(&sessions.count).await {
                continue;
            }
            if !sessions.end_stalled(Moment::now()) {
                return false;
            }
        }
        tokio::task::yield_now().await;
    }
    service.admit()
}

/// Closes idle connections for other cores, for as long as the core exists.
async fn make_room_for_others<S: Service>(service: Rc<S>, sessions: Rc<Sessions>) {
    let mut asked = service.cores().enter(&sessions.count);
    while let Some(request) = asked.recv().await {
        if sessions.end_longest_idle() || sessions.end_stalled(Moment::now()) {
            tokio::task::yield_now().await;
            let _ = request.send(());
        }
    }
}

/// Whether accepting failed because of that one connection, so that the next may succeed at once.
fn is_one_connections_fault(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}
