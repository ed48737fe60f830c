//! The origin of the cached site and of private pages.

use sandarac_test_support::{Conn, Request};

use super::{After, Server, head};
use crate::Profile;
use crate::page::{self, Page};
use crate::site::{Entry, HOST, Validator};

/// The length of a private page.
const PRIVATE: u64 = 3000;

/// Bodies are made and sent in pieces of this size.
const PIECE: usize = 64 << 10;

/// How an answer goes wrong, or does not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    Well,
    Delayed,
    /// Pauses between pieces of the body.
    Halting,
    Hangs,
    Resets,
    /// Closes in the middle of the body.
    Truncates,
    /// Resets in the middle of the body.
    Breaks,
    /// Answers 503.
    Fails,
    /// Answers with a page for the visitor alone.
    Personal,
    /// Sets a cookie for the visitor.
    SetsCookie,
}

impl Server {
    pub(super) fn cached(&mut self, conn: &mut Conn, request: &Request) -> After {
        if let Some(kind) = request.target.strip_prefix("/private/") {
            return self.private(conn, request, kind);
        }
        let stage = std::sync::Arc::clone(&self.stage);
        let Some(entry) = stage.site.find(&request.target) else { return After::Closed };
        if request.method == "POST" {
            return self.posted(conn, entry);
        }
        let mood = self.random.weighted(&[
            (180, Mood::Well),
            (20, Mood::Delayed),
            (8, Mood::Halting),
            (1, Mood::Hangs),
            (1, Mood::Resets),
            (2, Mood::Truncates),
            (1, Mood::Breaks),
            (1, Mood::Fails),
            (3, Mood::Personal),
            (if self.stage.profile == Profile::Safe { 6 } else { 0 }, Mood::SetsCookie),
        ]);
        match mood {
            Mood::Delayed => self.pause(1, 30),
            Mood::Hangs => return self.hang(conn),
            Mood::Resets => return After::Reset,
            Mood::Fails => return self.fail(conn, request),
            Mood::Personal => return self.personal(conn, request, entry),
            _ => {}
        }
        self.page(conn, request, entry, mood)
    }

    fn page(&mut self, conn: &mut Conn, request: &Request, entry: &Entry, mood: Mood) -> After {
        let page = entry.page(entry.current(), request.field("x-tint").unwrap_or_default());
        let mut fields = fields(entry, &page);
        if mood == Mood::SetsCookie {
            fields.push(("Set-Cookie", format!("visitor={}", visitor(request))));
        }
        if is_not_modified(entry, &page, request) {
            return sent(conn, &head(304, &fields));
        }
        let (mut status, mut start, mut length) = (200, 0, page.length);
        if let Some((from, to)) = range(entry, &page, request) {
            (status, start, length) = (206, from, to - from + 1);
            fields.push(("Content-Range", format!("bytes {from}-{to}/{}", page.length)));
        }
        let chunked = entry.chunked && status == 200;
        fields.push(if chunked {
            ("Transfer-Encoding", "chunked".to_owned())
        } else {
            ("Content-Length", length.to_string())
        });
        let head = head(status, &fields);
        if request.method == "HEAD" {
            return sent(conn, &head);
        }
        let end =
            if matches!(mood, Mood::Truncates | Mood::Breaks) { start + length / 2 } else { start + length };
        let most = if length < PIECE as u64 { self.random.within(200, PIECE as u64) } else { PIECE as u64 };
        let mut out = head;
        while start < end {
            let piece = page.bytes(start, most.min(end - start) as usize);
            start += piece.len() as u64;
            if chunked {
                out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            }
            out.extend_from_slice(&piece);
            if chunked {
                out.extend_from_slice(b"\r\n");
            }
            if conn.try_send(&out).is_err() || self.is_dead() {
                return After::Reset;
            }
            out.clear();
            if mood == Mood::Halting {
                self.pause(1, 20);
            }
        }
        match mood {
            Mood::Truncates if length > 0 || chunked => return After::Closed,
            Mood::Breaks if length > 0 || chunked => return After::Reset,
            _ => {}
        }
        if chunked {
            out.extend_from_slice(b"0\r\n\r\n");
        }
        sent(conn, &out)
    }

    /// A page that is for one visitor, at a URL that is else for all.
    fn personal(&mut self, conn: &mut Conn, request: &Request, entry: &Entry) -> After {
        let tint = request.field("x-tint").unwrap_or_default();
        let page = Page { owner: visitor(request).to_owned(), ..entry.page(entry.current(), tint) };
        let directives = if self.random.percent(50) { "private, max-age=60" } else { "no-store" };
        let mut fields = vec![("Cache-Control", directives.to_owned())];
        if request.method == "HEAD" {
            fields.push((page::FIELD, page.to_string()));
            fields.push(("Content-Length", page.length.to_string()));
            return sent(conn, &head(200, &fields));
        }
        self.whole(conn, 200, &page, fields)
    }

    /// A POST makes a new version.
    fn posted(&mut self, conn: &mut Conn, entry: &Entry) -> After {
        let version = entry.bump();
        let page = Page { owner: "posted".to_owned(), ..entry.page(version, "") };
        self.whole(conn, 200, &page, vec![("Cache-Control", "no-store".to_owned())])
    }

    /// An error of the origin's own, which nobody may store.
    fn fail(&mut self, conn: &mut Conn, request: &Request) -> After {
        let page = Page {
            place: format!("{HOST}{}", request.target),
            version: 0,
            length: 150,
            owner: "error".to_owned(),
        };
        if request.method == "HEAD" {
            let fields = [(page::FIELD, page.to_string()), ("Content-Length", page.length.to_string())];
            return sent(conn, &head(503, &fields));
        }
        self.whole(conn, 503, &page, vec![("Cache-Control", "no-store".to_owned())])
    }

    /// A page of one user, or of nobody where the request names none. What says so differs with the kind of page.
    fn private(&mut self, conn: &mut Conn, request: &Request, kind: &str) -> After {
        let cookie = request
            .fields
            .list("cookie")
            .split("; ")
            .find_map(|pair| pair.strip_prefix("user=").map(str::to_owned));
        let bearer = request.field("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let user = cookie.as_deref().or(bearer).or(request.field("api-user")).unwrap_or("-");
        let page = Page {
            place: format!("{HOST}{}", request.target),
            version: 0,
            length: PRIVATE,
            owner: user.to_owned(),
        };
        let directives = match kind.split('/').next().unwrap_or_default() {
            "private" => "private, max-age=60",
            "no-store" => "no-store",
            // A shared cache may not store what answers a request with Authorization, unless told so (RFC 9111 §3.5). Under the
            // profile safe, that goes for a field that nobody knows, too.
            _ => "max-age=60",
        };
        let mut fields = vec![("Cache-Control", directives.to_owned())];
        if kind.starts_with("vary") {
            fields.push(("Vary", "Cookie".to_owned()));
        }
        self.whole(conn, 200, &page, fields)
    }

    fn whole(&mut self, conn: &mut Conn, status: u16, page: &Page, fields: Vec<(&str, String)>) -> After {
        let mut fields = fields;
        fields.push((page::FIELD, page.to_string()));
        fields.push(("Content-Length", page.length.to_string()));
        let mut out = head(status, &fields);
        out.extend_from_slice(&page.bytes(0, usize::MAX));
        sent(conn, &out)
    }
}

/// Who asked.
fn visitor(request: &Request) -> &str {
    request.field("x-visitor").unwrap_or("nobody")
}

fn sent(conn: &mut Conn, bytes: &[u8]) -> After {
    if conn.try_send(bytes).is_ok() { After::Open } else { After::Closed }
}

fn fields(entry: &Entry, page: &Page) -> Vec<(&'static str, String)> {
    let mut fields = vec![(page::FIELD, page.to_string())];
    fields.extend(entry.life.fields.iter().map(|(name, value)| (*name, value.clone())));
    fields.extend(entry.tag(page).map(|tag| ("ETag", tag)));
    fields.extend(entry.changed(page.version).map(|time| ("Last-Modified", time)));
    if entry.padding > 0 {
        fields.push(("X-Padding", "x".repeat(entry.padding)));
    }
    if entry.tinted {
        fields.push(("Vary", "X-Tint".to_owned()));
    }
    if !entry.tags.is_empty() {
        let separator = if entry.tag_field == "Cache-Tag" { "," } else { " " };
        fields.push((entry.tag_field, entry.tags.join(separator)));
    }
    fields
}

/// Whether the condition of the request says that the client has this page (RFC 9110 §13.2.2).
fn is_not_modified(entry: &Entry, page: &Page, request: &Request) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    if request.fields.has("if-none-match") {
        let current = entry.tag(page).map(|tag| opaque(&tag));
        let known = request.fields.list("if-none-match");
        return current.is_some_and(|current| known.split(',').any(|known| opaque(known) == current));
    }
    // Dates that name other versions have another text; none of them is later than the current one's.
    entry.changed(page.version).is_some_and(|time| request.field("if-modified-since") == Some(time.as_str()))
}

/// The first and the last byte of the range that the request asks for, if it is to be answered with that alone.
fn range(entry: &Entry, page: &Page, request: &Request) -> Option<(u64, u64)> {
    if !entry.ranged || request.method != "GET" {
        return None;
    }
    if let Some(condition) = request.field("if-range") {
        let strong = entry.validator == Validator::Strong && entry.tag(page).as_deref() == Some(condition);
        if !strong && entry.changed(page.version).as_deref() != Some(condition) {
            return None;
        }
    }
    // Several ranges get the whole page.
    let only = request.field("range").filter(|ranges| !ranges.contains(','))?;
    let (from, to) = only.strip_prefix("bytes=")?.split_once('-')?;
    let last = page.length.checked_sub(1)?;
    let (from, to) = match (from.parse::<u64>(), to.parse::<u64>()) {
        (Ok(from), Ok(to)) => (from, to.min(last)),
        (Ok(from), Err(_)) => (from, last),
        (Err(_), Ok(count)) if count > 0 => (page.length.saturating_sub(count), last),
        _ => return None,
    };
    (from <= to && from <= last).then_some((from, to))
}
