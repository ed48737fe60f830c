//! Clients with sessions that stick to a backend.

use super::Visitor;
use crate::oracle::Sent;
use crate::pool::Pool;
use crate::verdict::{Complaint, Count, Rule};

/// The name of the cookie, as the configuration has it.
const COOKIE: &str = "home";

impl Visitor {
    pub(super) fn stick(&mut self) {
        let Some(mut line) = self.connect() else { return };
        for _ in 0..self.random.within(2, 8) {
            let mut ask = self.echo(Pool::Sticky, &line);
            if let Some((cookie, _)) = &self.home {
                ask = ask.with("Cookie", format!("{COOKIE}={cookie}"));
            }
            let sent = Sent::now(ask, &self.stage);
            let home_serves = self.home.as_ref().is_some_and(|(_, home)| self.serves(home));
            self.stage.verdict.count(Count::Requests);
            let _ = line.conn.try_send(sent.ask.to_bytes());
            line.requests += 1;
            let received = match self.read_response(&mut line, &sent) {
                Ok(received) => received,
                Err(trouble) => return self.unanswered(&line, &sent, &trouble),
            };
            self.consider(&line, &sent, &received);
            let response = &received.response;
            let (Some(backend), true) = (response.field("x-backend"), received.end.is_ok()) else { return };
            let disturbances = &self.stage.disturbances;
            let excused = disturbances.explain(sent.at) || disturbances.of_pool(Pool::Sticky, sent.at);
            self.stage.ledger.answered(backend);
            if let Some((_, home)) = &self.home
                && home != backend
                && home_serves
                && !excused
            {
                let complaint = Complaint::new(Rule::Sticky, format!("an answer of {home}"));
                self.report(&line, &sent, complaint, format!("an answer of {backend}"));
            }
            let cookie = response.field("set-cookie").and_then(|cookie| {
                cookie.strip_prefix(&format!("{COOKIE}="))?.split(';').next().map(str::to_owned)
            });
            match cookie {
                Some(cookie) => self.home = Some((cookie, backend.to_owned())),
                // Another backend answered, and the session goes home again.
                None if self.home.is_some() => {}
                None => {
                    let complaint = Complaint::new(Rule::Sticky, "a cookie that names the backend");
                    return self.report(&line, &sent, complaint, crate::ask::show(response));
                }
            }
            if response.fields.list("connection").contains("close") {
                return;
            }
        }
    }

    /// Whether a backend has answered since one was down. One that comes back gets a single request, and others only when that
    /// was answered.
    fn serves(&self, backend: &str) -> bool {
        let back = self.stage.disturbances.last_of_pool(Pool::Sticky);
        let answered = self.stage.ledger.last_answer(backend);
        back.is_none_or(|back| answered.is_some_and(|answered| answered > back))
    }
}
