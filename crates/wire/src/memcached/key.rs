//! The key of an item.

use bytes::Bytes;

/// The longest key in bytes.
pub const MAX_KEY: usize = 250;

/// A key that every server accepts: 1 to [`MAX_KEY`] bytes, without white space and control bytes. Cloning
/// it copies no bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ServerKey(Bytes);

/// Why bytes are not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidKey {
    /// No bytes.
    Empty,
    /// More than [`MAX_KEY`] bytes.
    TooLong,
    /// White space or a control byte, which would end the key on the wire.
    Separator,
}

impl ServerKey {
    /// The key with these bytes.
    pub fn new(bytes: impl Into<Bytes>) -> Result<ServerKey, InvalidKey> {
        let bytes = bytes.into();
        if bytes.is_empty() {
            return Err(InvalidKey::Empty);
        }
        if bytes.len() > MAX_KEY {
            return Err(InvalidKey::TooLong);
        }
        if bytes.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
            return Err(InvalidKey::Separator);
        }
        Ok(ServerKey(bytes))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ServerKey({:?})", self.0)
    }
}

impl std::fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            InvalidKey::Empty => "empty key",
            InvalidKey::TooLong => "key longer than 250 bytes",
            InvalidKey::Separator => "white space or a control byte in a key",
        })
    }
}

impl std::error::Error for InvalidKey {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_cannot_end_early_on_the_wire() {
        for byte in 0..=255_u8 {
            let key = ServerKey::new(vec![b'k', byte, b'k']);
            let separates = byte <= b' ' || byte == 0x7f;
            assert_eq!(key.err(), separates.then_some(InvalidKey::Separator), "{byte}");
        }
        assert_eq!(ServerKey::new(""), Err(InvalidKey::Empty));
        assert_eq!(ServerKey::new(vec![b'k'; MAX_KEY + 1]), Err(InvalidKey::TooLong));
        assert_eq!(ServerKey::new(vec![b'k'; MAX_KEY]).unwrap().as_bytes().len(), MAX_KEY);
    }
}
