//! The login of servers that run with `-Y`.

use sandarac_message::decimal;

/// The most bytes of a user and a password together. memcached reads entries of at most 255 bytes from its
/// file, including the separator.
pub const MAX_LOGIN: usize = 254;

/// A user and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    user: Box<str>,
    password: Box<str>,
}

/// Why a user and a password cannot be used. memcached does not accept such a login either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidLogin {
    /// One of the two is empty.
    Empty,
    /// More than [`MAX_LOGIN`] bytes.
    TooLong,
    /// White space or a control byte, or a colon in the user: separators of the protocol and of the server's
    /// file.
    Separator,
}

impl Login {
    /// The login of `user` with `password`.
    pub fn new(user: &str, password: &str) -> Result<Login, InvalidLogin> {
        if user.is_empty() || password.is_empty() {
            return Err(InvalidLogin::Empty);
        }
        if user.len() + password.len() > MAX_LOGIN {
            return Err(InvalidLogin::TooLong);
        }
        let separates = |byte: u8| byte <= b' ' || byte == 0x7f;
        if user.contains(':') || user.bytes().chain(password.bytes()).any(separates) {
            return Err(InvalidLogin::Separator);
        }
        Ok(Login { user: user.into(), password: password.into() })
    }

    /// Appends the command. The server answers [`super::Line::Stored`] if it accepts the login, and a client
    /// error if it does not. No command may follow before the answer: memcached reads the login only if it
    /// arrives alone.
    ///
    /// A server without `-Y` takes this for an ordinary `set`. The item expires at once, so that nobody can
    /// read the password from the cache.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"set login 0 -1 ");
        decimal::append(out, (self.user.len() + 1 + self.password.len()) as u64);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.user.as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.password.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

/// Shows the user only.
impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

impl std::fmt::Display for InvalidLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            InvalidLogin::Empty => "empty user or password",
            InvalidLogin::TooLong => "user and password longer than 254 bytes",
            InvalidLogin::Separator => "white space, a control byte or a colon in user or password",
        })
    }
}

impl std::error::Error for InvalidLogin {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_a_set_that_expires_at_once() {
        let mut out = Vec::new();
        let login = Login::new("user", "password").unwrap();
        login.encode(&mut out);
        assert_eq!(out, b"set login 0 -1 13\r\nuser password\r\n");
        assert_eq!(format!("{login:?}"), "Login { user: \"user\", .. }");
    }

    #[test]
    fn a_login_cannot_end_early_on_the_wire() {
        assert_eq!(Login::new("", "password"), Err(InvalidLogin::Empty));
        assert_eq!(Login::new("user", ""), Err(InvalidLogin::Empty));
        assert_eq!(Login::new("us er", "password"), Err(InvalidLogin::Separator));
        assert_eq!(Login::new("us:er", "password"), Err(InvalidLogin::Separator));
        assert_eq!(Login::new("user", "pass\r\nword"), Err(InvalidLogin::Separator));
        assert_eq!(Login::new("user", &"p".repeat(MAX_LOGIN)), Err(InvalidLogin::TooLong));
        assert!(Login::new("user", "p:ss").is_ok());
    }
}
