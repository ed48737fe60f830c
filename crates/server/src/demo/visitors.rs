//! Visitors of the sample site under load: their requests, and the check of each response.

use std::fmt;
use std::net::SocketAddr;

use memchr::memmem;
use sandarac_balance::Random;

use super::content;
use crate::load_client::LoadResponse;

/// The kind of a visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Reads without signing in.
    Reader,
    /// Is signed in: every page greets them by name, one of them in a corner of its own.
    Member,
    /// Looks at the page that no cache may keep.
    Watcher,
}

/// A request, with the means to check its response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Page { path: String, name: String },
    Picture(usize),
    ApiList,
    ApiArticle(usize),
}

impl Wish {
    fn page(path: &str, name: &str) -> Wish {
        Wish::Page { path: path.to_owned(), name: name.to_owned() }
    }

    fn article(number: usize) -> Wish {
        Wish::Page { path: format!("/articles/{number}"), name: format!("article-{number}") }
    }

    /// Whether it is a page that a cache may keep for all, because its personal corner is put in.
    pub(super) fn has_corner(&self) -> bool {
        matches!(self, Wish::Page { name, .. } if name == "today")
    }

    pub(super) fn path(&self) -> String {
        match self {
            Wish::Page { path, .. } => path.clone(),
            Wish::Picture(number) => format!("/images/{number}.svg"),
            Wish::ApiList => "/api/articles".to_owned(),
            Wish::ApiArticle(number) => format!("/api/articles/{number}"),
        }
    }
}

/// An error in a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// The page greets another visitor: a private response was leaked.
    Leak { path: String, asked: String, greeted: String },
    /// A page that must not be kept was seen before.
    Kept { path: String },
    /// The status is not 200.
    Status { path: String, status: u16 },
    /// It is not the page asked for.
    Body { path: String },
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who =
            |name: &str| if name.is_empty() { "a visitor not signed in".to_owned() } else { name.to_owned() };
        match self {
            Wrong::Leak { path, asked, greeted } => {
                write!(f, "{path} was requested by {} and answered for {}", who(asked), who(greeted))
            }
            Wrong::Kept { path } => {
                write!(f, "{path} must not be cached, but the same page was served twice")
            }
            Wrong::Status { path, status } => write!(f, "{path} was answered with status {status}"),
            Wrong::Body { path } => write!(f, "{path} was answered with another page"),
        }
    }
}

/// One visitor, with the choice of the next page and the state to check it.
#[derive(Debug)]
pub(super) struct Visitor {
    pub(super) kind: Kind,
    /// The name they sign in with; empty for the others.
    pub(super) name: String,
    /// The `Cookie` value once signed in.
    pub(super) cookie: Option<String>,
    /// Seeded, so that both runs see the same visitors.
    random: Random,
    last_serial: u64,
}

/// How often each article is read: the k-th in proportion to 1/k, as popularity on real sites falls off (Zipf).
fn zipf(random: &mut Random) -> usize {
    let total: f64 = (1..=content::COUNT).map(|rank| 1.0 / rank as f64).sum();
    let mut left = random.fraction() * total;
    for rank in 1..=content::COUNT {
        left -= 1.0 / rank as f64;
        if left < 0.0 {
            return rank;
        }
    }
    content::COUNT
}

impl Visitor {
    pub(super) fn new(kind: Kind, number: usize, seed: u64) -> Visitor {
        let name = if kind == Kind::Member { format!("member-{number}") } else { String::new() };
        let random = Random::new(seed.wrapping_add(number as u64 * 0x0100_0193));
        Visitor { kind, name, cookie: None, random, last_serial: 0 }
    }

    /// The next request.
    pub(super) fn choose(&mut self) -> Wish {
        let share = self.random.fraction();
        match self.kind {
            Kind::Watcher => Wish::page("/clock", "clock"),
            Kind::Member if share < 0.2 => Wish::page("/account", "account"),
            Kind::Member if share < 0.4 => Wish::page("/today", "today"),
            Kind::Member if share < 0.5 => Wish::page("/", "front"),
            Kind::Member => Wish::article(zipf(&mut self.random)),
            Kind::Reader => match share {
                share if share < 0.12 => Wish::page("/", "front"),
                share if share < 0.18 => {
                    let section = content::SECTIONS[self.random.bits() as usize % content::SECTIONS.len()];
                    let section = section.to_ascii_lowercase();
                    Wish::page(&format!("/sections/{section}"), &format!("section-{section}"))
                }
                share if share < 0.20 => Wish::ApiList,
                share if share < 0.26 => Wish::ApiArticle(zipf(&mut self.random)),
                share if share < 0.46 => Wish::Picture(zipf(&mut self.random)),
                _ => Wish::article(zipf(&mut self.random)),
            },
        }
    }

    /// Writes the request for `wish`.
    pub(super) fn request(&self, wish: &Wish, host: SocketAddr, out: &mut Vec<u8>) {
        let cookie = self.cookie.as_ref().map(|cookie| format!("Cookie: {cookie}\r\n")).unwrap_or_default();
        out.clear();
        out.extend_from_slice(
            format!(
                "GET {} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: sandarac-demo\r\nAccept: */*\r\n{cookie}\r\n",
                wish.path()
            )
            .as_bytes(),
        );
    }

    /// Writes the request that signs this visitor in.
    pub(super) fn sign_in(&self, host: SocketAddr) -> Vec<u8> {
        let form = format!("name={}", self.name);
        format!(
            "POST /login HTTP/1.1\r\nHost: {host}\r\nUser-Agent: sandarac-demo\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
            form.len()
        )
        .into_bytes()
    }

    /// Whether `answer` is the right response for this visitor.
    pub(super) fn check(&mut self, wish: &Wish, answer: &LoadResponse) -> Result<(), Wrong> {
        let path = wish.path();
        let body = answer.body.as_slice();
        // The visitor's name is checked first: a leak is worse than a wrong status, and must not hide behind one.
        let greeted = attribute(body, b"data-visitor=\"");
        if let Some(greeted) = greeted
            && greeted != self.name.as_bytes()
        {
            let greeted = String::from_utf8_lossy(greeted).into_owned();
            return Err(Wrong::Leak { path, asked: self.name.clone(), greeted });
        }
        if answer.status != 200 {
            return Err(Wrong::Status { path, status: answer.status });
        }
        let right = match wish {
            Wish::Page { name, .. } => {
                greeted.is_some()
                    && attribute(body, b"data-page=\"") == Some(name.as_bytes())
                    && body.ends_with(b"</html>\n")
            }
            Wish::Picture(number) => {
                body.ends_with(b"</svg>\n")
                    && attribute(body, b" id=\"") == Some(format!("picture-{number}").as_bytes())
            }
            Wish::ApiList => body.starts_with(b"[{") && body.ends_with(b"}]\n"),
            Wish::ApiArticle(number) => {
                body.starts_with(format!("{{\"id\":{number},").as_bytes()) && body.ends_with(b"}\n")
            }
        };
        if !right {
            return Err(Wrong::Body { path });
        }
        if self.kind != Kind::Reader {
            let serial = attribute(body, b"data-serial=\"")
                .and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
            let serial = serial.unwrap_or_default();
            if serial <= self.last_serial {
                return Err(Wrong::Kept { path });
            }
            self.last_serial = serial;
        }
        Ok(())
    }
}

/// The value that follows `opening` near the start of a page, up to its closing quote.
fn attribute<'a>(body: &'a [u8], opening: &[u8]) -> Option<&'a [u8]> {
    let top = &body[..body.len().min(2048)];
    let rest = &top[memmem::find(top, opening)? + opening.len()..];
    Some(&rest[..memchr::memchr(b'"', rest)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(name: &str, visitor: &str, serial: u64) -> LoadResponse {
        let body = format!(
            "<body data-page=\"{name}\" data-visitor=\"{visitor}\" data-serial=\"{serial}\"></body></html>\n"
        );
        LoadResponse { status: 200, body: body.into_bytes(), ..LoadResponse::default() }
    }

    #[test]
    fn a_page_for_somebody_else_is_a_leak_whatever_its_status() {
        let mut reader = Visitor::new(Kind::Reader, 1, 1);
        let wish = Wish::article(3);
        assert_eq!(reader.check(&wish, &page("article-3", "", 1)), Ok(()));
        let mut leaked = page("article-3", "member-2", 1);
        leaked.status = 500;
        assert!(matches!(reader.check(&wish, &leaked), Err(Wrong::Leak { .. })));
        let mut member = Visitor::new(Kind::Member, 3, 1);
        assert!(matches!(member.check(&wish, &page("article-3", "", 1)), Err(Wrong::Leak { .. })));
    }

    #[test]
    fn a_page_that_must_not_be_kept_is_told_when_seen_again() {
        let mut watcher = Visitor::new(Kind::Watcher, 1, 1);
        let wish = watcher.choose();
        assert_eq!(watcher.check(&wish, &page("clock", "", 5)), Ok(()));
        assert!(matches!(watcher.check(&wish, &page("clock", "", 5)), Err(Wrong::Kept { .. })));
    }

    #[test]
    fn another_or_cut_page_is_wrong() {
        let mut reader = Visitor::new(Kind::Reader, 1, 1);
        assert!(matches!(
            reader.check(&Wish::article(3), &page("article-4", "", 1)),
            Err(Wrong::Body { .. })
        ));
        let mut cut = page("article-3", "", 1);
        cut.body.truncate(cut.body.len() - 3);
        assert!(matches!(reader.check(&Wish::article(3), &cut), Err(Wrong::Body { .. })));
    }

    #[test]
    fn popular_articles_are_read_most() {
        let mut random = Random::new(7);
        let mut counts = [0; content::COUNT + 1];
        for _ in 0..20_000 {
            counts[zipf(&mut random)] += 1;
        }
        assert!(counts[1] > 4000 && counts[1] > counts[5] && counts[5] > counts[40] && counts[40] > 0);
    }
}
