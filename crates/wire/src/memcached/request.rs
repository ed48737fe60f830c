//! Requests.
//!
//! Each carries an opaque token, which the server copies into its answer, except into errors. A quiet request
//! is not answered in its most frequent case: no item for [`Get`], success for [`Set`], success or no item
//! for [`Delete`].

use super::{ServerKey, Ttl};
use sandarac_message::decimal;

/// The bytes that follow the value of a [`Set`].
pub const VALUE_END: &[u8] = b"\r\n";

/// `mg`: reads an item, and may create, touch or claim it.
///
/// A plain read of an item that was invalidated takes the right to recache it ([`super::Recache::Won`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Get {
    /// The item.
    pub key: ServerKey,
    /// Whether the value is returned (`v`).
    pub value: bool,
    /// Whether the client flags are returned (`f`).
    pub client_flags: bool,
    /// Whether the CAS value is returned (`c`).
    pub cas: bool,
    /// Whether the size of the value is returned (`s`).
    pub size: bool,
    /// Whether the remaining lifetime is returned (`t`).
    pub remaining: bool,
    /// Whether the key is returned (`k`).
    pub return_key: bool,
    /// Creates an empty item with this lifetime if there is none (`N`). The requester that created it wins.
    pub vivify: Option<Ttl>,
    /// Sets the lifetime (`T`).
    pub touch: Option<Ttl>,
    /// Offers the right to recache if fewer seconds remain (`R`).
    pub recache: Option<u32>,
    /// The CAS value of the item if this modifies it (`E`). memcached 1.6.18 refuses it.
    pub explicit_cas: Option<u64>,
    /// No answer if there is no item (`q`).
    pub quiet: bool,
}

impl Get {
    /// A request for nothing but whether the item exists.
    pub fn new(key: ServerKey) -> Get {
        Get {
            key,
            value: false,
            client_flags: false,
            cas: false,
            size: false,
            remaining: false,
            return_key: false,
            vivify: None,
            touch: None,
            recache: None,
            explicit_cas: None,
            quiet: false,
        }
    }

    /// Appends the request.
    pub fn encode(&self, opaque: u32, out: &mut Vec<u8>) {
        // With all flags, in one step.
        out.reserve(self.key.as_bytes().len() + 64);
        begin(out, b"mg ", &self.key);
        flag(out, b" v", self.value);
        flag(out, b" f", self.client_flags);
        flag(out, b" c", self.cas);
        flag(out, b" s", self.size);
        flag(out, b" t", self.remaining);
        flag(out, b" k", self.return_key);
        ttl(out, b" N", self.vivify);
        ttl(out, b" T", self.touch);
        number(out, b" R", self.recache.map(u64::from));
        number(out, b" E", self.explicit_cas);
        end(out, self.quiet, opaque);
    }
}

/// What a [`Set`] requires of the stored item, and does to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Stores the value in any case.
    #[default]
    Set,
    /// Stores the value if there is no item.
    Add,
    /// Appends to the value of an item that exists. Its lifetime and client flags stay.
    Append,
    /// Stores the value if there is an item.
    Replace,
}

/// `ms`: stores an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// The item.
    pub key: ServerKey,
    /// The condition (`M`).
    pub mode: Mode,
    /// Stores only if the item has this CAS value (`C`).
    pub compare: Option<u64>,
    /// The lifetime (`T`).
    pub ttl: Ttl,
    /// The client flags (`F`), which come back with the item.
    pub client_flags: u32,
    /// With [`Set::compare`]: a value with an older CAS value is stored too, and marked stale (`I`).
    pub invalidate: bool,
    /// Whether the new CAS value is returned (`c`).
    pub return_cas: bool,
    /// The new CAS value (`E`). memcached 1.6.18 refuses it.
    pub explicit_cas: Option<u64>,
    /// No answer if the item was stored (`q`).
    pub quiet: bool,
}

impl Set {
    /// A request to store an item in any case, with this lifetime.
    pub fn new(key: ServerKey, ttl: Ttl) -> Set {
        Set {
            key,
            mode: Mode::Set,
            compare: None,
            ttl,
            client_flags: 0,
            invalidate: false,
            return_cas: false,
            explicit_cas: None,
            quiet: false,
        }
    }

    /// Appends the request up to its value. The value MUST follow, with `value_len` bytes, and then
    /// [`VALUE_END`].
    pub fn encode(&self, value_len: usize, opaque: u32, out: &mut Vec<u8>) {
        begin(out, b"ms ", &self.key);
        number(out, b" ", Some(value_len as u64));
        ttl(out, b" T", Some(self.ttl));
        number(out, b" F", Some(self.client_flags.into()).filter(|flags| *flags != 0));
        number(out, b" C", self.compare);
        number(out, b" E", self.explicit_cas);
        flag(out, b" I", self.invalidate);
        flag(out, b" c", self.return_cas);
        out.extend_from_slice(match self.mode {
            Mode::Set => b"",
            Mode::Add => b" ME",
            Mode::Append => b" MA",
            Mode::Replace => b" MR",
        });
        end(out, self.quiet, opaque);
    }
}

/// `md`: deletes an item, or marks it stale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    /// The item.
    pub key: ServerKey,
    /// Deletes only if the item has this CAS value (`C`).
    pub compare: Option<u64>,
    /// Marks the item stale instead of deleting it, and gives it a new CAS value (`I`).
    pub invalidate: bool,
    /// With [`Delete::invalidate`]: the new lifetime (`T`).
    pub ttl: Option<Ttl>,
    /// Removes the value and the client flags and keeps the item (`x`). memcached 1.6.18 refuses it.
    pub value_only: bool,
    /// The new CAS value of an item that stays (`E`). memcached 1.6.18 refuses it.
    pub explicit_cas: Option<u64>,
    /// No answer if the item was deleted, and none if there was none (`q`).
    pub quiet: bool,
}

impl Delete {
    /// A request to delete an item in any case.
    pub fn new(key: ServerKey) -> Delete {
        Delete {
            key,
            compare: None,
            invalidate: false,
            ttl: None,
            value_only: false,
            explicit_cas: None,
            quiet: false,
        }
    }

    /// Appends the request.
    pub fn encode(&self, opaque: u32, out: &mut Vec<u8>) {
        begin(out, b"md ", &self.key);
        number(out, b" C", self.compare);
        number(out, b" E", self.explicit_cas);
        flag(out, b" I", self.invalidate);
        ttl(out, b" T", self.ttl);
        flag(out, b" x", self.value_only);
        end(out, self.quiet, opaque);
    }
}

/// Appends `mn`, which is answered [`super::Line::NoOp`] after everything before it.
pub fn no_op(out: &mut Vec<u8>) {
    out.extend_from_slice(b"mn\r\n");
}

/// Appends `version`, which is answered [`super::Line::Version`].
pub fn version(out: &mut Vec<u8>) {
    out.extend_from_slice(b"version\r\n");
}

/// Appends `stats settings`, which is answered by lines of [`super::Line::Stat`] and [`super::Line::End`].
pub fn stats_settings(out: &mut Vec<u8>) {
    out.extend_from_slice(b"stats settings\r\n");
}

fn begin(out: &mut Vec<u8>, command: &[u8], key: &ServerKey) {
    out.extend_from_slice(command);
    out.extend_from_slice(key.as_bytes());
}

fn flag(out: &mut Vec<u8>, flag: &[u8], wanted: bool) {
    if wanted {
        out.extend_from_slice(flag);
    }
}

fn number(out: &mut Vec<u8>, flag: &[u8], number: Option<u64>) {
    if let Some(number) = number {
        out.extend_from_slice(flag);
        decimal::append(out, number);
    }
}

fn ttl(out: &mut Vec<u8>, flag: &[u8], ttl: Option<Ttl>) {
    if let Some(ttl) = ttl {
        out.extend_from_slice(flag);
        ttl.encode(out);
    }
}

fn end(out: &mut Vec<u8>, quiet: bool, opaque: u32) {
    flag(out, b" q", quiet);
    number(out, b" O", Some(opaque.into()));
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ServerKey {
        ServerKey::new("key").unwrap()
    }

    fn wire(encode: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        encode(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_get_asks_for_what_is_wanted() {
        assert_eq!(wire(|out| Get::new(key()).encode(0, out)), "mg key O0\r\n");
        let get = Get {
            value: true,
            client_flags: true,
            cas: true,
            size: true,
            remaining: true,
            return_key: true,
            vivify: Some(Ttl::seconds(3)),
            touch: Some(Ttl::seconds(60)),
            recache: Some(30),
            explicit_cas: Some(u64::MAX),
            quiet: true,
            ..Get::new(key())
        };
        assert_eq!(
            wire(|out| get.encode(u32::MAX, out)),
            "mg key v f c s t k N3 T60 R30 E18446744073709551615 q O4294967295\r\n"
        );
    }

    #[test]
    fn a_set_ends_where_its_value_begins() {
        let plain = Set::new(key(), Ttl::seconds(60));
        assert_eq!(wire(|out| plain.encode(0, 1, out)), "ms key 0 T60 O1\r\n");
        let set = Set {
            compare: Some(7),
            client_flags: 9,
            invalidate: true,
            return_cas: true,
            explicit_cas: Some(8),
            quiet: true,
            ..Set::new(key(), Ttl::NEVER)
        };
        assert_eq!(wire(|out| set.encode(5, 2, out)), "ms key 5 T0 F9 C7 E8 I c q O2\r\n");
        let with = |mode| wire(|out| Set { mode, ..plain.clone() }.encode(5, 3, out));
        assert_eq!(with(Mode::Add), "ms key 5 T60 ME O3\r\n");
        assert_eq!(with(Mode::Append), "ms key 5 T60 MA O3\r\n");
        assert_eq!(with(Mode::Replace), "ms key 5 T60 MR O3\r\n");
    }

    #[test]
    fn a_delete_may_keep_the_item() {
        assert_eq!(wire(|out| Delete::new(key()).encode(4, out)), "md key O4\r\n");
        let delete = Delete {
            compare: Some(7),
            invalidate: true,
            ttl: Some(Ttl::seconds(30)),
            value_only: true,
            explicit_cas: Some(8),
            quiet: true,
            ..Delete::new(key())
        };
        assert_eq!(wire(|out| delete.encode(5, out)), "md key C7 E8 I T30 x q O5\r\n");
    }

    #[test]
    fn the_commands_of_a_handshake_are_bare() {
        assert_eq!(
            wire(|out| {
                version(out);
                no_op(out);
                stats_settings(out);
            }),
            "version\r\nmn\r\nstats settings\r\n"
        );
    }
}
