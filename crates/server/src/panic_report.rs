//! Reports and counts panics, wherever in the process they happen.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;

use sandarac_net::{PanicPart, panics};

use crate::admin::PanicCount;
use crate::stderr::print_line;

/// Counts every panic of the process from now on, and reports each on one line of standard error, with a backtrace if
/// `RUST_BACKTRACE` asks for one.
pub(crate) fn install() {
    std::panic::set_hook(Box::new(|info| {
        let part = panics::count();
        print_line(line(part, std::thread::current().name(), info));
        let backtrace = Backtrace::capture();
        if backtrace.status() == BacktraceStatus::Captured {
            print_line(backtrace);
        }
    }));
}

fn line(part: PanicPart, thread: Option<&str>, info: &PanicHookInfo<'_>) -> String {
    let place = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    // The message may have been made of what came from the network.
    let message = info.payload_as_str().unwrap_or("no message").escape_debug();
    let (part, thread) = (part.name(), thread.unwrap_or("without a name"));
    format!(
        "sandarac: {part} panicked at {place} (thread {thread}): {message}; a fault in Sandarac, please report it"
    )
}

/// The parts of the process that have panicked, and how often.
pub(crate) fn counts() -> Vec<PanicCount> {
    let of = |&part| PanicCount { part: PanicPart::name(part).to_owned(), count: panics::counted(part) };
    PanicPart::ALL.iter().map(of).filter(|counted| counted.count > 0).collect()
}
