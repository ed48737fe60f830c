//! Files: a request that is answered from a directory tree, where that may wait for a disk.

use super::deliver::synth;
use super::receive::{Verdict, forward};
use crate::Fault;
use crate::downstream::Downstream;
use crate::exchange::state::{Exchange, Sent};
use crate::files::{FileFound, FileRequest, Found, PATIENCE};
use crate::outgoing::Begun;
use crate::report::file_refusal::FileRefusal;
use crate::report::handling::{Course, Detail, Handling};
use crate::report::log_throttle::LogTopic;
use crate::request::received::Received;
use crate::respond::Synthetic;
use sandarac_net::{wall, within};
use sandarac_policy::FileRule;
use std::sync::Arc;

/// What became of a request for a file.
pub(crate) enum FilesEnd {
    /// It was answered.
    Sent(Sent),
    /// There is no file: the pool of the route answers.
    Forward(Verdict),
}

/// The handling of a request that a file answers.
pub(crate) const fn handling() -> Handling {
    Handling { detail: Some(Detail::File), ..Handling::new(Course::File) }
}

/// What is done without a file.
pub(crate) fn without_file(
    received: &Received<'_>,
    request: &sandarac_message::RequestHead<'_>,
    refusal: FileRefusal,
) -> Result<Verdict, Fault> {
    match received.route.forward() {
        Some(to) if refusal.is_absence() => forward(received, request, to),
        _ => Err(Fault::File(refusal)),
    }
}

/// Finds the file, and sends it.
pub(crate) async fn files(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    received: &Received<'_>,
    rule: &Arc<FileRule>,
) -> Result<FilesEnd, Fault> {
    let asked = FileRequest::of(exchange.site, rule, received);
    let late = Fault::File(FileRefusal::Late);
    let found = within(PATIENCE, asked.find()).await;
    let found = found.unwrap_or(Found::Nothing(FileRefusal::Late));
    let sent = match found {
        Found::Nothing(refusal) => {
            if refusal.status() >= 500 {
                complain(exchange, rule, refusal);
            }
            let verdict = without_file(received, &exchange.request, refusal);
            match (verdict, FileRequest::of_page(exchange.site, rule, received)) {
                (Err(fault), Some(asked)) if refusal.status() == 404 => {
                    let Some(Found::File(page)) = within(PATIENCE, asked.find()).await else {
                        return Err(fault);
                    };
                    page_of(exchange, down, fault, &page).await
                }
                (verdict, _) => return verdict.map(FilesEnd::Forward),
            }
        }
        Found::Redirect(answer) => {
            exchange.handling = Handling::new(Course::Synth);
            synth(exchange, down, answer).await
        }
        Found::Listing(listing) => {
            let page = within(PATIENCE, listing.page(&down.client.peer().holder))
                .await
                .ok_or(late)?
                .map_err(Fault::File)?;
            exchange.handling = handling();
            synth(exchange, down, page).await
        }
        Found::File(file) => {
            exchange.restore_range();
            exchange.handling = handling();
            let chosen = file.choose(exchange.request.fields);
            let Begun { status, body } = exchange.begin(down, &mut chosen.outgoing(wall()));
            let (bytes, end) = down.send(exchange.core, chosen.body(body)).await;
            end.count(&exchange.core.counters);
            if end.is_of_file() {
                exchange.handling.detail = Some(Detail::FileBroke);
            }
            Sent { status, bytes }
        }
    };
    Ok(FilesEnd::Sent(sent))
}

/// Answers a request without a file with the page of the route for that.
async fn page_of(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    fault: Fault,
    page: &FileFound,
) -> Sent {
    (exchange.handling.course, exchange.handling.detail) =
        (Course::Failed(fault), Some(Detail::Fault(fault)));
    let answer = Synthetic::fault(&fault, exchange.site.name());
    let chosen = page.choose(exchange.request.fields);
    let begun = exchange.begin(down, &mut chosen.outgoing_as(&answer));
    let (bytes, end) = down.send(exchange.core, chosen.body(begun.body)).await;
    end.count(&exchange.core.counters);
    Sent { status: answer.status, bytes }
}

/// Logs a fault of the system that serves the files.
fn complain(exchange: &Exchange<'_>, rule: &FileRule, refusal: FileRefusal) {
    let root = rule.root.display().to_string();
    let topic = LogTopic::Files(root.clone().into(), refusal.name());
    exchange.core.shared.log_throttled(topic, || format!("files in {root}: {}", refusal.text()));
}
