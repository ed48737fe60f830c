//! A connection to etcd's HTTP gateway, which carries the messages of its gRPC interface as JSON.

use crate::{Loss, LossReason};
use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The time limit of a response of etcd, which may wait for other members of its cluster.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// The longest response, and the longest message of a stream, in bytes. A thousand entries of the longest
/// kind take less.
const MAX_ANSWER: usize = 16 * 1024 * 1024;

/// A connection, kept alive between requests.
pub(super) struct Gateway {
    sender: SendRequest<String>,
    host: String,
    /// Drives the connection, and stops when it is dropped.
    driver: JoinSet<Result<(), hyper::Error>>,
}

/// A stream of messages, one per line, on a connection of its own.
pub(super) struct Messages {
    body: Incoming,
    buffer: Vec<u8>,
    _gateway: Gateway,
}

impl Gateway {
    /// Speaks HTTP/1.1 on `stream` to the server called `host`.
    pub(super) async fn open(stream: TcpStream, host: &str) -> Result<Gateway, Loss> {
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        Ok(Gateway { sender, host: host.to_owned(), driver })
    }

    /// Calls `method` with `message`, authorised by `token` if there is one, and reads the response.
    pub(super) async fn call(
        &mut self,
        method: &str,
        message: &Value,
        token: Option<&str>,
    ) -> Result<Value, Loss> {
        let answer = timeout(ANSWER_TIMEOUT, async {
            let mut response = self.send(method, message.to_string(), token).await?;
            let mut body = Vec::new();
            while let Some(chunk) = chunk(response.body_mut()).await? {
                if body.len() + chunk.len() > MAX_ANSWER {
                    return Err(too_big());
                }
                body.extend(chunk);
            }
            judged(response.status(), &body)
        });
        answer
            .await
            .unwrap_or_else(|_| Err(Loss::new(LossReason::TimedOut, format!("etcd's answer to {method}"))))
    }

    /// Calls `method` with `messages`; one stream responds to all of them.
    pub(super) async fn stream(
        mut self,
        method: &str,
        messages: &[Value],
        token: Option<&str>,
    ) -> Result<Messages, Loss> {
        let messages: Vec<String> = messages.iter().map(Value::to_string).collect();
        let response = timeout(ANSWER_TIMEOUT, self.send(method, messages.join("\n"), token)).await;
        let response =
            response.map_err(|_| Loss::new(LossReason::TimedOut, format!("etcd's answer to {method}")))??;
        match response.status() {
            StatusCode::OK => Ok(Messages { body: response.into_body(), buffer: Vec::new(), _gateway: self }),
            status => Err(judged(status, b"").map_or_else(|loss| loss, |_| malformed())),
        }
    }

    async fn send(
        &mut self,
        method: &str,
        body: String,
        token: Option<&str>,
    ) -> Result<Response<Incoming>, Loss> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(format!("/v3/{method}"))
            .header(HOST, &self.host)
            .header(CONTENT_TYPE, "application/json");
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token);
        }
        // The token is the only part that comes from outside.
        let request = request.body(body).map_err(|_| malformed())?;
        let sent = match self.sender.ready().await {
            Ok(()) => self.sender.send_request(request).await,
            Err(error) => Err(error),
        };
        match sent {
            Ok(response) => Ok(response),
            Err(error) => Err(broken(self.cause(error).await)),
        }
    }

    /// Why a request could not be sent: the error that ended the connection earlier, if `error` only reports
    /// that it ended.
    async fn cause(&mut self, error: hyper::Error) -> hyper::Error {
        if !error.is_closed() && !error.is_canceled() {
            return error;
        }
        match self.driver.join_next().await {
            Some(Ok(Err(of_connection))) => of_connection,
            _ => error,
        }
    }
}

impl Messages {
    /// The next message. May be dropped while it waits, without loss.
    pub(super) async fn next(&mut self) -> Result<Value, Loss> {
        loop {
            if let Some(end) = line_end(&self.buffer) {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let message: Value = serde_json::from_slice(&line).map_err(|_| malformed())?;
                return match message.get("error") {
                    Some(error) => Err(said(error)),
                    None => Ok(message),
                };
            }
            if self.buffer.len() > MAX_ANSWER {
                return Err(too_big());
            }
            match chunk(&mut self.body).await? {
                Some(chunk) => self.buffer.extend(chunk),
                None => return Err(Loss::new(LossReason::Unreachable, "etcd ended the watch")),
            }
        }
    }
}

/// The position of the first line end.
fn line_end(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

/// The next piece of a body.
async fn chunk(body: &mut Incoming) -> Result<Option<Bytes>, Loss> {
    loop {
        match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await {
            None => return Ok(None),
            Some(Err(error)) => return Err(broken(error)),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// The content of a response, or the error that it reports.
fn judged(status: StatusCode, body: &[u8]) -> Result<Value, Loss> {
    let answer: Option<Value> = serde_json::from_slice(body).ok();
    match (status, answer) {
        (StatusCode::OK, Some(answer)) => Ok(answer),
        (StatusCode::OK, None) => Err(malformed()),
        (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, answer) => {
            Err(Loss { reason: LossReason::Denied, ..said(&answer.unwrap_or_default()) })
        }
        (_, Some(answer)) => Err(said(&answer)),
        (status, None) => Err(Loss::new(LossReason::Failed, format!("etcd answers {status}"))),
    }
}

/// The loss for an error that etcd reports.
fn said(error: &Value) -> Loss {
    let text =
        ["message", "error"].iter().find_map(|key| error.get(key)?.as_str()).unwrap_or("no reason given");
    let code = ["code", "grpc_code"].iter().find_map(|key| error.get(key)?.as_u64());
    let reason = match code {
        // gRPC's codes for PERMISSION_DENIED and UNAUTHENTICATED.
        Some(7 | 16) => LossReason::Denied,
        // etcd reports this as an invalid argument.
        _ if text.contains("authentication failed") || text.contains("user name is empty") => {
            LossReason::Denied
        }
        _ => LossReason::Failed,
    };
    Loss::new(reason, text.chars().take(200).collect::<String>())
}

/// The loss for a failed exchange: the connection ended, or its bytes are not HTTP.
fn broken(error: hyper::Error) -> Loss {
    // A request that was about to be sent is cancelled by the bytes that arrived instead.
    let error = error.source().and_then(|source| source.downcast_ref::<hyper::Error>()).unwrap_or(&error);
    let of_system = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    let is_malformed = match of_system {
        // A body with malformed framing.
        Some(error) => matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput),
        None => !error.is_closed() && !error.is_canceled() && !error.is_incomplete_message(),
    };
    match is_malformed {
        true => malformed(),
        false => Loss::new(LossReason::Unreachable, error.to_string()),
    }
}

fn too_big() -> Loss {
    Loss::new(LossReason::TooBig, format!("more than {MAX_ANSWER} bytes"))
}

/// The loss for a server that is not etcd, or an older one.
pub(super) fn malformed() -> Loss {
    Loss::new(LossReason::Malformed, "this is not an answer of etcd's gateway")
}
