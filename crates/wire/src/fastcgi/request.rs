//! The records that begin a request: BEGIN_REQUEST and PARAMS (FastCGI specification §5.1, §5.2).

use super::record::{BEGIN_REQUEST, HEADER_LEN, MAX_CONTENT, PARAMS, RequestId, header};

const RESPONDER: u8 = 1;
const KEEP_CONN: u8 = 1;

/// Lengths below this have one byte in a name-value pair, others four (§3.4).
const SHORT: usize = 128;

/// A parameter that does not fit a record. php-fpm reads each record by itself, so none is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamTooLong;

impl std::fmt::Display for ParamTooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a parameter is longer than a record")
    }
}

impl std::error::Error for ParamTooLong {}

/// Writes the records before a request body: the beginning at once, then parameters in the order given, then
/// their end by [`Request::finish`].
///
/// ```
/// use sandarac_wire::fastcgi::{Request, RequestId};
///
/// let mut out = Vec::new();
/// let mut request = Request::begin(&mut out, RequestId::FIRST, false);
/// request.param(b"QUERY_STRING", b"")?;
/// request.finish();
/// assert_eq!(out, b"\x01\x01\0\x01\0\x08\0\0\0\x01\0\0\0\0\0\0\
///     \x01\x04\0\x01\0\x0e\0\0\x0c\0QUERY_STRING\x01\x04\0\x01\0\0\0\0");
/// # Ok::<(), sandarac_wire::fastcgi::ParamTooLong>(())
/// ```
#[must_use = "parameters without their end are no request"]
pub struct Request<'a> {
    out: &'a mut Vec<u8>,
    id: RequestId,
    /// Where the header of the open record is.
    record: usize,
}

impl<'a> Request<'a> {
    /// A request to a Responder, which is to keep the connection after it or not.
    pub fn begin(out: &'a mut Vec<u8>, id: RequestId, keep: bool) -> Request<'a> {
        out.extend_from_slice(&header(id, BEGIN_REQUEST, 8));
        out.extend_from_slice(&[0, RESPONDER, if keep { KEEP_CONN } else { 0 }, 0, 0, 0, 0, 0]);
        let record = out.len();
        out.extend_from_slice(&header(id, PARAMS, 0));
        Request { out, id, record }
    }

    /// Adds a parameter.
    pub fn param(&mut self, name: &[u8], value: &[u8]) -> Result<(), ParamTooLong> {
        let width = |len: usize| if len < SHORT { 1 } else { 4 };
        let len = width(name.len()) + width(value.len()) + name.len() + value.len();
        if len > MAX_CONTENT {
            return Err(ParamTooLong);
        }
        if self.content() + len > MAX_CONTENT {
            self.close();
            self.record = self.out.len();
            self.out.extend_from_slice(&header(self.id, PARAMS, 0));
        }
        self.out.reserve(len);
        for part in [name, value] {
            match part.len() {
                short @ ..SHORT => self.out.push(short as u8),
                long => self.out.extend_from_slice(&(long as u32 | 1 << 31).to_be_bytes()),
            }
        }
        self.out.extend_from_slice(name);
        self.out.extend_from_slice(value);
        Ok(())
    }

    /// Ends the parameters.
    pub fn finish(mut self) {
        if self.content() > 0 {
            self.close();
            self.out.extend_from_slice(&header(self.id, PARAMS, 0));
        }
    }

    /// Content bytes of the open record.
    fn content(&self) -> usize {
        self.out.len() - self.record - HEADER_LEN
    }

    /// Writes the length of the open record.
    fn close(&mut self) {
        let content = self.content() as u16;
        let header = header(self.id, PARAMS, content);
        self.out[self.record..self.record + HEADER_LEN].copy_from_slice(&header);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(params: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut request = Request::begin(&mut out, RequestId::FIRST, true);
        params.iter().for_each(|(name, value)| request.param(name, value).unwrap());
        request.finish();
        out
    }

    const BEGIN: &[u8] = b"\x01\x01\0\x01\0\x08\0\0\0\x01\x01\0\0\0\0\0";
    const END: &[u8] = b"\x01\x04\0\x01\0\0\0\0";

    #[test]
    fn a_request_without_parameters_has_one_empty_record_of_them() {
        assert_eq!(request(&[]), [BEGIN, END].concat());
    }

    #[test]
    fn lengths_from_128_on_have_four_bytes() {
        let (short, long) = ([b'v'; 127], [b'v'; 128]);
        let expected =
            [BEGIN, b"\x01\x04\0\x01\x01\x08\0\0\x01\x7fA", &short, b"\x01\x80\0\0\x80B", &long, END];
        assert_eq!(request(&[(b"A", &short), (b"B", &long)]), expected.concat());
    }

    #[test]
    fn a_parameter_that_does_not_fit_the_record_begins_another() {
        let long = [b'v'; 60_000];
        let out = request(&[(b"A", &long), (b"B", &long)]);
        let record = |name: &[u8]| [b"\x01\x04\0\x01\xea\x66\0\0\x01\x80\0\xea\x60", name, &long].concat();
        assert_eq!(out, [BEGIN, &record(b"A"), &record(b"B"), END].concat());
    }

    #[test]
    fn a_parameter_fills_a_record_exactly_or_is_refused() {
        let name = b"N";
        let most = MAX_CONTENT - 1 - 4 - name.len();
        let mut out = Vec::new();
        let mut request = Request::begin(&mut out, RequestId::FIRST, false);
        assert_eq!(request.param(name, &vec![0; most + 1]), Err(ParamTooLong));
        assert_eq!(request.param(name, &vec![0; most]), Ok(()));
        request.finish();
        assert_eq!(out[16..24], [1, 4, 0, 1, 0xff, 0xff, 0, 0]);
    }
}
