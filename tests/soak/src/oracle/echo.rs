//! Answers that carry the nonce of their request.

use super::{Outcome, Received, Sent, body, claimed};
use crate::ask::Echo;
use crate::behaviour::Behaviour;
use crate::origin::{echoed, upload};
use crate::pool::Pool;
use crate::stage::Stage;
use crate::verdict::{Complaint, Count, Rule};

pub(super) fn judge(
    stage: &Stage,
    sent: &Sent,
    echo: &Echo,
    received: &Received,
) -> Result<Outcome, Complaint> {
    let response = &received.response;
    let place = sent.ask.place();
    let wanted = echoed(place.clone(), echo.length, &echo.nonce.to_string());
    if response.field("x-nonce") != Some(echo.nonce.to_string().as_str()) {
        let complaint = Complaint::new(Rule::Nonce, format!("the nonce {}", echo.nonce));
        return excuse(stage, sent, echo, complaint);
    }
    let page = claimed(response, &place, &wanted.owner)?;
    let status = if echo.behaviour == Behaviour::Refuses { 417 } else { 200 };
    if response.status != status {
        return Err(Complaint::new(Rule::Status, format!("{status}")));
    }
    if let Some(sum) = &echo.sum {
        let early = matches!(echo.behaviour, Behaviour::Early | Behaviour::EarlyCloses | Behaviour::Refuses);
        let wanted = if early { upload::UNREAD } else { sum };
        if response.field(upload::SUM) != Some(wanted) {
            return Err(Complaint::new(Rule::Upload, format!("the sum {wanted}")));
        }
    }
    let told = response.field("x-client").unwrap_or_default();
    if echo.address.as_ref().is_some_and(|address| address != told) {
        return Err(Complaint::new(Rule::Address, format!("{:?} in X-Forwarded-For", echo.address)));
    }
    if page != wanted {
        return Err(Complaint::new(Rule::Body, format!("{wanted}")));
    }
    body(sent, &page, received)
}

/// Lets a wrong answer pass where a stray response crossed the request, which nobody can tell from the answer.
fn excuse(stage: &Stage, sent: &Sent, echo: &Echo, complaint: Complaint) -> Result<Outcome, Complaint> {
    if matches!(sent.ask.pool, Pool::Stray | Pool::Upload) && stage.ledger.is_excused(echo.nonce) {
        stage.verdict.count(Count::Excused);
        return Ok(Outcome::Whole);
    }
    Err(complaint)
}
