//! Frames of the peer.

use super::super::fault::Fault;
use super::super::frame::{Frame, PREFACE, Parameters, decode, encode};
use super::super::head::{HeadBuf, Refusal, request, response, trailers};
use super::super::priority::Priority;
use super::super::settings::DEFAULT_WINDOW;
use super::budget::Cost;
use super::event::{Event, Received};
use super::flow::{ReceiveWindow, SendWindow};
use super::machine::{Block, Connection, MAX_EARLY_PRIORITIES, Phase, Role};
use super::stream::{Half, Stream};
use crate::h1::Parsed;
use sandarac_message::{Method, Name};
use std::time::Duration;

/// Increments below this are charged: no peer needs to open a window in steps smaller than a packet.
const SMALL_INCREMENT: u32 = 1024;

/// CONTINUATION frames with fewer bytes cost more, unless they are the last of their block.
const SHORT_CONTINUATION: usize = 1024;

/// Bytes of a PRIORITY_UPDATE that cost as much as a PRIORITY. One with the parameters that there are has fewer.
const PRIORITY_VALUE: usize = 64;

/// Bytes of a header block, as a multiple of the limit of a head. Coded text is seldom longer than the text.
const MAX_BLOCK_GROWTH: usize = 2;

impl Connection {
    /// Takes one frame from the start of `buf`. Replies are appended to `out`; a head is decoded into `head`.
    ///
    /// Call it until it consumes nothing, and again when more has arrived. A fault ends the connection: GOAWAY
    /// was appended, and the caller MUST send it and close.
    pub fn receive<'a>(
        &mut self,
        buf: &'a [u8],
        head: &'a mut HeadBuf,
        out: &mut Vec<u8>,
        now: Duration,
    ) -> Result<Received<'a>, Fault> {
        let result = self.receive_frame(buf, head, out, now);
        if let Err(fault) = &result {
            let last = if self.role == Role::Server { self.highest } else { 0 };
            encode::go_away(out, last, fault.code(), fault.name().as_bytes());
        }
        result
    }

    fn receive_frame<'a>(
        &mut self,
        buf: &'a [u8],
        head: &'a mut HeadBuf,
        out: &mut Vec<u8>,
        now: Duration,
    ) -> Result<Received<'a>, Fault> {
        if self.phase == Phase::Preface {
            let len = buf.len().min(PREFACE.len());
            if buf[..len] != PREFACE[..len] {
                return Err(Fault::InvalidPreface);
            }
            let whole = len == PREFACE.len();
            if whole {
                self.phase = Phase::Settings;
            }
            return Ok(Received { consumed: if whole { len } else { 0 }, event: None });
        }
        let (frame, consumed) = match decode(buf, self.ours.max_frame_size) {
            Ok(Parsed::Complete(found)) => found,
            Ok(Parsed::Partial) => return Ok(Received { consumed: 0, event: None }),
            Err(error) => match error.stream {
                // A fault of a stream that may be idle can only be answered by closing the connection.
                Some((stream, consumed)) if self.streams.get(stream).is_some() && self.block.is_none() => {
                    let event = self.reset_for(stream, error.fault, out, now)?;
                    return Ok(Received { consumed, event });
                }
                _ => return Err(error.fault),
            },
        };
        if self.phase == Phase::Settings {
            if !matches!(frame, Frame::Settings(_)) {
                return Err(Fault::MissingSettings);
            }
            self.phase = Phase::Frames;
        }
        let event = self.take(frame, head, out, now)?;
        Ok(Received { consumed, event })
    }

    fn take<'a>(
        &mut self,
        frame: Frame<'a>,
        head: &'a mut HeadBuf,
        out: &mut Vec<u8>,
        now: Duration,
    ) -> Result<Option<Event<'a>>, Fault> {
        if let Some(block) = &self.block {
            match frame {
                Frame::Continuation { stream, .. } if stream == block.stream => {}
                _ => return Err(Fault::InterruptedHeaders),
            }
        }
        match frame {
            Frame::Data { stream, data, flow, end_stream } => {
                self.take_data(stream, data, flow, end_stream, out, now)
            }
            Frame::Headers { stream, block, dependency, end_stream, end_headers } => {
                let self_dependency = dependency.is_some_and(|dependency| dependency.on == stream);
                if end_headers {
                    return self.take_block(stream, block, end_stream, self_dependency, head, out, now);
                }
                if block.is_empty() {
                    self.charge(Cost::EmptyFrame, now)?;
                }
                let bytes = block.to_vec();
                self.block = Some(Box::new(Block { stream, end_stream, self_dependency, bytes }));
                Ok(None)
            }
            Frame::Continuation { block, end_headers, .. } => {
                self.take_continuation(block, end_headers, head, out, now)
            }
            Frame::Priority { stream, dependency } => {
                self.charge(Cost::Priority, now)?;
                match dependency.on == stream {
                    true if self.streams.get(stream).is_some() => {
                        self.reset_for(stream, Fault::SelfDependency, out, now)
                    }
                    true => Err(Fault::SelfDependency),
                    false => Ok(None),
                }
            }
            Frame::Reset { stream, code } => {
                if self.is_idle(stream) {
                    return Err(Fault::IdleStream);
                }
                let Some(closed) = self.streams.close(stream) else {
                    self.charge(Cost::UselessFrame, now)?;
                    return Ok(None);
                };
                if self.role == Role::Server && closed.sending != Half::Ended {
                    self.charge(Cost::CancelledRequest, now)?;
                }
                Ok(Some(Event::Reset { stream, code, fault: None }))
            }
            Frame::Settings(parameters) => self.take_settings(parameters, out, now).map(Some),
            Frame::SettingsAck if self.ours_acknowledged => {
                self.charge(Cost::UselessFrame, now)?;
                Ok(None)
            }
            Frame::SettingsAck => {
                self.ours_acknowledged = true;
                self.decoder.set_table_size(self.ours.header_table_size);
                let by = i64::from(self.ours.initial_window_size) - i64::from(DEFAULT_WINDOW);
                self.streams.iter_mut().for_each(|stream| stream.receive_window.change(by));
                Ok(Some(Event::SettingsAcknowledged))
            }
            Frame::PushPromise { .. } => Err(Fault::Push),
            Frame::Ping { ack: true, data } => {
                self.charge(Cost::Ping, now)?;
                Ok(Some(Event::Pong(data)))
            }
            Frame::Ping { ack: false, data } => {
                self.charge(Cost::Ping, now)?;
                let before = out.len();
                encode::ping(out, data, true);
                self.replied(before, out)?;
                Ok(None)
            }
            Frame::GoAway { last_stream, code, .. } => {
                self.charge(Cost::Settings, now)?;
                if self.peer_going_away.is_some_and(|before| last_stream > before) {
                    return Err(Fault::RaisedGoAway);
                }
                self.peer_going_away = Some(last_stream);
                if self.role == Role::Client {
                    self.streams.close_above(last_stream);
                }
                Ok(Some(Event::GoAway { last_stream, code }))
            }
            Frame::WindowUpdate { stream, increment } => self.take_window_update(stream, increment, out, now),
            Frame::PriorityUpdate { stream, value } => self.take_priority_update(stream, value, now),
            Frame::Unknown { .. } => {
                self.charge(Cost::UselessFrame, now)?;
                Ok(None)
            }
        }
    }

    fn take_data<'a>(
        &mut self,
        id: u32,
        data: &'a [u8],
        flow: u32,
        end_stream: bool,
        out: &mut Vec<u8>,
        now: Duration,
    ) -> Result<Option<Event<'a>>, Fault> {
        if self.is_idle(id) {
            return Err(Fault::IdleStream);
        }
        self.receive_window.take(flow)?;
        let Some(stream) = self.streams.get_mut(id) else {
            if !self.is_ignored(id) {
                return Err(Fault::ClosedStream);
            }
            // A server may have filled a whole window before it knew of the reset, which costs no more than if it were wanted.
            if self.role == Role::Server || data.is_empty() {
                self.charge(Cost::UselessFrame, now)?;
            }
            self.release(id, flow, out);
            return Ok(None);
        };
        let len = data.len() as u64;
        let left = stream.announced.map(|announced| announced.checked_sub(len));
        let fault = match stream.receiving {
            Half::Ended => Some(Fault::HalfClosedStream),
            Half::Head => Some(Fault::MalformedMessage),
            Half::Body if stream.receive_window.take(flow).is_err() => Some(Fault::WindowExceeded),
            Half::Body if left == Some(None) => Some(Fault::ContentLengthMismatch),
            Half::Body if end_stream && left.flatten().is_some_and(|left| left > 0) => {
                Some(Fault::ContentLengthMismatch)
            }
            Half::Body => None,
        };
        if let Some(fault) = fault {
            let event = self.reset_for(id, fault, out, now)?;
            self.release(id, flow, out);
            return Ok(event);
        }
        stream.announced = left.flatten();
        if end_stream {
            stream.receiving = Half::Ended;
        }
        if data.is_empty() && !end_stream {
            self.charge(Cost::EmptyFrame, now)?;
        }
        // The caller knows nothing of padding.
        self.release(id, flow - data.len() as u32, out);
        self.close_if_ended(id);
        if data.is_empty() && !end_stream {
            return Ok(None);
        }
        Ok(Some(Event::Data { stream: id, data, end_stream }))
    }

    fn take_continuation<'a>(
        &mut self,
        part: &[u8],
        end_headers: bool,
        head: &'a mut HeadBuf,
        out: &mut Vec<u8>,
        now: Duration,
    ) -> Result<Option<Event<'a>>, Fault> {
        let Some(mut block) = self.block.take() else { return Err(Fault::UnexpectedContinuation) };
        let short = part.len() < SHORT_CONTINUATION && !end_headers;
        self.charge(if short { Cost::ShortContinuation } else { Cost::Continuation }, now)?;
        if block.bytes.len() + part.len() > self.limits.head.saturating_mul(MAX_BLOCK_GROWTH) {
            return Err(Fault::HeaderBlockTooLarge);
        }
        block.bytes.extend_from_slice(part);
        if !end_headers {
            self.block = Some(block);
            return Ok(None);
        }
        let Block { stream, end_stream, self_dependency, bytes } = *block;
        self.take_block(stream, &bytes, end_stream, self_dependency, head, out, now)
    }

    /// A whole header block. Whatever becomes of its stream, the block is decoded, because later ones build on
    /// it (RFC 9113 §4.3).
    #[allow(clippy::too_many_arguments, reason = "the parts of a block, and what every frame needs")]
    fn take_block<'a>(
        &mut self,
        id: u32,
        block: &[u8],
        end_stream: bool,
        self_dependency: bool,
        head: &'a mut HeadBuf,
        out: &mut Vec<u8>,
        now: Duration,
    ) -> Result<Option<Event<'a>>, Fault> {
        let fault = match self.streams.get(id) {
            Some(_) if self_dependency => Some(Fault::SelfDependency),
            Some(stream) if stream.receiving == Half::Ended => Some(Fault::HalfClosedStream),
            Some(stream) if stream.receiving == Half::Body && !end_stream => Some(Fault::MalformedMessage),
            Some(_) => None,
            None if self.role == Role::Server && id.is_multiple_of(2) => return Err(Fault::WrongParity),
            None if self.is_idle(id) && self.role == Role::Client => return Err(Fault::IdleStream),
            None if self.is_idle(id) => {
                self.highest = id;
                self.new_stream_fault(id, self_dependency)
            }
            None if self.is_ignored(id) => {
                self.skip_block(block, head)?;
                self.charge(Cost::UselessFrame, now)?;
                return Ok(None);
            }
            None if self.streams.ended_lately(id) => return Err(Fault::ClosedStream),
            None => return Err(Fault::SkippedStream),
        };
        if let Some(fault) = fault {
            self.skip_block(block, head)?;
            self.early_priority(id);
            if fault == Fault::GoingAway {
                // GOAWAY has refused the request; the peer may send it again on another connection.
                self.streams.remember_reset(id);
                self.charge(Cost::UselessFrame, now)?;
                return Ok(None);
            }
            return self.reset_for(id, fault, out, now);
        }
        match self.streams.get(id).map(|stream| (stream.receiving, stream.method)) {
            None => self.take_request(id, block, end_stream, head, out, now),
            Some((Half::Head, method)) => self.take_response(id, method, block, end_stream, head, out, now),
            Some(_) => self.take_trailers(id, block, head, out, now),
        }
    }

    /// Why a client's new stream is refused, if it is.
    fn new_stream_fault(&self, id: u32, self_dependency: bool) -> Option<Fault> {
        if self.going_away.is_some_and(|last| id > last) {
            Some(Fault::GoingAway)
        } else if self.streams.len() >= self.ours.max_concurrent_streams as usize {
            Some(Fault::TooManyStreams)
        } else {
            self_dependency.then_some(Fault::SelfDependency)
        }
    }

    fn take_request<'a>(
        &mut self,
        id: u32,
        block: &[u8],
        end_stream: bool,
        head: &'a mut HeadBuf,
        out: &mut Vec<u8>,
        now: Duration,
    ) -> Result<Option<Event<'a>>, Fault> {
        let connect = self.ours.enable_connect_protocol;
        let read = request::read(&mut self.decoder, block, end_stream, connect, &self.limits, head)?;
        let early = self.early_priority(id);
        let mut stream = self.new_stream(id, Method::Get, Half::Head);
        stream.receiving = if end_stream { Half::Ended } else { Half::Body };
        let request = match read {
            Ok(request) => request,
            Err(refusal) if refusal.status() == 400 => return self.malformed(id, refusal, out, now),
            Err(refusal) => {
                self.streams.open(stream);
                return Ok(Some(Event::Refused { stream: id, refusal }));
            }
        };
        let field = request.head.fields.get(Name::Priority);
        let priority = early.or_else(|| field.map(Priority::parse)).unwrap_or_default();
        stream.method = request.head.method;
        stream.announced = request.content_length;
        stream.priority = priority;
        self.streams.open(stream);
        Ok(Some(Event::Request { stream: id, request, priority, end_stream }))
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of a block, and what every frame needs")]
    fn take_response<'a>(
        &mut self,
        id: u32,
        method: Method,
        block: &[u8],
        end_stream: bool,
        head: &'a mut HeadBuf,
        out: &mut Vec<u8>,
        now: Duration,
    ) -> Result<Option<Event<'a>>, Fault> {
        let read = response::read(&mut self.decoder, block, end_stream, method, &self.limits, head)?;
        let response = match read {
            Ok(response) => response,
            Err(refusal) => return self.malformed(id, refusal, out, now),
        };
        if let Some(stream) = self.streams.get_mut(id)
            && !response.is_interim()
        {
            stream.receiving = if end_stream { Half::Ended } else { Half::Body };
            stream.announced = if response.has_body { response.content_length } else { Some(0) };
        } else {
            self.charge(Cost::EmptyFrame, now)?;
        }
        self.close_if_ended(id);
        Ok(Some(Event::Response { stream: id, response, end_stream }))
    }

    fn take_trailers<'a>(
        &mut self,
        id: u32,
        block: &[u8],
        head: &'a mut HeadBuf,
        out: &mut Vec<u8>,
        now: Duration,
    ) -> Result<Option<Event<'a>>, Fault> {
        let fields = match trailers::read(&mut self.decoder, block, &self.limits, head)? {
            Ok(fields) => fields,
            Err(refusal) => return self.malformed(id, refusal, out, now),
        };
        let Some(stream) = self.streams.get_mut(id) else { return Ok(None) };
        if stream.announced.is_some_and(|left| left > 0) {
            return self.reset_for(id, Fault::ContentLengthMismatch, out, now);
        }
        stream.receiving = Half::Ended;
        self.close_if_ended(id);
        Ok(Some(Event::Trailers { stream: id, fields }))
    }

    fn malformed<'a>(
        &mut self,
        id: u32,
        refusal: Refusal,
        out: &mut Vec<u8>,
        now: Duration,
    ) -> Result<Option<Event<'a>>, Fault> {
        self.reset_for(id, Fault::MalformedMessage, out, now)?;
        Ok(Some(Event::Malformed { stream: id, refusal }))
    }

    /// Decodes a block for the sake of the table only.
    fn skip_block(&mut self, block: &[u8], head: &mut HeadBuf) -> Result<(), Fault> {
        trailers::read(&mut self.decoder, block, &self.limits, head).map(|_| ())
    }

    fn take_settings<'a>(
        &mut self,
        parameters: Parameters<'_>,
        out: &mut Vec<u8>,
        now: Duration,
    ) -> Result<Event<'a>, Fault> {
        self.charge(Cost::Settings, now)?;
        let before = self.theirs;
        for (nth, parameter) in parameters.enumerate() {
            // A usual frame has fewer.
            if nth >= 16 {
                self.charge(Cost::UselessFrame, now)?;
            }
            self.theirs.apply(parameter)?;
            // A size of zero in between counts too (RFC 7541 §4.2).
            self.table_update_due |= self.theirs.header_table_size < before.header_table_size.min(4096);
        }
        if self.role == Role::Client && self.theirs.enable_push && !before.enable_push {
            return Err(Fault::InvalidSetting);
        }
        let by = i64::from(self.theirs.initial_window_size) - i64::from(before.initial_window_size);
        if by != 0 {
            self.streams.iter_mut().try_for_each(|stream| stream.send_window.change(by))?;
        }
        let at = out.len();
        encode::settings_ack(out);
        self.replied(at, out)?;
        Ok(Event::SettingsChanged)
    }

    fn take_window_update<'a>(
        &mut self,
        id: u32,
        increment: u32,
        out: &mut Vec<u8>,
        now: Duration,
    ) -> Result<Option<Event<'a>>, Fault> {
        if increment < SMALL_INCREMENT {
            self.charge(Cost::SmallWindowUpdate, now)?;
        }
        if id == 0 {
            if increment == 0 {
                return Err(Fault::ZeroIncrement);
            }
            self.send_window.change(increment.into())?;
            return Ok(Some(Event::WindowOpened { stream: 0 }));
        }
        if self.is_idle(id) {
            return Err(Fault::IdleStream);
        }
        let Some(stream) = self.streams.get_mut(id) else {
            // Sent before the peer knew of the end, most likely.
            self.charge(Cost::SmallWindowUpdate, now)?;
            return Ok(None);
        };
        if increment == 0 {
            return self.reset_for(id, Fault::ZeroIncrement, out, now);
        }
        if stream.send_window.change(increment.into()).is_err() {
            return self.reset_for(id, Fault::WindowOverflow, out, now);
        }
        Ok(Some(Event::WindowOpened { stream: id }))
    }

    fn take_priority_update<'a>(
        &mut self,
        id: u32,
        value: &[u8],
        now: Duration,
    ) -> Result<Option<Event<'a>>, Fault> {
        (0..=value.len() / PRIORITY_VALUE).try_for_each(|_| self.charge(Cost::Priority, now))?;
        if self.role == Role::Client || id.is_multiple_of(2) {
            return Err(Fault::InvalidPriorityUpdate);
        }
        let priority = Priority::parse(value);
        if let Some(stream) = self.streams.get_mut(id) {
            stream.priority = priority;
            return Ok(Some(Event::PriorityChanged { stream: id, priority }));
        }
        if self.is_idle(id) {
            self.early_priority(id);
            if self.early_priorities.len() < MAX_EARLY_PRIORITIES {
                self.early_priorities.push((id, priority));
            }
        }
        Ok(None)
    }

    /// Takes the priority that arrived before its stream was opened, and forgets those of streams before it,
    /// which can never be opened.
    fn early_priority(&mut self, id: u32) -> Option<Priority> {
        let found = self.early_priorities.iter().find(|(early, _)| *early == id).map(|(_, found)| *found);
        let highest = self.highest;
        self.early_priorities.retain(|(early, _)| *early > highest && *early != id);
        found
    }

    pub(super) fn new_stream(&self, id: u32, method: Method, receiving: Half) -> Stream {
        Stream {
            id,
            sending: Half::Head,
            receiving,
            method,
            send_window: SendWindow::new(self.theirs.initial_window_size),
            receive_window: ReceiveWindow::new(self.initial_receive_window()),
            announced: None,
            priority: Priority::default(),
        }
    }

    /// Whether the stream was never opened. Pushed streams, of even identifiers, never are.
    fn is_idle(&self, id: u32) -> bool {
        id.is_multiple_of(2) || id > self.highest
    }

    /// Whether frames on this closed stream are ignored.
    fn is_ignored(&self, id: u32) -> bool {
        self.streams.was_reset(id) || self.peer_going_away.is_some_and(|last| id > last)
    }
}
