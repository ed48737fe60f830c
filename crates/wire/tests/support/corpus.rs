//! The corpus in `tests/vectors/smuggling`; the heads of its files describe its format.

/// One case.
pub(crate) struct Case {
    pub(crate) name: String,
    /// The method of the request that a response is for.
    pub(crate) method: String,
    /// The name of the refusal.
    pub(crate) refusal: String,
    pub(crate) status: u16,
    /// How a naive reader reads it.
    pub(crate) naive: String,
    /// The repairs and the repaired reading, if there is only one reading.
    pub(crate) repaired: Option<String>,
    pub(crate) bytes: Vec<u8>,
}

/// The cases of `requests.txt` or `responses.txt`.
pub(crate) fn load(file: &str) -> Vec<Case> {
    let path = format!("{}/../../tests/vectors/smuggling/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.split("\n## ").skip(1).map(case).collect()
}

fn case(text: &str) -> Case {
    let mut lines = text.lines().peekable();
    let title = lines.next().expect("a case has a name");
    let (name, method) = title.split_once(" to ").unwrap_or((title, "GET"));
    let verdict = lines.next().expect("a case has a verdict");
    let (verdict, _why) = verdict.split_once(": ").unwrap_or_else(|| panic!("{name}: no reason"));
    let (refusal, status) = verdict.split_once(' ').unwrap_or_else(|| panic!("{name}: no status"));
    let naive = lines.next().and_then(|line| line.strip_prefix("naive: "));
    let repaired = lines
        .next_if(|line| line.starts_with("repaired: "))
        .map(|line| line["repaired: ".len()..].to_owned());
    Case {
        repaired,
        name: name.to_owned(),
        method: method.to_owned(),
        refusal: refusal.to_owned(),
        status: status.parse().unwrap_or_else(|_| panic!("{name}: {status} is no status")),
        naive: naive.unwrap_or_else(|| panic!("{name}: no naive reading")).to_owned(),
        bytes: unescape(&lines.collect::<String>()).unwrap_or_else(|| panic!("{name}: unknown escape")),
    }
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let (&kind, after) = rest.split_first()?;
        rest = after;
        match kind {
            b'r' => out.push(b'\r'),
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'\\' => out.push(b'\\'),
            b'x' => {
                let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
                out.push(u8::from_str_radix(digits, 16).ok()?);
                rest = &rest[2..];
            }
            b'{' => {
                let end = rest.iter().position(|&byte| byte == b'}')?;
                let (repeated, count) = std::str::from_utf8(&rest[..end]).ok()?.rsplit_once('*')?;
                out.extend(unescape(repeated)?.repeat(count.parse().ok()?));
                rest = &rest[end + 1..];
            }
            _ => return None,
        }
    }
    Some(out)
}
