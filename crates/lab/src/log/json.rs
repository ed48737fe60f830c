//! The lines that `[log] format = "json"` writes.

use std::borrow::Cow;

use serde::Deserialize;

use super::escape::unescape_bytes;
use super::fields::LineFields;
use super::malformed::Malformed;
use super::time;

#[derive(Deserialize)]
struct Written<'a> {
    /// The request that this one is a fragment for.
    page: Option<u64>,
    #[serde(borrow)]
    time: Cow<'a, str>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    host: Option<Cow<'a, str>>,
    #[serde(borrow)]
    target: Cow<'a, str>,
    #[serde(borrow)]
    referer: Option<Cow<'a, str>>,
    #[serde(borrow)]
    user_agent: Option<Cow<'a, str>>,
}

pub(super) fn read(line: &[u8]) -> Result<LineFields, Malformed> {
    let written: Written<'_> = serde_json::from_slice(line).map_err(|_| Malformed::Format)?;
    let bytes = |text: Cow<'_, str>| unescape_bytes(text.as_bytes());
    Ok(LineFields {
        is_fragment: written.page.is_some(),
        time: time::rfc3339(written.time.as_bytes()).ok_or(Malformed::Time)?,
        whole_second: false,
        method: bytes(written.method),
        host: written.host.map(bytes),
        target: bytes(written.target),
        referer: written.referer.map(bytes),
        user_agent: written.user_agent.map(bytes),
    })
}
