//! The rule of a route whose pages are assembled from fragments.

use sandarac_message::accel::names_file;
use sandarac_message::caching::announces_esi;
use sandarac_message::media_type::is_markup;
use sandarac_message::{Fields, Name};

/// Which responses of a route are pages that may have fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FragmentRule {
    /// HTML and XML, and those that announce it.
    Markup,
    /// Only those that announce it: `Surrogate-Control: content="ESI/1.0"`.
    Announced,
}

impl FragmentRule {
    /// Whether a response with this status, and these fields as they came, is such a page.
    pub fn is_page(self, status: u16, response: Fields<'_>) -> bool {
        // A file has taken the place of the page: others may have made it.
        let is_file = || response.iter().any(|field| names_file(&field));
        // A part of a page is no page, and neither is nothing.
        let has_whole_body = status >= 200 && !matches!(status, 204..=206 | 304);
        let is_asked_for = || match self {
            FragmentRule::Markup => {
                response.get(Name::ContentType).is_some_and(is_markup) || announces_esi(response)
            }
            FragmentRule::Announced => announces_esi(response),
        };
        has_whole_body && is_asked_for() && !is_file()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_message::FieldsBuf;

    #[track_caller]
    fn pages(fields: &[(&str, &str)]) -> (bool, bool) {
        let fields: FieldsBuf = fields.iter().copied().collect();
        let is_page = |rule: FragmentRule, status| rule.is_page(status, fields.view());
        for status in [204, 205, 206, 304] {
            assert!(!is_page(FragmentRule::Markup, status) && !is_page(FragmentRule::Announced, status));
        }
        assert_eq!(is_page(FragmentRule::Markup, 200), is_page(FragmentRule::Markup, 404));
        (is_page(FragmentRule::Markup, 200), is_page(FragmentRule::Announced, 200))
    }

    #[test]
    fn a_file_in_the_place_of_a_page_is_none() {
        let announced = ("Surrogate-Control", "content=\"ESI/1.0\"");
        assert_eq!(pages(&[announced, ("X-Sendfile", "1")]), (false, false));
        assert_eq!(pages(&[("x-accel-redirect", "/x"), announced]), (false, false));
    }

    #[test]
    fn a_page_is_markup_or_announced() {
        let html = ("Content-Type", "text/html");
        assert_eq!(pages(&[html]), (true, false));
        assert_eq!(pages(&[("Content-Type", "text/css")]), (false, false));
        assert_eq!(pages(&[]), (false, false));
        for control in [
            "content=\"ESI/1.0\"",
            "max-age=5, content=\"ESI/1.0\"",
            "content=\"Other/1 esi/1.0\";sandarac",
            "content=ESI/1.0",
        ] {
            assert_eq!(pages(&[("Surrogate-Control", control)]), (true, true), "{control}");
        }
        for control in
            ["content=\"ESI/2.0\"", "content=\"ESI/1.0\";other", "max-age=5", "content", "content="]
        {
            assert_eq!(pages(&[html, ("Surrogate-Control", control)]), (true, false), "{control}");
        }
    }
}
