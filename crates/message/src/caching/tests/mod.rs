//! Tables of the behaviour required by RFC 9111 and related RFCs, and by the newest public cache tests.

mod freshen;
mod reuse;
mod sharing;
mod storability;
mod targeted;

use std::time::Duration;

use super::*;
use crate::range::ContentRange;
use crate::written::fields;
use crate::{FieldsBuf, Method, RequestHead, ResponseHead, Timestamp, Version, date};

/// The time when every response of these tests arrives: 21 November 2026, and half a second.
const NOW: Timestamp = Timestamp::from_millis(1_795_219_200_500);

/// The HTTP date `offset` seconds from [`NOW`].
fn at(offset: i64) -> String {
    let seconds = NOW.as_secs().checked_add_signed(offset).unwrap();
    String::from_utf8(date::format(Timestamp::from_secs(seconds)).to_vec()).unwrap()
}

/// A time after [`NOW`].
fn later(seconds: u64) -> Timestamp {
    NOW.plus(Duration::from_secs(seconds))
}

/// How a request with these fields may use the store.
fn uses(method: &str, request: &str, policy: &Policy) -> StoreUse {
    let fields = fields(request);
    let head = RequestHead {
        method: Method::of(method.as_bytes()),
        method_text: method.as_bytes(),
        target: b"/",
        version: Version::Http11,
        fields: fields.view(),
    };
    store_use(&head, policy)
}

struct Exchange {
    policy: Policy,
    method: &'static str,
    request: &'static str,
    status: u16,
    part: Option<ContentRange>,
}

impl Exchange {
    fn new(policy: Policy) -> Exchange {
        Exchange { policy, method: "GET", request: "Host: a", status: 200, part: None }
    }

    fn judge(&self, response: &str) -> Storability {
        let (request, response) = (fields(self.request), fields(response));
        let request = RequestHead {
            method: Method::of(self.method.as_bytes()),
            method_text: self.method.as_bytes(),
            target: b"/page?x=1",
            version: Version::Http11,
            fields: request.view(),
        };
        let response = ResponseHead {
            status: self.status,
            reason: b"",
            version: Version::Http11,
            fields: response.view(),
        };
        super::storability(&request, &response, self.part, &self.policy, NOW, NOW)
    }

    fn lifetimes(&self, response: &str) -> Lifetimes {
        match self.judge(response) {
            Storability::Store(lifetimes) => lifetimes,
            Storability::NoStore(reason) => panic!("not stored, {reason:?}:\n{response}"),
        }
    }

    fn reason(&self, response: &str) -> Reason {
        match self.judge(response) {
            Storability::Store(lifetimes) => panic!("stored, {lifetimes:?}:\n{response}"),
            Storability::NoStore(reason) => reason,
        }
    }

    /// Whether the next plain request, three seconds later, is served from the stored response.
    fn reused(&self, response: &str) -> bool {
        match self.judge(response) {
            Storability::Store(lifetimes) => {
                lifetimes.reuse(&RequestDirectives::default(), later(3)) == Reuse::Fresh
            }
            Storability::NoStore(_) => false,
        }
    }
}

fn rfc() -> Exchange {
    Exchange::new(Policy::rfc())
}

fn safe() -> Exchange {
    Exchange::new(Policy::safe())
}
