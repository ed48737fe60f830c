//! Requests, with what is to come of them.

use sandarac_test_support::{Response, request};

use crate::behaviour::Behaviour;
use crate::pool::Pool;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) method: &'static str,
    pub(crate) pool: Pool,
    pub(crate) target: String,
    pub(crate) fields: Vec<(&'static str, String)>,
    /// The body of a POST.
    pub(crate) body: Option<Vec<u8>>,
    /// Whether it is a request of HTTP/1.0.
    pub(crate) old: bool,
    pub(crate) wants: Wants,
}

/// What a request is to be answered with.
#[derive(Clone, Debug)]
pub(crate) enum Wants {
    /// Page number `entry` of the cached site.
    Cached(Cached),
    /// A new version of page number `entry`, which a POST makes.
    Posted { entry: usize, nonce: u64 },
    /// A page for this user alone.
    Private { user: String },
    /// An answer with the nonce of the request.
    Echo(Echo),
    /// A file, or a part of it.
    File(u64, Option<Range>),
}

#[derive(Clone, Debug)]
pub(crate) struct Cached {
    pub(crate) entry: usize,
    pub(crate) tint: &'static str,
    pub(crate) ranges: Vec<Range>,
    /// The version that the condition of the request names.
    pub(crate) known: Option<u64>,
    /// The version that `If-Range` names.
    pub(crate) only_of: Option<u64>,
    /// What the origin tells this request by, where it makes a response for it alone.
    pub(crate) visitor: String,
    /// Whether the request wants it from the origin.
    pub(crate) anew: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Echo {
    pub(crate) nonce: u64,
    pub(crate) length: u64,
    pub(crate) behaviour: Behaviour,
    /// What `X-Forwarded-For` has to be at the origin.
    pub(crate) address: Option<String>,
    /// The sum of the body of the request, if it is an upload.
    pub(crate) sum: Option<String>,
}

/// A range of bytes, as a request asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Range {
    /// From the first to the last of these.
    Within(u64, u64),
    /// From this to the end.
    From(u64),
    /// The last so many.
    Last(u64),
}

impl Range {
    /// The first and the last byte that it stands for in a body of `length`; `None` if there is none.
    pub(crate) fn of(self, length: u64) -> Option<(u64, u64)> {
        let last = length.checked_sub(1)?;
        match self {
            Range::Within(from, to) => (from <= last).then(|| (from, to.min(last))),
            Range::From(from) => (from <= last).then_some((from, last)),
            Range::Last(count) => (count > 0).then(|| (length.saturating_sub(count), last)),
        }
    }

    pub(crate) fn text(self) -> String {
        match self {
            Range::Within(from, to) => format!("{from}-{to}"),
            Range::From(from) => format!("{from}-"),
            Range::Last(count) => format!("-{count}"),
        }
    }
}

impl Ask {
    pub(crate) fn get(pool: Pool, target: String, wants: Wants) -> Ask {
        Ask { method: "GET", pool, target, fields: Vec::new(), body: None, old: false, wants }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Ask {
        self.fields.push((name, value.into()));
        self
    }

    /// Host and target.
    pub(crate) fn place(&self) -> String {
        format!("{}{}", self.pool.host(), self.target)
    }

    /// The request as it goes onto the wire.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut asked = request(self.method, &self.target).host(self.pool.host());
        for (name, value) in &self.fields {
            asked = asked.with(name, value);
        }
        if let Some(body) = &self.body {
            asked = asked.body(body);
        }
        if self.old {
            asked = asked.http10();
        }
        asked.to_bytes()
    }

    /// The fields of the request in HTTP/2, over TLS or in clear.
    pub(crate) fn to_fields(&self, over_tls: bool) -> Vec<(String, String)> {
        let pseudo = [
            (":method", self.method),
            (":scheme", if over_tls { "https" } else { "http" }),
            (":authority", self.pool.host()),
            (":path", &self.target),
        ];
        let pseudo = pseudo.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let own = self.fields.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
        pseudo.chain(own).collect()
    }

    pub(crate) fn nonce(&self) -> Option<u64> {
        match &self.wants {
            Wants::Echo(echo) => Some(echo.nonce),
            Wants::Posted { nonce, .. } => Some(*nonce),
            Wants::Cached(_) | Wants::Private { .. } | Wants::File(..) => None,
        }
    }
}

/// A response in one line: status, fields, and the beginning of the body.
pub(crate) fn show(response: &Response) -> String {
    const SHOWN: usize = 200;
    let fields: Vec<String> =
        response.fields.lines().iter().map(|(name, value)| format!("{name}: {value:.300}")).collect();
    let body = &response.body[..response.body.len().min(SHOWN)];
    format!(
        "{} [{}] {} bytes: \"{}\"",
        response.status,
        fields.join("; "),
        response.body.len(),
        body.escape_ascii()
    )
}

#[cfg(test)]
mod tests {
    use super::Range;

    #[test]
    fn ranges_stand_for_bytes_that_are_there() {
        assert_eq!(Range::Within(2, 5).of(10), Some((2, 5)));
        assert_eq!(Range::Within(2, 50).of(10), Some((2, 9)));
        assert_eq!(Range::Within(10, 50).of(10), None);
        assert_eq!(Range::From(9).of(10), Some((9, 9)));
        assert_eq!(Range::Last(3).of(10), Some((7, 9)));
        assert_eq!(Range::Last(30).of(10), Some((0, 9)));
        assert_eq!(Range::Last(3).of(0), None);
    }
}
