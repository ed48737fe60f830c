//! An entry of a registry: a name, and data.

use super::file::line;
use super::listing::{ListingBuilder, address, weight};
use super::{IgnoredReason, ListedBackend, MAX_ENTRY_BYTES};
use serde_json::{Map, Value};

/// Adds the entry `name` with its `data`. The address is the first of these that is present:
/// - data that is a JSON object with `address`;
/// - data that is text as in a line of a file: `http://…` or `unix:…`, and a weight;
/// - the name, as `host:port`, which is how zc.zk registers servers.
///
/// A JSON object may have a `weight`; its other members are ignored.
pub(super) fn add(builder: &mut ListingBuilder, name: &[u8], data: &[u8]) {
    match member(name, data) {
        Ok(member) => builder.add(member, name),
        Err(reason) => builder.ignore(reason, name),
    }
}

fn member(name: &[u8], data: &[u8]) -> Result<ListedBackend, IgnoredReason> {
    if name.len() > MAX_ENTRY_BYTES || data.len() > MAX_ENTRY_BYTES {
        return Err(IgnoredReason::TooLong);
    }
    let name = str::from_utf8(name).map_err(|_| IgnoredReason::NotText)?;
    if let Ok(Value::Object(object)) = serde_json::from_slice(data) {
        return described(name, &object);
    }
    if data.starts_with(b"http://") || data.starts_with(b"unix:") {
        return line(data)?.ok_or(IgnoredReason::BadAddress);
    }
    Ok(ListedBackend { address: address(name)?, weight: 1, priority: 0 })
}

fn described(name: &str, object: &Map<String, Value>) -> Result<ListedBackend, IgnoredReason> {
    let address = match object.get("address") {
        None => address(name)?,
        Some(Value::String(text)) => address(text)?,
        Some(_) => return Err(IgnoredReason::BadAddress),
    };
    let weight = match object.get("weight") {
        None => 1,
        Some(Value::Number(number)) => weight(&number.to_string())?,
        Some(_) => return Err(IgnoredReason::BadWeight),
    };
    Ok(ListedBackend { address, weight, priority: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_or_else_the_name_is_the_address() {
        for (name, data, address, weight) in [
            ("10.0.0.1:8080", "", "http://10.0.0.1:8080", 1),
            ("10.0.0.1:8080", "{\"pid\": 7}", "http://10.0.0.1:8080", 1),
            ("[::1]:8080", "17", "http://[::1]:8080", 1),
            ("a", "{\"address\": \"unix:/run/a.sock\", \"weight\": 4}", "unix:/run/a.sock", 4),
            ("a", "{\"address\": \"app:8000\"}", "http://app:8000", 1),
            ("a", "http://10.0.0.1:81 9\n", "http://10.0.0.1:81", 9),
            ("http://10.0.0.1:82", "", "http://10.0.0.1:82", 1),
        ] {
            let member = member(name.as_bytes(), data.as_bytes()).unwrap();
            assert_eq!(
                (member.address.to_string(), member.weight),
                (address.to_owned(), weight),
                "{name} {data}"
            );
        }
    }

    #[test]
    fn what_gives_no_address_is_left_out() {
        for (name, data, reason) in [
            ("a", "", IgnoredReason::BadAddress),
            ("a:b", "", IgnoredReason::BadAddress),
            ("a:99999", "", IgnoredReason::BadAddress),
            ("a:80", "{\"address\": 7}", IgnoredReason::BadAddress),
            ("a:80", "{\"address\": \"https://a:80\"}", IgnoredReason::BadAddress),
            ("a:80", "{\"weight\": \"1\"}", IgnoredReason::BadWeight),
            ("a:80", "{\"weight\": 1.5}", IgnoredReason::BadWeight),
            ("a:80", "{\"weight\": 0}", IgnoredReason::BadWeight),
            ("a:80", "http://a:80 x", IgnoredReason::BadWeight),
        ] {
            assert_eq!(member(name.as_bytes(), data.as_bytes()), Err(reason), "{name} {data}");
        }
        assert_eq!(member(b"\xff:80", b""), Err(IgnoredReason::NotText));
        assert_eq!(member(b"a:80", &[b' '; MAX_ENTRY_BYTES + 1]), Err(IgnoredReason::TooLong));
    }
}
