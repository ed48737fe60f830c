//! The parts of a connection, and what its two directions share.

use super::super::fault::Fault;
use super::super::frame::{PREFACE, encode};
use super::super::hpack::Decoder;
use super::super::priority::Priority;
use super::super::settings::{DEFAULT_WINDOW, Settings};
use super::budget::{Budget, Cost};
use super::event::Event;
use super::flow::{ReceiveWindow, SendWindow};
use super::stream::Stream;
use super::streams::Streams;
use crate::h1::Limits;
use std::time::Duration;

/// Bytes of replies to the peer's frames that may lie unsent: 960 PINGs. See [`Connection::replies_sent`].
pub const MAX_UNSENT_REPLIES: usize = 16 * 1024;

/// Priorities that are kept for streams that are not open yet (RFC 9218 §7.1).
pub const MAX_EARLY_PRIORITIES: usize = 32;

/// What a connection begins with.
#[derive(Clone, Debug)]
pub struct Config {
    /// Our settings. A client's `enable_push` MUST be false.
    pub settings: Settings,
    /// Bytes that the peer may send on all streams together, at least 65 535.
    pub window: u32,
    /// The limits of heads and trailers, as for HTTP/1.
    pub limits: Limits,
}

impl Default for Config {
    /// 100 streams (RFC 9113 §6.5.2 recommends no fewer), windows of 64 KiB, heads as in HTTP/1.
    fn default() -> Config {
        let limits = Limits::default();
        Config {
            settings: Settings {
                enable_push: false,
                max_concurrent_streams: 100,
                max_header_list_size: limits.head as u32,
                no_rfc7540_priorities: true,
                ..Settings::default()
            },
            window: DEFAULT_WINDOW,
            limits,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Server,
    Client,
}

/// What has to arrive next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Preface,
    Settings,
    Frames,
}

/// A header block that has begun.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) stream: u32,
    pub(super) end_stream: bool,
    pub(super) self_dependency: bool,
    pub(super) bytes: Vec<u8>,
}

/// One HTTP/2 connection.
///
/// The clock is an argument: `now` is the time since any fixed moment, and MUST NOT go back.
#[derive(Debug)]
pub struct Connection {
    pub(super) role: Role,
    pub(super) phase: Phase,
    pub(super) limits: Limits,
    pub(super) ours: Settings,
    pub(super) ours_acknowledged: bool,
    pub(super) theirs: Settings,
    /// Whether the peer lowered the size of its HPACK table below the default, and has not been told that we
    /// use none (RFC 7541 §4.2).
    pub(super) table_update_due: bool,
    pub(super) decoder: Decoder,
    pub(super) block: Option<Box<Block>>,
    pub(super) streams: Streams,
    pub(super) early_priorities: Vec<(u32, Priority)>,
    pub(super) send_window: SendWindow,
    pub(super) receive_window: ReceiveWindow,
    pub(super) budget: Budget,
    pub(super) unsent_replies: usize,
    /// The highest stream that the client of this connection opened.
    pub(super) highest: u32,
    pub(super) going_away: Option<u32>,
    pub(super) peer_going_away: Option<u32>,
}

impl Connection {
    /// The server's side. Its SETTINGS are appended to `out`.
    pub fn server(config: &Config, out: &mut Vec<u8>) -> Connection {
        Connection::new(Role::Server, Phase::Preface, config, out)
    }

    /// The client's side. The preface and SETTINGS are appended to `out`.
    pub fn client(config: &Config, out: &mut Vec<u8>) -> Connection {
        debug_assert!(!config.settings.enable_push);
        out.extend_from_slice(PREFACE);
        Connection::new(Role::Client, Phase::Settings, config, out)
    }

    fn new(role: Role, phase: Phase, config: &Config, out: &mut Vec<u8>) -> Connection {
        // A server cannot be pushed to, and MUST NOT announce the setting (RFC 9113 §6.5.2).
        let enable_push = role == Role::Server;
        let ours = Settings { enable_push, ..config.settings };
        encode::settings(out, &ours);
        let window = config.window.max(DEFAULT_WINDOW);
        if window > DEFAULT_WINDOW {
            encode::window_update(out, 0, window - DEFAULT_WINDOW);
        }
        Connection {
            role,
            phase,
            limits: config.limits,
            ours,
            ours_acknowledged: false,
            theirs: Settings::default(),
            table_update_due: false,
            decoder: Decoder::new(Settings::default().header_table_size),
            block: None,
            streams: Streams::default(),
            early_priorities: Vec::new(),
            send_window: SendWindow::new(DEFAULT_WINDOW),
            receive_window: ReceiveWindow::new(window),
            budget: Budget::default(),
            unsent_replies: 0,
            highest: 0,
            going_away: None,
            peer_going_away: None,
        }
    }

    /// The peer's settings.
    pub fn peer_settings(&self) -> &Settings {
        &self.theirs
    }

    /// Whether a stream was opened and has not ended in both directions.
    pub fn is_open(&self, id: u32) -> bool {
        self.streams.get(id).is_some()
    }

    /// Streams that are not closed.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Whether no stream is open, and none will be: the connection may be closed.
    pub fn is_drained(&self) -> bool {
        let last = match self.role {
            Role::Server => self.going_away.is_some_and(|last| last <= self.highest),
            Role::Client => self.peer_going_away.is_some() || self.going_away.is_some(),
        };
        last && self.streams.len() == 0
    }

    /// Whether the peer's frames have arrived whole, so that a pause is not the middle of a header block.
    pub fn is_between_messages(&self) -> bool {
        self.phase == Phase::Frames && self.block.is_none()
    }

    /// Bytes of memory that hold a header block which has not arrived whole.
    pub fn input_memory(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.bytes.capacity())
    }

    /// The initial receive window of a stream that opens now, as the peer knows it.
    pub(super) fn initial_receive_window(&self) -> u32 {
        if self.ours_acknowledged { self.ours.initial_window_size } else { DEFAULT_WINDOW }
    }

    /// Charges the peer for a frame.
    pub(super) fn charge(&mut self, cost: Cost, now: Duration) -> Result<(), Fault> {
        self.budget.charge(cost, now)
    }

    /// Counts what was appended to `out` from `before` on as a reply that the peer demanded.
    pub(super) fn replied(&mut self, before: usize, out: &[u8]) -> Result<(), Fault> {
        self.unsent_replies += out.len() - before;
        if self.unsent_replies > MAX_UNSENT_REPLIES { Err(Fault::UnreadReplies) } else { Ok(()) }
    }

    /// Resets a stream because of a fault of the peer. The stream need not be open.
    pub(super) fn reset_for<'a>(
        &mut self,
        id: u32,
        fault: Fault,
        out: &mut Vec<u8>,
        now: Duration,
    ) -> Result<Option<Event<'a>>, Fault> {
        self.charge(Cost::ForcedReset, now)?;
        let before = out.len();
        encode::reset(out, id, fault.code());
        self.replied(before, out)?;
        self.streams.remember_reset(id);
        let known = self.streams.close(id).is_some();
        Ok(known.then_some(Event::Reset { stream: id, code: fault.code(), fault: Some(fault) }))
    }

    /// Forgets a stream that both sides have ended.
    pub(super) fn close_if_ended(&mut self, id: u32) {
        if self.streams.get(id).is_some_and(Stream::is_closed) {
            self.streams.close(id);
            if self.role == Role::Server {
                self.budget.answered();
            }
        }
    }
}
