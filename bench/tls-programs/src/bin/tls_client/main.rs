//! The clients of `bench/tls`: one thread, epoll, rustls without the verification of certificates.
//!
//! usage: tls_client hits|handshakes|idle PORT PATH BODYBYTES [option=value ...]
//!
//! | option | default | |
//! |---|---|---|
//! | `connections` | 64 | at once |
//! | `seconds` | 2 | how long requests or handshakes are begun |
//! | `rate` | 0 | of requests or handshakes per second; 0: as many as the server answers |
//! | `group` | `x25519` | or `hybrid`: X25519MLKEM768 |
//! | `suite` | `aes128` | or `aes256`, with GCM |
//! | `plain` | `no` | `yes`: without TLS |
//! | `resumed` | `no` | `yes`: every handshake presents a ticket |
//!
//! It prints `ready` once every connection has had one response, waits for a line on its input, does the work,
//! prints a line of JSON, and waits for the end of its input. CPU time between the lines is the work's alone.

mod handshakes;
mod hits;
mod idle;
mod link;
mod options;
mod settings;
mod tally;

use options::Options;
use std::error::Error;
use std::io::{Read, Write};

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let options = Options::parse(std::env::args().skip(1))?;
    let result = match options.mode.as_str() {
        "hits" => hits::run(&options)?,
        "handshakes" => handshakes::run(&options)?,
        "idle" => idle::run(&options)?,
        mode => return Err(format!("no mode {mode}").into()),
    };
    println!("{}", result.json());
    std::io::stdout().flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Reports that the work can begin, and waits until it may.
fn wait_for_start() -> Result<(), Failure> {
    println!("ready");
    std::io::stdout().flush()?;
    // Unbuffered, because the end of the input is waited for later.
    let mut byte = [0];
    while std::io::stdin().read(&mut byte)? == 1 && byte[0] != b'\n' {}
    Ok(())
}
