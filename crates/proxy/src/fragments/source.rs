//! The parts of a page: those of a template, or of a body that is parsed as it arrives.

use crate::step::fetch::OriginLink;
use bytes::Bytes;
use sandarac_cache::{Object, PageMarkup};
use sandarac_esi::{Include, PageStream, Part, Segment, Variable};
use sandarac_message::{FieldsBuf, Piece};
use sandarac_net::{Body, BodyBroken, BodyStep, Held, Holder, Lease, Timer};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::task::coop::poll_proceed;

/// Bytes that are parsed for one unit of a task's budget. It has 128 of them each time it is polled; with more, a page of
/// nothing but tags would keep others of its core waiting.
const PARSED: usize = 2 << 10;

/// The parts of a page, in order.
pub(crate) enum Source {
    /// A stored page whose markup is kept; with the number of the next part.
    Template(Arc<Object>, usize),
    /// A page that is parsed as it arrives; the stream is `None` once it has ended.
    Stream {
        body: Box<dyn Body>,
        stream: Option<PageStream>,
        /// Text that was read, and is not parsed yet.
        unparsed: Bytes,
        segments: VecDeque<Segment>,
    },
}

/// A part of a page.
pub(super) enum PagePart<'s> {
    /// Text in memory.
    Text(Bytes),
    /// Text of a stored page.
    Range(Arc<Object>, Range<u64>),
    Include(Cow<'s, Include>),
    Variable(Variable),
}

impl Source {
    /// A page that is parsed as it arrives.
    pub(crate) fn stream(body: Box<dyn Body>) -> Source {
        Source::Stream {
            body,
            stream: Some(PageStream::new()),
            unparsed: Bytes::new(),
            segments: VecDeque::new(),
        }
    }

    /// The next part; `None` at the end.
    pub(super) fn poll_part(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<PagePart<'_>, BodyBroken>>> {
        let (body, stream, unparsed, segments) = match self {
            Source::Template(object, at) => return Poll::Ready(next(object, at).map(Ok)),
            Source::Stream { body, stream, unparsed, segments } => (body, stream, unparsed, segments),
        };
        loop {
            if let Some(segment) = segments.pop_front() {
                return Poll::Ready(Some(Ok(match segment {
                    Segment::Text(text) => PagePart::Text(text),
                    Segment::Include(include) => PagePart::Include(Cow::Owned(*include)),
                    Segment::Variable(variable) => PagePart::Variable(variable),
                })));
            }
            let Some(parser) = stream else { return Poll::Ready(None) };
            if !unparsed.is_empty() {
                ready!(poll_proceed(cx)).made_progress();
                parser.push(unparsed.split_to(unparsed.len().min(PARSED)), segments);
                continue;
            }
            match ready!(body.poll_piece(cx)) {
                Some(Ok(piece)) => match piece.to_bytes() {
                    Some(bytes) => *unparsed = bytes,
                    None => return Poll::Ready(Some(Err(BodyBroken::Source))),
                },
                Some(Err(broken)) => return Poll::Ready(Some(Err(broken))),
                None => stream.take().into_iter().for_each(|parser| parser.finish(segments)),
            }
        }
    }
}

/// The part of a stored page whose number is `at`.
fn next<'o>(object: &'o Arc<Object>, at: &mut usize) -> Option<PagePart<'o>> {
    let Some(PageMarkup::Parts(template)) = object.markup() else { return None };
    let part = template.parts().get(*at)?;
    *at += 1;
    Some(match part {
        Part::Text(range) => PagePart::Range(object.clone(), range.clone()),
        Part::Include(include) => PagePart::Include(Cow::Borrowed(include)),
        Part::Variable(variable) => PagePart::Variable(variable.clone()),
    })
}

/// The body of a page that is not stored.
pub(crate) struct LinkBody {
    /// `None` once it has ended.
    link: Option<OriginLink>,
    timer: Timer,
    /// How long the origin may be silent.
    between_bytes: Duration,
    /// The part of the response that it keeps, for the holder whose page it is.
    kept: Lease,
}

impl LinkBody {
    pub(crate) fn new(link: OriginLink, between_bytes: Duration, holder: &Holder) -> LinkBody {
        LinkBody { link: Some(link), timer: Timer::new(), between_bytes, kept: holder.nothing(Held::Text) }
    }
}

impl Body for LinkBody {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Piece, BodyBroken>>> {
        let Some(link) = &mut self.link else { return Poll::Ready(None) };
        link.limit_reads(self.kept.holder().read_limit());
        let broke = match link.poll_body(cx) {
            Poll::Ready(Ok(BodyStep::Data(range))) => {
                self.timer.clear();
                let copy: Box<[u8]> = link.piece(&range).into();
                let piece = self.kept.holder().keep(Held::Text, copy);
                link.consume(&range);
                // The page may have to wait for a fragment before it takes more.
                self.kept.set(link.park());
                return Poll::Ready(Some(Ok(piece.into())));
            }
            Poll::Ready(Ok(BodyStep::End(_))) => false,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => {
                if !self.timer.is_set() {
                    self.timer.set(self.between_bytes);
                }
                ready!(self.timer.poll(cx));
                true
            }
        };
        if let Some(link) = self.link.take() {
            if broke { link.broken() } else { link.finish() }
        }
        Poll::Ready(if broke { Some(Err(BodyBroken::Source)) } else { None })
    }

    fn trailers(&self) -> Option<FieldsBuf> {
        None
    }
}

impl Drop for LinkBody {
    fn drop(&mut self) {
        if let Some(link) = self.link.take() {
            link.close();
        }
    }
}
