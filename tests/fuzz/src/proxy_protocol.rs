//! PROXY protocol headers: however cut the same, bounded, and with addresses of one family.

use sandarac_wire::proxy_protocol::{MAX_V1, MAX_V2, Origin, parse};

/// Checks one input.
pub(crate) fn run(bytes: &[u8]) {
    let whole = parse(bytes);
    for cut in 0..bytes.len().min(600) {
        let early = parse(&bytes[..cut]);
        assert!(early == Ok(None) || early == whole, "{cut}: {early:?}, whole {whole:?}");
    }
    match whole {
        Ok(Some(header)) => {
            assert!(header.len <= bytes.len());
            assert!(header.len <= if bytes[0] == b'P' { MAX_V1 } else { MAX_V2 });
            assert_eq!(parse(&bytes[..header.len]), whole);
            if let Origin::Proxied { source, destination } = header.origin {
                assert_eq!(source.is_ipv4(), destination.is_ipv4());
            }
        }
        Ok(None) => assert!(bytes.len() < MAX_V2),
        Err(_) => {}
    }
}
