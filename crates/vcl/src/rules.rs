//! The rules of the lexer and the parser, each defined once with its stable name.

use crate::diagnostic::Rule;

/// Defines each rule as a constant, and the list of all.
macro_rules! rules {
    ($($constant:ident $kind:ident $name:literal $text:literal;)*) => {
        $(
            #[doc = $text]
            pub const $constant: Rule = Rule::$kind($name, $text);
        )*

        /// All rules of this module.
        pub const ALL: &[&Rule] = &[$(&$constant),*];
    };
}
pub(crate) use rules;

rules! {
    BLOB error "blob" "A BLOB literal is base64 between colons.";
    BYTE_ORDER_MARK error "byte-order-mark" "A file does not begin with a byte order mark.";
    CONSTANT error "constant" "The value of a property is a constant.";
    DURATION_UNIT error "duration-unit" "A duration has one of the units ms, s, m, h, d, w and y.";
    EXPECTED error "expected" "The grammar allows only certain words at each place.";
    FOREIGN_ENCODING warning "foreign-encoding" "Strings and comments are UTF-8.";
    FOREIGN_QUOTES error "foreign-quotes" "Strings are written in double quotes.";
    FOREIGN_SYNTAX error "foreign-syntax"
        "VCL has no syntax of other languages, such as declarations of variables.";
    INCLUDE error "include" "An included file can be read.";
    INCLUDE_LOOP error "include-loop" "A file does not include itself, directly or through others.";
    INVALID_UTF8 error "invalid-utf8" "A file is UTF-8 outside of strings and comments.";
    LIMIT_BYTES error "limit-bytes" "The files of a program are not larger than a bound.";
    LIMIT_ERRORS error "limit-errors" "A program has fewer errors than a bound.";
    LIMIT_FILES error "limit-files" "A program has fewer files than a bound.";
    LIMIT_INCLUDES error "limit-includes" "Includes do not nest deeper than a bound.";
    LIMIT_NESTING error "limit-nesting" "Brackets, blocks and operators do not nest deeper than a bound.";
    LIMIT_TOKENS error "limit-tokens" "A program has fewer words than a bound.";
    MISPLACED error "misplaced" "Statements stand in subs; declarations stand outside of them.";
    MISSING_BRACE error "missing-brace" "Each `{` has its `}`, and blocks begin with `{`.";
    MISSING_PARENTHESIS error "missing-parenthesis" "Conditions, arguments and actions stand in parentheses.";
    MISSING_PLUS error "missing-plus" "Texts are joined with `+`.";
    MISSING_SEMICOLON error "missing-semicolon" "A statement ends with `;`.";
    MISSING_SET error "missing-set" "An assignment begins with `set`.";
    MISSING_VERSION error "missing-version" "A program begins with its version, such as `vcl 4.1;`.";
    NAME_CHARACTER error "name-character"
        "A name has only ASCII letters, digits, `_` and `-`, and begins with a letter.";
    NESTED_COMMENT error "nested-comment" "Comments do not nest.";
    NUL_BYTE error "nul-byte" "A file has no NUL bytes.";
    NUMBER_RANGE error "number-range" "An integer has at most 15 digits, a real number 12 and 3 decimals.";
    OLD_SYNTAX error "old-syntax" "VCL 4 has no syntax of VCL 2 and 3.";
    STRAY_SEMICOLON error "stray-semicolon" "No `;` stands by itself or after a block.";
    UNCLOSED_BLOCK error "unclosed-block" "Each `{` has its `}`.";
    UNKNOWN_CHARACTER error "unknown-character"
        "Only ASCII characters of the grammar stand outside of strings and comments.";
    UNKNOWN_FLAG error "unknown-flag" "Flags of acl are log, table, pedantic and fold; include has glob.";
    UNKNOWN_OPERATOR error "unknown-operator" "VCL has only its own operators.";
    UNKNOWN_STATEMENT error "unknown-statement" "A statement begins with a keyword, or calls a function.";
    UNKNOWN_DECLARATION error "unknown-declaration" "A declaration begins with its keyword.";
    UNOPENED_BLOCK error "unopened-block" "Each `}` has its `{`.";
    UNTERMINATED_C error "unterminated-c" "A block of C ends with `}C`.";
    UNTERMINATED_COMMENT error "unterminated-comment" "A comment ends with `*/`.";
    UNTERMINATED_STRING error "unterminated-string" "A string ends with its closing quote.";
    VERSION error "version"
        "The version is 4.0 or 4.1, and an included file has none above that of the main file.";
    WORD_OPERATOR error "word-operator" "Logical operators are `&&`, `||` and `!`.";
    WRONG_ASSIGNMENT error "wrong-assignment" "Conditions compare with `==`; `set` assigns with `=`.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_words_and_texts_are_sentences() {
        for (at, rule) in ALL.iter().enumerate() {
            assert!(
                rule.name.bytes().all(|byte| byte.is_ascii_lowercase() || b"-8".contains(&byte)),
                "{rule:?}"
            );
            assert!(rule.text.ends_with('.'), "{rule:?}");
            assert!(ALL[..at].iter().all(|other| other.name != rule.name), "{rule:?}");
        }
    }
}
