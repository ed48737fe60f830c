//! Fields: edits keep order and leave the rest alone, what is encoded is read back, lists take apart and together.

use sandarac_message::hop::HopByHop;
use sandarac_message::{FieldsBuf, Method, Name, TooLarge, is_tchar, members};
use sandarac_wire::h1::{Limits, Parsed, response};

/// The fields as lines of names and values, as a model to hold [`FieldsBuf`] against.
type Lines = Vec<(Vec<u8>, Vec<u8>)>;

fn lines(fields: &FieldsBuf) -> Lines {
    fields.view().iter().map(|field| (field.name.to_vec(), field.value.to_vec())).collect()
}

fn is_named(line: &(Vec<u8>, Vec<u8>), name: &[u8]) -> bool {
    line.0.eq_ignore_ascii_case(name)
}

/// Checks one input.
pub(crate) fn run(input: &[u8]) {
    let (mut fields, mut model) = (FieldsBuf::new(), Lines::new());
    for line in input.split(|&byte| byte == b'\n') {
        let Some((&edit, line)) = line.split_first() else { continue };
        let (name, value) =
            line.split_at(line.iter().position(|byte| !is_tchar(*byte)).unwrap_or(line.len()));
        if name.is_empty() {
            continue;
        }
        let value: Vec<u8> =
            value.iter().copied().filter(|&byte| byte == b'\t' || byte >= b' ' && byte != 0x7f).collect();
        let value = value.trim_ascii().to_vec();
        let known = Name::of(name);
        match edit % 4 {
            0 => {
                fields.remove_named(name);
                model.retain(|line| !is_named(line, name));
            }
            1 if known != Name::Other => {
                fields.remove(known);
                model.retain(|line| !is_named(line, name));
                if fields.add(known, &value) != Err(TooLarge) {
                    model.push((known.text().into(), value));
                }
            }
            _ => {
                if fields.push(name, &value) != Err(TooLarge) {
                    model.push((name.to_vec(), value));
                }
            }
        }
    }
    assert_eq!(lines(&fields), model);
    assert_eq!(lines(&FieldsBuf::copy_of(fields.view())), model);
    for (name, _) in &model {
        let all: Vec<_> = fields.view().all_named(name).map(<[u8]>::to_vec).collect();
        let expected: Vec<_> =
            model.iter().filter(|line| is_named(line, name)).map(|line| line.1.clone()).collect();
        assert_eq!(all, expected);
    }

    let mut out = b"HTTP/1.1 304 \r\n".to_vec();
    let start = out.len();
    fields.encode(&mut out);
    assert_eq!(out.len() - start, fields.encoded_len());
    out.extend_from_slice(b"\r\n");
    let mut spans = Vec::new();
    let limits = Limits { fields: usize::MAX, head: usize::MAX, target: 0 };
    if let Ok(Parsed::Complete(read)) = response::parse(&out, &limits, &mut spans, Method::Get) {
        // What Connection names is not there any more.
        let mut unnamed = FieldsBuf::copy_of(fields.view());
        let connection = HopByHop::of(fields.view());
        unnamed.retain(|field| !connection.names(&field));
        assert_eq!(lines(&FieldsBuf::copy_of(read.head.fields)), lines(&unnamed));
    }

    for (_, value) in &model {
        let taken: Vec<&[u8]> = members(value).collect();
        assert!(taken.iter().all(|member| !member.is_empty() && *member == member.trim_ascii()));
        let together = taken.join(&b", "[..]);
        assert!(members(&together).eq(taken.iter().copied()));
    }

    let before = fields.clone();
    let connection = HopByHop::of(before.view());
    fields.retain(|field| !connection.has(&field));
    assert!(!fields.view().has(Name::Connection) && !fields.view().has(Name::TransferEncoding));
    assert!(lines(&fields).iter().all(|line| model.contains(line)));
}
