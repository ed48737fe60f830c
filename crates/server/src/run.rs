//! Runs the accelerator until it is stopped.

use std::io;
use std::net::SocketAddr;

use sandarac_config::Config;
use sandarac_net::ListenAddress;

use crate::asked_takeover;
use crate::check;
use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::human::{count, lasting};
use crate::panic_report;
use crate::predecessor::{self, Wait};
use crate::process::{Daemon, Drained, Process};
use crate::service_manager;
use crate::signals::{Event, Signals};
use crate::startup_messages;
use crate::stderr::print_line;
use crate::takeover::Takeover;
use crate::tls::TlsFaults;
use crate::user;

/// Runs the accelerator that `config` describes until it is stopped. A reload uses `args`.
pub fn run(config: Config, args: &RunArgs) -> Result<(), Failure> {
    panic_report::install();
    if let Some(warning) = user::warning(&config) {
        print_line(warning);
    }
    user::become_user(&config, args.config.as_deref())?;
    let failed = |what: &str, error: io::Error| Failure::Failed(format!("{what}: {error}"));
    let takeover = match Takeover::of_parent().map_err(|error| failed("cannot take over", error))? {
        None if args.take_over => asked_takeover::ask(&config)?,
        takeover => takeover,
    };
    let inherited = service_manager::sockets().map_err(|error| Failure::Failed(error.to_string()))?;
    let credentials = check::credentials(&config)?.map(|(credentials, warnings)| {
        warnings.iter().for_each(print_line);
        credentials
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed("cannot start the runtime", error))?;
    runtime.block_on(async {
        let mut signals = Signals::listen().map_err(|error| failed("cannot listen for signals", error))?;
        let mut running = None;
        if takeover.is_none() {
            match predecessor::wait_for(&config, &mut signals).await {
                Wait::Over { running: other } => running = other,
                Wait::Stopped => return Ok(()),
            }
        }
        let process = Process::start(
            config,
            Some(Daemon { args: Some(args.clone()), credentials, inherited, takeover }),
        )
        .map_err(|error| match error.get_ref() {
            Some(faults) if faults.is::<TlsFaults>() => Failure::Usage(faults.to_string()),
            _ => Failure::Failed(format!("{error}{}", hint(&error, running))),
        })?;
        if let Some(admin) = process.admin() {
            startup_messages::announce(process.listeners(), admin);
        }
        service_manager::ready();
        loop {
            let event = tokio::select! {
                event = signals.next() => event,
                () = process.handed_over() => return outlive(&process, &mut signals).await,
            };
            match event {
                // The result is reported on standard error, and there is no other caller.
                Event::Reload => drop(process.reload()),
                Event::Reopen => process.reopen_logs(),
                Event::Upgrade => process.upgrade(),
                Event::Drain => break,
                Event::Exit => return Ok(()),
            }
        }
        service_manager::stopping();
        print_line("sandarac: draining; once more to exit at once");
        drain(&process, &mut signals).await?;
        process.save_cache();
        Ok(())
    })
}

/// Ends when every exchange has ended, when the time for that is over, or when it is told so once more.
async fn drain(process: &Process, signals: &mut Signals) -> Result<(), Failure> {
    tokio::select! {
        drained = process.drain() => report(drained),
        () = exit(signals, process) => return Err(Failure::Failed("ended before the drain was over".to_owned())),
    }
    Ok(())
}

/// The rest of the life of a process from which another one has taken over.
async fn outlive(process: &Process, signals: &mut Signals) -> Result<(), Failure> {
    tokio::select! {
        drained = process.outlive() => {
            report(drained);
            return Ok(());
        }
        () = process.has_to_end() => {}
        _ = next_stop(signals, process) => {}
    }
    drain(process, signals).await
}

fn report(drained: Drained) {
    if let Drained::Late { time, connections } = drained {
        print_line(format_args!(
            "sandarac: the drain time of {} has passed: {} {} cut off",
            lasting(time.as_secs_f64()),
            count(connections as u64, "connection"),
            if connections == 1 { "was" } else { "were" }
        ));
    }
}

/// The hint for a start that failed while another process, if any, is `running` with the same admin interface.
fn hint(error: &io::Error, running: Option<u32>) -> String {
    match running.filter(|_| error.kind() == io::ErrorKind::AddrInUse) {
        Some(pid) => format!(
            "; Sandarac is running already, as process {pid} (`sandarac status`): to change its configuration, \
             `sandarac reload`; to replace it, `kill {pid}` and start again, which waits until it has drained"
        ),
        None => String::new(),
    }
}

/// Waits for the second event that stops the process.
async fn exit(signals: &mut Signals, process: &Process) {
    while next_stop(signals, process).await != Event::Exit {}
}

/// The next event that stops the process. The others are acted on.
async fn next_stop(signals: &mut Signals, process: &Process) -> Event {
    loop {
        match signals.next().await {
            event @ (Event::Exit | Event::Drain) => return event,
            Event::Reopen => process.reopen_logs(),
            // These are refused, with a message.
            Event::Reload => drop(process.reload()),
            Event::Upgrade => process.upgrade(),
        }
    }
}

/// Starts an accelerator for the demo; returns its address, and a guard that stops it when dropped.
pub fn accelerate(listen: SocketAddr, origin: SocketAddr) -> io::Result<(SocketAddr, Process)> {
    let text = format!(
        "[[listen]]\naddress = \"{listen}\"\n[pool.site]\nbackends = [\"http://{origin}\"]\n\
         [[route]]\nmatch = \"=/today\"\npool = \"site\"\nfragments = true\ncache = {{ ignore_cookies = [\"*\"] }}\n\
         [[route]]\npool = \"site\"\n"
    );
    let (config, _) =
        Config::from_toml("the demo", &text).map_err(|errors| io::Error::other(errors.to_string()))?;
    let process = Process::start(config, None)?;
    match process.listeners()[..] {
        [ListenAddress::Tcp(address)] => Ok((address, process)),
        _ => Err(io::Error::other("a TCP address was asked for")),
    }
}
