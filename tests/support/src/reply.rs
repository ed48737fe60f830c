//! Responses of an origin, and how it sends them.

use std::io;

use crate::conn::Conn;
use crate::{Gate, http_date};

/// An answer with `status`, no body and a Date.
pub fn reply(status: u16) -> Reply {
    Reply {
        status,
        interim: Vec::new(),
        fields: Vec::new(),
        dated: true,
        framing: Framing::Length(None),
        steps: Vec::new(),
        trailers: Vec::new(),
        before: None,
        verbatim: false,
        corked: false,
    }
}

/// An answer in the making: a head and then, step by step, pieces of the body, waits, and the ways in which an origin fails.
pub struct Reply {
    status: u16,
    interim: Vec<String>,
    fields: Vec<(String, String)>,
    dated: bool,
    framing: Framing,
    steps: Vec<Step>,
    trailers: Vec<(String, String)>,
    before: Option<Gate>,
    verbatim: bool,
    corked: bool,
}

enum Framing {
    /// Content-Length: the one told, or else that of the pieces.
    Length(Option<usize>),
    Chunked,
    Close,
}

enum Step {
    Piece(Vec<u8>),
    Pause(Gate),
    Cut,
    Reset,
    Hang,
}

/// What the connection is to be after an answer.
#[derive(PartialEq, Eq)]
pub(crate) enum After {
    Open,
    Closed,
    Reset,
}

impl Reply {
    /// An answer of exactly these bytes, head and all.
    pub fn verbatim(bytes: impl AsRef<[u8]>) -> Reply {
        let mut answer = reply(200);
        answer.verbatim = true;
        answer.body(bytes)
    }

    /// No answer: the connection is closed.
    pub fn none() -> Reply {
        Reply::verbatim("").cut()
    }

    /// Adds a field.
    pub fn with(mut self, name: &str, value: &str) -> Reply {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds Cache-Control.
    pub fn cache(self, directives: &str) -> Reply {
        self.with("Cache-Control", directives)
    }

    /// Leaves Date out.
    pub fn undated(mut self) -> Reply {
        self.dated = false;
        self
    }

    /// Sends an interim response first; `fields` are its lines, each with its line end.
    pub fn interim(mut self, status: u16, fields: &str) -> Reply {
        self.interim.push(format!("HTTP/1.1 {status} Interim\r\n{fields}\r\n"));
        self
    }

    /// Waits at `gate` before the first byte.
    pub fn hold(mut self, gate: &Gate) -> Reply {
        self.before = Some(gate.clone());
        self
    }

    /// Adds a piece to the body. In a chunked body each is a chunk.
    pub fn body(mut self, piece: impl AsRef<[u8]>) -> Reply {
        self.steps.push(Step::Piece(piece.as_ref().to_vec()));
        self
    }

    /// Waits at `gate` before what follows.
    pub fn pause(mut self, gate: &Gate) -> Reply {
        self.steps.push(Step::Pause(gate.clone()));
        self
    }

    /// Sends the body in chunks.
    pub fn chunked(mut self) -> Reply {
        self.framing = Framing::Chunked;
        self
    }

    /// Adds a trailer field to a chunked body.
    pub fn trailer(mut self, name: &str, value: &str) -> Reply {
        self.trailers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Ends the body by closing.
    pub fn until_close(mut self) -> Reply {
        self.framing = Framing::Close;
        self
    }

    /// Announces `length`, whatever the pieces come to.
    pub fn length(mut self, length: usize) -> Reply {
        self.framing = Framing::Length(Some(length));
        self
    }

    /// Closes the connection here.
    pub fn cut(mut self) -> Reply {
        self.steps.push(Step::Cut);
        self
    }

    /// Has the system send nothing of it before all is written, and what ends the connection, if anything, together with that.
    pub fn corked(mut self) -> Reply {
        self.corked = true;
        self
    }

    /// Resets the connection here.
    pub fn reset(mut self) -> Reply {
        self.steps.push(Step::Reset);
        self
    }

    /// Sends nothing more and keeps the connection open until the peer gives up.
    pub fn hang(mut self) -> Reply {
        self.steps.push(Step::Hang);
        self
    }

    fn head(&self) -> String {
        let mut text = self.interim.concat();
        text += &format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        if self.dated && !self.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("date")) {
            text += &format!("Date: {}\r\n", http_date());
        }
        for (name, value) in &self.fields {
            text += &format!("{name}: {value}\r\n");
        }
        match self.framing {
            Framing::Length(_) if self.status == 204 || self.status == 304 => {}
            Framing::Length(Some(length)) => text += &format!("Content-Length: {length}\r\n"),
            Framing::Length(None) => {
                let pieces =
                    self.steps.iter().map(|step| if let Step::Piece(piece) = step { piece.len() } else { 0 });
                text += &format!("Content-Length: {}\r\n", pieces.sum::<usize>());
            }
            Framing::Chunked => text += "Transfer-Encoding: chunked\r\n",
            Framing::Close => text += "Connection: close\r\n",
        }
        text + "\r\n"
    }

    /// Sends the answer to a request with `method`. A peer that has gone is for the test to notice, not for the origin.
    pub(crate) fn send(self, conn: &mut Conn, method: &str) -> After {
        if let Some(gate) = &self.before {
            gate.wait();
        }
        let head = if self.verbatim { String::new() } else { self.head() };
        self.send_after(conn, &head, method).unwrap_or(After::Closed)
    }

    fn send_after(self, conn: &mut Conn, head: &str, method: &str) -> io::Result<After> {
        conn.cork(self.corked);
        conn.try_send(head)?;
        let bodiless = !self.verbatim && (method == "HEAD" || self.status == 204 || self.status == 304);
        let chunked = !self.verbatim && matches!(self.framing, Framing::Chunked);
        for step in self.steps {
            match step {
                Step::Piece(_) if bodiless => {}
                Step::Piece(piece) if chunked => {
                    conn.try_send([format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat())?;
                }
                Step::Piece(piece) => conn.try_send(&piece)?,
                Step::Pause(gate) => gate.wait(),
                Step::Cut => return Ok(After::Closed),
                Step::Reset => return Ok(After::Reset),
                Step::Hang => {
                    conn.wait_for_end();
                    return Ok(After::Closed);
                }
            }
        }
        if chunked && !bodiless {
            let trailers: String =
                self.trailers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            conn.try_send(format!("0\r\n{trailers}\r\n"))?;
        }
        if matches!(self.framing, Framing::Close) {
            return Ok(After::Closed);
        }
        conn.cork(false);
        Ok(After::Open)
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        206 => "Partial Content",
        301 => "Moved Permanently",
        304 => "Not Modified",
        404 => "Not Found",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Status",
    }
}
