//! The dialects of VCL, and the guess for a file that names none.

use std::cmp::Ordering;
use std::fmt;

/// A dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// VCL 2 or 3, which have no version line.
    Old,
    /// VCL 4.0.
    V4_0,
    /// VCL 4.1.
    V4_1,
}

/// The version of a program in an old dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OldVersion {
    /// VCL 2.
    V2,
    /// VCL 3.
    V3,
}

impl Dialect {
    /// The number of the version line: `4.0` or `4.1`; empty for the dialects that have none.
    pub fn number(self) -> &'static str {
        match self {
            Dialect::Old => "",
            Dialect::V4_0 => "4.0",
            Dialect::V4_1 => "4.1",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dialect::Old => "VCL 2 or 3",
            Dialect::V4_0 => "VCL 4.0",
            Dialect::V4_1 => "VCL 4.1",
        })
    }
}

/// Names that only VCL 2 and 3 have.
const OLD: &[&str] = &[
    "req.request",
    "bereq.request",
    "req.backend",
    "req.backend.healthy",
    "req.hash",
    "beresp.cacheable",
    "beresp.saintmode",
    "obj.cacheable",
    "obj.prefetch",
    "obj.response",
    "obj.lastuse",
    "client.port",
    "server.port",
    "vcl_fetch",
    "vcl_error",
    "vcl_prefetch",
    "vcl_timeout",
    "vcl_discard",
    "hit_for_pass",
    "ban_url",
    "purge_url",
    "purge_hash",
    "remove",
    "director",
    "error",
    "esi",
    "log",
    "panic",
];

/// Names that only VCL 4 has.
const NEW: &[&str] = &[
    "req.method",
    "bereq.method",
    "req.backend_hint",
    "bereq.backend",
    "beresp.uncacheable",
    "beresp.reason",
    "resp.reason",
    "vcl_backend_fetch",
    "vcl_backend_response",
    "vcl_backend_error",
    "vcl_synth",
    "vcl_purge",
    "synth",
    "abandon",
    "new",
];

/// Names that VCL 2 has and VCL 3 has not.
const ONLY_V2: &[&str] = &[
    "req.hash",
    "beresp.cacheable",
    "obj.cacheable",
    "obj.prefetch",
    "vcl_prefetch",
    "vcl_timeout",
    "vcl_discard",
    "purge_url",
    "purge_hash",
    "esi",
    "log",
];

/// Names that VCL 3 has and VCL 2 has not.
const ONLY_V3: &[&str] = &[
    "beresp.do_esi",
    "beresp.do_gzip",
    "beresp.do_gunzip",
    "beresp.do_stream",
    "beresp.storage",
    "hash_data",
    "ban",
    "ban_url",
    "hit_for_pass",
    "import",
    "fallback",
    "dns",
    "vcl_init",
    "vcl_fini",
];

/// Counts the evidence for a dialect while the names of a file go by.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence {
    old: usize,
    new: usize,
    only_v2: usize,
    only_v3: usize,
}

impl Evidence {
    /// Counts a name with its dots.
    pub(crate) fn add(&mut self, name: &str) {
        self.old += usize::from(OLD.contains(&name));
        self.new += usize::from(NEW.contains(&name));
        self.only_v2 += usize::from(ONLY_V2.contains(&name));
        self.only_v3 += usize::from(ONLY_V3.contains(&name));
    }

    /// The dialect: an old one only if its names prevail.
    pub(crate) fn dialect(self) -> Dialect {
        if self.old > self.new { Dialect::Old } else { Dialect::V4_1 }
    }

    /// The version of an old program, if its names show it.
    pub(crate) fn old_version(self) -> Option<OldVersion> {
        match self.only_v2.cmp(&self.only_v3) {
            Ordering::Greater => Some(OldVersion::V2),
            Ordering::Less => Some(OldVersion::V3),
            Ordering::Equal => None,
        }
    }
}
