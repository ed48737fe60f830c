//! `sandarac top`: the activity of the process, once a second.

mod log_sample;
mod readings;
mod screen;

use std::io::{self, IsTerminal, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::admin::Stats;
use crate::admin::client::AdminClient;
use crate::cli::TopArgs;
use crate::failure::Failure;
use log_sample::LogSample;
use readings::Readings;
use screen::render;

/// How many entries of the log are sampled in a second to find the busiest URLs.
const SAMPLED_PER_SECOND: u64 = 2000;

const INTERVAL: Duration = Duration::from_secs(1);

/// The size of the screen without a terminal.
const DEFAULT_SIZE: (usize, usize) = (120, 40);

/// `top`.
pub fn top(args: &TopArgs) -> Result<(), Failure> {
    let client = args.process.client()?;
    let mut readings = Readings { status: client.status()?, before: client.stats()?, now: Stats::default() };
    let sample = watch(&client)?;
    let mut terminal = Terminal::open()?;
    loop {
        let until = Instant::now() + INTERVAL;
        if terminal.as_mut().map_or_else(|| Ok(wait(until)), |terminal| terminal.quits_before(until))? {
            return Ok(());
        }
        readings.status = client.status()?;
        readings.now = client.stats()?;
        let (width, height) = terminal.as_ref().map_or(DEFAULT_SIZE, Terminal::size);
        let screen = {
            let mut sample = sample.lock().unwrap_or_else(PoisonError::into_inner);
            let screen = render(&readings, &sample, width, height);
            sample.fade();
            screen
        };
        let Some(terminal) = &mut terminal else {
            io::stdout().write_all(screen.as_bytes())?;
            return Ok(());
        };
        terminal.show(&screen)?;
        readings.before = readings.now;
    }
}

fn wait(until: Instant) -> bool {
    thread::sleep(until.saturating_duration_since(Instant::now()));
    false
}

/// Collects entries of the log on its own thread, until either process closes it.
fn watch(client: &AdminClient) -> Result<Arc<Mutex<LogSample>>, Failure> {
    let lines = client.log(Some(SAMPLED_PER_SECOND), &[])?;
    let sample = Arc::new(Mutex::new(LogSample::default()));
    let collected = Arc::clone(&sample);
    thread::Builder::new().name("top".to_owned()).spawn(move || {
        for line in lines.map_while(Result::ok) {
            collected.lock().unwrap_or_else(PoisonError::into_inner).add(&line);
        }
    })?;
    Ok(sample)
}

/// A terminal in raw mode, restored when this is dropped.
struct Terminal {
    /// The modes to restore; `None` if there is no terminal for keys.
    before: Option<Termios>,
}

impl Terminal {
    /// The terminal of standard output; `None` if it is not one.
    fn open() -> Result<Option<Terminal>, Failure> {
        if !io::stdout().is_terminal() {
            return Ok(None);
        }
        let stdin = io::stdin();
        if !stdin.is_terminal() {
            return Ok(Some(Terminal { before: None }));
        }
        let before = tcgetattr(&stdin).map_err(io::Error::from)?;
        let mut modes = before.clone();
        // Ctrl-C arrives as a key, so that the modes are always restored.
        modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        tcsetattr(&stdin, OptionalActions::Now, &modes).map_err(io::Error::from)?;
        Ok(Some(Terminal { before: Some(before) }))
    }

    fn size(&self) -> (usize, usize) {
        match tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
            _ => DEFAULT_SIZE,
        }
    }

    /// Waits until then; `true` as soon as the user quits.
    fn quits_before(&mut self, until: Instant) -> Result<bool, Failure> {
        if self.before.is_none() {
            return Ok(wait(until));
        }
        let stdin = io::stdin();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            let timeout = Timespec { tv_sec: 0, tv_nsec: left.as_nanos().min(999_999_999) as _ };
            let ready = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&timeout));
            match ready {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => {
                    let mut keys = [0; 64];
                    let count = stdin.lock().read(&mut keys)?;
                    let leave = |key: &u8| matches!(key, b'q' | b'Q' | 0x03 | 0x04);
                    if count == 0 || keys[..count].iter().any(leave) {
                        return Ok(true);
                    }
                }
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }

    /// Draws over the last screen, line by line, so that nothing flickers.
    fn show(&mut self, screen: &str) -> Result<(), Failure> {
        let lines: Vec<_> = screen.lines().collect();
        let mut out = io::stdout().lock();
        write!(out, "\x1b[H{}\x1b[K\x1b[J", lines.join("\x1b[K\n"))?;
        out.flush()?;
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // The terminal may be gone; then there is nothing to restore.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
        let _ = writeln!(io::stdout());
    }
}
