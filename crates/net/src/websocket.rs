//! The handshake of WebSocket over HTTP/1.1.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The Sec-WebSocket-Accept that responds to a Sec-WebSocket-Key (RFC 6455 §4.2.2).
pub fn websocket_accept(key: &[u8]) -> String {
    let text = [key, b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"].concat();
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, &text))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_example_of_rfc_6455() {
        assert_eq!(super::websocket_accept(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
