//! FastCGI as an application sees it: requests read from a connection, and records to answer with.

use crate::{Conn, Listener};

/// Output.
pub const STDOUT: u8 = 6;
/// Error messages.
pub const STDERR: u8 = 7;
/// The end of a response.
pub const END: u8 = 3;

/// A request that came to an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgiRequest {
    /// Its number on the connection.
    pub id: u16,
    /// Whether the connection is to be kept after it.
    pub keep: bool,
    /// The parameters in their order.
    pub params: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl CgiRequest {
    /// The value of a parameter that came exactly once.
    ///
    /// # Panics
    /// If it came more often.
    #[track_caller]
    pub fn param(&self, name: &str) -> Option<&str> {
        let values: Vec<_> = self.params.iter().filter(|(sent, _)| sent == name).collect();
        assert!(values.len() < 2, "{name} came more than once: {values:?}");
        values.first().map(|(_, value)| &**value)
    }

    /// A response to it: `output` and its end.
    pub fn response(&self, output: &str) -> Vec<u8> {
        let end = record_of(self.id, END, &[0; 8], 0);
        [record_of(self.id, STDOUT, output.as_bytes(), 0), end].concat()
    }
}

impl Listener {
    /// Where it listens, as the address of a FastCGI backend.
    pub fn fcgi_url(&self) -> String {
        match self.url().strip_prefix("http") {
            Some(rest) => format!("fcgi{rest}"),
            None => format!("fcgi+{}", self.url()),
        }
    }
}

impl Conn {
    /// Reads a record of request 1: its type and its content.
    #[track_caller]
    pub fn record(&mut self) -> (u8, Vec<u8>) {
        let (id, kind, content) = self.record_of_any();
        assert_eq!(id, 1, "a record of request 1");
        (kind, content)
    }

    /// Reads a record: the request that it is of, its type and its content.
    #[track_caller]
    fn record_of_any(&mut self) -> (u16, u8, Vec<u8>) {
        let mut read =
            |bytes| self.try_read(bytes).unwrap_or_else(|trouble| panic!("no record: {trouble:?}"));
        let header = read(8);
        assert_eq!(header[0], 1, "the version in {header:?}");
        let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let content = read(number(4).into());
        read(header[6].into());
        (number(2), header[1], content)
    }

    /// Reads the beginning of a request and its parameters, and leaves the body unread.
    #[track_caller]
    pub fn cgi_head(&mut self) -> CgiRequest {
        let (id, kind, begin) = self.record_of_any();
        assert_eq!((kind, begin.len(), &begin[..2]), (1, 8, &[0, 1][..]), "BEGIN_REQUEST to a responder");
        let mut params = Vec::new();
        loop {
            let (of, kind, content) = self.record_of_any();
            assert_eq!((of, kind), (id, 4), "PARAMS");
            if content.is_empty() {
                break;
            }
            params.append(&mut pairs(&content));
        }
        CgiRequest { id, keep: begin[2] & 1 == 1, params, body: Vec::new() }
    }

    /// Reads a whole request.
    #[track_caller]
    pub fn cgi_request(&mut self) -> CgiRequest {
        let mut request = self.cgi_head();
        loop {
            let (of, kind, mut content) = self.record_of_any();
            assert_eq!((of, kind), (request.id, 5), "STDIN");
            if content.is_empty() {
                return request;
            }
            request.body.append(&mut content);
        }
    }

    /// Sends `output` and the end of the response to request 1.
    #[track_caller]
    pub fn cgi_response(&mut self, output: &str) -> &mut Conn {
        self.send([record(STDOUT, output), end(0)].concat())
    }
}

/// A record of request 1.
pub fn record(kind: u8, content: impl AsRef<[u8]>) -> Vec<u8> {
    record_of(1, kind, content.as_ref(), 0)
}

/// A record with padding, of any request.
pub fn record_of(id: u16, kind: u8, content: &[u8], padding: u8) -> Vec<u8> {
    let [id_high, id_low] = id.to_be_bytes();
    let [high, low] = u16::try_from(content.len()).expect("a record has at most 65535 bytes").to_be_bytes();
    let mut record = vec![1, kind, id_high, id_low, high, low, padding, 0];
    record.extend_from_slice(content);
    record.resize(record.len() + usize::from(padding), 0);
    record
}

/// The record that ends a response. `status` is that of the protocol: 0 is success, 2 means overloaded.
pub fn end(status: u8) -> Vec<u8> {
    record(END, [0, 0, 0, 0, status, 0, 0, 0])
}

/// The name-value pairs in a record, none of which is cut off: php-fpm reads each record by itself.
#[track_caller]
fn pairs(content: &[u8]) -> Vec<(String, String)> {
    let mut rest = content;
    let mut pairs = Vec::new();
    while !rest.is_empty() {
        let (name, after) = length(rest);
        let (value, after) = length(after);
        let (text, after) = after.split_at(name + value);
        let text = String::from_utf8_lossy(text);
        pairs.push((text[..name].to_owned(), text[name..].to_owned()));
        rest = after;
    }
    pairs
}

fn length(bytes: &[u8]) -> (usize, &[u8]) {
    match *bytes {
        [short @ ..128, ref rest @ ..] => (short.into(), rest),
        [a, b, c, d, ref rest @ ..] => (u32::from_be_bytes([a & 0x7f, b, c, d]) as usize, rest),
        _ => panic!("a length is cut off"),
    }
}
