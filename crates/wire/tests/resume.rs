//! The résumé protocol: the test vectors shared with the worker package, and properties of every value.

use proptest::collection::vec;
use proptest::prelude::*;
use sandarac_message::{FieldsBuf, Name};
use sandarac_wire::resume::{
    Document, Known, MAX_CLASSES, MAX_INTEGER, Malformed, RequestClass, Skills, WorkerState,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// The cases of a file of `tests/vectors/resume`.
fn cases(file: &str) -> Vec<Value> {
    let path = format!("{}/../../tests/vectors/resume/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let file: Value = serde_json::from_str(&text).expect("the vectors are JSON");
    file["cases"].as_array().expect("the vectors have cases").clone()
}

/// Bytes from code points up to U+00FF.
fn bytes(text: &Value) -> Vec<u8> {
    let text = text.as_str().expect("a value is text");
    text.chars().map(|char| u8::try_from(char).expect("up to U+00FF")).collect()
}

/// Fields with `value`, read through a head.
fn fields(name: Name, value: &[u8]) -> FieldsBuf {
    let mut fields = FieldsBuf::new();
    fields.add(name, value).expect("the value fits");
    fields
}

/// Compares the result with the case's expectation, and returns it if it is not a refusal.
#[track_caller]
fn read<T: std::fmt::Debug>(case: &Value, read: Result<T, Malformed>) -> Option<T> {
    match (case["refused"].as_str(), read) {
        (Some(name), Err(why)) => {
            assert_eq!(why.name(), name, "{}", case["name"]);
            None
        }
        (None, Ok(read)) => Some(read),
        (expected, read) => panic!("{}: refused {expected:?}, read {read:?}", case["name"]),
    }
}

/// Checks that the value equals `written` if the case declares it canonical.
#[track_caller]
fn check_canonical(case: &Value, value: &[u8], written: &[u8]) {
    if case["canonical"] == true {
        assert_eq!(String::from_utf8_lossy(written), String::from_utf8_lossy(value), "{}", case["name"]);
    }
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> Result<(), Malformed>) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out).expect("it can be written");
    out
}

fn optional(value: &Value) -> Option<&str> {
    value.as_str()
}

/// Scores by class. The class names of the vectors are decoded through a document.
fn scores(means: &Value) -> BTreeMap<Vec<u8>, f64> {
    let class = |key: &str| {
        let body = serde_json::json!({"id": "i", "rev": 1, "by": "0123456789abcdef", "inflight": 0, "history": 1, "skills": {key: 1}});
        let document = Document::parse(body.to_string().as_bytes()).expect("the class is well-formed");
        document.skills.iter().next().expect("it has a class").0.to_vec()
    };
    let scores = means.as_object().expect("scores are an object");
    scores.iter().map(|(key, score)| (class(key), score.as_f64().expect("a score is a number"))).collect()
}

/// The scores, with the last of repeated classes.
fn last(skills: &Skills) -> BTreeMap<Vec<u8>, f64> {
    skills.iter().map(|(class, score)| (class.to_vec(), score)).collect()
}

#[test]
fn request_class_means_what_the_vectors_say() {
    for case in cases("request-class.json") {
        let value = bytes(&case["field"]);
        let Some(asked) = read(&case, RequestClass::parse(&value)) else { continue };
        let means = &case["means"];
        let meant = RequestClass {
            class: scores(&serde_json::json!({means["class"].as_str().unwrap(): 1}))
                .into_keys()
                .next()
                .unwrap()
                .into(),
            by: u64::from_str_radix(means["by"].as_str().unwrap(), 16).unwrap(),
            known: optional(&means["known"]["id"])
                .map(|id| Known { instance: id.into(), revision: means["known"]["rev"].as_u64().unwrap() }),
        };
        assert_eq!(asked, meant, "{}", case["name"]);
        let written = written(|out| asked.write(out));
        assert_eq!(RequestClass::parse(&written).as_ref(), Ok(&asked));
        check_canonical(&case, &value, &written);
        let fields = fields(Name::RequestClass, &written);
        assert_eq!(RequestClass::read(fields.view()), Some(Ok(asked)));
    }
}

#[test]
fn worker_state_means_what_the_vectors_say() {
    for case in cases("worker-state.json") {
        let value = bytes(&case["field"]);
        let Some(state) = read(&case, WorkerState::parse(&value)) else { continue };
        let means = &case["means"];
        let meant = WorkerState {
            instance: means["id"].as_str().unwrap().into(),
            revision: means["rev"].as_u64().unwrap(),
            in_flight: means["inflight"].as_u64().unwrap(),
            concurrency: means["concurrency"].as_u64(),
            version: optional(&means["version"]).map(Into::into),
        };
        assert_eq!(state, meant, "{}", case["name"]);
        let written = written(|out| state.write(out));
        assert_eq!(WorkerState::parse(&written).as_ref(), Ok(&state));
        check_canonical(&case, &value, &written);
    }
}

#[test]
fn worker_skills_mean_what_the_vectors_say() {
    for case in cases("worker-skills.json") {
        let value = bytes(&case["field"]);
        let Some(skills) = read(&case, Skills::parse(&value)) else { continue };
        assert_eq!(last(&skills), scores(&case["means"]), "{}", case["name"]);
        let written = written(|out| skills.write(out));
        assert_eq!(Skills::parse(&written).as_ref(), Ok(&skills));
        check_canonical(&case, &value, &written);
    }
}

#[test]
fn documents_mean_what_the_vectors_say() {
    for case in cases("documents.json") {
        let body = case["document"].as_str().expect("a document is text").as_bytes();
        let Some(document) = read(&case, Document::parse(body)) else { continue };
        let means = &case["means"];
        assert_eq!(document.instance, means["id"].as_str().unwrap(), "{}", case["name"]);
        assert_eq!(document.revision, means["rev"].as_u64().unwrap(), "{}", case["name"]);
        assert_eq!(format!("{:016x}", document.by), means["by"].as_str().unwrap(), "{}", case["name"]);
        assert_eq!(document.version.as_deref(), optional(&means["version"]), "{}", case["name"]);
        assert_eq!(document.in_flight, means["inflight"].as_u64().unwrap(), "{}", case["name"]);
        assert_eq!(document.history, means["history"].as_u64().unwrap(), "{}", case["name"]);
        assert_eq!(last(&document.skills), scores(&means["skills"]), "{}", case["name"]);
        let written = written(|out| document.write(out));
        assert_eq!(Document::parse(&written).as_ref(), Ok(&document));
        check_canonical(&case, body, &written);
    }
}

#[test]
fn fields_of_several_lines_are_joined() {
    let mut state = fields(Name::WorkerState, b"id=\"i7Qx\", rev=43");
    assert_eq!(WorkerState::read(FieldsBuf::new().view()), None);
    assert_eq!(WorkerState::read(state.view()), Some(Err(Malformed::InFlight)));
    state.add(Name::WorkerState, b"inflight=2").expect("it fits");
    let read = WorkerState::read(state.view()).expect("the field is there").expect("it is well-formed");
    assert_eq!(&*read.instance, "i7Qx");
    assert_eq!(read.revision, 43);
    assert_eq!(read.in_flight, 2);
    assert_eq!(read.version, None);

    let mut skills = fields(Name::WorkerSkills, b"\"a\";score=1.5");
    assert_eq!(Skills::read(FieldsBuf::new().view()), None);
    skills.add(Name::WorkerSkills, b"\"b\";score=0").expect("it fits");
    let read = Skills::read(skills.view()).expect("the field is there").expect("it is well-formed");
    assert_eq!(read.iter().collect::<Vec<_>>(), [(&b"a"[..], 1.5), (b"b", 0.0)]);
    let long = vec![b'x'; 4080];
    skills.add(Name::WorkerSkills, &long).expect("it fits");
    assert_eq!(Skills::read(skills.view()), Some(Err(Malformed::TooLarge)));

    let mut class = fields(Name::RequestClass, b"\"a\";by=\"0123456789abcdef\"");
    class.add(Name::RequestClass, b"\"a\";by=\"0123456789abcdef\"").expect("it fits");
    assert_eq!(RequestClass::read(class.view()), Some(Err(Malformed::Syntax)));
}

#[test]
fn what_a_reader_would_refuse_is_not_written() {
    let mut out = b"before".to_vec();
    let known = |instance: &'static str, revision| Some(Known { instance: instance.into(), revision });
    let class = vec![b'a'; 257];
    for (class, known, why) in [
        (&class[..], None, Malformed::Class),
        (b"a", known("", 1), Malformed::Known),
        (b"a", known("i.7", 1), Malformed::Known),
        (b"a", known("i7", 0), Malformed::Known),
        (b"a", known("i7", MAX_INTEGER + 1), Malformed::Known),
    ] {
        assert_eq!(RequestClass { class: class.into(), by: 1, known }.write(&mut out), Err(why));
    }
    let mut skills = Skills::new();
    assert_eq!(skills.push(&class, 1.0), Err(Malformed::Class));
    for score in [-1.0, f64::NAN, f64::INFINITY, 1e9 + 1.0] {
        assert_eq!(skills.push(b"a", score), Err(Malformed::Score));
    }
    for class in 0..20u8 {
        skills.push(&[class; 256], 1.0).expect("it is well-formed");
    }
    assert_eq!(skills.write(&mut out), Err(Malformed::TooLarge));
    skills.push(b"dropped", 0.0).expect("it is well-formed");
    let document = Document {
        instance: "i7".into(),
        revision: 1,
        by: 1,
        version: None,
        in_flight: 0,
        history: 1,
        skills,
    };
    assert_eq!(document.write(&mut out), Err(Malformed::Score));
    assert_eq!(out, b"before");
}

/// A document with these members after the required ones.
fn document(skills: &str, more: &str) -> Result<Document, Malformed> {
    let body = format!(
        "{{\"id\":\"i\",\"rev\":1,\"by\":\"0123456789abcdef\",\"inflight\":0,\"history\":1,\"skills\":{skills}{more}}}"
    );
    Document::parse(body.as_bytes())
}

#[test]
fn a_document_is_bounded() {
    let classes = |count: usize| {
        let classes: Vec<String> = (0..count).map(|class| format!("\"{class:0255}\":1")).collect();
        format!("{{{}}}", classes.join(","))
    };
    let most = document(&classes(MAX_CLASSES), "").expect("so many are believed");
    assert_eq!(most.skills.len(), MAX_CLASSES);
    assert_eq!(document(&classes(MAX_CLASSES + 1), ""), Err(Malformed::TooMany));
    let blanks = " ".repeat(sandarac_wire::resume::MAX_DOCUMENT);
    assert_eq!(document("{}", &blanks), Err(Malformed::TooLarge));
}

#[test]
fn the_largest_document_is_within_its_limit() {
    let mut skills = Skills::new();
    for at in 0..MAX_CLASSES {
        let mut class = [0xff; 256];
        class[..8].copy_from_slice(&(at as u64).to_be_bytes());
        skills.push(&class, 123_456_789.123).expect("it is well-formed");
    }
    let version = Some("\\".repeat(128));
    let document = Document {
        instance: "i".repeat(32),
        revision: MAX_INTEGER,
        by: 1,
        version,
        in_flight: MAX_INTEGER,
        history: MAX_INTEGER,
        skills,
    };
    let body = written(|out| document.write(out));
    assert!(Document::parse(&body) == Ok(document));
}

#[test]
fn a_document_is_json_before_all_else() {
    assert_eq!(document("{\"a\":-1}", ",\"x\":+1"), Err(Malformed::Syntax));
    assert_eq!(document("{\"a\":1}", ""), document("{\"a\":1}", ",\"x\":{\"y\":[{}, null, true]}"));
    assert_eq!(Document::parse(b"{\"id\":\"\xff\"}"), Err(Malformed::Syntax));
    assert_eq!(document("{\"a\":1} ", "}"), Err(Malformed::Syntax));
    // A number that cannot be represented is out of bounds, and an escape that stands for no character makes
    // a class invalid.
    assert_eq!(document("{\"a\":1e999}", ""), Err(Malformed::Score));
    assert_eq!(document("{\"\\ud800\":1}", ""), Err(Malformed::Class));
    assert_eq!(document("{}", ",\"rev\":1e400"), Err(Malformed::Rev));
}

#[test]
fn of_a_member_given_twice_the_last_counts() {
    let read =
        document("[]", ",\"rev\":2,\"skills\":{\"a\":1,\"b\":2,\":YQ==:\":3}").expect("it is well-formed");
    assert_eq!(read.revision, 2);
    assert_eq!(last(&read.skills), BTreeMap::from([(b"a".to_vec(), 3.0), (b"b".to_vec(), 2.0)]));
}

#[test]
fn the_resource_is_asked_for_by_fingerprint() {
    assert_eq!(sandarac_wire::resume::target(0x6f), "/.well-known/worker-resume?by=000000000000006f");
    let known = Known { instance: "i7Qx".into(), revision: 41 };
    assert_eq!(known.etag(), b"\"i7Qx.41\"");
}

fn class() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[ -~]{0,256}".prop_map(String::into_bytes),
        ":[ -~]{0,20}:".prop_map(String::into_bytes),
        vec(any::<u8>(), 0..=256)
    ]
}

fn instance() -> impl Strategy<Value = String> {
    "[A-Za-z0-9_-]{1,32}"
}

fn integer(least: u64) -> impl Strategy<Value = u64> {
    prop_oneof![least..=MAX_INTEGER, least..=least + 100, Just(MAX_INTEGER)]
}

/// Scores as transmitted: three decimal places.
fn score() -> impl Strategy<Value = f64> {
    prop_oneof![1..=1_000_000_000_000u64, 1..=100_000u64].prop_map(|thousandths| thousandths as f64 / 1000.0)
}

fn skills(score: impl Strategy<Value = f64>, most: usize) -> impl Strategy<Value = Skills> {
    vec((class(), score), 0..most).prop_map(|members| {
        let mut skills = Skills::new();
        members.iter().for_each(|(class, score)| skills.push(class, *score).expect("it is well-formed"));
        skills
    })
}

/// Bytes similar to the protocol's, and arbitrary ones.
fn near() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        "[\":;,=(){}\\[\\] .?@%\\\\0-9a-z-]{0,4}",
        Just("id=\"i7\"".into()),
        Just(", ".into()),
        Just("rev=43".into()),
        Just("inflight=2".into()),
        Just("\"a\"".into()),
        Just(";score=1.5".into()),
        Just(";by=\"6f1c0a92d3b4e587\"".into()),
        Just(";known=\"i7.41\"".into()),
        Just(":YWJj:".into()),
        Just(
            "{\"id\":\"i\",\"rev\":1,\"by\":\"6f1c0a92d3b4e587\",\"inflight\":0,\"history\":1,\"skills\":{"
                .into()
        ),
        Just("\":YWJj:\":1.5".into()),
        Just("}}".into()),
    ];
    prop_oneof![vec(any::<u8>(), 0..64), vec(word, 0..12).prop_map(|words| words.concat().into_bytes())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_written_request_class_is_read_back(class in class(), by in any::<u64>(), known in proptest::option::of((instance(), integer(1)))) {
        let known = known.map(|(instance, revision)| Known { instance: instance.into(), revision });
        let asked = RequestClass { class: class.into(), by, known };
        let value = written(|out| asked.write(out));
        prop_assert_eq!(RequestClass::parse(&value), Ok(asked));
    }

    #[test]
    fn a_written_worker_state_is_read_back(instance in instance(), revision in integer(1), in_flight in integer(0), concurrency in proptest::option::of(integer(1)), version in proptest::option::of("[ -~]{1,128}")) {
        let state = WorkerState { instance: instance.into(), revision, in_flight, concurrency, version: version.map(Into::into) };
        let value = written(|out| state.write(out));
        prop_assert_eq!(WorkerState::parse(&value), Ok(state));
    }

    #[test]
    fn written_skills_are_read_back(skills in skills(prop_oneof![score(), Just(0.0)], 8)) {
        let value = written(|out| skills.write(out));
        prop_assert_eq!(Skills::parse(&value), Ok(skills));
    }

    #[test]
    fn a_written_document_is_read_back(instance in instance(), revision in integer(1), by in any::<u64>(), version in proptest::option::of("[ -~]{1,128}"), in_flight in integer(0), history in integer(1), skills in skills(score(), 20)) {
        let document = Document { instance, revision, by, version, in_flight, history, skills };
        let body = written(|out| document.write(out));
        prop_assert_eq!(Document::parse(&body), Ok(document));
    }

    #[test]
    fn whatever_is_read_can_be_written_and_means_the_same(bytes in near()) {
        if let Ok(read) = RequestClass::parse(&bytes) {
            let again = written(|out| read.write(out));
            prop_assert_eq!(RequestClass::parse(&again), Ok(read));
        }
        if let Ok(read) = WorkerState::parse(&bytes) {
            let again = written(|out| read.write(out));
            prop_assert_eq!(WorkerState::parse(&again), Ok(read));
        }
        if let Ok(read) = Skills::parse(&bytes) {
            let again = written(|out| read.write(out));
            prop_assert_eq!(Skills::parse(&again), Ok(read));
        }
        if let Ok(read) = Document::parse(&bytes) {
            let again = written(|out| read.write(out));
            prop_assert_eq!(Document::parse(&again).map(|again| again.skills.len()), Ok(read.skills.len()));
        }
    }
}
