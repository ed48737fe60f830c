//! A connection, plain or with TLS, and the response that it waits for.

use crate::options::Options;
use crate::settings::HOST;
use crate::{Failure, settings};
use rustls::{ClientConfig, ClientConnection, HandshakeKind};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

/// More than any head.
const MAX_HEAD: usize = 8 * 1024;

/// What all links share.
pub(crate) struct Shared {
    port: u16,
    request: Vec<u8>,
    body: usize,
    config: Option<Arc<ClientConfig>>,
    received: Vec<u8>,
    opened: Vec<u8>,
}

impl Shared {
    pub(crate) fn new(options: &Options) -> Result<Shared, Failure> {
        Ok(Shared {
            port: options.port,
            request: format!("GET {} HTTP/1.1\r\nHost: {HOST}\r\n\r\n", options.path).into_bytes(),
            body: options.body,
            config: if options.is_plain { None } else { Some(settings::config(options)?) },
            received: vec![0; 128 * 1024],
            opened: vec![0; 32 * 1024],
        })
    }
}

pub(crate) struct Link {
    pub(crate) socket: TcpStream,
    pub(crate) tls: Option<ClientConnection>,
    head: Vec<u8>,
    /// The bytes of the body that are missing; `None` before the end of the head.
    missing: Option<usize>,
}

/// What a link has come to.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Progress {
    Waiting,
    /// The response has arrived as a whole.
    Answered,
    /// The server has ended the connection.
    Ended,
}

impl Link {
    /// Connects, and begins the handshake.
    pub(crate) fn connect(shared: &Shared) -> Result<Link, Failure> {
        let socket = TcpStream::connect(("127.0.0.1", shared.port))?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let tls = match &shared.config {
            Some(config) => Some(ClientConnection::new(config.clone(), HOST.try_into()?)?),
            None => None,
        };
        let mut link = Link { socket, tls, head: Vec::new(), missing: None };
        link.flush()?;
        Ok(link)
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    pub(crate) fn is_resumed(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.handshake_kind() == Some(HandshakeKind::Resumed))
    }

    /// The suite and the group.
    pub(crate) fn negotiated(&self) -> String {
        let Some(tls) = &self.tls else { return String::new() };
        let suite = tls.negotiated_cipher_suite().map(|suite| format!("{:?}", suite.suite()));
        let group = tls.negotiated_key_exchange_group().map(|group| format!("{:?}", group.name()));
        format!("{} {}", suite.unwrap_or_default(), group.unwrap_or_default())
    }

    /// Sends the request; the handshake may still be under way.
    pub(crate) fn ask(&mut self, shared: &Shared) -> Result<(), Failure> {
        self.head.clear();
        self.missing = None;
        match &mut self.tls {
            Some(tls) => tls.writer().write_all(&shared.request)?,
            None => self.socket.write_all(&shared.request)?,
        }
        self.flush()
    }

    /// Ends our side in order. What the server has still to send is read before the socket is closed, because
    /// data that nobody reads becomes a reset.
    pub(crate) fn end(&mut self) -> Result<(), Failure> {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        self.flush()?;
        Ok(self.socket.shutdown(Shutdown::Write)?)
    }

    /// Reads what has arrived.
    pub(crate) fn receive(&mut self, shared: &mut Shared) -> Result<Progress, Failure> {
        let Shared { received, opened, body, .. } = shared;
        let count = match self.socket.read(received) {
            Ok(0) => return Ok(Progress::Ended),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Progress::Waiting),
            Err(error) => return Err(error.into()),
        };
        let mut rest = &received[..count];
        let mut progress = Progress::Waiting;
        if self.tls.is_none() {
            return self.take(rest, *body);
        }
        while !rest.is_empty() {
            let Some(tls) = &mut self.tls else { break };
            tls.read_tls(&mut rest)?;
            if let Err(error) = tls.process_new_packets() {
                self.flush()?;
                return Err(error.into());
            }
            while let Some(count) = self.read_opened(opened)? {
                if self.take(&opened[..count], *body)? == Progress::Answered {
                    progress = Progress::Answered;
                }
            }
        }
        self.flush()?;
        Ok(progress)
    }

    /// Waits for the response on a socket that blocks.
    pub(crate) fn await_response(&mut self, shared: &mut Shared) -> Result<(), Failure> {
        loop {
            match self.receive(shared)? {
                Progress::Waiting => {}
                Progress::Answered => return Ok(()),
                Progress::Ended => return Err("the server closed a connection without a response".into()),
            }
        }
    }

    fn read_opened(&mut self, opened: &mut [u8]) -> Result<Option<usize>, Failure> {
        match self.tls.as_mut().map(|tls| tls.reader().read(opened)) {
            Some(Ok(0)) | None => Ok(None),
            Some(Ok(count)) => Ok(Some(count)),
            Some(Err(error)) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Some(Err(error)) => Err(error.into()),
        }
    }

    /// Takes a piece of a response, whose status and length must be right.
    fn take(&mut self, mut data: &[u8], body: usize) -> Result<Progress, Failure> {
        let mut missing = match self.missing {
            Some(missing) => missing,
            None => {
                let before = self.head.len();
                self.head.extend_from_slice(data);
                let Some(end) = self.head.windows(4).position(|window| window == b"\r\n\r\n") else {
                    return if self.head.len() > MAX_HEAD {
                        Err("a head does not end".into())
                    } else {
                        Ok(Progress::Waiting)
                    };
                };
                data = &data[end + 4 - before..];
                if !self.head.starts_with(b"HTTP/1.1 200 ") || content_length(&self.head[..end]) != Some(body)
                {
                    let head = String::from_utf8_lossy(&self.head[..end]);
                    return Err(format!("an unexpected response: {head}").into());
                }
                body
            }
        };
        missing = missing.checked_sub(data.len()).ok_or("more data than the response has")?;
        self.missing = Some(missing);
        Ok(if missing == 0 { Progress::Answered } else { Progress::Waiting })
    }

    fn flush(&mut self) -> Result<(), Failure> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                tls.write_tls(&mut self.socket)?;
            }
        }
        Ok(())
    }
}

fn content_length(head: &[u8]) -> Option<usize> {
    let head = std::str::from_utf8(head).ok()?;
    let mut fields = head.split("\r\n").filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    value.trim().parse().ok()
}
