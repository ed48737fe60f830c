//! The rules of the checker, each defined once with its stable name.

use crate::diagnostic::Rule;
use crate::rules::rules;

rules! {
    ACL_ENTRY error "acl-entry" "An entry of a list is an address or a name, with a mask that fits it.";
    ACTION error "action" "Each sub has its own actions.";
    ACTION_ARGUMENTS error "action-arguments" "An action has only its own arguments.";
    ARGUMENTS error "arguments" "A call has the arguments of its function.";
    BAN error "ban" "A ban tests fields of `req` and `obj`, with operators of its own.";
    CACHED_COOKIES warning "cached-cookies" "Requests with cookies are looked up only if these do not count.";
    DEFINED_TWICE error "defined-twice" "A name is defined once.";
    DOLLAR_GROUP warning "dollar-group" "A replacement has `\\1` for the first group.";
    HOST_PATTERN warning "host-pattern" "Dots in patterns of host names are escaped.";
    INLINE_C error "inline-c" "C is not compiled here.";
    KEY_WITHOUT_HOST warning "key-without-host" "The key of an object has its host.";
    NESTED_QUANTIFIERS warning "nested-quantifiers" "No repeated group consists of a repetition.";
    NO_BACKEND error "no-backend" "A program has at least one backend.";
    NOT_HERE error "not-here" "A variable or function is used only in the subs that have it.";
    NUMBER error "number" "A number is within the bounds of its place.";
    OVERWRITTEN warning "overwritten" "A value is used before it is overwritten.";
    PATTERN error "pattern" "A pattern is a regular expression, written as a string.";
    PROPERTY error "property" "Backends and probes have only their own properties, each of its kind.";
    READ_ONLY error "read-only" "Some variables can only be read, or only be set.";
    RECURSION error "recursion" "A sub does not call itself, directly or through others.";
    REMOVED_FUNCTION warning "removed-function" "A function exists in version 8 too.";
    STORED_COOKIE warning "stored-cookie" "A response that sets a cookie is not stored for all.";
    SYNTAX_VERSION error "syntax-version" "Some variables exist only in one version of the syntax.";
    TYPE error "type" "A value has the type of its place.";
    UNGUARDED_PURGE warning "unguarded-purge" "Only known clients may remove objects.";
    UNGUARDED_RESTART warning "unguarded-restart" "A restart is limited by `req.restarts`.";
    UNKNOWN_ACTION error "unknown-action" "An action is one of the language.";
    UNKNOWN_FUNCTION error "unknown-function" "A function or method is one of its module or object.";
    UNKNOWN_MODULE error "unknown-module" "A module is one that is provided here.";
    UNKNOWN_SUB error "unknown-sub" "Names of subs that begin with `vcl_` are those of the language.";
    UNKNOWN_SYMBOL error "unknown-symbol" "A name is defined before it is used.";
    UNKNOWN_VARIABLE error "unknown-variable" "A variable is one of the language.";
    UNUSED error "unused" "What is defined is used, or marked by `unused`.";
    UNREACHABLE warning "unreachable" "No statement follows a `return` in the same block.";
    WIDE_VARY warning "wide-vary" "Responses vary only by fields with a few values.";
    ZERO_TTL warning "zero-ttl" "A lifetime of zero comes with `beresp.uncacheable`.";
    NO_VALUE error "no-value" "Only a function without a value is a statement of its own.";
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
