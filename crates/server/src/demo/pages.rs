//! The sample site's HTML: a frame and its content.

use std::fmt::Write as _;
use std::time::Duration;

use sandarac_message::civil::Civil;

use super::content::{Article, SECTIONS, articles};

/// The style sheet of every page.
pub(super) const STYLE: &str = include_str!("assets/style.css");

/// The script that shows, in the footer, how a page was served.
pub(super) const SCRIPT: &str = include_str!("assets/answered.js");

/// How a page was made, shown in its footer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    /// When it was finished.
    pub(super) at: Civil,
    /// How long it took, waiting for a worker included.
    pub(super) took: Duration,
    /// The number of requests that the site had answered by then, including this one.
    pub(super) serial: u64,
}

/// A complete page. `name` identifies it to the load driver; `visitor` is the signed-in visitor.
pub(super) fn frame(name: &str, title: &str, visitor: Option<&str>, made: Made, main: &str) -> String {
    let mut greeting = String::new();
    greet(visitor, &mut greeting);
    framed(name, title, &whose(visitor, made), &greeting, made, main)
}

/// A complete page for all visitors, into which an accelerator puts the [`corner`] of each.
pub(super) fn frame_without_corner(name: &str, title: &str, made: Made, main: &str) -> String {
    framed(name, title, "", "<esi:include src=\"/corner\"/>", made, main)
}

/// The corner of a page that is personal.
pub(super) fn corner(visitor: Option<&str>, made: Made) -> String {
    let mut corner = format!("<span{}>", whose(visitor, made));
    greet(visitor, &mut corner);
    corner.push_str("</span>");
    corner
}

/// Attributes that tell the load driver whom something was made for, and when.
fn whose(visitor: Option<&str>, made: Made) -> String {
    format!(" data-visitor=\"{}\" data-serial=\"{}\"", escape(visitor.unwrap_or_default()), made.serial)
}

fn greet(visitor: Option<&str>, html: &mut String) {
    match visitor {
        Some(name) => {
            let _ = write!(
                html,
                "<a href=\"/account\">{}</a>\n\
                 <form method=\"post\" action=\"/logout\"><button>Sign out</button></form>",
                escape(name)
            );
        }
        None => html.push_str("<a href=\"/login\">Sign in</a>"),
    }
}

fn framed(name: &str, title: &str, whose: &str, greeting: &str, made: Made, main: &str) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} · The Resin Review</title>\n\
         <link rel=\"stylesheet\" href=\"/style.css\">\n<link rel=\"icon\" href=\"/images/1.svg\">\n\
         <script src=\"/answered.js\" defer></script>\n</head>\n\
         <body data-page=\"{name}\"{whose}>\n\
         <header class=\"masthead\"><a class=\"brand\" href=\"/\">The <em>Resin</em> Review</a>\n<nav>",
    );
    for section in SECTIONS {
        let _ = writeln!(page, "<a href=\"/sections/{}\">{section}</a>", section.to_ascii_lowercase());
    }
    page.push_str(
        "<a href=\"/today\">Today</a>\n<a href=\"/clock\">Clock</a>\n<a href=\"/api/articles\">API</a>\n",
    );
    page.push_str(greeting);
    let _ = write!(
        page,
        "</nav></header>\n<main>\n{main}\n</main>\n<footer>\n<p id=\"answered\">Asking who answers this page …</p>\n\
         <p>Made by the site at {} UTC in {} ms; request {} that it answered. \
         The sample site of Sandarac’s demo.</p>\n</footer>\n</body>\n</html>\n",
        made.at.time_of_day(),
        made.took.as_millis(),
        made.serial,
    );
    page
}

/// The cards of a list page, of one section or of all.
pub(super) fn list(section: Option<&str>) -> String {
    let mut html = match section {
        Some(section) => format!("<h1>{section}</h1>\n"),
        None => String::new(),
    };
    html.push_str("<ul class=\"cards\">\n");
    for article in articles().filter(|article| section.is_none_or(|section| section == article.section)) {
        let Article { number, title, section, lead, .. } = article;
        let _ = write!(
            html,
            "<li><img class=\"figure\" src=\"/images/{number}.svg\" alt=\"\" loading=\"lazy\" width=\"640\" \
             height=\"360\">\n<div><h2><a href=\"/articles/{number}\">{title}</a></h2>\n\
             <p class=\"meta\">{section}</p>\n<p>{lead}</p></div></li>\n"
        );
    }
    html.push_str("</ul>");
    html
}

/// One article with its picture and the button that changes it.
pub(super) fn article(article: &Article, thanks: u64) -> String {
    let Article { number, title, section, lead, .. } = article;
    let mut html = format!(
        "<article>\n<h1>{title}</h1>\n<p class=\"meta\">{section}</p>\n<p class=\"lead\">{lead}</p>\n\
         <img class=\"figure\" src=\"/images/{number}.svg\" alt=\"\" width=\"640\" height=\"360\">\n"
    );
    for paragraph in &article.paragraphs {
        let _ = writeln!(html, "<p>{paragraph}</p>");
    }
    let _ = write!(
        html,
        "</article>\n<form class=\"panel\" method=\"post\" action=\"/articles/{number}\">\n\
         <p class=\"meta\">Thanked {thanks} times. A POST to the article’s own address makes a cache drop it \
         (RFC 9111 §4.4), so the new number shows at once.</p>\n<p><button>Thank the author</button></p></form>"
    );
    html
}

/// The form to sign in, with the error of the last attempt.
pub(super) fn login(complaint: Option<&str>) -> String {
    let complaint = complaint.map(|text| format!("<p><strong>{}</strong></p>\n", escape(text)));
    format!(
        "<form class=\"panel\" method=\"post\" action=\"/login\">\n<h1>Sign in</h1>\n{}\
         <p><label for=\"name\">Your name (there is no password; this is a sample)</label></p>\n\
         <p><input id=\"name\" name=\"name\" autocomplete=\"username\" required maxlength=\"24\" \
         pattern=\"[A-Za-z0-9\\-]+\">\n<button>Sign in</button></p></form>",
        complaint.unwrap_or_default()
    )
}

/// The private page of a visitor.
pub(super) fn account(visitor: &str) -> String {
    format!(
        "<section class=\"panel\">\n<h1>Hello, {}.</h1>\n<p>This page is <code>private</code>: it carries your name, \
         and no shared cache may keep it. While you are signed in, every page greets you, so all of them come from \
         the site itself, except <a href=\"/today\">Today</a>: only its corner does.</p></section>",
        escape(visitor)
    )
}

/// The page that no cache may keep.
pub(super) fn clock(now: Civil) -> String {
    format!(
        "<section class=\"panel\">\n<p class=\"meta\">The time at the site, UTC</p>\n<p class=\"clock\">{}</p>\n\
         <p>This page is <code>no-store</code>: whoever asks, however often, gets it from the site.</p></section>",
        now.time_of_day()
    )
}

/// The text of a page that has nothing to show.
pub(super) fn message(title: &str, text: &str) -> String {
    format!(
        "<section class=\"panel\">\n<h1>{title}</h1>\n<p>{text}</p>\n<p><a href=\"/\">Front page</a></p></section>"
    )
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_message::Timestamp;

    #[test]
    fn a_visitors_name_cannot_become_markup() {
        let made = Made { at: Civil::of(Timestamp::from_secs(0)), took: Duration::from_millis(5), serial: 1 };
        let page = frame("account", "Account", Some("\"><script>"), made, &account("<b>"));
        assert!(!page.contains("\"><script>") && !page.contains("<b>"));
        assert!(page.contains("data-visitor=\"&quot;&gt;&lt;script&gt;\""));
    }
}
