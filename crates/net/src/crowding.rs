//! Crowding: where all places for connections are taken, cores ask each other to close connections that are idle.

use parking_lot::Mutex;
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// The most cores that are asked for one connection: each costs a turn of its loop.
const MOST_ASKED: usize = 4;

/// The longest that a core may take to close a connection.
const PATIENCE: Duration = Duration::from_millis(50);

/// Sent back once a connection has been closed; dropped if none is idle.
pub(crate) type RoomRequest = oneshot::Sender<()>;

/// The cores of a process.
#[derive(Debug, Default)]
pub struct Cores(Mutex<Vec<Place>>);

#[derive(Clone, Debug)]
struct Place {
    /// The number of its connections.
    connections: Arc<AtomicUsize>,
    asks: UnboundedSender<RoomRequest>,
}

impl Cores {
    /// Adds a core, which is asked through what is returned for as long as that lives.
    pub(crate) fn enter(&self, connections: &Arc<AtomicUsize>) -> UnboundedReceiver<RoomRequest> {
        let (asks, asked) = unbounded_channel();
        let mut places = self.0.lock();
        places.retain(|place| !place.asks.is_closed());
        places.push(Place { connections: connections.clone(), asks });
        asked
    }

    /// Asks the other cores to close a connection that is idle, those with most connections first. Whether one has.
    pub(crate) async fn ask_others(&self, own: &Arc<AtomicUsize>) -> bool {
        let places = self.0.lock().clone();
        let mut others: Vec<_> = places
            .into_iter()
            .filter(|place| !Arc::ptr_eq(&place.connections, own))
            .map(|place| (place.connections.load(Relaxed), place.asks))
            .filter(|(connections, _)| *connections > 0)
            .collect();
        others.sort_by_key(|(connections, _)| Reverse(*connections));
        for (_, asks) in others.into_iter().take(MOST_ASKED) {
            let (request, closed) = oneshot::channel();
            let has_closed = asks.send(request).is_ok()
                && tokio::time::timeout(PATIENCE, closed).await.is_ok_and(|closed| closed.is_ok());
            if has_closed {
                return true;
            }
        }
        false
    }
}
