//! The demo: a slow sample site, a bounded load over it with and without the accelerator, and the comparison.

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
use std::time::Duration;

pub use command::{Accelerate, demo};
pub use load::Plan;
pub use report::{Comparison, Run};
pub use site::Site;

/// Drives `plan` over the site at its own address and then over `accelerator`, which MUST be a cache before that
/// site, empty so far. `progress` is told what is happening, a line at a time.
pub fn compare(
    site: &Site,
    accelerator: SocketAddr,
    plan: Plan,
    mut progress: impl FnMut(&str),
) -> io::Result<Comparison> {
    let seconds = Duration::as_secs_f64(&plan.duration);
    let mut run = |target, what: &str| {
        progress(&format!("{} visitors for {seconds} seconds {what} …", plan.visitors()));
        let before = site.requests();
        let measured = load::drive(target, &plan)?;
        Ok::<_, io::Error>(Run { measured, site_requests: site.requests() - before })
    };
    let alone = run(site.address(), "on the site alone")?;
    let accelerated = run(accelerator, "through the accelerator, its memory empty at first")?;
    Ok(Comparison { plan, alone, accelerated })
}
