//! Cache-Control and what follows from it: letter case changes nothing, `no-store` is obeyed, and what has become stale is
//! never fresh again.

use sandarac_message::caching::{Policy, Profile, RequestDirectives, Reuse, Storability, storability};
use sandarac_message::{FieldsBuf, Method, Name, RequestHead, ResponseHead, Timestamp, Version, members};
use std::time::Duration;

const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);

fn clean(line: &[u8]) -> Vec<u8> {
    let kept = line.iter().copied().filter(|&byte| byte == b'\t' || byte >= b' ' && byte != 0x7f);
    kept.collect::<Vec<u8>>().trim_ascii().to_vec()
}

/// The fields that say how long a response is fresh, by the first byte of the line.
const NAMES: [Name; 9] = [
    Name::CacheControl,
    Name::CdnCacheControl,
    Name::SandaracCacheControl,
    Name::SurrogateControl,
    Name::Expires,
    Name::Date,
    Name::Age,
    Name::LastModified,
    Name::Pragma,
];

/// Checks one input.
pub(crate) fn run(input: &[u8]) {
    let mut lines = input.split(|&byte| byte == b'\n');
    let asked = clean(lines.next().unwrap_or_default());
    let (mut request, mut shouted) = (FieldsBuf::new(), FieldsBuf::new());
    if request.add(Name::CacheControl, &asked).is_err() {
        return;
    }
    shouted.add(Name::CacheControl, &asked.to_ascii_uppercase()).expect("as long as the other");
    let directives = RequestDirectives::of(request.view());
    assert_eq!(directives, RequestDirectives::of(shouted.view()));

    let mut response = FieldsBuf::new();
    for line in lines {
        let Some((choice, value)) = line.split_first() else { continue };
        if response.add(NAMES[usize::from(*choice) % NAMES.len()], &clean(value)).is_err() {
            return;
        }
    }
    let request = RequestHead {
        method: Method::Get,
        method_text: b"GET",
        target: b"/",
        version: Version::Http11,
        fields: request.view(),
    };
    let response =
        ResponseHead { status: 200, reason: b"", version: Version::Http11, fields: response.view() };
    for policy in [Policy::safe(), Policy::rfc()] {
        let judged = storability(&request, &response, None, &policy, NOW, NOW);
        assert_eq!(judged, storability(&request, &response, None, &policy, NOW, NOW));
        let Storability::Store(lifetimes) = judged else { continue };
        let targeted =
            [Name::CdnCacheControl, Name::SandaracCacheControl, Name::SurrogateControl, Name::CacheControl]
                .iter()
                .filter(|&&name| response.fields.has(name))
                .count();
        let plain = response.fields.all(Name::CacheControl).flat_map(members);
        let (mut no_store, mut understood) = (false, false);
        for member in plain {
            no_store |= member.eq_ignore_ascii_case(b"no-store");
            understood |= member.eq_ignore_ascii_case(b"must-understand");
        }
        assert!(!(no_store && !understood && targeted == 1), "no-store was stored");

        let mut fresh = true;
        let mut gone = false;
        for seconds in [0, 1, 5, 60, 3600, 86_400, 31_536_000, u64::from(u32::MAX), u64::MAX / 2000] {
            let now = NOW.plus(Duration::from_secs(seconds));
            let is_fresh = lifetimes.is_fresh(now);
            assert!(fresh || !is_fresh, "fresh again after {seconds} s");
            fresh = is_fresh;
            let is_gone = lifetimes.dead(now);
            assert!(is_gone || !gone, "back from the dead after {seconds} s");
            gone = is_gone;
            assert!(lifetimes.age(now) >= Duration::from_secs(seconds));
            match lifetimes.reuse(&directives, now) {
                Reuse::Fresh => assert!(is_fresh && !lifetimes.no_cache()),
                Reuse::StaleWhileRevalidate => {
                    assert!(!lifetimes.no_cache());
                    // The safe profile takes an origin at its word that gives a window beside s-maxage.
                    assert!(!lifetimes.must_revalidate() || policy.profile == Profile::Safe);
                }
                Reuse::MaxStale => assert!(!lifetimes.no_cache() && !lifetimes.must_revalidate()),
                Reuse::Revalidate | Reuse::Gone => {}
            }
        }
    }
}
