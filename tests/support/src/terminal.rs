//! A command in a terminal, as a person sees it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::eventually;

/// A command whose standard input, output and error are a terminal of 100 columns and 30 lines. It is killed when dropped.
pub struct Terminal {
    child: Child,
    /// The end of whoever sits before it.
    keyboard: File,
    /// The command's end.
    line: File,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    /// Starts `command` in a terminal of its own.
    pub fn run(mut command: Command) -> Terminal {
        let front = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("the system has terminals");
        grantpt(&front).expect("a new terminal is ours");
        unlockpt(&front).expect("a new terminal is ours");
        let name =
            ptsname(&front, Vec::new()).expect("a terminal has a name").into_string().expect("in ASCII");
        let line = OpenOptions::new().read(true).write(true).open(name).expect("a new terminal is ours");
        let size = Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&line, size).expect("a terminal has a size");
        let end = || Stdio::from(line.try_clone().expect("there are descriptors left"));
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn();
        let child = child.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let keyboard = File::from(front);
        let mut screen = keyboard.try_clone().expect("there are descriptors left");
        let shown = Arc::new(Mutex::new(Vec::new()));
        let collected = Arc::clone(&shown);
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut piece) {
                collected.lock().expect("the lock is not poisoned").extend_from_slice(&piece[..count]);
            }
        });
        Terminal { child, keyboard, line, shown }
    }

    /// All that was written to it so far.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().expect("the lock is not poisoned")).into_owned()
    }

    /// Waits until `text` has been written to it `times` times.
    #[track_caller]
    pub fn shows(&self, text: &str, times: usize) {
        eventually(&format!("{text:?}, {times} times"), || {
            (self.text().matches(text).count() >= times).then_some(())
        });
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("a terminal takes keys");
    }

    /// Whether it waits for whole lines, as before a command changed that.
    pub fn is_by_line(&self) -> bool {
        let modes = tcgetattr(&self.line).expect("a terminal has modes").local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Waits until the command has ended.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let child = &mut self.child;
        eventually("the command to end", || child.try_wait().expect("a child can be waited for"))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("--- the terminal ---\n{}\n---", self.text().escape_debug());
        }
    }
}
