//! Requests on kept connections: in a closed loop, or at a rate.

use crate::link::{Link, Progress, Shared};
use crate::options::Options;
use crate::tally::Tally;
use crate::{Failure, wait_for_start};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long responses are waited for after the last request.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn run(options: &Options) -> Result<Tally, Failure> {
    let mut work = Work::connect(options)?;
    wait_for_start()?;
    if options.rate > 0.0 {
        work.run_at_rate(options)?;
    } else {
        work.run_in_closed_loop(options)?;
    }
    Ok(work.tally)
}

struct Work {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    shared: Shared,
    links: Vec<Link>,
    /// When the request of a link began; `None` where no response is awaited.
    began: Vec<Option<Instant>>,
    tally: Tally,
}

impl Work {
    /// Opens the connections, and completes one request on each.
    fn connect(options: &Options) -> Result<Work, Failure> {
        let mut work = Work {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(256),
            shared: Shared::new(options)?,
            links: Vec::new(),
            began: vec![Some(Instant::now()); options.connections],
            tally: Tally::default(),
        };
        for index in 0..options.connections {
            let mut link = Link::connect(&work.shared)?;
            link.ask(&work.shared)?;
            epoll::add(
                &work.epoll,
                &link.socket,
                epoll::EventData::new_u64(index as u64),
                epoll::EventFlags::IN,
            )?;
            work.links.push(link);
        }
        let until = Instant::now() + PATIENCE;
        let mut missing = options.connections;
        while missing > 0 {
            for index in work.wait(until)? {
                missing -= usize::from(work.receive(index)?);
            }
            if Instant::now() >= until {
                return Err("a connection had no response".into());
            }
        }
        work.tally = Tally::of(work.links[0].negotiated());
        Ok(work)
    }

    fn run_in_closed_loop(&mut self, options: &Options) -> Result<(), Failure> {
        let start = Instant::now();
        let until = start + Duration::from_secs_f64(options.seconds);
        for index in 0..self.links.len() {
            self.ask(index, start)?;
        }
        let mut under_way = self.links.len();
        while under_way > 0 && Instant::now() < until + PATIENCE {
            for index in self.wait(until + PATIENCE)? {
                if self.receive(index)? {
                    let now = Instant::now();
                    if now < until {
                        self.ask(index, now)?;
                    } else {
                        under_way -= 1;
                    }
                }
            }
        }
        self.finish(start, under_way);
        Ok(())
    }

    /// A request begins when it is due, not when a connection is free for it.
    fn run_at_rate(&mut self, options: &Options) -> Result<(), Failure> {
        let start = Instant::now();
        let count = (options.rate * options.seconds) as usize;
        let due = |number: usize| start + Duration::from_secs_f64(number as f64 / options.rate);
        let until = due(count) + PATIENCE;
        let mut free: VecDeque<usize> = (0..self.links.len()).collect();
        let mut asked = 0;
        while (asked < count || free.len() < self.links.len()) && Instant::now() < until {
            while asked < count && due(asked) <= Instant::now() {
                let Some(index) = free.pop_front() else { break };
                self.ask(index, due(asked))?;
                asked += 1;
            }
            let next = if asked < count && !free.is_empty() { due(asked) } else { until };
            for index in self.wait(next)? {
                if self.receive(index)? {
                    free.push_back(index);
                }
            }
        }
        let under_way = self.links.len() - free.len();
        self.finish(start, under_way);
        Ok(())
    }

    fn finish(&mut self, start: Instant, under_way: usize) {
        self.tally.seconds = start.elapsed().as_secs_f64();
        for _ in 0..under_way {
            self.tally.fail("no response");
        }
    }

    fn ask(&mut self, index: usize, began: Instant) -> Result<(), Failure> {
        self.began[index] = Some(began);
        self.links[index].ask(&self.shared)
    }

    /// Whether a link's response is complete. An error ends the run: no server here has a reason for one.
    fn receive(&mut self, index: usize) -> Result<bool, Failure> {
        match self.links[index].receive(&mut self.shared)? {
            Progress::Waiting => Ok(false),
            Progress::Ended => Err("the server closed a kept connection".into()),
            Progress::Answered => {
                if let Some(began) = self.began[index].take() {
                    self.tally.add(began.elapsed());
                }
                Ok(true)
            }
        }
    }

    /// The links with something to read, at `until` none.
    fn wait(&mut self, until: Instant) -> Result<Vec<usize>, Failure> {
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now()))?;
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&left)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.events.iter().map(|event| event.data.u64() as usize).collect())
    }
}
