//! hyper as another reader of the same bytes, without a runtime: its connection is polled manually over
//! memory.

use super::{Message, text};
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::service::service_fn;
use sandarac_message::Version;
use std::cell::RefCell;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

/// How often a connection is polled before it is considered to wait for ever.
const MAX_POLLS: usize = 1000;

/// The peer: the bytes it sends before it closes.
struct Script {
    sends: Vec<u8>,
    sent: usize,
    /// Whether it sends nothing before it has received something.
    waits: bool,
}

impl Read for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.waits {
            return Poll::Pending;
        }
        let len = buf.remaining().min(self.sends.len() - self.sent);
        buf.put_slice(&self.sends[self.sent..self.sent + len]);
        self.sent += len;
        Poll::Ready(Ok(()))
    }
}

impl Write for Script {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.waits = false;
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

struct NoBody;

impl Body for NoBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(0)
    }
}

/// The whole content, or `None` if the body was refused or cut off.
async fn content(mut body: Incoming) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        if let Ok(data) = frame.ok()?.into_data() {
            content.extend_from_slice(&data);
        }
    }
    Some(content)
}

fn lines(fields: &hyper::HeaderMap) -> Vec<(String, String)> {
    fields.iter().map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes()))).collect()
}

fn version(version: hyper::Version) -> Version {
    if version == hyper::Version::HTTP_10 { Version::Http10 } else { Version::Http11 }
}

/// The first request in `bytes` as read by hyper's server; `None` if it is refused or incomplete. Trailers
/// and the length are omitted.
pub(crate) fn request(bytes: &[u8]) -> Option<Message> {
    let read = RefCell::new(None);
    let first = RefCell::new(true);
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let first = first.replace(false);
        let read = &read;
        async move {
            let (head, body) = request.into_parts();
            let body = content(body).await;
            if let (true, Some(body)) = (first, body) {
                *read.borrow_mut() = Some(Message {
                    start: (head.method.to_string(), text(head.uri.to_string().as_bytes())),
                    version: version(head.version),
                    fields: lines(&head.headers),
                    body,
                    trailers: Vec::new(),
                    len: 0,
                });
            }
            let mut response = hyper::Response::new(NoBody);
            response.headers_mut().insert("connection", hyper::header::HeaderValue::from_static("close"));
            Ok::<_, Infallible>(response)
        }
    });
    let script = Script { sends: bytes.to_vec(), sent: 0, waits: false };
    {
        let mut connection = pin!(
            hyper::server::conn::http1::Builder::new().half_close(true).serve_connection(script, service)
        );
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..MAX_POLLS {
            if connection.as_mut().poll(&mut context).is_ready() {
                break;
            }
        }
    }
    read.into_inner()
}

/// The final response in `bytes` to a request with `method`, as read by hyper's client.
pub(crate) fn response(bytes: &[u8], method: &str) -> Option<Message> {
    let script = Script { sends: bytes.to_vec(), sent: 0, waits: true };
    let exchange = async {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(script).await.ok()?;
        let request =
            hyper::Request::builder().method(method).uri("/").header("host", "a").body(NoBody).ok()?;
        let answer = async move {
            let (head, body) = sender.send_request(request).await.ok()?.into_parts();
            let body = content(body).await?;
            Some(Message {
                start: (head.status.as_u16().to_string(), String::new()),
                version: version(head.version),
                fields: lines(&head.headers),
                body,
                trailers: Vec::new(),
                len: 0,
            })
        };
        let (mut answer, mut connection) = (pin!(answer), pin!(connection));
        let mut closed = false;
        std::future::poll_fn(move |context| {
            closed = closed || connection.as_mut().poll(context).is_ready();
            answer.as_mut().poll(context)
        })
        .await
    };
    let mut exchange = pin!(exchange);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..MAX_POLLS {
        if let Poll::Ready(answer) = exchange.as_mut().poll(&mut context) {
            return answer;
        }
    }
    None
}
