//! One worker per core: its runtime, its listening sockets, its sessions.

use crate::session::{self, Arrival};
use crate::{Acceptor, ListenAddress, Listeners, Service};
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

/// How long a worker that could not accept waits before it tries again: descriptors come back as connections end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Clients that there was no place for and that may be given the time to read that, for each worker. More are let go at once:
/// under a flood their descriptors are wanted, for connections to backends above all.
const LINGERING: usize = 4;

/// What a listener says about the connections it takes.
#[derive(Debug)]
pub struct Entrance {
    /// The address that was bound.
    pub address: ListenAddress,
    /// Whether every connection begins with a PROXY protocol header.
    pub proxy_protocol: bool,
}

/// An order to a worker.
#[derive(Debug)]
pub enum Command {
    /// Accept connections; the set holds one socket for this worker.
    Listen(Listeners, Arc<Entrance>),
    /// Stop accepting on an address.
    Unlisten(ListenAddress),
    /// Stop accepting, end idle connections, let the others finish their exchange; reply when all are gone.
    Drain(oneshot::Sender<()>),
    /// End now.
    Stop,
}

/// The sessions of one worker.
#[derive(Debug, Default)]
pub struct Sessions {
    wakers: RefCell<Slab<Waker>>,
    draining: Cell<bool>,
    lingering: Cell<usize>,
    drained: Notify,
}

impl Sessions {
    /// Whether no further request is to be taken on any connection.
    pub fn draining(&self) -> bool {
        self.draining.get()
    }

    /// The number of open connections.
    pub fn count(&self) -> usize {
        self.wakers.borrow().len()
    }

    pub(crate) fn enter(self: &Rc<Sessions>, waker: &Waker) -> Membership {
        Membership { slot: self.wakers.borrow_mut().insert(waker.clone()), sessions: self.clone() }
    }

    /// A place for one more client that is to read that there was none for it, if there is one.
    fn linger(self: &Rc<Sessions>) -> Option<Lingering> {
        let others = self.lingering.get();
        (others < LINGERING).then(|| {
            self.lingering.set(others + 1);
            Lingering(self.clone())
        })
    }

    /// Waits until no further request is to be taken.
    async fn drained(&self) {
        let notified = self.drained.notified();
        if !self.draining() {
            notified.await;
        }
    }

    fn drain(&self) {
        self.draining.set(true);
        self.drained.notify_waiters();
        for (_, waker) in self.wakers.borrow().iter() {
            waker.wake_by_ref();
        }
    }
}

/// A session's place among the worker's sessions.
pub(crate) struct Membership {
    slot: usize,
    sessions: Rc<Sessions>,
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut wakers = self.sessions.wakers.borrow_mut();
        wakers.remove(self.slot);
        if wakers.is_empty() && wakers.capacity() > 1024 {
            *wakers = Slab::new();
        }
    }
}

/// A place among those who are turned away and may linger.
pub(crate) struct Lingering(Rc<Sessions>);

impl Drop for Lingering {
    fn drop(&mut self) {
        self.0.lingering.set(self.0.lingering.get() - 1);
    }
}

/// Runs a worker on this thread until [`Command::Stop`], or until the sender of commands is gone.
///
/// `build` makes the service inside the runtime, so that it may start tasks of its own.
pub fn run_worker<S: Service>(
    mut commands: UnboundedReceiver<Command>,
    build: impl FnOnce(Rc<Sessions>) -> Rc<S>,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    runtime.block_on(async move {
        let sessions = Rc::new(Sessions::default());
        let service = build(sessions.clone());
        let mut accepting: HashMap<ListenAddress, JoinHandle<()>> = HashMap::new();
        while let Some(command) = commands.recv().await {
            match command {
                Command::Listen(mut listeners, entrance) => match listeners.take() {
                    Ok(acceptor) => {
                        let address = listeners.address.clone();
                        let task = accept_loop(acceptor, entrance, service.clone(), sessions.clone());
                        if let Some(before) = accepting.insert(address, tokio::task::spawn_local(task)) {
                            before.abort();
                        }
                    }
                    Err(error) => service.accept_failed(&error),
                },
                Command::Unlisten(address) => {
                    if let Some(task) = accepting.remove(&address) {
                        task.abort();
                    }
                }
                Command::Drain(done) => {
                    sessions.drain();
                    let sessions = sessions.clone();
                    let accepting: Vec<_> = accepting.drain().map(|(_, task)| task).collect();
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
    Ok(())
}

async fn accept_loop<S: Service>(
    acceptor: Acceptor,
    entrance: Arc<Entrance>,
    service: Rc<S>,
    sessions: Rc<Sessions>,
) {
    loop {
        let accepted = tokio::select! {
            biased;
            accepted = acceptor.accept() => accepted,
            // What the kernel had accepted by then was taken: closing the socket would reset it.
            () = sessions.drained() => return,
        };
        match accepted {
            Ok((stream, remote)) => {
                let arrival = Arrival { stream, remote, entrance: entrance.clone() };
                if service.admit() {
                    tokio::task::spawn_local(session::serve(arrival, service.clone(), sessions.clone()));
                    continue;
                }
                match sessions.linger() {
                    place @ Some(_) => {
                        let away = session::turn_away(arrival, service.clone(), place);
                        tokio::task::spawn_local(away);
                    }
                    None => session::turn_away(arrival, service.clone(), None).await,
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

/// Whether accepting failed because of the connection to be accepted, so that the next may succeed at once.
fn is_one_connections_fault(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}
