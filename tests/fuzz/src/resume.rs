//! The résumé protocol: whatever the bytes, a reader believes all or nothing, and what it believes is written and read back
//! as the same.

use sandarac_message::{FieldsBuf, Name};
use sandarac_wire::resume::{
    Document, MAX_CLASS, MAX_CLASSES, MAX_INTEGER, MAX_SCORE, Malformed, RequestClass, Skills, WorkerState,
};

fn check_skills(skills: &Skills) {
    assert!(skills.len() <= MAX_CLASSES && skills.iter().count() == skills.len());
    assert!(
        skills.iter().all(|(class, score)| class.len() <= MAX_CLASS && (0.0..=MAX_SCORE).contains(&score))
    );
}

/// The lines of the input, a field line each.
fn lines(name: Name, input: &[u8]) -> Option<FieldsBuf> {
    let mut fields = FieldsBuf::new();
    for line in input.split(|&byte| byte == b'\n') {
        fields.add(name, line).ok()?;
    }
    Some(fields)
}

/// Checks one input.
pub(crate) fn run(input: &[u8]) {
    let mut out = Vec::new();
    if let Ok(asked) = RequestClass::parse(input) {
        asked.write(&mut out).expect("what was read can be written");
        assert_eq!(RequestClass::parse(&out), Ok(asked));
    }
    out.clear();
    if let Ok(state) = WorkerState::parse(input) {
        assert!((1..=MAX_INTEGER).contains(&state.revision) && state.in_flight <= MAX_INTEGER);
        state.write(&mut out).expect("what was read can be written");
        assert_eq!(WorkerState::parse(&out), Ok(state));
    }
    out.clear();
    if let Ok(skills) = Skills::parse(input) {
        check_skills(&skills);
        match skills.write(&mut out) {
            Ok(()) => assert_eq!(Skills::parse(&out), Ok(skills)),
            // The canonical form has blanks and digits that the input may have done without.
            Err(why) => assert_eq!((why, out.len()), (Malformed::TooLarge, 0)),
        }
    }
    out.clear();
    if let Ok(document) = Document::parse(input) {
        check_skills(&document.skills);
        document.write(&mut out).expect("what was read can be written");
        // Scores are rounded when they are written.
        let mut again = Vec::new();
        Document::parse(&out)
            .expect("what was written can be read")
            .write(&mut again)
            .expect("and written again");
        assert_eq!(out, again);
    }

    if !input.iter().any(|byte| matches!(byte, b'\r' | 0)) {
        let joined = input.split(|&byte| byte == b'\n').collect::<Vec<_>>().join(&b", "[..]);
        if let Some(fields) = lines(Name::RequestClass, input) {
            assert_eq!(RequestClass::read(fields.view()), Some(RequestClass::parse(&joined)));
        }
        if let Some(fields) = lines(Name::WorkerState, input) {
            assert_eq!(WorkerState::read(fields.view()), Some(WorkerState::parse(&joined)));
        }
        if let Some(fields) = lines(Name::WorkerSkills, input) {
            assert_eq!(Skills::read(fields.view()), Some(Skills::parse(&joined)));
        }
    }
}
