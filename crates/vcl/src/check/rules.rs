//! The rules of the checker, each defined once with its stable name.

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

rules! {
    ACL_ENTRY error "acl-entry" "An entry of an access list is an address or a name, with a mask that fits it.";
    ACTION error "action" "Each sub has its own actions.";
    ACTION_ARGUMENTS error "action-arguments" "An action has only its own arguments.";
    ARGUMENTS error "arguments" "A call has the arguments of its function.";
    BAN error "ban" "A ban tests fields of `req` and `obj`, with operators of its own.";
    DEFINED_TWICE error "defined-twice" "A name is defined once.";
    DOLLAR_GROUP warning "dollar-group" "A replacement has `\\1` for the first group.";
    INLINE_C error "inline-c" "C is not compiled here.";
    NO_BACKEND error "no-backend" "A program has at least one backend.";
    NOT_HERE error "not-here" "A variable or function is used only in the subs that have it.";
    NUMBER error "number" "A number is within the bounds of its place.";
    PATTERN error "pattern" "A pattern is a regular expression, written as a string.";
    PROPERTY error "property" "Backends and probes have only their own properties, each with a value of its kind.";
    READ_ONLY error "read-only" "Some variables can only be read, or only be set.";
    RECURSION error "recursion" "A sub does not call itself, directly or through others.";
    SYNTAX_VERSION error "syntax-version" "Some variables exist only in one version of the syntax.";
    TYPE error "type" "A value has the type of its place.";
    UNKNOWN_ACTION error "unknown-action" "An action is one of the language.";
    UNKNOWN_FUNCTION error "unknown-function" "A function or method is one of its module or object.";
    UNKNOWN_MODULE error "unknown-module" "A module is one that is provided here.";
    UNKNOWN_SUB error "unknown-sub" "Names of subs that begin with `vcl_` are those of the language.";
    UNKNOWN_SYMBOL error "unknown-symbol" "A name is defined before it is used.";
    UNKNOWN_VARIABLE error "unknown-variable" "A variable is one of the language.";
    UNUSED error "unused" "What is defined is used, or marked by `unused`.";
    UNREACHABLE warning "unreachable" "No statement follows a `return` in the same block.";
    NO_VALUE error "no-value" "A function without a value is a statement of its own, and one with a value is not.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_words_and_texts_are_sentences() {
        let all: Vec<&Rule> = ALL.iter().chain(crate::rules::ALL).copied().collect();
        for (at, rule) in all.iter().enumerate() {
            assert!(rule.text.ends_with('.'), "{rule:?}");
            assert!(all[..at].iter().all(|other| other.name != rule.name), "{rule:?}");
        }
    }
}
