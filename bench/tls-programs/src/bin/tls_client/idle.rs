//! Connections that are idle after one request each.

use crate::link::{Link, Progress, Shared};
use crate::options::Options;
use crate::tally::Tally;
use crate::{Failure, wait_for_start};
use std::time::Duration;

pub(crate) fn run(options: &Options) -> Result<Tally, Failure> {
    let mut shared = Shared::new(options)?;
    let mut links = Vec::with_capacity(options.connections);
    for _ in 0..options.connections {
        let mut link = Link::connect(&shared)?;
        link.ask(&shared)?;
        link.socket.set_nonblocking(false)?;
        link.await_response(&mut shared)?;
        link.socket.set_nonblocking(true)?;
        links.push(link);
    }
    let mut tally = Tally::of(links.first().map(Link::negotiated).unwrap_or_default());
    wait_for_start()?;
    for link in &mut links {
        match link.receive(&mut shared) {
            Ok(Progress::Ended) => tally.fail("the server closed an idle connection"),
            Ok(_) => tally.add(Duration::ZERO),
            Err(error) => tally.fail(error),
        }
    }
    Ok(tally)
}
