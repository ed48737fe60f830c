//! Counts by reason, one for each possible reason, so that the set of labels is known from the start.

use crate::Fault;
use crate::report::fragment_failure::FragmentFailure;
use crate::report::pass_reason::PassReason;
use sandarac_cache::Unstored;
use sandarac_message::caching;
use sandarac_message::codings::Coding;
use sandarac_message::recoding::Uncompressed;
use sandarac_message::status_fields::Forward;
use sandarac_net::Refused;
use sandarac_net::tls::HandshakeFault;
use sandarac_wire::h1::Refusal;
use sandarac_wire::h1::repair::Repair;
use sandarac_wire::h2;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

/// A reason for something that is counted.
pub(crate) trait Reason: Sized {
    /// The metric, without prefix and suffix.
    const NAME: &'static str;
    /// What it counts.
    const TEXT: &'static str;
    /// The label of the reason in metrics.
    const LABEL: &'static str = "reason";

    /// The texts of all reasons.
    fn texts() -> Vec<&'static str>;

    /// The position of this reason's text among them.
    fn index(&self) -> usize;
}

/// One core's counts for one kind of reason.
#[derive(Debug)]
pub(crate) struct Tally<R> {
    counts: Box<[AtomicU64]>,
    kind: PhantomData<fn(R)>,
}

/// The count for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountByReason {
    /// The name of the metric, without prefix and suffix.
    pub name: &'static str,
    /// What the metric counts.
    pub text: &'static str,
    /// The label of the reason in the metric.
    pub label: &'static str,
    /// The reason in Cache-Status and logs.
    pub reason: &'static str,
    /// The count.
    pub count: u64,
}

impl<R: Reason> Default for Tally<R> {
    fn default() -> Tally<R> {
        Tally { counts: R::texts().iter().map(|_| AtomicU64::new(0)).collect(), kind: PhantomData }
    }
}

impl<R: Reason> Tally<R> {
    /// Counts one. Only the core that owns the tally may call it.
    pub(crate) fn one(&self, reason: &R) {
        self.add(reason, 1);
    }

    /// Counts `n`. Only the core that owns the tally may call it.
    pub(crate) fn add(&self, reason: &R, n: u64) {
        if let Some(count) = self.counts.get(reason.index()) {
            count.store(count.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        }
    }

    /// The counts of all cores, added up.
    pub(crate) fn sum<'a>(tallies: impl Iterator<Item = &'a Tally<R>>) -> impl Iterator<Item = CountByReason>
    where
        R: 'a,
    {
        let texts = R::texts();
        let mut sums = vec![0; texts.len()];
        for tally in tallies {
            sums.iter_mut().zip(&tally.counts).for_each(|(sum, count)| *sum += count.load(Ordering::Relaxed));
        }
        let count =
            |(reason, count)| CountByReason { name: R::NAME, text: R::TEXT, label: R::LABEL, reason, count };
        texts.into_iter().zip(sums).map(count)
    }
}

/// The reason for a refused request, as text.
pub(crate) fn refused_text(refused: &Refused) -> &'static str {
    match refused {
        Refused::Message(refusal) => refusal.name(),
        Refused::Http2(refusal) => refusal.name(),
        Refused::NotTls => "not-tls",
        Refused::Late => "head-late",
        Refused::Crowded => "connection-limit",
        Refused::Full => "memory",
        Refused::OneClient => "client-connections",
    }
}

impl Reason for Refused {
    const NAME: &'static str = "refused";
    const TEXT: &'static str = "Messages refused: malformed, over a limit, or late.";

    fn texts() -> Vec<&'static str> {
        let others = [Refused::Late, Refused::Crowded, Refused::NotTls, Refused::Full, Refused::OneClient];
        let refusals = Refusal::ALL.iter().map(|refusal| refusal.name());
        refusals.chain(others.iter().map(refused_text)).chain(of_http2_only()).collect()
    }

    fn index(&self) -> usize {
        const OTHERS: usize = Refusal::ALL.len();
        match self {
            Refused::Message(refusal) => *refusal as usize,
            Refused::Late => OTHERS,
            Refused::Crowded => OTHERS + 1,
            Refused::NotTls => OTHERS + 2,
            Refused::Full => OTHERS + 3,
            Refused::OneClient => OTHERS + 4,
            Refused::Http2(refusal) => {
                let name = refusal.name();
                match Refusal::ALL.iter().position(|other| other.name() == name) {
                    Some(same) => same,
                    None => OTHERS + 5 + of_http2_only().take_while(|other| *other != name).count(),
                }
            }
        }
    }
}

/// The names of refusals that HTTP/1 does not have.
fn of_http2_only() -> impl Iterator<Item = &'static str> {
    let names = h2::Refusal::ALL.iter().map(|refusal| refusal.name());
    names.filter(|name| Refusal::ALL.iter().all(|other| other.name() != *name))
}

impl Reason for h2::Fault {
    const NAME: &'static str = "http2_faults";
    const TEXT: &'static str = "Faults of clients in HTTP/2, which end a stream or a connection.";

    fn texts() -> Vec<&'static str> {
        h2::Fault::ALL.iter().map(|fault| fault.name()).collect()
    }

    fn index(&self) -> usize {
        *self as usize
    }
}

impl Reason for HandshakeFault {
    const NAME: &'static str = "handshakes_failed";
    const TEXT: &'static str = "TLS handshakes that failed.";

    fn texts() -> Vec<&'static str> {
        HandshakeFault::NAMES.to_vec()
    }

    fn index(&self) -> usize {
        HandshakeFault::index(self)
    }
}

/// The version of TLS that a handshake negotiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsVersion {
    Tls12,
    Tls13,
}

impl Reason for TlsVersion {
    const NAME: &'static str = "handshakes";
    const TEXT: &'static str = "TLS handshakes with clients that succeeded, by version.";
    const LABEL: &'static str = "version";

    fn texts() -> Vec<&'static str> {
        vec!["TLSv1.2", "TLSv1.3"]
    }

    fn index(&self) -> usize {
        *self as usize
    }
}

/// The class of a response's status (RFC 9110 §15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StatusClass(pub(crate) u16);

impl Reason for StatusClass {
    const NAME: &'static str = "responses";
    const TEXT: &'static str = "Responses by the class of their status, those of the cache, of origins and of this program together.";
    const LABEL: &'static str = "class";

    fn texts() -> Vec<&'static str> {
        vec!["1xx", "2xx", "3xx", "4xx", "5xx", "other"]
    }

    fn index(&self) -> usize {
        match self.0 / 100 {
            class @ 1..=5 => usize::from(class) - 1,
            _ => 5,
        }
    }
}

impl Reason for Uncompressed {
    const NAME: &'static str = "uncompressed";
    const TEXT: &'static str = "Responses sent as they came on a route with `compress`, to clients that accept another coding or need one.";

    fn texts() -> Vec<&'static str> {
        Uncompressed::ALL.iter().map(|reason| reason.text()).collect()
    }

    fn index(&self) -> usize {
        *self as usize
    }
}

impl Reason for FragmentFailure {
    const NAME: &'static str = "fragments_failed";
    const TEXT: &'static str =
        "Fragments that are missing in a page, or were replaced, and pages that were sent as they came.";

    fn texts() -> Vec<&'static str> {
        FragmentFailure::ALL.iter().map(|reason| reason.name()).collect()
    }

    fn index(&self) -> usize {
        *self as usize
    }
}

/// Bytes of bodies before they were put into a coding, or into none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodedFrom(pub(crate) Option<Coding>);

/// The same bytes afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodedTo(pub(crate) Option<Coding>);

/// The label of bodies without a coding.
const PLAIN: &str = "identity";

fn codings() -> Vec<&'static str> {
    Coding::ALL.iter().map(|coding| coding.name()).chain([PLAIN]).collect()
}

fn coding_index(coding: Option<Coding>) -> usize {
    coding.map_or(Coding::ALL.len(), Coding::index)
}

impl Reason for CodedFrom {
    const NAME: &'static str = "recoded_bytes_in";
    const TEXT: &'static str =
        "Bytes of bodies that were put into a coding, or into none (identity), before that.";
    const LABEL: &'static str = "coding";

    fn texts() -> Vec<&'static str> {
        codings()
    }

    fn index(&self) -> usize {
        coding_index(self.0)
    }
}

impl Reason for CodedTo {
    const NAME: &'static str = "recoded_bytes_out";
    const TEXT: &'static str = "The same bytes in that coding.";
    const LABEL: &'static str = "coding";

    fn texts() -> Vec<&'static str> {
        codings()
    }

    fn index(&self) -> usize {
        coding_index(self.0)
    }
}

impl Reason for Repair {
    const NAME: &'static str = "responses_repaired";
    const TEXT: &'static str =
        "Responses of origins that broke the grammar and were taken as the only thing they could mean.";

    fn texts() -> Vec<&'static str> {
        Repair::ALL.iter().map(|repair| repair.name()).collect()
    }

    fn index(&self) -> usize {
        *self as usize
    }
}

impl Reason for Fault {
    const NAME: &'static str = "failed";
    const TEXT: &'static str =
        "Requests answered with an error made here, or whose client left before an answer.";

    fn texts() -> Vec<&'static str> {
        Fault::EACH.iter().map(Fault::name).collect()
    }

    fn index(&self) -> usize {
        let name = self.name();
        Fault::EACH.iter().position(|other| other.name() == name).unwrap_or(usize::MAX)
    }
}

impl Reason for PassReason {
    const NAME: &'static str = "passes";
    const TEXT: &'static str = "Requests that went past the store.";

    fn texts() -> Vec<&'static str> {
        PassReason::ALL.iter().map(|reason| reason.text()).collect()
    }

    fn index(&self) -> usize {
        match self {
            PassReason::Rule => 0,
            PassReason::HitForPass => 1,
            PassReason::NotWorthWaiting => 2,
            PassReason::ClientCertificate => 3,
            PassReason::Bypass(reason) => 4 + *reason as usize,
        }
    }
}

/// Why a request led a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissReason {
    /// No stored response may answer it.
    Forward(Forward),
    /// The previous response could not be shared.
    HitForMiss,
}

impl MissReason {
    /// The reason in Cache-Status, logs and counters.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            MissReason::Forward(forward) => forward.text(),
            MissReason::HitForMiss => "hit-for-miss",
        }
    }

    const FORWARDS: [Forward; 5] =
        [Forward::UriMiss, Forward::VaryMiss, Forward::Request, Forward::Stale, Forward::Partial];
}

impl Reason for MissReason {
    const NAME: &'static str = "misses";
    const TEXT: &'static str = "Requests that found nothing usable and led a fetch.";

    fn texts() -> Vec<&'static str> {
        let forwards = MissReason::FORWARDS.map(MissReason::Forward).into_iter();
        forwards.chain([MissReason::HitForMiss]).map(MissReason::text).collect()
    }

    fn index(&self) -> usize {
        let forwards = &MissReason::FORWARDS;
        match self {
            MissReason::Forward(forward) => {
                forwards.iter().position(|other| other == forward).unwrap_or(usize::MAX)
            }
            MissReason::HitForMiss => forwards.len(),
        }
    }
}

/// Why a response that was fetched for the store is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoStore {
    /// It may not be stored, or would be of no use.
    Unusable(caching::Reason),
    /// The store cannot keep it.
    Unkept(Unstored),
    /// The edits of the route make its head too large.
    HeadTooLarge,
}

impl NoStore {
    /// The reason as in the Cache-Status `detail`, logs and counters.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            NoStore::Unusable(reason) => reason.text(),
            NoStore::Unkept(unstored) => unstored.text(),
            NoStore::HeadTooLarge => "head-too-large",
        }
    }
}

impl Reason for NoStore {
    const NAME: &'static str = "unstored";
    const TEXT: &'static str = "Responses fetched for the store that are not kept in it.";

    fn texts() -> Vec<&'static str> {
        let unusable = caching::Reason::ALL.iter().map(|reason| reason.text());
        let unkept = Unstored::ALL.iter().map(|unstored| unstored.text());
        unusable.chain(unkept).chain([NoStore::HeadTooLarge.text()]).collect()
    }

    fn index(&self) -> usize {
        let unusable = caching::Reason::ALL.len();
        match self {
            NoStore::Unusable(reason) => *reason as usize,
            NoStore::Unkept(unstored) => unusable + *unstored as usize,
            NoStore::HeadTooLarge => unusable + Unstored::ALL.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::file_refusal::FileRefusal;
    use sandarac_message::caching::BypassReason;

    #[track_caller]
    fn place<R: Reason>(reason: R, text: &str) {
        assert_eq!(R::texts().get(reason.index()), Some(&text));
    }

    #[test]
    fn every_reason_is_counted_under_its_own_word() {
        Refusal::ALL.iter().for_each(|refusal| place(Refused::Message(*refusal), refusal.name()));
        place(Refused::Late, "head-late");
        place(Refused::Crowded, "connection-limit");
        PassReason::ALL.iter().for_each(|reason| place(*reason, reason.text()));
        place(PassReason::Bypass(BypassReason::Cookie), "cookie");
        caching::Reason::ALL.iter().for_each(|reason| place(NoStore::Unusable(*reason), reason.text()));
        Uncompressed::ALL.iter().for_each(|reason| place(*reason, reason.text()));
        FragmentFailure::ALL.iter().for_each(|reason| place(*reason, reason.name()));
        Coding::ALL.iter().for_each(|coding| place(CodedTo(Some(*coding)), coding.name()));
        place(CodedFrom(None), PLAIN);
        Unstored::ALL.iter().for_each(|unstored| place(NoStore::Unkept(*unstored), unstored.text()));
        place(NoStore::HeadTooLarge, "head-too-large");
        place(MissReason::HitForMiss, "hit-for-miss");
        place(MissReason::Forward(Forward::Stale), "stale");
        place(Fault::NoRoute, "no-route");
        FileRefusal::ALL.iter().for_each(|refusal| place(Fault::File(*refusal), refusal.name()));
        Fault::EACH.iter().for_each(|fault| place(*fault, fault.name()));
    }

    #[test]
    fn workers_are_added_up() {
        let (one, other) = (Tally::<PassReason>::default(), Tally::default());
        one.one(&PassReason::Rule);
        other.one(&PassReason::Rule);
        other.one(&PassReason::HitForPass);
        let sums: Vec<u64> = Tally::sum([&one, &other].into_iter()).map(|sum| sum.count).collect();
        assert_eq!(&sums[..3], [2, 1, 0]);
    }
}
