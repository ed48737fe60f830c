//! Values with bounds in their type.

use std::fmt;
use std::ops::{Deref, RangeInclusive};
use std::time::Duration;

use sandarac_policy::ByteSize;
use toml::de::DeValue;

use crate::definition::Value;
use crate::report::{Complaint, Node, Report};
use crate::setting::Kind;
use crate::value::Text;

/// A number from `LEAST` to `MOST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounded<const LEAST: u32, const MOST: u32>(u32);

impl<const LEAST: u32, const MOST: u32> Bounded<LEAST, MOST> {
    /// A default. A value out of bounds does not compile.
    pub(crate) const fn of<const N: u32>() -> Bounded<LEAST, MOST> {
        const { assert!(LEAST <= N && N <= MOST) };
        Bounded(N)
    }

    /// A default that is defined elsewhere. MUST be within the bounds.
    pub(crate) fn default_of(number: u32) -> Bounded<LEAST, MOST> {
        debug_assert!((LEAST..=MOST).contains(&number));
        Bounded(number)
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }

    /// Checks the bounds.
    pub(crate) fn checked(number: u64) -> Result<Bounded<LEAST, MOST>, Complaint> {
        match u32::try_from(number) {
            Ok(fits) if (LEAST..=MOST).contains(&fits) => Ok(Bounded(fits)),
            _ => Err(Self::out_of_bounds(&number, number > u64::from(MOST))),
        }
    }

    fn out_of_bounds(number: &dyn fmt::Display, too_large: bool) -> Complaint {
        match Self::kind() {
            // The kind's words omit a bound that no user would reach.
            Kind::Integer { most, .. } if too_large && most >= u32::MAX.into() => {
                Complaint::new(format!("{number} is too large: a number up to {most}"))
            }
            kind => Complaint::new(format!("{number} is not {}", kind.words())),
        }
    }
}

impl<const LEAST: u32, const MOST: u32> Value for Bounded<LEAST, MOST> {
    fn kind() -> Kind {
        Kind::Integer { least: LEAST.into(), most: MOST.into() }
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<Bounded<LEAST, MOST>> {
        let DeValue::Integer(integer) = node.get_ref() else {
            report.unexpected(node, &Self::kind());
            return None;
        };
        let read = match u64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) => Self::checked(number),
            Err(_) => Err(Self::out_of_bounds(integer, !integer.as_str().starts_with('-'))),
        };
        read.map_err(|complaint| report.complain(Some(node.span()), complaint)).ok()
    }

    fn show(&self) -> Option<String> {
        Some(self.0.to_string())
    }
}

/// A number from `LEAST` to `MOST` thousandths, with a fraction or without.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decimal<const LEAST: u64, const MOST: u64>(f64);

impl<const LEAST: u64, const MOST: u64> Decimal<LEAST, MOST> {
    /// A default that is defined elsewhere. MUST be within the bounds.
    pub(crate) fn default_of(number: f64) -> Decimal<LEAST, MOST> {
        debug_assert!(Self::bounds().contains(&number));
        Decimal(number)
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }

    fn bounds() -> RangeInclusive<f64> {
        LEAST as f64 / 1000.0..=MOST as f64 / 1000.0
    }
}

impl<const LEAST: u64, const MOST: u64> Value for Decimal<LEAST, MOST> {
    fn kind() -> Kind {
        let bounds = Self::bounds();
        Kind::Decimal { least: *bounds.start(), most: *bounds.end() }
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<Decimal<LEAST, MOST>> {
        let number = match node.get_ref() {
            DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
                .map_or(f64::INFINITY, |number| number as f64),
            DeValue::Float(float) => float.as_str().parse().unwrap_or(f64::NAN),
            _ => {
                report.unexpected(node, &Self::kind());
                return None;
            }
        };
        // NaN is within no bounds.
        if !Self::bounds().contains(&number) {
            report.error(Some(node.span()), format!("{number} is not {}", Self::kind().words()));
            return None;
        }
        Some(Decimal(number))
    }

    fn show(&self) -> Option<String> {
        Some(self.0.to_string())
    }
}

/// A size from `LEAST` to `MOST` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundedSize<const LEAST: u64, const MOST: u64>(ByteSize);

impl<const LEAST: u64, const MOST: u64> BoundedSize<LEAST, MOST> {
    /// A default. A value out of bounds does not compile.
    pub(crate) const fn of<const N: u64>() -> BoundedSize<LEAST, MOST> {
        const { assert!(LEAST <= N && N <= MOST) };
        BoundedSize(ByteSize(N))
    }

    /// The number of bytes.
    pub fn get(self) -> usize {
        self.0.get()
    }

    /// The size.
    pub fn size(self) -> ByteSize {
        self.0
    }
}

impl<const LEAST: u64, const MOST: u64> Text for BoundedSize<LEAST, MOST> {
    fn form() -> Kind {
        ByteSize::form()
    }

    fn from_text(text: &str) -> Result<BoundedSize<LEAST, MOST>, Complaint> {
        let size = ByteSize::from_text(text)?;
        if (LEAST..=MOST).contains(&size.0) {
            return Ok(BoundedSize(size));
        }
        let (least, most) = (ByteSize(LEAST), ByteSize(MOST));
        Err(Complaint::new(match MOST {
            u64::MAX => format!("{text:?} is too small: at least {least}"),
            _ => format!("{text:?} is out of bounds: from {least} to {most}"),
        }))
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// A duration from `LEAST` to `MOST` milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BoundedTime<const LEAST: u64, const MOST: u64>(Duration);

impl<const LEAST: u64, const MOST: u64> BoundedTime<LEAST, MOST> {
    /// A default in milliseconds. A value out of bounds does not compile.
    pub(crate) const fn of<const N: u64>() -> BoundedTime<LEAST, MOST> {
        const { assert!(LEAST <= N && N <= MOST) };
        BoundedTime(Duration::from_millis(N))
    }

    /// The duration.
    pub(crate) fn get(self) -> Duration {
        self.0
    }
}

impl<const LEAST: u64, const MOST: u64> Text for BoundedTime<LEAST, MOST> {
    fn form() -> Kind {
        Duration::form()
    }

    fn from_text(text: &str) -> Result<BoundedTime<LEAST, MOST>, Complaint> {
        // Without a unit, milliseconds are meant where seconds would be too long.
        let guess = text.trim().parse::<u64>().ok().filter(|number| *number > MOST / 1000 && *number <= MOST);
        let duration = Duration::from_text(text).map_err(|complaint| match guess {
            Some(number) => complaint.help(format!("\"{number}ms\"?")),
            None => complaint,
        })?;
        let (least, most) = (Duration::from_millis(LEAST), Duration::from_millis(MOST));
        if (least..=most).contains(&duration) {
            return Ok(BoundedTime(duration));
        }
        let (least, most) = (Text::text(&least), Text::text(&most));
        Err(Complaint::new(format!("{text:?} is out of bounds: from {least} to {most}")))
    }

    fn text(&self) -> String {
        Text::text(&self.0)
    }
}

/// A timeout: a duration above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout(Duration);

impl Timeout {
    /// A default that is defined elsewhere. MUST be above zero.
    pub(crate) fn default_of(duration: Duration) -> Timeout {
        debug_assert!(!duration.is_zero());
        Timeout(duration)
    }

    /// A default in seconds, above 0.
    pub(crate) const fn secs<const N: u64>() -> Timeout {
        const { assert!(N > 0) };
        Timeout(Duration::from_secs(N))
    }
}

impl Deref for Timeout {
    type Target = Duration;

    fn deref(&self) -> &Duration {
        &self.0
    }
}

impl Text for Timeout {
    fn form() -> Kind {
        Duration::form()
    }

    fn from_text(text: &str) -> Result<Timeout, Complaint> {
        match Duration::from_text(text)? {
            Duration::ZERO => Err(Complaint::new("a timeout must be more than 0s")),
            duration => Ok(Timeout(duration)),
        }
    }

    fn text(&self) -> String {
        Text::text(&self.0)
    }
}
