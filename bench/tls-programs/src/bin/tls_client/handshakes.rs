//! Connections that end after their handshake: in a closed loop, or at a rate.

use crate::link::{Link, Progress, Shared};
use crate::options::Options;
use crate::settings::TICKETS;
use crate::tally::Tally;
use crate::{Failure, wait_for_start};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long handshakes are waited for after the last one began.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn run(options: &Options) -> Result<Tally, Failure> {
    let mut shared = Shared::new(options)?;
    let mut tally = Tally::of(prime(&mut shared, options)?);
    wait_for_start()?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
    let mut under_way: HashMap<u64, (Link, Instant, bool)> = HashMap::new();
    let start = Instant::now();
    let until = start + Duration::from_secs_f64(options.seconds);
    let mut begun = 0;
    loop {
        let now = Instant::now();
        while Instant::now() < until && under_way.len() < options.connections && is_due(options, start, begun)
        {
            let link = Link::connect(&shared)?;
            epoll::add(&epoll, &link.socket, epoll::EventData::new_u64(begun), epoll::EventFlags::IN)?;
            under_way.insert(begun, (link, Instant::now(), false));
            begun += 1;
        }
        if now >= until + PATIENCE || now >= until && under_way.is_empty() {
            break;
        }
        let most = if options.rate > 0.0 { Duration::from_secs_f64(0.5 / options.rate) } else { PATIENCE };
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), Some(&Timespec::try_from(most)?))?;
        for event in &events {
            let id = event.data.u64();
            let Some((link, began, has_ended)) = under_way.get_mut(&id) else { continue };
            let progress = link.receive(&mut shared).and_then(|progress| {
                if !*has_ended && !link.is_handshaking() {
                    *has_ended = true;
                    tally.add(began.elapsed());
                    tally.resumed += usize::from(link.is_resumed());
                    link.end()?;
                }
                Ok(progress)
            });
            match progress {
                Ok(Progress::Waiting | Progress::Answered) => continue,
                Ok(Progress::Ended) if *has_ended => {}
                Ok(Progress::Ended) => tally.fail("the server ended a handshake"),
                Err(error) => tally.fail(error),
            }
            under_way.remove(&id);
        }
    }
    for _ in under_way {
        tally.fail("a connection did not end");
    }
    tally.seconds = start.elapsed().as_secs_f64();
    Ok(tally)
}

fn is_due(options: &Options, start: Instant, begun: u64) -> bool {
    options.rate == 0.0 || start.elapsed().as_secs_f64() >= begun as f64 / options.rate
}

/// Connections with a request each: the response comes after the tickets. Returns what they negotiated.
fn prime(shared: &mut Shared, options: &Options) -> Result<String, Failure> {
    let mut links = Vec::new();
    // All at once, because one that follows another would use its ticket.
    for _ in 0..if options.is_resumed { options.connections.min(TICKETS) } else { 1 } {
        let mut link = Link::connect(shared)?;
        link.ask(shared)?;
        links.push(link);
    }
    for link in &mut links {
        link.socket.set_nonblocking(false)?;
        link.await_response(shared)?;
    }
    Ok(links[0].negotiated())
}
