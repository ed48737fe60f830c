//! Queries: their parameters, and removal of those that do not matter.

use crate::glob::Glob;

/// The parameters of a query, between `&`, as received, including empty ones.
pub fn parameters(query: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    query.split(|&byte| byte == b'&')
}

/// Appends path and query to `out` without the query parameters whose names, as received, match one of
/// `ignored`. The others stay in order; a query with none left is removed with its `?`.
pub fn filter_query(path_and_query: &[u8], ignored: &[Glob], out: &mut Vec<u8>) {
    let (path, query) = super::split_query(path_and_query);
    let Some(query) = query.filter(|_| !ignored.is_empty()) else {
        out.extend_from_slice(path_and_query);
        return;
    };
    out.extend_from_slice(path);
    let mut separator = b'?';
    let mut any_ignored = false;
    for parameter in parameters(query) {
        let name = parameter.split(|&byte| byte == b'=').next().unwrap_or_default();
        if ignored.iter().any(|glob| glob.matches(name)) {
            any_ignored = true;
        } else {
            out.push(separator);
            out.extend_from_slice(parameter);
            separator = b'&';
        }
    }
    // Removing parameters may leave `?` and an empty one behind, which is the same as none.
    if any_ignored && out.last() == Some(&b'?') {
        out.pop();
    }
}
