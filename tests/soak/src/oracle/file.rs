//! Files, whole and in parts.

use super::{Outcome, Received, Sent, body, wrong_body};
use crate::ask::Range;
use crate::files;
use crate::stage::Stage;
use crate::verdict::{Complaint, Count, Rule};

pub(super) fn judge(
    stage: &Stage,
    sent: &Sent,
    (number, range): (u64, Option<Range>),
    received: &Received,
) -> Result<Outcome, Complaint> {
    let response = &received.response;
    let page = files::page(number);
    let part = range.map(|range| range.of(page.length));
    stage.verdict.count(Count::Files);
    match (response.status, part) {
        (200, None) => body(sent, &page, received),
        (416, Some(None)) => Ok(Outcome::Whole),
        // A file without content has no range.
        (200, Some(None)) if page.length == 0 => body(sent, &page, received),
        (206, Some(Some((from, to)))) => {
            let wanted = format!("bytes {from}-{to}/{}", page.length);
            if response.field("content-range") != Some(wanted.as_str()) {
                return Err(Complaint::new(Rule::Validator, wanted));
            }
            page.check(from, &response.body).map_err(|fault| wrong_body(&page, &fault))?;
            match &received.end {
                Ok(()) if response.body.len() as u64 != to - from + 1 => {
                    Err(Complaint::new(Rule::Body, format!("{} bytes", to - from + 1)))
                }
                Ok(()) => Ok(Outcome::Whole),
                Err(_) => Ok(Outcome::Cut),
            }
        }
        _ => Err(Complaint::new(Rule::Status, "200, 206 or 416, as the request asks for it")),
    }
}
