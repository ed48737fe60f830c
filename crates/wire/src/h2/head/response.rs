//! Response heads (RFC 9113 §8.3.2).

use super::super::fault::Fault;
use super::super::hpack::Decoder;
use super::buffer::HeadBuf;
use super::pseudo::Kind;
use super::refusal::Refusal;
use super::section::Section;
use crate::h1::Limits;
use sandarac_message::{Method, ResponseHead, Version};

/// A response with a complete head.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// The head. Its reason is empty.
    pub head: ResponseHead<'a>,
    /// Content-Length.
    pub content_length: Option<u64>,
    /// Whether a body may follow: not after an interim response, nor with 204 and 304, nor to HEAD.
    pub has_body: bool,
}

impl Response<'_> {
    /// Whether another head follows (RFC 9110 §15.2).
    pub fn is_interim(&self) -> bool {
        self.head.status < 200
    }
}

/// Reads a response to a request with `method` from a whole header block. `end_stream` is whether the stream
/// ends with this head. A fault ends the connection, a refusal the stream.
pub fn read<'a>(
    decoder: &mut Decoder,
    block: &[u8],
    end_stream: bool,
    method: Method,
    limits: &Limits,
    buf: &'a mut HeadBuf,
) -> Result<Result<Response<'a>, Refusal>, Fault> {
    let section = match Section::read(Kind::Response, decoder, block, limits, buf)? {
        Ok(section) => section,
        Err(refusal) => return Ok(Err(refusal)),
    };
    Ok(response(&section, end_stream, method, buf))
}

fn response<'a>(
    section: &Section,
    end_stream: bool,
    method: Method,
    buf: &'a HeadBuf,
) -> Result<Response<'a>, Refusal> {
    let place = section.pseudo.status.clone().ok_or(Refusal::MissingPseudoField)?;
    let [hundreds @ b'1'..=b'5', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] = buf.bytes[place] else {
        return Err(Refusal::InvalidStatus);
    };
    let digit = |byte: u8| u16::from(byte - b'0');
    let status = digit(hundreds) * 100 + digit(tens) * 10 + digit(ones);
    // 101 does not exist in HTTP/2, and an interim response cannot be the last one.
    if status == 101 || status < 200 && end_stream {
        return Err(Refusal::InvalidStatus);
    }
    let announced = section.content_length.is_some_and(|length| length > 0);
    if announced && (status < 200 || status == 204) {
        return Err(Refusal::UnexpectedContentLength);
    }
    let has_body = status >= 200 && method != Method::Head && !matches!(status, 204 | 304);
    if announced && has_body && end_stream {
        return Err(Refusal::UnexpectedContentLength);
    }
    Ok(Response {
        head: ResponseHead { status, reason: b"", version: Version::Http2, fields: buf.fields() },
        content_length: section.content_length,
        has_body,
    })
}
