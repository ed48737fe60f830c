//! Clients that make the process hold as much as they can, beside the ordinary ones.

use std::any::Any;

use sandarac_test_support::http2::{END_HEADERS, END_STREAM, Http2, INITIAL_WINDOW, frame, kind};
use sandarac_test_support::{Conn, get, hpack};

use super::Chores;
use crate::site::{HOST, LARGE_RANK};
use crate::verdict::Count;

/// Requests on one connection of HTTP/2.
const REQUESTS: u32 = 60;

/// Bytes of a head, or of a body, that does not come to its end.
const UNFINISHED: usize = 30_000;

impl Chores {
    /// Asks for pages of which nothing is taken, or not to the end, and leaves.
    pub(super) fn hoard(&mut self) {
        while self.rest(100, 2000) {
            let hoards: Vec<Box<dyn Any>> =
                (0..self.random.within(1, 8)).filter_map(|_| self.begin_hoard()).collect();
            self.rest(100, 3000);
            drop(hoards);
        }
    }

    fn begin_hoard(&mut self) -> Option<Box<dyn Any>> {
        let hoard: Box<dyn Any> = match self.random.within(0, 4) {
            0 => {
                let large = get(&self.stage.site.entries[LARGE_RANK].target).host(HOST);
                Box::new(self.begin(&large.to_bytes())?)
            }
            1 => {
                let page = self.target();
                let head =
                    format!("GET {page} HTTP/1.1\r\nHost: {HOST}\r\nX-Long: {}", "x".repeat(UNFINISHED));
                Box::new(self.begin(head.as_bytes())?)
            }
            2 => {
                let page = self.target();
                let head = format!("PUT {page} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 1000000\r\n\r\n");
                Box::new(self.begin(&[head.as_bytes(), &[b'u'; UNFINISHED]].concat())?)
            }
            _ => Box::new(self.begin_amplified()?),
        };
        self.stage.verdict.count(Count::Hoards);
        Some(hoard)
    }

    fn target(&mut self) -> String {
        let page = self.stage.site.choose(&mut self.random);
        self.stage.site.entries[page].target.clone()
    }

    /// A connection over HTTP/1.1 for which the system holds little, on which `bytes` were sent.
    fn begin(&self, bytes: &[u8]) -> Option<Conn> {
        let mut conn = Conn::try_to(&self.stage.entrances.plain).ok()?;
        conn.shrink_receive_buffer();
        conn.try_send(bytes).ok()?;
        Some(conn)
    }

    /// A connection over HTTP/2 whose heads are far longer than what is sent.
    fn begin_amplified(&mut self) -> Option<Http2> {
        let conn = Conn::try_to(&self.stage.entrances.plain).ok()?;
        let mut client = Http2::try_over(conn, &[(INITIAL_WINDOW, 0)]).ok()?;
        let mut bytes = Vec::new();
        for number in 0..REQUESTS {
            let path = self.target();
            let (cookie, usual) =
                ("hoard=1", [(":method", "GET"), (":scheme", "http"), (":authority", HOST)]);
            let mut fields = usual.to_vec();
            fields.extend([(":path", path.as_str()), ("cookie", cookie)]);
            let block = hpack::amplified(&fields, number == 0);
            bytes.extend(frame(kind::HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, block));
        }
        client.try_send(bytes).ok()?;
        Some(client)
    }
}
