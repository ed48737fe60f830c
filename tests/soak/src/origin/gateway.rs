//! A gateway that speaks HTTP/2 before a backend: each stream becomes a connection to the backend, whatever that does with it.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, Version, header};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::runtime::Builder;

/// Starts a gateway before the backend at `port`, and gives its URL.
pub(super) fn before(port: SocketAddr) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    listener.set_nonblocking(true).expect("a socket can be made non-blocking");
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(serve(listener, port));
    });
    format!("h2://{address}")
}

async fn serve(listener: TcpListener, port: SocketAddr) -> Infallible {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
    loop {
        let Ok((socket, _)) = listener.accept().await else { continue };
        let _ = socket.set_nodelay(true);
        let service = service_fn(move |request| forward(request, port));
        let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(socket), service);
        tokio::spawn(connection);
    }
}

/// Forwards a request. An error resets its stream.
async fn forward(
    request: Request<Incoming>,
    port: SocketAddr,
) -> Result<Response<Incoming>, Box<dyn std::error::Error + Send + Sync>> {
    let (mut head, body) = request.into_parts();
    if let Some(authority) = head.uri.authority() {
        head.headers.insert(header::HOST, authority.as_str().parse()?);
    }
    head.uri = head.uri.path_and_query().map_or("/", |target| target.as_str()).parse()?;
    head.version = Version::HTTP_11;
    head.headers.remove(header::TE);
    let socket = TcpStream::connect(port).await?;
    socket.set_nodelay(true)?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await?;
    tokio::spawn(connection);
    let mut response = sender.send_request(Request::from_parts(head, body)).await?;
    *response.version_mut() = Version::HTTP_2;
    for name in [header::CONNECTION, header::TRANSFER_ENCODING] {
        response.headers_mut().remove(name);
    }
    Ok(response)
}
