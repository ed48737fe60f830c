//! Judge: whether a response may be stored, and for how long, by the rules of its route.

use super::fetch::{Keeping, OriginResponse};
use sandarac_cache::Object;
use sandarac_message::caching::{
    Policy, Profile, Reason, Storability, blames_request, states_freshness, storability,
};
use sandarac_message::range::ContentRange;
use sandarac_message::{RequestHead, ResponseHead};

/// The judge of the responses to a request.
pub(crate) struct Judge<'a> {
    /// The request as it was fetched, or as it would have been stored.
    pub(crate) request: &'a RequestHead<'a>,
    pub(crate) policy: &'a Policy,
}

impl Judge<'_> {
    /// Judges a response with its edited head. A 206 is stored only with its `part` of the representation. `stored` is what it would
    /// take the place of.
    pub(crate) fn response(
        &self,
        arrived: &OriginResponse,
        part: Option<ContentRange>,
        stored: Option<&Object>,
    ) -> Storability {
        let head = arrived.head.view();
        let judged = match arrived.keeping {
            Keeping::Refused => return Storability::NoStore(Reason::UnsentFile),
            Keeping::IfStated if !states_freshness(head.fields, arrived.received) => {
                return Storability::NoStore(Reason::NoFreshness);
            }
            _ => self.update(&head, part, arrived),
        };
        let is_worse = stored.is_some_and(|stored| self.is_error_for(stored, head.status));
        match judged {
            Storability::Store(_) if is_worse => Storability::NoStore(match head.status {
                500.. => Reason::ServerError,
                _ => Reason::ClientError,
            }),
            judged => judged,
        }
    }

    /// Judges a stored response that `arrived` updates: `head` has the stored status and the fields of both.
    pub(crate) fn update(
        &self,
        head: &ResponseHead<'_>,
        part: Option<ContentRange>,
        arrived: &OriginResponse,
    ) -> Storability {
        storability(self.request, head, part, self.policy, arrived.requested, arrived.received)
    }

    /// Whether a response with this status is an error that must not take the place of a stored success, also of a stale
    /// one, although a rule names its status: the success is better for whoever comes next.
    fn is_error_for(&self, stored: &Object, status: u16) -> bool {
        let is_error = status >= 500 || blames_request(status);
        is_error && stored.head().status() < 400 && self.policy.profile == Profile::Safe
    }
}
