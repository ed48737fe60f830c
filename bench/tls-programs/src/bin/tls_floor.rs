//! The floor of TLS: the least that a keep-alive HTTP/1.1 server does that uses rustls.
//!
//! Level-triggered epoll, one thread, rustls's unbuffered API over buffers that all connections share. A record
//! of data is taken for a request and is answered with a ready-made response: no parsing, no lookup. Sockets
//! block, so a response is sent in one call.
//!
//! usage: tls_floor PORT BODYBYTES CHAIN.pem KEY.pem

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, UnbufferedStatus, WriteTraffic};
use rustls::{ServerConfig, server::ServerConnectionData};
use std::collections::HashMap;
use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

const LISTENER: u64 = u64::MAX;
const MAX_RECORD: usize = 16 * 1024;
/// More than sealing adds to a record.
const SEALING: usize = 64;
/// Room for the messages of a handshake.
const HANDSHAKE: usize = 32 * 1024;

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, port, body, chain, key] = &arguments[..] else {
        return Err("usage: tls_floor PORT BODYBYTES CHAIN.pem KEY.pem".into());
    };
    let config = config(chain, key)?;
    let response = response(body.parse()?);
    let listener = TcpListener::bind(("127.0.0.1", port.parse()?))?;
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
    let mut connections = HashMap::new();
    let mut buffers = Buffers { input: vec![0; 64 * 1024], output: vec![0; output_bytes(&response)] };
    let mut events = Vec::with_capacity(256);
    let mut next = 0;
    loop {
        epoll::wait(&epoll, spare_capacity(&mut events), None)?;
        for event in events.drain(..) {
            let id = event.data.u64();
            if id != LISTENER {
                let connection: &mut Connection = connections.get_mut(&id).ok_or("an unknown connection")?;
                if !connection.serve(&mut buffers, &response).unwrap_or(false) {
                    connections.remove(&id);
                }
                continue;
            }
            loop {
                let socket = match listener.accept() {
                    Ok((socket, _)) => socket,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(_) => continue,
                };
                socket.set_nodelay(true)?;
                epoll::add(&epoll, &socket, epoll::EventData::new_u64(next), epoll::EventFlags::IN)?;
                let tls = UnbufferedServerConnection::new(config.clone())?;
                connections.insert(next, Connection { socket, tls, rest: Vec::new() });
                next += 1;
            }
        }
    }
}

fn config(chain: &str, key: &str) -> Result<Arc<ServerConfig>, Failure> {
    let chain = CertificateDer::pem_file_iter(chain)?.collect::<Result<_, _>>()?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    config.ticketer = aws_lc_rs::Ticketer::new()?;
    // As many as Sandarac sends.
    config.send_tls13_tickets = 1;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(Arc::new(config))
}

fn response(body: usize) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nServer: origin\r\nContent-Type: text/html\r\nContent-Length: {body}\r\n\
         Last-Modified: Sat, 21 Nov 2026 08:00:12 GMT\r\nETag: \"6b014f8c-400\"\r\n\
         Cache-Control: public, max-age=3600\r\nVia: 1.1 floor\r\nDate: Sat, 21 Nov 2026 08:00:12 GMT\r\n\
         Age: 12\r\nCache-Status: floor; hit; ttl=3000\r\n\r\n"
    );
    let mut response = head.into_bytes();
    response.resize(response.len() + body, b'x');
    response
}

fn output_bytes(response: &[u8]) -> usize {
    HANDSHAKE + response.len() + response.len().div_ceil(MAX_RECORD) * SEALING
}

struct Buffers {
    input: Vec<u8>,
    output: Vec<u8>,
}

struct Connection {
    socket: TcpStream,
    tls: UnbufferedServerConnection,
    /// The part of a record that has arrived.
    rest: Vec<u8>,
}

impl Connection {
    /// Reads once, and answers what was asked. False at the end of the connection.
    fn serve(&mut self, buffers: &mut Buffers, response: &[u8]) -> Result<bool, Failure> {
        let held = self.rest.len();
        buffers.input[..held].copy_from_slice(&self.rest);
        let received = self.socket.read(&mut buffers.input[held..])?;
        if received == 0 {
            return Ok(false);
        }
        let (mut begin, end) = (0, held + received);
        let (mut asked, mut written, mut is_open) = (0, 0, true);
        let output = &mut buffers.output[..];
        loop {
            let UnbufferedStatus { mut discard, state, .. } =
                self.tls.process_tls_records(&mut buffers.input[begin..end]);
            let mut is_done = false;
            match state? {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        discard += record.discard;
                        asked += usize::from(!record.payload.is_empty());
                    }
                }
                ConnectionState::EncodeTlsData(mut message) => {
                    written += message.encode(&mut output[written..])?;
                }
                ConnectionState::TransmitTlsData(message) => message.done(),
                ConnectionState::WriteTraffic(mut traffic) => {
                    for _ in 0..asked {
                        written = seal(&mut traffic, response, output, written)?;
                        self.socket.write_all(&output[..written])?;
                        written = 0;
                    }
                    is_done = true;
                }
                ConnectionState::PeerClosed | ConnectionState::Closed => (is_open, is_done) = (false, true),
                ConnectionState::BlockedHandshake => is_done = true,
                _ => return Err("an unexpected state".into()),
            }
            begin += discard;
            if is_done {
                break;
            }
        }
        self.socket.write_all(&output[..written])?;
        if begin < end || !self.rest.is_empty() {
            self.rest = buffers.input[begin..end].to_vec();
        }
        Ok(is_open)
    }
}

/// Seals `data` behind the first `written` bytes of `output`; returns how many there are then.
fn seal(
    traffic: &mut WriteTraffic<'_, ServerConnectionData>,
    data: &[u8],
    output: &mut [u8],
    mut written: usize,
) -> Result<usize, Failure> {
    for record in data.chunks(MAX_RECORD) {
        written += traffic.encrypt(record, &mut output[written..])?;
    }
    Ok(written)
}
