//! The list of a directory, as a page.

use super::name::{encode, relative};
use super::tree::{Absent, On, Tree, refusal, stat_in};
use super::walk::READ;
use crate::report::file_refusal::FileRefusal;
use rustix::fs::{Dir, FileType};
use rustix::io::Errno;
use sandarac_message::{Timestamp, date};
use sandarac_net::Lease;
use std::fmt::Write;

/// The most names in a list. A directory may have a million.
const MAX_NAMES: usize = 10_000;

struct Listed {
    name: Vec<u8>,
    is_directory: bool,
    len: u64,
    modified: u64,
}

/// Bytes that are leased at a time while a list is made.
const STEP: usize = 64 << 10;

/// Bytes that a name takes beside those of its length: its entry, and its line in a page that grows by
/// doubling.
const LINE: usize = 512;

/// The page that lists the directory `name`, whose memory is leased by `held`. Blocks the thread.
pub(super) fn list(tree: &Tree, name: &[u8], shown: &[u8], held: &mut Lease) -> Result<String, Absent> {
    let refused = |errno: Errno| Absent::Refused(refusal(errno));
    let directory = tree.open_beneath(&relative(name), READ, On::Thread).map_err(|errno| match errno {
        Errno::NOENT => Absent::Refused(FileRefusal::NotFound),
        errno => refused(errno),
    })?;
    let mut listed = Vec::new();
    let mut has_more = false;
    let mut left = 0;
    for entry in Dir::read_from(&directory).map_err(refused)? {
        let entry = entry.map_err(refused)?;
        let name = entry.file_name().to_bytes();
        if name.first() == Some(&b'.') {
            continue;
        }
        if listed.len() == MAX_NAMES {
            has_more = true;
            break;
        }
        let Ok(stat) = stat_in(&directory, name) else { continue };
        let kind = FileType::from_raw_mode(stat.st_mode);
        // It is in its entry, in its line, and there in a reference too, in which a byte takes three at most.
        let bytes = LINE + 8 * name.len();
        if left < bytes {
            if !held.grow(STEP) {
                return Err(Absent::Refused(FileRefusal::Memory));
            }
            left += STEP;
        }
        left -= bytes;
        // Where a link leads to is found when it is followed.
        if !matches!(kind, FileType::RegularFile | FileType::Directory | FileType::Symlink) {
            continue;
        }
        listed.push(Listed {
            name: name.to_vec(),
            is_directory: kind == FileType::Directory,
            len: u64::try_from(stat.st_size).unwrap_or_default(),
            modified: u64::try_from(stat.st_mtime).unwrap_or_default(),
        });
    }
    listed.sort_by(|one, other| {
        other.is_directory.cmp(&one.is_directory).then_with(|| one.name.cmp(&other.name))
    });
    Ok(page(shown, &listed, has_more))
}

fn page(shown: &[u8], listed: &[Listed], has_more: bool) -> String {
    let title = escaped(shown);
    let mut page = format!(
        "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title}</title>\n<style>body{{font-family:sans-serif;margin:2em}}td{{padding:.1em 1em .1em 0}}\
         td+td{{color:#666}}td:nth-child(2){{text-align:right}}</style></head>\n<body><h1>{title}</h1>\n<table>\n"
    );
    if shown != b"/" {
        page.push_str("<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n");
    }
    for Listed { name, is_directory, len, modified } in listed {
        // `./`, so that no name is taken for a scheme.
        let mut reference = b"./".to_vec();
        encode(name, &mut reference);
        let slash = if *is_directory { "/" } else { "" };
        let size = if *is_directory { String::new() } else { len.to_string() };
        let date = date::format(Timestamp::from_secs(*modified));
        let _ = writeln!(
            page,
            "<tr><td><a href=\"{}{slash}\">{}{slash}</a></td><td>{size}</td><td>{}</td></tr>",
            String::from_utf8_lossy(&reference),
            escaped(name),
            String::from_utf8_lossy(&date)
        );
    }
    page.push_str("</table>\n");
    if has_more {
        let _ = writeln!(page, "<p>The first {MAX_NAMES} found. There are more.</p>");
    }
    page + "</body></html>\n"
}

/// Text in which nothing has a meaning in HTML.
fn escaped(bytes: &[u8]) -> String {
    let mut out = String::new();
    for letter in String::from_utf8_lossy(bytes).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_meaning_in_the_page() {
        let listed = |name: &[u8]| Listed { name: name.to_vec(), is_directory: false, len: 1, modified: 0 };
        let names = [listed(b"<script>&\"'.html"), listed(b"javascript:alert(1)"), listed(b"\xff")];
        let page = page(b"/<b>/", &names, false);
        assert!(page.contains("&lt;script&gt;&amp;&quot;&#39;.html</a>"), "{page}");
        assert!(page.contains("href=\"./javascript%3Aalert%281%29\""), "{page}");
        assert!(page.contains("href=\"./%FF\""), "{page}");
        assert!(page.contains("<h1>/&lt;b&gt;/</h1>"), "{page}");
    }
}
