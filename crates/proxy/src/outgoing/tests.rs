use super::*;
use sandarac_message::conditional::Role;
use sandarac_message::{Method, RequestHead, Version};

/// The beginning of a response, one field a line, and what follows.
fn begun(method: Method, request: &[(&str, &str)], mut outgoing: Outgoing<'_>) -> String {
    let fields: FieldsBuf = request.iter().copied().collect();
    let head = RequestHead {
        method,
        method_text: method.text().unwrap_or(b"GET"),
        target: b"/page",
        version: Version::Http11,
        fields: fields.view(),
    };
    let terms =
        Terms { request: &head, now: Timestamp::from_secs(1_800_000_000), hsts: None, cache_status: None };
    let mut text = String::new();
    let begun = outgoing.begin(&terms, |response| {
        text = response.status.to_string();
        let mut has_length = false;
        response.for_each_field(|name, text_of_name, value| {
            has_length |= name == Name::ContentLength;
            let [name, value] = [text_of_name, value].map(String::from_utf8_lossy);
            text += &format!("\n{name}: {value}");
        });
        if response.length == Length::Unknown {
            text += "\n(of unknown length)";
        }
    });
    assert!(text.starts_with(&begun.status.to_string()));
    text += &match begun.body {
        Following::Nothing => String::new(),
        Following::All => "\nall".to_owned(),
        Following::Range(range) => format!("\n{range:?}"),
        Following::Parts(parts) => format!("\n{} parts", parts.len()),
    };
    text
}

/// A stored page of a thousand bytes.
fn page(fields: &FieldsBuf, representation: Representation) -> Outgoing<'_> {
    Outgoing {
        status: 200,
        reason: b"OK",
        head: Head::Kept(fields.view()),
        own: None,
        age: Some(5),
        is_new: false,
        content: Content::Representation(representation),
    }
}

fn stored() -> (FieldsBuf, Representation) {
    let fields =
        [("Date", "Thu, 14 Jan 2027 00:00:00 GMT"), ("ETag", "\"1\""), ("Content-Type", "text/html")];
    let representation = Representation {
        role: Role::Cache,
        received: Timestamp::from_secs(1_799_884_800),
        length: Some(1000),
        held: None,
        parts: Parts::Several,
        seed: 7,
    };
    (fields.into_iter().collect(), representation)
}

const WHOLE: &str = "200\nDate: Thu, 14 Jan 2027 00:00:00 GMT\nETag: \"1\"\nContent-Type: text/html\ncontent-length: 1000\nage: 5\nall";

/// The text with the names of fields in lower case where tables of names give them so.
fn is(text: &str, expected: &str) {
    assert_eq!(text.to_ascii_lowercase(), expected.to_ascii_lowercase());
}

#[test]
fn a_representation_is_sent_whole_in_part_or_not_at_all() {
    let (fields, representation) = stored();
    let get = |request: &[(&str, &str)]| begun(Method::Get, request, page(&fields, representation));
    is(&get(&[]), WHOLE);
    is(&get(&[("If-None-Match", "\"2\"")]), WHOLE);
    is(&get(&[("If-None-Match", "\"1\"")]), "304\nDate: Thu, 14 Jan 2027 00:00:00 GMT\nETag: \"1\"\nage: 5");
    is(
        &get(&[("Range", "bytes=2-4")]),
        "206\nDate: Thu, 14 Jan 2027 00:00:00 GMT\nETag: \"1\"\nContent-Type: text/html\n\
         Content-Range: bytes 2-4/1000\ncontent-length: 3\nage: 5\n2..5",
    );
    is(
        &get(&[("Range", "bytes=2000-")]),
        "416\nContent-Range: bytes */1000\nDate: Fri, 15 Jan 2027 08:00:00 GMT\ncontent-length: 0\nage: 5",
    );
    is(&get(&[("Range", "bytes=2-4"), ("If-Range", "\"0\"")]), WHOLE);
    let several = get(&[("Range", "bytes=0-1,900-901")]);
    assert!(several.contains("multipart/byteranges") && several.ends_with("5 parts"), "{several}");
}

#[test]
fn head_gets_the_same_head_and_nothing_follows() {
    let (fields, representation) = stored();
    let head = begun(Method::Head, &[("Range", "bytes=2-4")], page(&fields, representation));
    is(&head, WHOLE.trim_end_matches("\nall"));
}

#[test]
fn what_cannot_be_told_apart_or_still_arrives_has_no_parts() {
    let (fields, representation) = stored();
    let get = |parts, range: &str| {
        begun(Method::Get, &[("Range", range)], page(&fields, Representation { parts, ..representation }))
    };
    is(&get(Parts::None, "bytes=2-4"), WHOLE);
    is(&get(Parts::One, "bytes=0-1,900-901"), WHOLE);
    assert!(get(Parts::One, "bytes=2-4").ends_with("2..5"));
}

#[test]
fn a_stored_part_answers_what_it_covers() {
    let (fields, representation) = stored();
    let held = ContentRange::of(ByteRange { first: 100, last: 109 }, 1000);
    let part = |request: &[(&str, &str)]| {
        let held = Representation { held: Some(held), length: Some(10), ..representation };
        begun(Method::Get, request, Outgoing { status: 206, ..page(&fields, held) })
    };
    assert!(part(&[("Range", "bytes=102-104")]).ends_with("\n2..5"));
    assert!(part(&[("Range", "bytes=102-104")]).contains("bytes 102-104/1000"));
    assert!(part(&[("Range", "bytes=100-109")]).ends_with("\nall"));
}

#[test]
fn only_an_origin_says_that_a_condition_failed() {
    let (fields, representation) = stored();
    let asked = |role| {
        let content = Representation { role, ..representation };
        begun(Method::Get, &[("If-Match", "\"2\"")], Outgoing { is_new: true, ..page(&fields, content) })
    };
    is(&asked(Role::Cache), WHOLE);
    is(&asked(Role::Origin), "412\nDate: Fri, 15 Jan 2027 08:00:00 GMT\ncontent-length: 0\nage: 5");
}

#[test]
fn what_is_made_here_has_the_date_of_now_once() {
    let none = FieldsBuf::new();
    is(
        &begun(Method::Get, &[], Outgoing::made(404, none.view(), 3)),
        "404\nDate: Fri, 15 Jan 2027 08:00:00 GMT\ncontent-length: 3\nall",
    );
    let dated: FieldsBuf = [("Date", "yesterday")].into_iter().collect();
    is(&begun(Method::Get, &[], Outgoing::made(204, dated.view(), 3)), "204\nDate: yesterday");
    // Conditions and ranges mean nothing for it.
    is(
        &begun(Method::Get, &[("Range", "bytes=0-0")], Outgoing::made(404, dated.view(), 3)),
        "404\nDate: yesterday\ncontent-length: 3\nall",
    );
}

#[test]
fn what_is_relayed_goes_as_it_comes() {
    let fields: FieldsBuf = [("ETag", "\"1\"")].into_iter().collect();
    let relayed = Outgoing::relayed(200, Head::Own(fields), Length::Unknown);
    is(
        &begun(Method::Get, &[("If-None-Match", "\"1\"")], relayed),
        "200\nETag: \"1\"\n(of unknown length)\nall",
    );
}
