//! `sandarac demo`: the site, the accelerator in front of it, the comparison, and then both for a browser.

use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::time::Duration;

use super::site::{Options, Site};
use super::{Plan, compare};
use crate::cli::DemoArgs;
use crate::failure::Failure;
use crate::signals::{Event, Signals};

/// The preferred addresses of a demo's parts.
const SITE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8000);
const ACCELERATOR: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8080);

/// Starts an accelerator on `listen` in front of the site at `origin`; returns its address, and a guard that stops it
/// when dropped.
pub trait Accelerate {
    /// A guard that stops the accelerator when dropped.
    type Guard;

    /// Starts it. Fails with [`ErrorKind::AddrInUse`] if the address is taken.
    fn start(&self, listen: SocketAddr, origin: SocketAddr) -> io::Result<(SocketAddr, Self::Guard)>;
}

impl<G, F: Fn(SocketAddr, SocketAddr) -> io::Result<(SocketAddr, G)>> Accelerate for F {
    type Guard = G;

    fn start(&self, listen: SocketAddr, origin: SocketAddr) -> io::Result<(SocketAddr, G)> {
        self(listen, origin)
    }
}

/// `demo`.
pub fn demo(args: &DemoArgs, accelerate: impl Accelerate) -> Result<(), Failure> {
    let site = start("the sample site", args.site, SITE, |address| Site::start(address, Options::default()))?;
    let origin = site.address();
    let (address, _accelerator) =
        start("the accelerator", args.listen, ACCELERATOR, |address| accelerate.start(address, origin))?;
    print_text(&format!(
        "The sample site     http://{origin}/   a slow application: its pages take 100 to 300 ms\n\
         The accelerator     http://{address}/   sandarac before it\n\n"
    ))?;
    let mut sound = true;
    if args.seconds > 0 {
        let plan = Plan::lasting(Duration::from_secs(args.seconds));
        let comparison = compare(&site, address, plan, |line| {
            let _ = print_text(&format!("{line}\n"));
        })?;
        print_text(&format!("\n{comparison}\n"))?;
        sound = comparison.is_sound();
    }
    if !args.exit {
        print_text(&format!(
            "Both stay up: open http://{address}/ in a browser; the footer of each page names the server that answered it.\n\
             Ctrl-C ends them.\n"
        ))?;
        wait_for_the_end()?;
    }
    match sound {
        true => Ok(()),
        false => Err(Failure::Failed("some answers were wrong; the table above says which".to_owned())),
    }
}

/// Starts a part on `asked`; without it, on `usual`, or on a free port if that is taken.
fn start<T>(
    what: &str,
    asked: Option<SocketAddr>,
    usual: SocketAddr,
    start: impl Fn(SocketAddr) -> io::Result<T>,
) -> Result<T, Failure> {
    let started = match (asked, start(asked.unwrap_or(usual))) {
        (None, Err(error)) if error.kind() == ErrorKind::AddrInUse => start(SocketAddr::new(usual.ip(), 0)),
        (_, started) => started,
    };
    started.map_err(|error| Failure::Failed(format!("cannot start {what}: {error}")))
}

fn print_text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn wait_for_the_end() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut signals = Signals::listen()?;
        while signals.next().await == Event::Reload {}
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usual_port_that_is_taken_gives_way_to_a_free_one_and_an_asked_one_does_not() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let bind = |address: SocketAddr| std::net::TcpListener::bind(address);
        let other = start("it", None, address, bind).unwrap();
        assert_ne!(other.local_addr().unwrap().port(), address.port());
        let refused = start("it", Some(address), address, bind).unwrap_err();
        assert!(refused.to_string().contains("cannot start it"), "{refused}");
    }
}
