//! Responses of the cached site: the right bytes, of a version that may still be served.

use std::time::{Duration, Instant};

use sandarac_test_support::Response;

use super::{Outcome, Received, Sent, body, claimed, origin_error, wrong_body};
use crate::ask::Cached;
use crate::page::{self, Page};
use crate::site::Entry;
use crate::stage::Stage;
use crate::verdict::{Complaint, Count, Rule};

/// How long a response may take from the origin's choice of a version to the request that it answers, beside its lifetime: the
/// origin is slow, requests wait for each other's fetch, and the machine is busy.
const SLACK: Duration = Duration::from_secs(5);

/// How a response came about, as Cache-Status says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// Stored, and fresh for so many more seconds; negative when stale.
    Hit(i64),
    /// Stored, in the place of an answer that the origin owes.
    StandIn,
    Origin,
    /// It does not say.
    Unknown,
}

pub(super) fn judge(
    stage: &Stage,
    sent: &Sent,
    cached: &Cached,
    received: &Received,
) -> Result<Outcome, Complaint> {
    let response = &received.response;
    let entry = &stage.site.entries[cached.entry];
    let place = sent.ask.place();
    let owner = entry.page(1, cached.tint).owner;
    match response.status {
        503 => return origin_error(sent, received),
        200 | 206 | 304 => {}
        416 if !cached.ranges.is_empty() => return unsatisfiable(entry, cached),
        _ => return Err(Complaint::new(Rule::Status, "200, 206, 304 or 416, as the request asks for it")),
    }
    let page = match (response.status, cached.known) {
        // A 304 need not repeat all fields; its version is the one that the request named, or an earlier one.
        (304, Some(known)) if !response.fields.has(page::FIELD) => entry.page(known, cached.tint),
        _ => match claimed(response, &place, &cached.visitor) {
            Ok(page) => page,
            Err(_) => claimed(response, &place, &owner)?,
        },
    };
    let wanted = Page { owner: page.owner.clone(), ..entry.page(page.version, cached.tint) };
    if page.version == 0 || page.version > entry.current() || page != wanted {
        return Err(Complaint::new(Rule::Body, "a page that there is"));
    }
    let cookie = format!("visitor={}", cached.visitor);
    if response.field("set-cookie").is_some_and(|set| set != cookie) {
        return Err(Complaint::new(Rule::Owner, format!("no cookie but {cookie}")));
    }
    let outcome = match response.status {
        304 => not_modified(entry, cached, &page, response)?,
        206 => partial(cached, &page, received)?,
        _ => body(sent, &page, received)?,
    };
    if cached.anew && matches!(source(response), Source::Hit(_)) {
        return Err(Complaint::new(Rule::Age, "an answer of the origin: the request wants one"));
    }
    check_version(stage, sent, entry, &page, source(response))?;
    Ok(outcome)
}

/// Whether the version may be served to a request that was sent then.
fn check_version(
    stage: &Stage,
    sent: &Sent,
    entry: &Entry,
    page: &Page,
    source: Source,
) -> Result<(), Complaint> {
    let (floor, soft_floor) = sent.floors;
    let version = page.version;
    if version < floor {
        return Err(Complaint::new(Rule::Purged, format!("version {floor} or later, not {version}")));
    }
    let life = &entry.life;
    let longest = match source {
        Source::Hit(ttl) if ttl >= 0 => life.fresh,
        Source::Hit(_) => life.fresh + life.while_revalidating,
        Source::Origin => Duration::ZERO,
        Source::StandIn if life.may_stand_in => Duration::MAX,
        Source::StandIn => {
            return Err(Complaint::new(Rule::Age, "no stale page: its directives forbid that"));
        }
        Source::Unknown => life.fresh + life.while_revalidating,
    };
    let is_stale = matches!(source, Source::Hit(ttl) if ttl < 0) || source == Source::StandIn;
    if version < soft_floor && !is_stale && source != Source::Unknown {
        return Err(Complaint::new(
            Rule::Purged,
            format!("version {soft_floor} or later as fresh, not {version}"),
        ));
    }
    if is_stale && source != Source::StandIn && life.while_revalidating.is_zero() {
        return Err(Complaint::new(Rule::Age, "no stale page: there is no grace"));
    }
    let replaced = entry.replaced(version);
    let late = replaced
        .and_then(|time| time.checked_add(longest)?.checked_add(SLACK))
        .is_some_and(|end| sent.at > end);
    if late {
        let ago = sent.at.saturating_duration_since(replaced.unwrap_or_else(Instant::now));
        return Err(Complaint::new(
            Rule::Age,
            format!(
                "a version replaced at most {longest:?} before; {version} was {ago:?} before, of {}",
                entry.current()
            ),
        ));
    }
    if let Source::Hit(_) = source {
        stage.verdict.count(Count::Hits);
    }
    if is_stale {
        stage.verdict.count(Count::Stale);
    }
    Ok(())
}

fn source(response: &Response) -> Source {
    if response.cache_status().is_empty() {
        return Source::Unknown;
    }
    let ttl = || response.cache_parameter("ttl").and_then(|ttl| ttl.parse().ok());
    match response.cache_parameter("detail").as_deref() {
        Some("origin-failed" | "origin-silent" | "stale-if-error") => Source::StandIn,
        _ if response.is_hit() => ttl().map_or(Source::Unknown, Source::Hit),
        _ => Source::Origin,
    }
}

fn not_modified(
    entry: &Entry,
    cached: &Cached,
    page: &Page,
    response: &Response,
) -> Result<Outcome, Complaint> {
    let Some(known) = cached.known else {
        return Err(Complaint::new(Rule::Status, "no 304: there was no condition"));
    };
    let tag = response.field("etag").map(str::to_owned);
    if tag != entry.tag(page) {
        return Err(Complaint::new(Rule::Validator, format!("the ETag {:?}", entry.tag(page))));
    }
    // A date says that nothing changed since; a tag names one version.
    let fits = if tag.is_some() { page.version == known } else { page.version <= known };
    if !fits {
        return Err(Complaint::new(
            Rule::Validator,
            format!("no 304 for version {}: the client has {known}", page.version),
        ));
    }
    Ok(Outcome::Whole)
}

fn unsatisfiable(entry: &Entry, cached: &Cached) -> Result<Outcome, Complaint> {
    let least = entry.least_length();
    if cached.ranges.iter().any(|range| range.of(least).is_some()) {
        return Err(Complaint::new(Rule::Status, format!("no 416: the page has {least} bytes or more")));
    }
    Ok(Outcome::Whole)
}

fn partial(cached: &Cached, page: &Page, received: &Received) -> Result<Outcome, Complaint> {
    let complain = |what: String| Err(Complaint::new(Rule::Body, what));
    let response = &received.response;
    if cached.only_of.is_some_and(|version| version != page.version) {
        return Err(Complaint::new(
            Rule::Validator,
            format!("a part of version {:?} or all of another", cached.only_of),
        ));
    }
    let content_range = response.field("content-range");
    let kind = response.field("content-type").unwrap_or_default();
    let Some(boundary) = kind.strip_prefix("multipart/byteranges; boundary=") else {
        let (from, to) = part(page, content_range, &response.body, received.end.is_ok())?;
        return match cached.ranges[..] {
            [range] if range.of(page.length) != Some((from, to)) => {
                complain(format!("the range {} and no other", range.text()))
            }
            [_] if received.end.is_err() => Ok(Outcome::Cut),
            _ => covered(cached, page, &[(from, to)]),
        };
    };
    if cached.ranges.len() == 1 {
        return complain("one part, not several".to_owned());
    }
    if received.end.is_err() {
        return Ok(Outcome::Cut);
    }
    let Some(parts) = parts(&response.body, boundary.trim_matches('"')) else {
        return complain("a body of multipart/byteranges".to_owned());
    };
    let found: Result<Vec<_>, _> = parts
        .iter()
        .map(|(content_range, bytes)| part(page, content_range.as_deref(), bytes, true))
        .collect();
    covered(cached, page, &found?)
}

/// The first and the last byte of a part, which must hold what it says.
fn part(
    page: &Page,
    content_range: Option<&str>,
    bytes: &[u8],
    whole: bool,
) -> Result<(u64, u64), Complaint> {
    let complain = |what: String| Err(Complaint::new(Rule::Body, what));
    let parsed = content_range.and_then(|text| {
        let (range, length) = text.strip_prefix("bytes ")?.split_once('/')?;
        let (from, to) = range.split_once('-')?;
        // While a body without a length arrives, its length is not known.
        let length = if length == "*" { page.length } else { length.parse().ok()? };
        Some((from.parse::<u64>().ok()?, to.parse::<u64>().ok()?, length))
    });
    let Some((from, to, length)) = parsed else {
        return complain(format!("a Content-Range, not {content_range:?}"));
    };
    if length != page.length || from > to || to >= length {
        return complain(format!("a range of {} bytes, not {content_range:?}", page.length));
    }
    page.check(from, bytes).map_err(|fault| wrong_body(page, &fault))?;
    let wanted = to - from + 1;
    if whole && bytes.len() as u64 != wanted || bytes.len() as u64 > wanted {
        return complain(format!("{wanted} bytes, not {}", bytes.len()));
    }
    Ok((from, to))
}

/// Whether parts hold every range that was asked for. Ranges that are close to each other may come as one.
fn covered(cached: &Cached, page: &Page, parts: &[(u64, u64)]) -> Result<Outcome, Complaint> {
    let wanted = cached.ranges.iter().filter_map(|range| range.of(page.length));
    for (from, to) in wanted {
        if !parts.iter().any(|&(first, last)| first <= from && to <= last) {
            return Err(Complaint::new(Rule::Body, format!("bytes {from}-{to} among the parts {parts:?}")));
        }
    }
    Ok(Outcome::Whole)
}

/// The parts of a multipart body, each with its Content-Range.
fn parts<'a>(body: &'a [u8], boundary: &str) -> Option<Vec<(Option<String>, &'a [u8])>> {
    let find =
        |bytes: &[u8], needle: &str| bytes.windows(needle.len()).position(|at| at == needle.as_bytes());
    let delimiter = format!("\r\n--{boundary}");
    let mut rest =
        body.strip_prefix(b"\r\n").unwrap_or(body).strip_prefix(format!("--{boundary}").as_bytes())?;
    let mut parts = Vec::new();
    while let Some(part) = rest.strip_prefix(b"\r\n") {
        let head = find(part, "\r\n\r\n")?;
        let text = String::from_utf8_lossy(&part[..head]).into_owned();
        let content_range = text.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-range").then(|| value.to_owned())
        });
        let bytes = &part[head + 4..];
        let end = find(bytes, &delimiter)?;
        parts.push((content_range, &bytes[..end]));
        rest = &bytes[end + delimiter.len()..];
    }
    rest.starts_with(b"--").then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn the_parts_of_a_multipart_body_are_told_apart() {
        let body = b"\r\n--x\r\nContent-Range: bytes 0-1/9\r\n\r\nab\r\n--x\r\ncontent-range: bytes 4-4/9\r\n\r\n\r\r\n--x--\r\n";
        let found = parts(body, "x").expect("it is well-formed");
        assert_eq!(found[0], (Some("bytes 0-1/9".to_owned()), &b"ab"[..]));
        assert_eq!(found[1], (Some("bytes 4-4/9".to_owned()), &b"\r"[..]));
        assert_eq!(found.len(), 2);
        assert_eq!(parts(&body[..body.len() - 4], "x"), None, "the last delimiter is missing");
    }
}
