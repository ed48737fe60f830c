//! The records of a response, as they arrive (FastCGI specification §5.3, §5.5).

use super::Refusal;
use super::record::{
    END_REQUEST, GET_VALUES_RESULT, HEADER_LEN, MANAGEMENT_ID, RequestId, STDERR, STDOUT, UNKNOWN_TYPE,
    VERSION,
};
use std::ops::Range;

/// The most records of a response that carry nothing for it: empty ones, and answers about the connection that
/// nobody asked for.
// A response has two empty records, the ends of its output and of its errors.
pub const MAX_EMPTY_RECORDS: u32 = 64;

/// The content of an END_REQUEST record.
const END_LEN: u16 = 8;

/// Reads the records of one response. Holds no bytes: what is not complete is decoded again with more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoder {
    id: RequestId,
    part: Part,
    empty_records: u32,
    stdout_ended: bool,
}

/// The part of a record that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Header,
    Stdout {
        left: u16,
        padding: u8,
    },
    Stderr {
        left: u16,
        padding: u8,
    },
    /// Padding, or a record that is of no use.
    Skipped {
        left: u32,
    },
    End {
        padding: u8,
    },
    /// The padding of the record that ended the response.
    EndPadding {
        left: u8,
        status: EndStatus,
    },
    Ended,
}

/// The result of decoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Bytes used; for data, up to the end of the range.
    pub consumed: usize,
    /// What was found.
    pub event: Event,
}

/// A step in reading a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// More bytes are needed.
    NeedMore,
    /// These bytes are output: the head, then the body.
    Stdout(Range<usize>),
    /// These bytes are error messages.
    Stderr(Range<usize>),
    /// The response has ended, and so have its records.
    End(EndStatus),
}

/// How a response has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndStatus {
    /// The application has handled the request. Its exit status is not used.
    Complete,
    /// It did not, because it has no room for another request.
    Overloaded,
    /// It did not, because it refuses the role, or several requests on a connection.
    Refused,
}

impl Decoder {
    /// Reads the response to the request with this number.
    pub fn new(id: RequestId) -> Decoder {
        Decoder { id, part: Part::Header, empty_records: 0, stdout_ended: false }
    }

    /// Whether the response has ended.
    pub fn is_ended(&self) -> bool {
        self.part == Part::Ended
    }

    /// Decodes the next step from `data`, the bytes that follow those consumed so far. MUST NOT be called
    /// after the end.
    pub fn decode(&mut self, data: &[u8]) -> Result<Decoded, Refusal> {
        let mut at = 0;
        loop {
            let rest = &data[at..];
            let piece = |left: u16| rest.len().min(left.into());
            match self.part {
                Part::Header => {
                    let Some(header) = rest.first_chunk::<HEADER_LEN>() else {
                        // Another protocol is recognised by its first byte, even if no more comes.
                        return match rest.first() {
                            Some(&version) if version != VERSION => Err(Refusal::NotFastCgi),
                            _ => Ok(Decoded { consumed: at, event: Event::NeedMore }),
                        };
                    };
                    self.begin(*header)?;
                    at += HEADER_LEN;
                }
                Part::Stdout { left: 0, padding } | Part::Stderr { left: 0, padding } => {
                    self.part = Part::Skipped { left: padding.into() };
                }
                Part::Skipped { left: 0 } => self.part = Part::Header,
                Part::EndPadding { left: 0, status } => {
                    self.part = Part::Ended;
                    return Ok(Decoded { consumed: at, event: Event::End(status) });
                }
                _ if rest.is_empty() => return Ok(Decoded { consumed: at, event: Event::NeedMore }),
                Part::Stdout { left, padding } => {
                    let end = at + piece(left);
                    self.part = Part::Stdout { left: left - (end - at) as u16, padding };
                    return Ok(Decoded { consumed: end, event: Event::Stdout(at..end) });
                }
                Part::Stderr { left, padding } => {
                    let end = at + piece(left);
                    self.part = Part::Stderr { left: left - (end - at) as u16, padding };
                    return Ok(Decoded { consumed: end, event: Event::Stderr(at..end) });
                }
                Part::Skipped { left } => {
                    let skipped = rest.len().min(left as usize);
                    at += skipped;
                    self.part = Part::Skipped { left: left - skipped as u32 };
                }
                Part::End { padding } => {
                    let Some(end) = rest.first_chunk::<{ END_LEN as usize }>() else {
                        return Ok(Decoded { consumed: at, event: Event::NeedMore });
                    };
                    let status = match end[4] {
                        0 => EndStatus::Complete,
                        1 | 3 => EndStatus::Refused,
                        2 => EndStatus::Overloaded,
                        _ => return Err(Refusal::InvalidEnd),
                    };
                    at += usize::from(END_LEN);
                    self.part = Part::EndPadding { left: padding, status };
                }
                Part::EndPadding { left, status } => {
                    let skipped = piece(left.into());
                    at += skipped;
                    self.part = Part::EndPadding { left: left - skipped as u8, status };
                }
                Part::Ended => unreachable!("nothing is decoded after the end"),
            }
        }
    }

    /// Begins a record.
    fn begin(&mut self, header: [u8; HEADER_LEN]) -> Result<(), Refusal> {
        let [version, kind, id_high, id_low, len_high, len_low, padding, _] = header;
        let (id, len) = (u16::from_be_bytes([id_high, id_low]), u16::from_be_bytes([len_high, len_low]));
        if version != VERSION {
            return Err(Refusal::NotFastCgi);
        }
        self.part = match kind {
            GET_VALUES_RESULT | UNKNOWN_TYPE if id == MANAGEMENT_ID => {
                self.carries_nothing()?;
                Part::Skipped { left: u32::from(len) + u32::from(padding) }
            }
            STDOUT | STDERR | END_REQUEST if !self.id.is(id) => return Err(Refusal::WrongRequest),
            STDOUT if self.stdout_ended && len > 0 => return Err(Refusal::StdoutAfterEnd),
            STDOUT | STDERR if len == 0 => {
                self.carries_nothing()?;
                self.stdout_ended |= kind == STDOUT;
                Part::Skipped { left: padding.into() }
            }
            STDOUT => Part::Stdout { left: len, padding },
            STDERR => Part::Stderr { left: len, padding },
            END_REQUEST if len == END_LEN => Part::End { padding },
            END_REQUEST => return Err(Refusal::InvalidEnd),
            _ => return Err(Refusal::UnknownRecord),
        };
        Ok(())
    }

    /// Counts a record without content.
    fn carries_nothing(&mut self) -> Result<(), Refusal> {
        self.empty_records += 1;
        if self.empty_records > MAX_EMPTY_RECORDS { Err(Refusal::EmptyRecords) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record with `padding` bytes of padding.
    fn record(kind: u8, id: u16, content: &[u8], padding: u8) -> Vec<u8> {
        let mut record = vec![1, kind];
        record.extend_from_slice(&id.to_be_bytes());
        record.extend_from_slice(&(content.len() as u16).to_be_bytes());
        record.extend_from_slice(&[padding, 0]);
        record.extend_from_slice(content);
        record.resize(record.len() + usize::from(padding), b'#');
        record
    }

    const END: [u8; 8] = [0, 0, 0, 0, 0, 0, 0, 0];

    #[derive(Debug, Default, PartialEq, Eq)]
    struct Read {
        stdout: Vec<u8>,
        stderr: Vec<u8>,
        end: Option<EndStatus>,
        /// Bytes that follow the end.
        after: usize,
    }

    /// Reads records that arrive `step` bytes at a time.
    fn read(bytes: &[u8], step: usize) -> Result<Read, Refusal> {
        let (mut decoder, mut read) = (Decoder::new(RequestId::FIRST), Read::default());
        let (mut at, mut arrived) = (0, 0);
        loop {
            let Decoded { consumed, event } = decoder.decode(&bytes[at..arrived])?;
            let data = &bytes[at..arrived];
            match event {
                Event::Stdout(range) => read.stdout.extend_from_slice(&data[range]),
                Event::Stderr(range) => read.stderr.extend_from_slice(&data[range]),
                Event::End(status) => {
                    let after = bytes.len() - at - consumed;
                    return Ok(Read { end: Some(status), after, ..read });
                }
                Event::NeedMore if arrived == bytes.len() => return Ok(read),
                Event::NeedMore => arrived = (arrived + step).min(bytes.len()),
            }
            at += consumed;
        }
    }

    fn read_any(records: &[Vec<u8>]) -> Result<Read, Refusal> {
        let bytes = records.concat();
        let whole = read(&bytes, bytes.len());
        for step in [1, 2, 7, 8, 9] {
            assert_eq!(read(&bytes, step), whole, "in steps of {step}");
        }
        whole
    }

    #[test]
    fn output_and_errors_are_told_apart_and_padding_is_dropped() {
        let records = [
            record(6, 1, b"Content-Type: text/plain\r\n\r\n", 4),
            record(7, 1, b"PHP Notice", 6),
            record(6, 1, b"body", 0),
            record(6, 1, b"", 0),
            record(7, 1, b"", 8),
            record(3, 1, &END, 3),
        ];
        let read = read_any(&records).unwrap();
        assert_eq!(read.stdout, b"Content-Type: text/plain\r\n\r\nbody");
        assert_eq!(read.stderr, b"PHP Notice");
        assert_eq!((read.end, read.after), (Some(EndStatus::Complete), 0));
    }

    #[test]
    fn a_response_may_end_without_the_ends_of_its_streams_as_php_fpm_sends_it() {
        let read = read_any(&[record(6, 1, b"x", 7), record(3, 1, &END, 0)]).unwrap();
        assert_eq!((read.stdout, read.end), (b"x".to_vec(), Some(EndStatus::Complete)));
    }

    #[test]
    fn records_are_whole_only_with_their_padding() {
        let mut bytes = record(3, 1, &END, 3);
        bytes.pop();
        assert_eq!(read(&bytes, 1).unwrap().end, None);
    }

    #[test]
    fn the_end_has_a_status() {
        for (status, expected) in [
            (0, Ok(EndStatus::Complete)),
            (1, Ok(EndStatus::Refused)),
            (2, Ok(EndStatus::Overloaded)),
            (3, Ok(EndStatus::Refused)),
            (4, Err(Refusal::InvalidEnd)),
        ] {
            let end = read_any(&[record(3, 1, &[0, 0, 0, 255, status, 0, 0, 0], 0)]);
            assert_eq!(end.map(|read| read.end.unwrap()), expected, "status {status}");
        }
    }

    #[test]
    fn bytes_after_the_end_are_left() {
        let read = read_any(&[record(3, 1, &END, 0), record(6, 1, b"more", 0)]).unwrap();
        assert_eq!(read.after, 12);
    }

    #[test]
    fn what_is_not_a_response_to_this_request_is_refused() {
        for (records, refusal) in [
            (vec![b"HTTP/1.1 400 Bad Request\r\n".to_vec()], Refusal::NotFastCgi),
            (vec![b"H".to_vec()], Refusal::NotFastCgi),
            (vec![record(6, 2, b"x", 0)], Refusal::WrongRequest),
            (vec![record(6, 0, b"x", 0)], Refusal::WrongRequest),
            (vec![record(3, 2, &END, 0)], Refusal::WrongRequest),
            (vec![record(5, 1, b"x", 0)], Refusal::UnknownRecord),
            (vec![record(12, 1, b"x", 0)], Refusal::UnknownRecord),
            (vec![record(10, 1, b"x", 0)], Refusal::UnknownRecord),
            (vec![record(6, 1, b"", 0), record(6, 1, b"x", 0)], Refusal::StdoutAfterEnd),
            (vec![record(3, 1, b"short", 0)], Refusal::InvalidEnd),
            (vec![record(3, 1, &[0; 9], 0)], Refusal::InvalidEnd),
        ] {
            assert_eq!(read_any(&records), Err(refusal));
        }
    }

    #[test]
    fn answers_about_the_connection_are_skipped_and_counted() {
        let values = record(10, 0, b"\x0f\x01FCGI_MPXS_CONNS0", 1);
        let unknown = record(11, 0, &[9, 0, 0, 0, 0, 0, 0, 0], 0);
        let read =
            read_any(&[values.clone(), record(6, 1, b"x", 0), unknown, record(3, 1, &END, 0)]).unwrap();
        assert_eq!((read.stdout, read.end), (b"x".to_vec(), Some(EndStatus::Complete)));
        assert_eq!(read_any(&vec![values; 65]), Err(Refusal::EmptyRecords));
    }

    #[test]
    fn records_without_content_do_not_go_on_for_ever() {
        assert_eq!(read_any(&vec![record(7, 1, b"", 255); 65]), Err(Refusal::EmptyRecords));
        assert_eq!(read_any(&vec![record(7, 1, b"", 255); 64]), Ok(Read::default()));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_the_same_however_they_are_cut(
            bytes in proptest::collection::vec(0u8..12, 0..200), step in 1usize..20,
        ) {
            proptest::prop_assert_eq!(read(&bytes, step), read(&bytes, bytes.len().max(1)));
        }

        #[test]
        fn streams_arrive_as_sent(
            pieces in proptest::collection::vec((6u8..8, "[a-z]{1,40}", 0u8..255), 0..12), step in 1usize..90,
        ) {
            let mut bytes: Vec<u8> = Vec::new();
            let mut sent = Read { end: Some(EndStatus::Complete), ..Read::default() };
            for (kind, text, padding) in &pieces {
                bytes.extend(record(*kind, 1, text.as_bytes(), *padding));
                let stream = if *kind == 6 { &mut sent.stdout } else { &mut sent.stderr };
                stream.extend_from_slice(text.as_bytes());
            }
            bytes.extend(record(3, 1, &END, 0));
            proptest::prop_assert_eq!(read(&bytes, step), Ok(sent));
        }
    }
}
