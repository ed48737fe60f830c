//! The output of an application, read from its records: a head, then a body.

use sandarac_message::{Method, Span};
use sandarac_net::Conn;
use sandarac_wire::fastcgi::head::{self, CgiHead, Rewritten};
use sandarac_wire::fastcgi::{Decoded, Decoder, EndStatus, Event, Refusal, RequestId};
use sandarac_wire::h1::{self, Limits};

/// The output of one request.
pub(crate) struct Output {
    decoder: Decoder,
    /// Bytes of output at the front of the connection's data.
    ready: usize,
    ended: Option<EndStatus>,
    /// The beginning of a head that is not complete.
    head: Vec<u8>,
}

/// What has arrived.
pub(crate) enum Next {
    /// [`Output::ready`] bytes of output.
    Ready,
    /// The response has ended.
    End(EndStatus),
    /// More must be read first.
    More,
}

impl Output {
    /// That of the request with this number.
    pub(crate) fn new(id: RequestId) -> Output {
        Output { decoder: Decoder::new(id), ready: 0, ended: None, head: Vec::new() }
    }

    /// Reads records up to the next output. `stderr` gets the error messages before it.
    pub(crate) fn next(&mut self, conn: &mut Conn, mut stderr: impl FnMut(&[u8])) -> Result<Next, Refusal> {
        loop {
            if self.ready > 0 {
                return Ok(Next::Ready);
            }
            if let Some(status) = self.ended {
                return Ok(Next::End(status));
            }
            let Decoded { consumed, event } = self.decoder.decode(conn.data())?;
            match event {
                Event::NeedMore => {
                    conn.consume(consumed);
                    return Ok(Next::More);
                }
                Event::Stdout(range) => {
                    conn.consume(range.start);
                    self.ready = range.len();
                }
                Event::Stderr(range) => {
                    stderr(&conn.data()[range]);
                    conn.consume(consumed);
                }
                Event::End(status) => {
                    conn.consume(consumed);
                    self.ended = Some(status);
                }
            }
        }
    }

    /// Bytes of output at the front of the connection's data.
    pub(crate) fn ready(&self) -> usize {
        self.ready
    }

    /// The bytes of output up to the end of the response, if all of it has arrived.
    pub(crate) fn rest(&self, conn: &Conn) -> Option<u64> {
        let (mut decoder, mut bytes) = (self.decoder.clone(), self.ready as u64);
        let mut data = &conn.data()[self.ready..];
        loop {
            let Decoded { consumed, event } = decoder.decode(data).ok()?;
            data = &data[consumed..];
            match event {
                Event::NeedMore => return None,
                Event::Stdout(range) => bytes += range.len() as u64,
                Event::Stderr(_) => {}
                Event::End(status) => return (status == EndStatus::Complete).then_some(bytes),
            }
        }
    }

    /// Notes that the caller consumes `bytes` of the output.
    pub(crate) fn taken(&mut self, bytes: usize) {
        self.ready -= bytes;
    }

    /// Whether the application has handled the request, and all of its output was taken.
    pub(crate) fn is_complete(&self) -> bool {
        self.ended == Some(EndStatus::Complete)
    }

    /// The head, if the output that is ready completes it. Uses that output up to its end.
    pub(crate) fn head<'a>(
        &mut self,
        conn: &mut Conn,
        limits: &Limits,
        spans: &'a mut Vec<Span>,
        memory: &'a mut Rewritten,
        method: Method,
    ) -> Result<Option<CgiHead<'a>>, Refusal> {
        let before = self.head.len();
        let output = &conn.data()[..self.ready];
        let (end, parsed) = if before == 0
            && let Some(end) = head::end(output, 0)
        {
            (end, head::parse(output, end, limits, spans, memory, method)?)
        } else {
            self.head.extend_from_slice(output);
            let Some(end) = head::end(&self.head, before) else {
                conn.consume(self.ready);
                self.ready = 0;
                let too_large = self.head.len() >= limits.head;
                return if too_large { Err(Refusal::Head(h1::Refusal::HeadTooLarge)) } else { Ok(None) };
            };
            let parsed = head::parse(&self.head, end, limits, spans, memory, method)?;
            (end - before, parsed)
        };
        self.head = Vec::new();
        conn.consume(end);
        self.ready -= end;
        Ok(Some(parsed))
    }
}
