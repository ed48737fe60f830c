//! The messages at startup on standard error. Scripts and tests wait for these lines and read the addresses from them.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes one line for each bound listener, one for the admin interface, and then the ready line.
pub fn announce<L: Display>(listeners: impl IntoIterator<Item = L>, admin: impl Display) {
    let mut lines = Vec::new();
    // In one piece, because a process from which this one takes over may write there, too. If standard error
    // is closed, the process runs without messages.
    let _ = write_to(&mut lines, listeners, admin).and_then(|()| io::stderr().lock().write_all(&lines));
}

fn write_to<L: Display>(
    out: &mut impl Write,
    listeners: impl IntoIterator<Item = L>,
    admin: impl Display,
) -> io::Result<()> {
    for listener in listeners {
        writeln!(out, "sandarac: listening on {listener}")?;
    }
    writeln!(out, "sandarac: admin on {admin}")?;
    writeln!(out, "sandarac: ready")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_says_where_it_listens_and_then_that_it_is_ready() {
        let mut out = Vec::new();
        write_to(&mut out, ["127.0.0.1:8080", "unix:/a"], "unix:/b").unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "sandarac: listening on 127.0.0.1:8080\nsandarac: listening on unix:/a\nsandarac: admin on unix:/b\n\
             sandarac: ready\n"
        );
    }
}
