//! A name server that says what the test wants.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A name server on a free UDP port of 127.0.0.1 that gives every name the same addresses, and the same SRV records. It stops
/// when dropped.
pub struct NameServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

/// An SRV record (RFC 2782): priority, weight, port and target.
pub type Service<'a> = (u16, u16, u16, &'a str);

struct State {
    addresses: Vec<Ipv4Addr>,
    ipv6: Vec<Ipv6Addr>,
    /// Whether questions for IPv4 addresses fail.
    without_ipv4: bool,
    /// The data of SRV records.
    services: Vec<Vec<u8>>,
    /// What it answers with: 0, or an error.
    code: u8,
    ttl: u32,
    silent: bool,
    garbled: bool,
    questions: usize,
    stopping: bool,
}

impl NameServer {
    /// Answers with `addresses` and a TTL of so many seconds.
    pub fn new(addresses: &[Ipv4Addr], ttl: u32) -> NameServer {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = socket.local_addr().expect("a bound socket has an address");
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout can be set");
        let state = State {
            addresses: addresses.to_vec(),
            ipv6: Vec::new(),
            without_ipv4: false,
            services: Vec::new(),
            code: 0,
            ttl,
            silent: false,
            garbled: false,
            questions: 0,
            stopping: false,
        };
        let state = Arc::new(Mutex::new(state));
        let told = Arc::clone(&state);
        thread::spawn(move || {
            let mut buffer = [0; 512];
            loop {
                let received = socket.recv_from(&mut buffer);
                let mut state = told.lock().expect("no name server panics");
                if state.stopping {
                    return;
                }
                let Ok((len, peer)) = received else { continue };
                state.questions += 1;
                if let Some(answer) = answer(&buffer[..len], &state).filter(|_| !state.silent) {
                    let _ = socket.send_to(&answer, peer);
                }
            }
        });
        NameServer { address, state }
    }

    /// Where it listens, as the setting takes it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on, names have these addresses.
    pub fn move_to(&self, addresses: &[Ipv4Addr]) {
        self.state.lock().expect("no name server panics").addresses = addresses.to_vec();
    }

    /// From now on, names have these IPv6 addresses as well.
    pub fn serve_ipv6(&self, addresses: &[Ipv6Addr]) {
        self.state.lock().expect("no name server panics").ipv6 = addresses.to_vec();
    }

    /// From now on, questions for IPv4 addresses fail.
    pub fn lose_ipv4(&self) {
        self.state.lock().expect("no name server panics").without_ipv4 = true;
    }

    /// From now on, names have these SRV records.
    pub fn serve_at(&self, services: &[Service<'_>]) {
        let data = |(priority, weight, port, target): &Service<'_>| {
            let mut data = [priority, weight, port].map(|number| number.to_be_bytes()).concat();
            for label in target.split('.').filter(|label| !label.is_empty()) {
                data.push(label.len() as u8);
                data.extend(label.bytes());
            }
            data.push(0);
            data
        };
        self.state.lock().expect("no name server panics").services = services.iter().map(data).collect();
    }

    /// From now on, answers with this code: 0 that there is what there is, 2 that it failed, 3 that there is no such name.
    pub fn answer_with(&self, code: u8) {
        self.state.lock().expect("no name server panics").code = code;
    }

    /// From now on, says nothing.
    pub fn fall_silent(&self) {
        self.state.lock().expect("no name server panics").silent = true;
    }

    /// From now on, answers with something that is none, another each time; or with what there is again.
    pub fn garble(&self, garbled: bool) {
        self.state.lock().expect("no name server panics").garbled = garbled;
    }

    /// How many questions there were.
    pub fn questions(&self) -> usize {
        self.state.lock().expect("no name server panics").questions
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.state.lock().expect("no name server panics").stopping = true;
    }
}

/// The answer to a message with one question (RFC 1035 §4.1); to anything but types A, AAAA and SRV, that there is nothing of
/// it.
fn answer(query: &[u8], state: &State) -> Option<Vec<u8>> {
    let mut end = 12;
    while *query.get(end)? != 0 {
        end += 1 + usize::from(query[end]);
    }
    let question = query.get(12..end + 5)?;
    let (kind, records) = match question {
        _ if state.code != 0 => (0, Vec::new()),
        _ if state.garbled => (0, Vec::new()),
        [.., 0, 1, 0, 1] => (1, state.addresses.iter().map(|address| address.octets().to_vec()).collect()),
        [.., 0, 28, 0, 1] => (28, state.ipv6.iter().map(|address| address.octets().to_vec()).collect()),
        [.., 0, 33, 0, 1] => (33, state.services.clone()),
        _ => (0, Vec::new()),
    };
    let (code, records) = match kind {
        1 if state.without_ipv4 => (2, Vec::new()),
        _ => (state.code, records),
    };
    // The same id; a response, authoritative, recursion desired and available; one question.
    let mut answer = [&query[..2], &[0x85, 0x80 | code, 0, 1]].concat();
    answer.extend((records.len() as u16).to_be_bytes());
    answer.extend([0; 4]);
    answer.extend(question);
    if state.garbled {
        // One record is promised; there is a label of a kind that there is not (RFC 1035 §4.1.4), and no more.
        answer[7] = 1;
        answer.push(0x40 | state.questions as u8 & 0x3f);
    }
    for record in records {
        // The name of the question; the type, class IN.
        answer.extend([0xc0, 12, 0, kind, 0, 1]);
        answer.extend(state.ttl.to_be_bytes());
        answer.extend((record.len() as u16).to_be_bytes());
        answer.extend(record);
    }
    Some(answer)
}
