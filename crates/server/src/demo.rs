//! The demo: a slow sample site, a bounded load on it with and without the accelerator, and the comparison.

mod command;
pub mod content;
pub mod load;
mod pages;
pub mod report;
mod session;
pub mod site;
mod visitors;

use std::io;
use std::net::SocketAddr;

use crate::human::lasting;

pub use command::{Accelerate, demo};
pub use load::Plan;
pub use report::{Comparison, Run};
pub use site::Site;

/// Drives `plan` against the site at its own address and then against `accelerator`, which MUST be an empty cache in
/// front of that site. `progress` gets messages, a line at a time.
pub fn compare(
    site: &Site,
    accelerator: SocketAddr,
    plan: Plan,
    mut progress: impl FnMut(&str),
) -> io::Result<Comparison> {
    let time = lasting(plan.duration.as_secs_f64());
    let mut run = |target, what: &str| {
        progress(&format!("{} visitors for {time} {what} …", plan.visitors()));
        let before = site.requests();
        let measured = load::drive(target, &plan)?;
        Ok::<_, io::Error>(Run { measured, site_requests: site.requests() - before })
    };
    let alone = run(site.address(), "on the site alone")?;
    let accelerated = run(accelerator, "through the accelerator, its memory empty at first")?;
    Ok(Comparison { plan, alone, accelerated })
}
