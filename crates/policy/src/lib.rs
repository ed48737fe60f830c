//! The rules that apply to each request: its route, its use of the cache, its edits, and its class.
//!
//! All of them are pure functions of the request. The configuration makes and checks them; no code here reads
//! a setting.

mod byte_size;
mod cache_rule;
mod classes;
mod compress_rule;
mod digest_once;
mod edits;
mod files;
mod fragment_rule;
mod pattern;
mod routes;
mod rules_digest;
mod template;

pub use byte_size::ByteSize;
pub use cache_rule::{CacheRule, KeyRule, SharedUse};
pub use classes::{
    ClassPart, ClassPattern, ClassPiece, ClassRule, ClassTable, ClassTemplate, Classifier, Subject,
    TableConflict,
};
pub use compress_rule::{BodyCoding, CodingWish, CompressRule};
pub use digest_once::DigestOnce;
pub use edits::{Edits, FieldLine, FieldTemplate, ResponseEdits};
pub use files::{FileName, FileRule, Symlinks};
pub use fragment_rule::FragmentRule;
pub use pattern::{HostPattern, MethodName, PathPattern, bare_host};
pub use routes::{
    Action, FixedAnswer, Forward, Match, PathReading, PoolId, Redirect, Route, RouteId, Routes,
};
pub use template::{RequestParts, Template, TemplatePart, TemplatePiece, TlsParts};
