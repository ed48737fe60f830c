//! Tags: what a stored response can be purged by.

use super::hash;
use sandarac_cache::Tag;
use sandarac_message::{Fields, Name, tags};
use sandarac_policy::KeyRule;

/// The tags and groups by which a response to a target can be purged.
pub(crate) fn tags_of(fields: Fields<'_>, host: &[u8], path_and_query: &[u8], rule: &KeyRule) -> Vec<Tag> {
    let groups = tags::groups(fields, Name::CacheGroups);
    tags::tags(fields)
        .map(Tag::new)
        .chain(groups.iter().map(|group| Tag::group(host, group.as_bytes())))
        .chain(hash::target_tag(rule, host, path_and_query))
        .collect()
}
