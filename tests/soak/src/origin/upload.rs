//! Uploads: bodies of requests, read and summed, or not.

use sandarac_test_support::{Conn, Request};

use super::{After, Server};
use crate::behaviour::{self, Behaviour};
use crate::origin::echo::echoed;
use crate::random::mix;
use crate::verdict::Rule;

/// The response field that says what the origin made of a body.
pub(crate) const SUM: &str = "X-Sum";

/// The request field with the length of the body, however it is framed.
pub(crate) const LENGTH: &str = "X-Length";

/// What [`SUM`] says where the origin answered before it read the body.
pub(crate) const UNREAD: &str = "unread";

/// The length of answers to uploads.
pub(crate) const ANSWER: u64 = 700;

/// The length of a body and a digest of it.
pub(crate) fn sum(body: &[u8]) -> String {
    let digest = body.chunks(8).fold(0, |digest, word| {
        let mut bytes = [0; 8];
        bytes[..word.len()].copy_from_slice(word);
        mix(digest ^ u64::from_le_bytes(bytes)).rotate_left(1)
    });
    format!("{}-{digest:016x}", body.len())
}

impl Server {
    pub(super) fn receive(&mut self, conn: &mut Conn, request: Request, attempt: u32) -> After {
        use Behaviour::*;
        let mut request = request;
        let behaviour = Behaviour::asked(request.field(behaviour::FIELD).unwrap_or_default(), attempt);
        let nonce = request.field("x-nonce").unwrap_or("none").to_owned();
        let host = request.field("host").unwrap_or_default();
        let page = echoed(format!("{host}{}", request.target), ANSWER, &nonce);
        let mut fields = self.echo_fields(&request, &nonce);
        let expects = request.field("expect") == Some("100-continue");
        if matches!(behaviour, Early | EarlyCloses | Refuses) {
            fields.push((SUM, UNREAD.to_owned()));
            let status = if behaviour == Refuses { 417 } else { 200 };
            let answer = self.response(status, &page, behaviour, false, &mut fields);
            let after = self.finish(conn, answer, behaviour, &request);
            // The client may never send the body that it was not asked for.
            return if behaviour == Early && conn.try_request_body(&mut request).is_ok() {
                after
            } else {
                After::Closed
            };
        }
        if expects && behaviour != Mute && conn.try_send("HTTP/1.1 100 Continue\r\n\r\n").is_err() {
            return After::Closed;
        }
        if behaviour == Delayed {
            self.pause(1, 100);
        }
        if conn.try_request_body(&mut request).is_err() {
            return After::Closed;
        }
        let length = request.body.len().to_string();
        if request.field(LENGTH).is_some_and(|announced| announced != length) {
            let lines =
                [("request", format!("{request:?}")), ("came", format!("{length} bytes as the whole body"))];
            self.stage.verdict.violation(Rule::Upload, &lines);
        }
        match behaviour {
            Closes => return After::Closed,
            Resets => return After::Reset,
            _ => {}
        }
        fields.push((SUM, sum(&request.body)));
        let answer = self.response(200, &page, behaviour, false, &mut fields);
        self.finish(conn, answer, behaviour, &request)
    }
}

#[cfg(test)]
mod tests {
    use super::sum;

    #[test]
    fn the_sum_of_a_body_changes_with_each_byte() {
        let body = b"seventeen letters";
        for at in 0..body.len() {
            let mut other = body.to_vec();
            other[at] ^= 1;
            assert_ne!(sum(body), sum(&other));
        }
        assert_ne!(sum(b""), sum(b"\0"));
    }
}
