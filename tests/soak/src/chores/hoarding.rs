//! Clients that make the process hold as much as they can, beside the ordinary ones.

use sandarac_test_support::http2::{END_HEADERS, END_STREAM, Http2, INITIAL_WINDOW, frame, kind};
use sandarac_test_support::{Conn, hpack};

use super::Chores;
use crate::site::HOST;
use crate::verdict::Count;

/// Requests on one connection.
const REQUESTS: u32 = 60;

impl Chores {
    /// Asks for pages of which nothing is taken, by heads that are far longer than what is sent, and leaves.
    pub(super) fn hoard(&mut self) {
        while self.rest(100, 2000) {
            let hoards: Vec<Http2> =
                (0..self.random.within(1, 4)).filter_map(|_| self.begin_hoard()).collect();
            self.rest(100, 3000);
            drop(hoards);
        }
    }

    fn begin_hoard(&mut self) -> Option<Http2> {
        let conn = Conn::try_to(&self.stage.entrances.plain).ok()?;
        let mut client = Http2::try_over(conn, &[(INITIAL_WINDOW, 0)]).ok()?;
        let mut bytes = Vec::new();
        for number in 0..REQUESTS {
            let page = self.stage.site.choose(&mut self.random);
            let path = &self.stage.site.entries[page].target;
            let (cookie, usual) =
                ("hoard=1", [(":method", "GET"), (":scheme", "http"), (":authority", HOST)]);
            let mut fields = usual.to_vec();
            fields.extend([(":path", path.as_str()), ("cookie", cookie)]);
            let block = hpack::amplified(&fields, number == 0);
            bytes.extend(frame(kind::HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, block));
        }
        client.try_send(bytes).ok()?;
        self.stage.verdict.count(Count::Hoards);
        Some(client)
    }
}
