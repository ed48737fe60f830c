//! Text from untrusted sources, made safe for terminals and logs.
//!
//! A displayed line must stay one line, and must not control the terminal that shows it.

/// Whether a character affects the text around it instead of being visible: a control character, one that
/// changes the direction of writing, or one that ends a line or a paragraph.
pub fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// `text` with every invisible character replaced by U+FFFD. For tables and diagrams on a terminal: the width
/// is kept.
pub fn printable(text: &str) -> String {
    text.replace(is_unseen, "\u{fffd}")
}

/// `text` with every invisible character escaped, as in `\n` and `\u{1b}`. For logs: nothing is lost.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match is_unseen(letter) {
            true => out.extend(letter.escape_default()),
            false => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drives_a_terminal_is_replaced_or_escaped() {
        for (text, replaced, written) in [
            ("a\u{1b}[2J\n\u{9b}b", "a\u{fffd}[2J\u{fffd}\u{fffd}b", "a\\u{1b}[2J\\n\\u{9b}b"),
            ("gpj\u{202e}.é\u{2028}x", "gpj\u{fffd}.é\u{fffd}x", "gpj\\u{202e}.é\\u{2028}x"),
            ("pool app: é", "pool app: é", "pool app: é"),
            ("", "", ""),
        ] {
            assert_eq!([printable(text), escaped(text)], [replaced, written]);
        }
    }
}
