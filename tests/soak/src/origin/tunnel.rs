//! The origin's side of a tunnel: an echo that ends as the request asked for.

use sandarac_test_support::{Conn, Request, Trouble};

use super::{After, Server};
use crate::page::Page;
use crate::stage::End;

/// The request field with the plan of a tunnel.
pub(crate) const PLAN: &str = "X-Tunnel";

/// Who ends a tunnel, how, and after how many bytes each way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) by_client: bool,
    pub(crate) by_reset: bool,
    pub(crate) bytes: usize,
}

/// The length of what a side still says when the other has ended in order.
pub(crate) const FAREWELL: u64 = 5000;

/// What a side still says.
pub(crate) fn farewell(nonce: u64) -> Page {
    Page { place: "farewell".to_owned(), version: 0, length: FAREWELL, owner: format!("nonce-{nonce}") }
}

/// What is echoed at a time.
pub(crate) const PIECE: usize = 8 << 10;

impl Plan {
    pub(crate) fn text(self) -> String {
        format!("{} {} {}", self.by_client, self.by_reset, self.bytes)
    }

    fn parse(text: &str) -> Option<Plan> {
        let mut words = text.split(' ');
        Some(Plan {
            by_client: words.next()?.parse().ok()?,
            by_reset: words.next()?.parse().ok()?,
            bytes: words.next()?.parse().ok()?,
        })
    }
}

impl Server {
    pub(super) fn tunnel(&mut self, conn: &mut Conn, request: &Request) -> After {
        let plan = request.field(PLAN).and_then(Plan::parse);
        let nonce = request.field("x-nonce").and_then(|nonce| nonce.parse().ok());
        let (Some(plan), Some(nonce)) = (plan, nonce) else { return After::Closed };
        let head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Nonce: {nonce}\r\n\r\n"
        );
        let mut done = 0;
        let mut echo = || {
            conn.try_send(&head).map_err(|error| error.to_string())?;
            while done < plan.bytes {
                let piece =
                    conn.try_read(PIECE.min(plan.bytes - done)).map_err(|trouble| format!("{trouble:?}"))?;
                conn.try_send(&piece).map_err(|error| error.to_string())?;
                done += piece.len();
            }
            Ok(())
        };
        let echoed: Result<(), String> = echo();
        if let Err(trouble) = echoed {
            self.stage.ledger.tunnel_ended(nonce, End::Wrong(format!("{done} bytes, then {trouble}")));
            return After::Closed;
        }
        let farewell = farewell(nonce).bytes(0, usize::MAX);
        match (plan.by_client, plan.by_reset) {
            (false, true) => return After::Reset,
            (false, false) => {
                conn.finish();
                match conn.try_read(farewell.len()) {
                    Ok(bytes) if bytes == farewell => done += bytes.len(),
                    other => {
                        let end = End::Wrong(format!("{done} bytes, and for a farewell {other:?}"));
                        self.stage.ledger.tunnel_ended(nonce, end);
                        return After::Closed;
                    }
                }
            }
            _ => {}
        }
        let end = match conn.try_read(1) {
            Err(Trouble::Closed(_)) => End::Orderly(done as u64),
            Err(Trouble::Reset(_)) => End::Reset(done as u64),
            other => End::Wrong(format!("{done} bytes, then {other:?}")),
        };
        if plan.by_client && !plan.by_reset {
            let _ = conn.try_send(&farewell);
        }
        self.stage.ledger.tunnel_ended(nonce, end);
        After::Closed
    }
}

#[cfg(test)]
mod tests {
    use super::Plan;

    #[test]
    fn a_plan_is_read_back() {
        let plan = Plan { by_client: true, by_reset: false, bytes: 77 };
        assert_eq!(Plan::parse(&plan.text()), Some(plan));
        assert_eq!(Plan::parse("true"), None);
    }
}
