//! The page that fragments belong to: how they are requested.

use super::answered::Answered;
use super::client::FragmentClient;
use super::nesting::Nesting;
use super::pipe::{PipeReader, pipe};
use crate::Counter;
use crate::core::Core;
use crate::report::fragment_failure::FragmentFailure;
use crate::site::LocalSite;
use sandarac_esi::Variable;
use sandarac_message::target::{Scheme, Target, parameters, resolve};
use sandarac_message::{
    Field, Fields, FieldsBuf, Method, Name, Piece, RequestHead, RequestHeadBuf, cookies, hop,
};
use sandarac_net::{Answer, Holder, Incoming, LeasedHead, Peer, Request};
use sandarac_policy::{FragmentRule, RouteId};
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

/// What decides about the pages that answer a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageRule {
    /// Which responses are pages.
    pub(crate) rule: FragmentRule,
    /// The route of the request.
    pub(crate) route: RouteId,
    /// The scheme that a trusted peer stated, if that is https.
    pub(crate) stated: Option<Scheme>,
}

/// A page, as far as its fragments need it.
pub(crate) struct Page {
    core: Rc<Core>,
    site: LocalSite,
    rule: PageRule,
    peer: Peer,
    /// The request for the page.
    head: Rc<LeasedHead>,
    /// The fields of requests for its fragments.
    fields: FieldsBuf,
    nesting: Nesting,
    /// Why a fragment is missing, if one is.
    failure: Cell<Option<FragmentFailure>>,
}

/// A fragment that was asked for.
pub(super) enum Asked {
    /// All of it is there.
    Whole(VecDeque<Piece>),
    /// It comes through this pipe.
    Coming(PipeReader),
}

impl Page {
    /// The page that answers the request `head` of `peer`. `None` if its fields are too large for another
    /// request.
    pub(crate) fn new(
        core: &Core,
        site: &LocalSite,
        rule: PageRule,
        peer: &Peer,
        head: &Rc<LeasedHead>,
        nesting: Nesting,
    ) -> Option<Rc<Page>> {
        let fields = fields(head)?;
        Some(Rc::new(Page {
            core: core.handle(),
            site: site.clone(),
            rule,
            peer: peer.clone(),
            head: head.clone(),
            fields,
            nesting,
            failure: Cell::new(None),
        }))
    }

    /// The holder whose page it is.
    pub(super) fn holder(&self) -> &Holder {
        &self.peer.holder
    }

    /// Asks for the fragment that `url` leads to, as seen from the page.
    ///
    /// # Errors
    /// It may not be asked for, or the answer is no fragment.
    pub(super) fn ask(&self, url: &[u8]) -> Result<Asked, FragmentFailure> {
        let target = self.target(url)?;
        let nesting = self.nesting.within()?;
        self.core.counters.one(Counter::Fragments);
        let began = Instant::now();
        let head = RequestHead {
            method: Method::Get,
            method_text: b"GET",
            target: &target,
            version: self.head.version,
            fields: self.fields.view(),
        };
        let request = Request { head, scheme: self.rule.stated, has_body: false, began };
        let mut answered = Answered::default();
        let deferred = match self.core.answer_as(&self.peer, &request, &mut answered, Some(nesting.page)) {
            Answer::Answered => return answered.fragment().map(Asked::Whole),
            Answer::Deferred(deferred) => deferred,
        };
        let head = LeasedHead::copy_of(&head, self.holder()).ok_or(FragmentFailure::Memory)?;
        let (writer, reader) = pipe(self.holder());
        let client = FragmentClient::new(self.peer.clone(), writer);
        let incoming = Box::new(Incoming { head, expect_continue: false, began, deferred });
        self.core.spawn_exchange(client, incoming, nesting);
        Ok(Asked::Coming(reader))
    }

    /// The path and query that `url` leads to on this site.
    fn target(&self, url: &[u8]) -> Result<Vec<u8>, FragmentFailure> {
        if url.is_empty() || !url.iter().all(u8::is_ascii_graphic) {
            return Err(FragmentFailure::Url);
        }
        let page = Target::of(&self.head.view()).map_err(|_| FragmentFailure::Url)?;
        resolve(&page, None, url).ok_or(FragmentFailure::Elsewhere)
    }

    /// The value of a variable, as it is in the request. None if it is not a part of the page's key: whoever
    /// keeps the page by its key would keep it for others.
    pub(super) fn value(&self, variable: &Variable) -> Option<&[u8]> {
        let key = self.site.config.routes[self.rule.route].cache_rule().map(|rule| &rule.key);
        let head = self.head.view();
        match variable {
            Variable::Query(name) => {
                if key.is_some_and(|key| key.ignore_query.iter().any(|ignored| ignored.matches(name))) {
                    return None;
                }
                let query = Target::of(&head).ok()?.query()?;
                parameters(query).find_map(|parameter| parameter.strip_prefix(&**name)?.strip_prefix(b"="))
            }
            Variable::Cookie(name) => {
                if key.is_some_and(|key| !key.cookies.iter().any(|keyed| keyed.matches(name))) {
                    return None;
                }
                cookies::cookie(head.fields, name)
            }
        }
    }

    /// Counts a failure.
    pub(super) fn failed(&self, failure: FragmentFailure) {
        self.core.counters.fragments_failed.one(&failure);
    }

    /// Notes that a fragment is missing.
    pub(super) fn missing(&self, failure: FragmentFailure) {
        self.failure.set(self.failure.get().or(Some(failure)));
    }

    /// Why a fragment is missing, if one is: the first.
    pub(crate) fn failure(&self) -> Option<FragmentFailure> {
        self.failure.get()
    }
}

/// The fields of requests for the fragments of a page that `head` requests. `None` if there is no room.
fn fields(head: &RequestHeadBuf) -> Option<FieldsBuf> {
    let view = head.view();
    let received: Fields<'_> = view.fields;
    let mut fields = FieldsBuf::new();
    // The host of an absolute target counts, whatever Host has.
    if let Some(authority) = Target::of(&view).ok()?.authority {
        fields.add(Name::Host, authority.text).ok()?;
    }
    fields.extend(received, |field| is_carried(&field.id, field)).ok()?;
    // It becomes a part of a body without a coding.
    fields.add(Name::AcceptEncoding, b"identity").ok()?;
    Some(fields)
}

/// Whether requests for fragments have a field of the request for their page: all but what concerns its body,
/// its connection, or the copy of the page that the client has.
fn is_carried(name: &Name, field: &Field<'_>) -> bool {
    const CONTENT: &[u8] = b"content-";
    let of_content = field.name.get(..CONTENT.len()).is_some_and(|start| start.eq_ignore_ascii_case(CONTENT));
    !hop::is_standing(*name)
        && !of_content
        && !matches!(
            name,
            Name::Host
                | Name::AcceptEncoding
                | Name::Expect
                | Name::IfMatch
                | Name::IfModifiedSince
                | Name::IfNoneMatch
                | Name::IfRange
                | Name::IfUnmodifiedSince
                | Name::MaxForwards
                | Name::Range
                | Name::Trailer
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_message::Version;

    #[test]
    fn a_fragment_has_the_fields_of_its_page_but_those_of_its_copy_its_body_and_its_connection() {
        let lines = [
            ("Host", "other.example"),
            ("Cookie", "id=1"),
            ("Authorization", "Basic eDp5"),
            ("Accept-Language", "de"),
            ("User-Agent", "x"),
            ("X-Forwarded-For", "192.0.2.1"),
            ("Accept-Encoding", "gzip"),
            ("If-None-Match", "\"a\""),
            ("If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("Range", "bytes=0-1"),
            ("Content-Type", "text/plain"),
            ("content-digest", "x"),
            ("Transfer-Encoding", "chunked"),
            ("Upgrade", "websocket"),
            ("Expect", "100-continue"),
            ("TE", "trailers"),
        ];
        let head = RequestHeadBuf {
            method: Method::Post,
            method_text: b"POST"[..].into(),
            target: b"http://example.com/p"[..].into(),
            version: Version::Http11,
            fields: lines.into_iter().collect(),
        };
        let fields = fields(&head).expect("room");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let lines =
            fields.view().iter().map(|field| format!("{}: {}\n", text(field.name), text(field.value)));
        assert_eq!(
            lines.collect::<String>(),
            "Host: example.com\nCookie: id=1\nAuthorization: Basic eDp5\nAccept-Language: de\nUser-Agent: x\n\
             X-Forwarded-For: 192.0.2.1\nAccept-Encoding: identity\n"
        );
    }
}
