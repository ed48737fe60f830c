//! Responses made by the proxy: faults, fixed answers, redirects. The one place where an error becomes a
//! response.

use crate::Fault;
use crate::outgoing::{Following, Outgoing};
use crate::report::file_refusal::FileRefusal;
use crate::report::reason::reason;
use bytes::Bytes;
use sandarac_message::status_fields::{ProxyError, ProxyStatus};
use sandarac_message::{FieldsBuf, Name, Piece};
use sandarac_net::{Body, BodyBroken};
use sandarac_wire::h1::Refusal;
use std::task::{Context, Poll};

/// The methods that are answered or forwarded without a rule for them, as listed in Allow (RFC 9110 §10.2.1).
pub(crate) const METHODS: &[u8] = b"GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS, TRACE";

/// A whole response that the proxy makes itself.
#[derive(Clone, Debug)]
pub(crate) struct Synthetic {
    pub(crate) status: u16,
    /// Fields besides Content-Length, Date and Connection.
    pub(crate) fields: FieldsBuf,
    pub(crate) body: Bytes,
}

impl Synthetic {
    /// A plain text that describes the result; never stored.
    fn text(status: u16, what: &str) -> Synthetic {
        let mut fields = FieldsBuf::new();
        let short = "a few short fields fit a head";
        fields.add(Name::ContentType, b"text/plain; charset=utf-8").expect(short);
        fields.add(Name::CacheControl, b"no-store").expect(short);
        Synthetic { status, fields, body: format!("{status} {}: {what}\n", reason(status)).into() }
    }

    /// The answer to the challenge of a CA (RFC 8555 §8.3).
    pub(crate) fn challenge(answer: String) -> Synthetic {
        let mut fields = FieldsBuf::new();
        let short = "a few short fields fit a head";
        fields.add(Name::ContentType, b"application/octet-stream").expect(short);
        fields.add(Name::CacheControl, b"no-store").expect(short);
        Synthetic { status: 200, fields, body: answer.into() }
    }

    /// A success without other content, such as that of a purge.
    pub(crate) fn done(what: &str) -> Synthetic {
        Synthetic::text(200, what)
    }

    /// The same response, which names the servers of the shared tier that do not know of it yet.
    pub(crate) fn untold(mut self, servers: &[String]) -> Synthetic {
        if !servers.is_empty() {
            let text = String::from_utf8_lossy(&self.body);
            let text = text.trim_end();
            let servers = servers.join(", ");
            self.body = format!("{text}; not reached yet in the shared tier: {servers}\n").into();
        }
        self
    }

    /// The response to an order that is not understood.
    pub(crate) fn bad(what: &str) -> Synthetic {
        Synthetic::text(400, what)
    }

    /// The response to a request whose exchange failed. `proxy` is the name for Proxy-Status (RFC 9209).
    pub(crate) fn fault(fault: &Fault, proxy: &str) -> Synthetic {
        let text = fault.text();
        let mut answer = Synthetic::text(fault.status(), &text);
        answer.proxy_status(proxy, fault.proxy_error(), &text);
        match fault {
            Fault::NoBackend(_) | Fault::QueuedTooLong => answer.put(Name::RetryAfter, b"1"),
            Fault::File(FileRefusal::NoTree | FileRefusal::NoDescriptors | FileRefusal::Memory) => {
                answer.put(Name::RetryAfter, b"1")
            }
            Fault::File(FileRefusal::Method) => answer.put(Name::Allow, b"GET, HEAD"),
            Fault::MethodNotAllowed | Fault::TunnelNotAllowed => answer.put(Name::Allow, METHODS),
            _ => {}
        }
        answer
    }

    /// The response to a malformed request.
    pub(crate) fn refusal(refusal: Refusal, proxy: &str) -> Synthetic {
        let mut answer = Synthetic::text(refusal.status(), refusal.text());
        answer.proxy_status(proxy, ProxyError::HttpRequestError, refusal.text());
        answer
    }

    /// The response to a client whose head was late (408), that does not speak TLS where it must (400), or
    /// that exceeds the connection limit (503).
    pub(crate) fn turned_away(status: u16, what: &str, proxy: &str) -> Synthetic {
        let mut answer = Synthetic::text(status, what);
        let error =
            if status == 503 { ProxyError::ConnectionLimitReached } else { ProxyError::HttpRequestError };
        answer.proxy_status(proxy, error, what);
        if status == 503 {
            answer.put(Name::RetryAfter, b"1");
        }
        answer
    }

    /// The response before it begins.
    pub(crate) fn outgoing(&self) -> Outgoing<'_> {
        Outgoing::made(self.status, self.fields.view(), self.body.len() as u64)
    }

    /// The body, if one follows.
    pub(crate) fn body(&self, following: Following) -> Option<FixedBody> {
        matches!(following, Following::All).then(|| FixedBody::new(&self.body))
    }

    fn proxy_status(&mut self, proxy: &str, error: ProxyError, details: &str) {
        let mut value = Vec::new();
        ProxyStatus { error: Some(error), details: Some(details), ..ProxyStatus::default() }
            .write(proxy, &mut value);
        self.put(Name::ProxyStatus, &value);
    }

    fn put(&mut self, name: Name, value: &[u8]) {
        // A head of a few fields has room for one more.
        let _ = self.fields.add(name, value);
    }
}

/// A body that the proxy makes.
pub(crate) struct FixedBody(Option<Bytes>);

impl FixedBody {
    pub(crate) fn new(bytes: &Bytes) -> FixedBody {
        FixedBody(Some(bytes.clone()).filter(|bytes| !bytes.is_empty()))
    }
}

impl Body for FixedBody {
    fn poll_piece(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Piece, BodyBroken>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(bytes.into())))
    }

    fn trailers(&self) -> Option<FieldsBuf> {
        None
    }
}
