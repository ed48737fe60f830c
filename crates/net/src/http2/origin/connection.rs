//! A connection to a backend that speaks HTTP/2.

use super::fault::StreamFault;
use super::session::Session;
use super::stream::OriginStream;
use super::streams::{FIRST_WINDOW, STREAM_WINDOW, Streams};
use crate::{Conn, Moment, PanicPart, spawn};
use sandarac_wire::h1::Limits;
use sandarac_wire::h2::connection::{Config, Connection};
use sandarac_wire::h2::settings::Settings;
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Context;

/// The most requests of a connection at a time. More use another connection.
pub const MAX_STREAMS: usize = 100;

/// The window of a connection never closes: a response that is not read must not hold up others. All streams can fill half of
/// it, and it is opened again when half of it was used.
const CONNECTION_WINDOW: u32 = 2 * MAX_STREAMS as u32 * STREAM_WINDOW;

/// A connection to a backend, shared by requests. Dropping it lets those that it has end, and then closes it.
pub struct OriginConnection {
    streams: Rc<RefCell<Streams>>,
    session: Rc<RefCell<Session>>,
}

impl OriginConnection {
    /// Begins HTTP/2 on a connection, and waits for the settings of the backend. `limits` are those of response heads. MUST be
    /// called within the core's runtime. The caller limits the time.
    pub async fn open(conn: Conn, limits: Limits) -> Result<OriginConnection, StreamFault> {
        let config = Config {
            settings: Settings {
                initial_window_size: FIRST_WINDOW,
                max_header_list_size: limits.head as u32,
                ..Config::default().settings
            },
            window: CONNECTION_WINDOW,
            limits,
        };
        let streams = Streams::new(MAX_STREAMS, |out| Connection::client(&config, out));
        let streams = Rc::new(RefCell::new(streams));
        let session = Rc::new(RefCell::new(Session::new(conn, streams.clone())));
        let opened = OriginConnection { streams, session: session.clone() };
        spawn(PanicPart::Origin, move || poll_fn(move |cx| session.borrow_mut().poll(cx)));
        poll_fn(|cx| opened.streams.borrow_mut().poll_settings(cx)).await?;
        Ok(opened)
    }

    /// A stream for a request, if there is one now.
    pub fn reserve(&self) -> Option<OriginStream> {
        if self.idle_since().is_some() {
            self.look();
        }
        let reserved = self.streams.borrow_mut().reserve();
        reserved.then(|| OriginStream::promised(self.streams.clone()))
    }

    /// Takes what has arrived on an idle connection, so that its end is noticed before a request is sent.
    fn look(&self) {
        let waker = self.streams.borrow().session();
        if let Some(waker) = waker {
            let _ = self.session.borrow_mut().poll(&mut Context::from_waker(&waker));
        }
    }

    /// Whether it takes another request at some time.
    pub fn is_usable(&self) -> bool {
        self.streams.borrow().is_usable()
    }

    /// The requests that the backend allows at a time, [`MAX_STREAMS`] at most.
    pub fn capacity(&self) -> usize {
        self.streams.borrow().capacity()
    }

    /// Since when no request has used it; `None` while one does.
    pub fn idle_since(&self) -> Option<Moment> {
        self.streams.borrow().idle_since()
    }
}

impl Drop for OriginConnection {
    fn drop(&mut self) {
        self.streams.borrow_mut().close();
    }
}
