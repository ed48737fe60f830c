//! Whether two pages differ by more than they do by themselves.

use std::collections::HashSet;

/// A page, asked for twice.
pub(super) struct Pages {
    status: u16,
    once: Vec<u8>,
    again: Vec<u8>,
}

impl Pages {
    pub(super) fn new((status, once): (u16, Vec<u8>), (again_status, again): (u16, Vec<u8>)) -> Pages {
        // A page that fails now and then is compared as it came first.
        let again = if again_status == status { again } else { once.clone() };
        Pages { status, once, again }
    }

    /// Whether it is another one each time, because of a time, a token or a count in it.
    pub(super) fn changes(&self) -> bool {
        self.once != self.again
    }

    /// Whether enough of it stays the same to tell it from another page: a third of its bytes.
    pub(super) fn is_comparable(&self) -> bool {
        let lasting: usize = self.lasting().iter().map(|line| line.len()).sum();
        !self.changes() || lasting * 3 >= self.once.len()
    }

    /// The lines that both have.
    fn lasting(&self) -> HashSet<&[u8]> {
        let again = lines(&self.again);
        lines(&self.once).intersection(&again).copied().collect()
    }
}

/// Whether the pages differ in lines that each of them has whenever it is asked for.
pub(super) fn differ(one: &Pages, other: &Pages) -> bool {
    if one.status != other.status {
        return true;
    }
    if !one.changes() && !other.changes() {
        return one.once != other.once;
    }
    let lacks = |page: &Pages, lasting: &HashSet<&[u8]>| {
        [&page.once, &page.again].iter().any(|body| !lasting.is_subset(&lines(body)))
    };
    lacks(one, &other.lasting()) || lacks(other, &one.lasting())
}

fn lines(body: &[u8]) -> HashSet<&[u8]> {
    body.split(|&byte| byte == b'\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(once: &str, again: &str) -> Pages {
        Pages::new((200, once.into()), (200, again.into()))
    }

    #[test]
    fn what_changes_by_itself_is_no_difference() {
        let plain = pages("news\ntoken 1\nend", "news\ntoken 2\nend");
        assert!(plain.changes());
        assert!(!differ(&plain, &pages("news\ntoken 3\nend", "news\ntoken 4\nend")));
        assert!(differ(&plain, &pages("Neues\ntoken 3\nend", "Neues\ntoken 4\nend")));
        assert!(differ(&plain, &pages("news\nhello ann\ntoken 3\nend", "news\nhello ann\ntoken 4\nend")));
    }

    #[test]
    fn a_page_of_one_line_that_changes_cannot_be_compared() {
        assert!(!pages("<p>news <i>1</i>", "<p>news <i>2</i>").is_comparable());
        assert!(pages("news\ntoken 1\nend of the news", "news\ntoken 2\nend of the news").is_comparable());
        assert!(pages("", "").is_comparable());
    }

    #[test]
    fn pages_that_stay_the_same_are_compared_byte_for_byte() {
        assert!(!differ(&pages("a", "a"), &pages("a", "a")));
        assert!(differ(&pages("a\nb", "a\nb"), &pages("b\na", "b\na")));
        let missing = Pages::new((404, b"a".to_vec()), (404, b"a".to_vec()));
        assert!(differ(&pages("a", "a"), &missing));
    }
}
