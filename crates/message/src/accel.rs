//! Fields by which an application instructs the server in front of it, as it does nginx: `X-Accel-…` and `X-Sendfile`. No client
//! gets them.

use crate::{Field, Fields, Name, Timestamp};

/// The field by which a response names an internal URI whose file is to be sent in place of its body.
pub const X_ACCEL_REDIRECT: &[u8] = b"X-Accel-Redirect";

/// The field by which a response names the path of a file to be sent in place of its body.
pub const X_SENDFILE: &[u8] = b"X-Sendfile";

const X_ACCEL_BUFFERING: &[u8] = b"X-Accel-Buffering";
const X_ACCEL_EXPIRES: &[u8] = b"X-Accel-Expires";

/// All of them. The last two have no meaning here; nginx removes them too.
const INSTRUCTIONS: [&[u8]; 6] = [
    X_ACCEL_REDIRECT,
    X_SENDFILE,
    X_ACCEL_BUFFERING,
    X_ACCEL_EXPIRES,
    b"X-Accel-Limit-Rate",
    b"X-Accel-Charset",
];

/// Whether a field of a response is an instruction for the server in front of the application.
pub fn is_instruction(field: &Field<'_>) -> bool {
    field.id == Name::Other && INSTRUCTIONS.iter().any(|name| field.is(name))
}

/// Whether a field names a file for this proxy to send.
pub fn names_file(field: &Field<'_>) -> bool {
    field.id == Name::Other && [X_ACCEL_REDIRECT, X_SENDFILE].iter().any(|name| field.is(name))
}

/// Whether a response asks not to be read ahead of its client.
pub fn is_unbuffered(response: Fields<'_>) -> bool {
    response.all_named(X_ACCEL_BUFFERING).any(|value| value.eq_ignore_ascii_case(b"no"))
}

/// For how many seconds a response may be stored by X-Accel-Expires: a number of them, or a time after `@`, in seconds since the
/// epoch. 0 if it is not to be stored. `None` without a valid value; of several, the shortest counts.
pub fn expires(response: Fields<'_>, now: Timestamp) -> Option<u64> {
    let number = |digits: &[u8]| {
        let are_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        std::str::from_utf8(digits).ok().filter(|_| are_digits)?.parse::<u64>().ok()
    };
    let seconds = |value: &[u8]| match value.strip_prefix(b"@") {
        Some(time) => number(time).map(|time| time.saturating_sub(now.as_secs())),
        None => number(value),
    };
    response.all_named(X_ACCEL_EXPIRES).filter_map(seconds).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FieldsBuf;

    #[test]
    fn all_instructions_are_known_in_any_letter_case_and_nothing_else_is() {
        let fields: FieldsBuf = [
            ("x-accel-redirect", "/a"),
            ("X-SENDFILE", "/a"),
            ("X-Accel-Buffering", "no"),
            ("X-Accel-Expires", "1"),
            ("X-Accel-Limit-Rate", "1"),
            ("X-Accel-Charset", "a"),
            ("X-Accel", "a"),
            ("X-Accel-Other", "a"),
            ("X-Sendfile-Type", "a"),
            ("Content-Type", "a"),
        ]
        .into_iter()
        .collect();
        let known = fields.view().iter().filter(is_instruction).count();
        assert_eq!(known, 6);
        assert!(fields.view().iter().take(6).all(|field| is_instruction(&field)));
        assert!(is_unbuffered(fields.view()));
    }

    #[test]
    fn a_lifetime_is_a_number_of_seconds_or_a_time() {
        let now = Timestamp::from_secs(1000);
        for (values, expected) in [
            (&["300"][..], Some(300)),
            (&["0"], Some(0)),
            (&["@1300"], Some(300)),
            (&["@1000"], Some(0)),
            (&["@10"], Some(0)),
            (&["300", "60"], Some(60)),
            (&["300", "x"], Some(300)),
            (&["-1"], None),
            (&["+1"], None),
            (&["@"], None),
            (&["1.5"], None),
            (&["99999999999999999999999"], None),
            (&[""], None),
            (&[], None),
        ] {
            let response: FieldsBuf = values.iter().map(|value| ("X-Accel-Expires", value)).collect();
            assert_eq!(expires(response.view(), now), expected, "{values:?}");
        }
    }
}
