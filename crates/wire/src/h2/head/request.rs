//! Request heads (RFC 9113 §8.3.1).

use super::super::fault::Fault;
use super::super::hpack::Decoder;
use super::buffer::HeadBuf;
use super::pseudo::Kind;
use super::refusal::Refusal;
use super::section::Section;
use crate::h1::Limits;
use crate::h1::scan::find_target_end;
use sandarac_message::target::Scheme;
use sandarac_message::{Method, RequestHead, Version, is_token};

/// A request with a complete head.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The head. Its target begins with a slash, or is `*`; that of CONNECT without a protocol is the
    /// authority. Its Host is valid and comes from `:authority`, or else from Host. Cookies are joined.
    pub head: RequestHead<'a>,
    /// `:scheme`; `None` for CONNECT without a protocol. The caller MUST NOT trust it, because the client chooses it.
    pub scheme: Option<Scheme>,
    /// The protocol of an extended CONNECT (RFC 8441 §4), as `websocket`.
    pub protocol: Option<&'a [u8]>,
    /// Content-Length. The connection checks it against the data.
    pub content_length: Option<u64>,
    /// Whether the client waits for 100 (Continue) before it sends the body.
    pub expect_continue: bool,
}

/// Reads a request from a whole header block. `extended_connect` is whether our settings allow `:protocol`.
/// `end_stream` is whether the request ends with its head.
///
/// A fault ends the connection, a refusal the stream.
pub fn read<'a>(
    decoder: &mut Decoder,
    block: &[u8],
    end_stream: bool,
    extended_connect: bool,
    limits: &Limits,
    buf: &'a mut HeadBuf,
) -> Result<Result<Request<'a>, Refusal>, Fault> {
    let section = match Section::read(Kind::Request, decoder, block, limits, buf)? {
        Ok(section) => section,
        Err(refusal) => return Ok(Err(refusal)),
    };
    Ok(request(&section, end_stream, extended_connect, limits, buf))
}

fn request<'a>(
    section: &Section,
    end_stream: bool,
    extended_connect: bool,
    limits: &Limits,
    buf: &'a HeadBuf,
) -> Result<Request<'a>, Refusal> {
    let pseudo = &section.pseudo;
    let text = |place: &Option<std::ops::Range<usize>>| place.clone().map(|place| &buf.bytes[place]);
    let method_text = text(&pseudo.method).ok_or(Refusal::MissingPseudoField)?;
    if !is_token(method_text) {
        return Err(Refusal::InvalidMethod);
    }
    let method = Method::of(method_text);
    let protocol = text(&pseudo.protocol);
    let scheme = text(&pseudo.scheme).map(scheme).transpose()?;
    let path = text(&pseudo.path);
    let target = match (method, protocol) {
        (_, Some(_)) if !extended_connect => return Err(Refusal::UnknownPseudoField),
        (Method::Connect, Some(protocol)) if !is_token(protocol) => return Err(Refusal::InvalidProtocol),
        (Method::Connect, None) if scheme.is_some() || path.is_some() => {
            return Err(Refusal::UnexpectedPseudoField);
        }
        (Method::Connect, None) => text(&pseudo.authority).ok_or(Refusal::MissingPseudoField)?,
        (Method::Connect, Some(_)) | (_, None) => {
            if scheme.is_none() {
                return Err(Refusal::MissingPseudoField);
            }
            path.ok_or(Refusal::MissingPseudoField)?
        }
        (_, Some(_)) => return Err(Refusal::UnexpectedPseudoField),
    };
    if target.len() > limits.target {
        return Err(Refusal::TargetTooLong);
    }
    // An absolute form would override Host at an origin.
    let has_form = match target {
        [b'/', ..] => true,
        b"*" => method == Method::Options,
        _ => method == Method::Connect && protocol.is_none(),
    };
    if !has_form || find_target_end(target, 0) != target.len() {
        return Err(Refusal::InvalidTarget);
    }
    if !section.has_host() {
        return Err(Refusal::MissingHost);
    }
    if end_stream && section.content_length.is_some_and(|length| length > 0) {
        return Err(Refusal::UnexpectedContentLength);
    }
    Ok(Request {
        head: RequestHead { method, method_text, target, version: Version::Http2, fields: buf.fields() },
        scheme,
        protocol,
        content_length: section.content_length,
        expect_continue: section.expect_continue && !end_stream,
    })
}

fn scheme(text: &[u8]) -> Result<Scheme, Refusal> {
    match text {
        _ if text.eq_ignore_ascii_case(b"https") => Ok(Scheme::Https),
        _ if text.eq_ignore_ascii_case(b"http") => Ok(Scheme::Http),
        _ => Err(Refusal::InvalidScheme),
    }
}
