//! Clients that upgrade a connection, and see that it ends at the other side as it did at theirs.

use std::time::Duration;

use sandarac_test_support::Trouble;

use super::{Line, Visitor};
use crate::ask::{Ask, Echo, Wants, show};
use crate::behaviour::Behaviour;
use crate::oracle::Sent;
use crate::origin::echoed;
use crate::origin::tunnel::{FAREWELL, PIECE, PLAN, Plan, farewell};
use crate::page::Page;
use crate::pool::Pool;
use crate::stage::End;
use crate::verdict::{Count, Rule};

/// How long the end of a tunnel may take to reach the origin.
const END_PATIENCE: Duration = Duration::from_secs(5);

impl Visitor {
    pub(super) fn tunnel(&mut self) {
        // Of a Unix socket only TCP would see that it was reset.
        let address = self.stage.entrances.plain.clone();
        let Some(mut line) = self.connect_to("plain", &address) else { return };
        let nonce = self.stage.nonce();
        let bytes = if self.random.percent(20) { 0 } else { self.random.within(1, 200_000) };
        let plan = Plan {
            by_client: self.random.percent(50),
            by_reset: self.random.percent(50),
            bytes: bytes as usize,
        };
        let echo = Echo { nonce, length: bytes, behaviour: Behaviour::Plain, address: None, sum: None };
        let ask = Ask::get(Pool::Tunnel, format!("/tunnel/{bytes}"), Wants::Echo(echo))
            .with("Connection", "Upgrade")
            .with("Upgrade", "websocket")
            .with("X-Nonce", nonce.to_string())
            .with(PLAN, plan.text());
        let sent = Sent::now(ask, &self.stage);
        [Count::Requests, Count::Tunnels].into_iter().for_each(|count| self.stage.verdict.count(count));
        line.requests += 1;
        let asked = self.describe(&line, &sent.ask);
        let page = echoed(sent.ask.place(), bytes, &nonce.to_string());
        if let Err((expected, came)) = self.run(line, &sent, plan, &page)
            && !self.stage.disturbances.explain(sent.at)
        {
            let lines =
                [("asked", asked), ("came", came), ("expected", expected), ("when", self.when(&sent))];
            self.stage.verdict.violation(Rule::Tunnel, &lines);
        }
        self.stage.ledger.forget(nonce);
    }

    /// Opens the tunnel, sends the bytes of `page` and reads them back, and ends it. An error is what was expected, and what
    /// came.
    fn run(&self, line: Line, sent: &Sent, plan: Plan, page: &Page) -> Result<(), (String, String)> {
        let mut line = line;
        let nonce = sent.ask.nonce().unwrap_or_default();
        let came = |trouble: Trouble| format!("{trouble:?}");
        let _ = line.conn.try_send(sent.ask.to_bytes());
        let head = line.conn.try_response_head().map_err(|trouble| ("101".to_owned(), came(trouble)))?;
        if head.status != 101 || head.field("x-nonce") != Some(nonce.to_string().as_str()) {
            return Err((format!("101 with the nonce {nonce}"), show(&head)));
        }
        let mut done = 0;
        while done < plan.bytes {
            let piece = page.bytes(done as u64, PIECE);
            let expected = || format!("{} bytes of {page} back, from byte {done}", piece.len());
            line.conn.try_send(&piece).map_err(|error| (expected(), error.to_string()))?;
            let back = line.conn.try_read(piece.len()).map_err(|trouble| (expected(), came(trouble)))?;
            page.check(done as u64, &back)
                .map_err(|fault| (expected(), format!("other bytes: {fault:?}")))?;
            done += piece.len();
        }
        match (plan.by_client, plan.by_reset) {
            (true, true) => {
                line.conn.reset();
                self.see_at_origin(nonce, &End::Reset(plan.bytes as u64))
            }
            (true, false) => {
                line.conn.finish();
                self.see_at_origin(nonce, &End::Orderly(plan.bytes as u64))?;
                // The origin still has something to say.
                let expected = || "the farewell of the origin".to_owned();
                let bytes =
                    line.conn.try_read(FAREWELL as usize).map_err(|trouble| (expected(), came(trouble)))?;
                let checked = farewell(nonce).check_whole(&bytes);
                checked.map_err(|fault| (expected(), format!("other bytes: {fault:?}")))?;
                see_end(&mut line, false)
            }
            (false, true) => see_end(&mut line, true),
            (false, false) => {
                see_end(&mut line, false)?;
                let _ = line.conn.try_send(farewell(nonce).bytes(0, usize::MAX));
                line.conn.finish();
                self.see_at_origin(nonce, &End::Orderly(plan.bytes as u64 + FAREWELL))
            }
        }
    }

    /// Sees that the tunnel has ended like this for the origin.
    fn see_at_origin(&self, nonce: u64, wanted: &End) -> Result<(), (String, String)> {
        match self.stage.ledger.tunnel_end(nonce, END_PATIENCE) {
            Some(end) if end == *wanted => Ok(()),
            seen => Err((format!("the origin to see {wanted:?}"), format!("{seen:?}"))),
        }
    }
}

/// Sees that the tunnel ends, with a reset or in order.
fn see_end(line: &mut Line, reset: bool) -> Result<(), (String, String)> {
    match line.conn.try_read(1) {
        Err(Trouble::Reset(rest)) if reset && rest.is_empty() => Ok(()),
        Err(Trouble::Closed(rest)) if !reset && rest.is_empty() => Ok(()),
        other => Err((if reset { "a reset" } else { "an orderly end" }.to_owned(), format!("{other:?}"))),
    }
}
