//! `Worker-State`: a worker's description of itself, sent with each response.

use super::{MAX_FIELD, Malformed, text};
use sandarac_message::{Fields, Name};
use sfv::visitor::{
    DictionaryVisitor, EntryVisitor, Ignored, InnerListVisitor, ItemVisitor, ParameterVisitor,
};
use sfv::{BareItemFromInput, KeyRef, Parser};
use std::borrow::Cow;
use std::convert::Infallible;

/// A worker's description of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerState<'a> {
    /// The identifier of this start of the worker: 1 to 32 letters, digits, `-` and `_`.
    pub instance: Cow<'a, str>,
    /// The revision of its résumé under the classifier of the request: 1 or more.
    pub revision: u64,
    /// The requests in progress, from all balancers, without the one this responds to.
    pub in_flight: u64,
    /// The most requests that it works on at a time: 1 or more.
    pub concurrency: Option<u64>,
    /// The version of the software it runs.
    pub version: Option<Cow<'a, str>>,
}

impl<'a> WorkerState<'a> {
    /// Reads the field; `None` if it is absent.
    pub fn read(fields: Fields<'a>) -> Option<Result<WorkerState<'a>, Malformed>> {
        let value = text::joined(fields, Name::WorkerState, MAX_FIELD)?;
        Some(value.and_then(|value| match value {
            Cow::Borrowed(value) => WorkerState::parse(value),
            Cow::Owned(value) => WorkerState::parse(&value).map(WorkerState::into_owned),
        }))
    }

    /// Reads a value, its lines joined.
    ///
    /// # Errors
    /// If anything is wrong: [`Malformed::Syntax`] takes precedence.
    pub fn parse(value: &'a [u8]) -> Result<WorkerState<'a>, Malformed> {
        text::bounded(value, MAX_FIELD)?;
        WorkerState::canonical(value).map_or_else(|| WorkerState::general(value), Ok)
    }

    /// Reads the canonical form, because every response of a worker has the field, nearly always in this
    /// form. `None` only means that it is in another form.
    fn canonical(value: &'a [u8]) -> Option<WorkerState<'a>> {
        let rest = value.strip_prefix(b"id=\"")?;
        let (instance, rest) = rest.split_at(rest.iter().position(|&byte| byte == b'"')?);
        let (revision, rest) = digits(rest.strip_prefix(b"\", rev=")?)?;
        let (in_flight, rest) = digits(rest.strip_prefix(b", inflight=")?)?;
        let (concurrency, rest) = match rest.strip_prefix(b", concurrency=") {
            Some(rest) => {
                let (concurrency, rest) = digits(rest)?;
                (Some(text::within(concurrency, 1)?), rest)
            }
            None => (None, rest),
        };
        let version = match rest {
            b"" => None,
            rest => {
                let version = rest.strip_prefix(b", version=\"")?.strip_suffix(b"\"")?;
                let plain = text::is_version(version) && memchr::memchr2(b'"', b'\\', version).is_none();
                Some(std::str::from_utf8(plain.then_some(version)?).ok()?)
            }
        };
        Some(WorkerState {
            instance: std::str::from_utf8(text::is_instance(instance).then_some(instance)?).ok()?.into(),
            revision: text::within(revision, 1)?,
            in_flight,
            concurrency,
            version: version.map(Cow::Borrowed),
        })
    }

    /// Reads any form.
    fn general(value: &'a [u8]) -> Result<WorkerState<'a>, Malformed> {
        let members = Members {
            instance: Err(Malformed::Id),
            revision: Err(Malformed::Rev),
            in_flight: Err(Malformed::InFlight),
            concurrency: Ok(None),
            version: Ok(None),
        };
        let members =
            Parser::new(value).parse_dictionary_with_visitor(members).map_err(|_| Malformed::Syntax)?;
        Ok(WorkerState {
            instance: members.instance?,
            revision: members.revision?,
            in_flight: members.in_flight?,
            concurrency: members.concurrency?,
            version: members.version?,
        })
    }

    /// Converts it so that it borrows nothing.
    pub fn into_owned(self) -> WorkerState<'static> {
        WorkerState {
            instance: Cow::Owned(self.instance.into_owned()),
            revision: self.revision,
            in_flight: self.in_flight,
            concurrency: self.concurrency,
            version: self.version.map(|version| Cow::Owned(version.into_owned())),
        }
    }

    /// Appends the value in its canonical form; nothing on an error.
    ///
    /// # Errors
    /// If a reader would refuse the value.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        if !text::is_instance(self.instance.as_bytes()) {
            return Err(Malformed::Id);
        }
        text::within(self.revision, 1).ok_or(Malformed::Rev)?;
        text::within(self.in_flight, 0).ok_or(Malformed::InFlight)?;
        if self.concurrency.is_some_and(|concurrency| text::within(concurrency, 1).is_none()) {
            return Err(Malformed::Concurrency);
        }
        if self.version.as_ref().is_some_and(|version| !text::is_version(version.as_bytes())) {
            return Err(Malformed::Version);
        }
        out.extend_from_slice(b"id=\"");
        out.extend_from_slice(self.instance.as_bytes());
        out.extend_from_slice(b"\", rev=");
        text::put_integer(out, self.revision);
        out.extend_from_slice(b", inflight=");
        text::put_integer(out, self.in_flight);
        if let Some(concurrency) = self.concurrency {
            out.extend_from_slice(b", concurrency=");
            text::put_integer(out, concurrency);
        }
        if let Some(version) = &self.version {
            out.extend_from_slice(b", version=");
            text::put_string(out, version.as_bytes());
        }
        Ok(())
    }
}

/// The 1 to 15 digits of an Integer at the start, and the rest.
fn digits(value: &[u8]) -> Option<(u64, &[u8])> {
    let len = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=15).contains(&len) {
        return None;
    }
    let (digits, rest) = value.split_at(len);
    Some((digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')), rest))
}

/// The known members. The last of repeated members counts, so a fault in one is kept until all are read.
struct Members<'a> {
    instance: Result<Cow<'a, str>, Malformed>,
    revision: Result<u64, Malformed>,
    in_flight: Result<u64, Malformed>,
    concurrency: Result<Option<u64>, Malformed>,
    version: Result<Option<Cow<'a, str>>, Malformed>,
}

impl<'de> DictionaryVisitor<'de> for Members<'de> {
    type Out = Members<'de>;
    type Error = Infallible;

    fn entry(&mut self, key: &'de KeyRef) -> Result<impl EntryVisitor<'de>, Infallible> {
        Ok(Member { members: self, key: key.as_str() })
    }

    fn finish(self) -> Result<Members<'de>, Infallible> {
        Ok(self)
    }
}

struct Member<'m, 'de> {
    members: &'m mut Members<'de>,
    key: &'de str,
}

impl<'de> Member<'_, 'de> {
    /// Stores the value; `None` for an inner list.
    fn take(self, value: Option<BareItemFromInput<'de>>) {
        let (mut text, mut integer) = (None, None);
        match value {
            Some(BareItemFromInput::String(value)) => text = Some(text::string(value)),
            Some(BareItemFromInput::Integer(value)) => integer = u64::try_from(value).ok(),
            _ => {}
        }
        let integer = |least| integer.and_then(|value| text::within(value, least));
        let members = self.members;
        match self.key {
            "id" => {
                let instance = text.filter(|text| text::is_instance(text.as_bytes()));
                members.instance = instance.ok_or(Malformed::Id);
            }
            "rev" => members.revision = integer(1).ok_or(Malformed::Rev),
            "inflight" => members.in_flight = integer(0).ok_or(Malformed::InFlight),
            "concurrency" => members.concurrency = integer(1).map(Some).ok_or(Malformed::Concurrency),
            "version" => {
                let version = text.filter(|text| text::is_version(text.as_bytes()));
                members.version = version.map(Some).ok_or(Malformed::Version);
            }
            _ => {}
        }
    }
}

impl<'de> EntryVisitor<'de> for Member<'_, 'de> {
    type Error = Infallible;

    fn item(self) -> Result<impl ItemVisitor<'de>, Infallible> {
        Ok(self)
    }

    fn inner_list(self) -> Result<impl InnerListVisitor<'de>, Infallible> {
        self.take(None);
        Ok(Ignored)
    }
}

impl<'de> ItemVisitor<'de> for Member<'_, 'de> {
    type Out = ();
    type Error = Infallible;

    fn bare_item(
        self,
        item: BareItemFromInput<'de>,
    ) -> Result<impl ParameterVisitor<'de, Out = ()>, Infallible> {
        self.take(Some(item));
        Ok(Ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // Regression: numbers with too many digits were added up before the digits were counted.
    #[test]
    fn a_number_of_many_digits_is_no_number() {
        for digits in [16, 19, 20, 21, 700] {
            let value = format!("id=\"i\", rev={}, inflight=0", "9".repeat(digits));
            assert_eq!(WorkerState::parse(value.as_bytes()), Err(Malformed::Syntax));
        }
    }

    proptest! {
        #[test]
        fn the_short_way_reads_what_the_long_way_reads(
            value in "id=\"[A-z\\d._-]{0,34}\"[, ]{0,2} ?rev=[0-9]{0,16}, inflight=-?[0-9]{1,16}(, concurrency=[0-9]{1,16})?(, version=\"[ -~]{0,4}\"?)?[ ,]?"
        ) {
            if let Some(read) = WorkerState::canonical(value.as_bytes()) {
                prop_assert_eq!(WorkerState::general(value.as_bytes()), Ok(read));
            }
        }

        #[test]
        fn what_is_written_is_read_the_short_way(instance in "[A-Za-z0-9_-]{1,32}", revision in 1..=999_999_999_999_999u64, in_flight in 0..=999_999_999_999_999u64, concurrency in proptest::option::of(1..=999_999_999_999_999u64), version in proptest::option::of("[ !#-\\[\\]-~]{1,128}")) {
            let state = WorkerState { instance: instance.into(), revision, in_flight, concurrency, version: version.map(Cow::Owned) };
            let mut value = Vec::new();
            prop_assert_eq!(state.write(&mut value), Ok(()));
            prop_assert_eq!(WorkerState::canonical(&value), Some(state));
        }
    }
}
