//! Lifetimes of items.

use sandarac_message::decimal;

/// The longest lifetime in seconds that a server takes for one: 30 days. It reads larger numbers as a time of
/// day.
pub const MAX_TTL: u32 = 30 * 24 * 60 * 60;

/// The lifetime given to an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ttl(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Expired,
    Never,
    Seconds(u32),
}

impl Ttl {
    /// The item never expires.
    pub const NEVER: Ttl = Ttl(Kind::Never);

    /// The item expires at once.
    pub const EXPIRED: Ttl = Ttl(Kind::Expired);

    /// The item expires after `seconds`: at once if they are 0, after [`MAX_TTL`] if they are more.
    pub const fn seconds(seconds: u32) -> Ttl {
        match seconds {
            0 => Ttl(Kind::Expired),
            seconds if seconds > MAX_TTL => Ttl(Kind::Seconds(MAX_TTL)),
            seconds => Ttl(Kind::Seconds(seconds)),
        }
    }

    /// Appends the number of the protocol.
    pub(super) fn encode(self, out: &mut Vec<u8>) {
        match self.0 {
            Kind::Expired => out.extend_from_slice(b"-1"),
            Kind::Never => out.push(b'0'),
            Kind::Seconds(seconds) => decimal::append(out, seconds.into()),
        }
    }
}

/// The time that an item has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remaining {
    /// It never expires.
    Unlimited,
    /// Seconds.
    Seconds(u32),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_of_seconds_means_forever_or_a_time_of_day() {
        let encoded = |ttl: Ttl| {
            let mut out = Vec::new();
            ttl.encode(&mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(encoded(Ttl::NEVER), "0");
        assert_eq!(encoded(Ttl::seconds(0)), "-1");
        assert_eq!(encoded(Ttl::seconds(1)), "1");
        assert_eq!(encoded(Ttl::seconds(MAX_TTL)), "2592000");
        assert_eq!(encoded(Ttl::seconds(MAX_TTL + 1)), "2592000");
        assert_eq!(encoded(Ttl::EXPIRED), "-1");
    }
}
