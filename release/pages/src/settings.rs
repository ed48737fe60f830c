//! The page `sandarac.toml(5)`: the manual of the settings, in the language of manual pages.

/// The page, from the manual in Markdown. What that uses of Markdown is headings, lists of `- **name**: text`,
/// fenced code, and emphasis.
pub(crate) fn page(manual: &str) -> String {
    let mut out = String::from(
        ".TH sandarac.toml 5\n.SH NAME\nsandarac.toml \\- configuration of sandarac(1)\n.SH DESCRIPTION\n",
    );
    let mut is_code = false;
    for line in manual.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
            out.push_str(if is_code { ".PP\n.nf\n" } else { ".fi\n.PP\n" });
        } else if is_code {
            out.push_str(&text(line));
            out.push('\n');
        } else if let Some(heading) = line.strip_prefix("## ") {
            out.push_str(&format!(
                ".SH \"{}\"\n",
                text(&plain(heading)).to_uppercase().replace('"', "\\(dq")
            ));
        } else if let Some((name, rest)) =
            line.strip_prefix("- **`").and_then(|line| line.split_once("`**: "))
        {
            out.push_str(&format!(".TP\n.B {}\n{}\n", text(name), text(&plain(rest))));
        } else if !line.starts_with("# ") && !line.starts_with("<!--") && !line.is_empty() {
            out.push_str(&text(&plain(line.trim_start())));
            out.push('\n');
        }
    }
    out.push_str(".SH SEE ALSO\n.BR sandarac (1),\n.BR sandarac-check (1)\n");
    out
}

/// A line without its emphasis. A star in code stays.
fn plain(line: &str) -> String {
    let mut is_code = false;
    line.chars()
        .filter(|&letter| {
            is_code ^= letter == '`';
            letter != '`' && (is_code || letter != '*')
        })
        .collect()
}

/// A line that means itself.
fn text(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_lists_code_and_emphasis_are_translated() {
        let manual = "# Settings\n\n<!-- made -->\n\nA file:\n\n```toml\n[[listen]]\n.a = \"-\"\n```\n\n## `[pool.NAME]`\n\n\
                      - **`weight`**: Its share, as `a*b`. *A number.*\n  Default: `1`.\n";
        let expected = ".SH DESCRIPTION\nA file:\n.PP\n.nf\n[[listen]]\n\\&.a = \"\\-\"\n.fi\n.PP\n.SH \"[POOL.NAME]\"\n\
                        .TP\n.B weight\nIts share, as a*b. A number.\nDefault: 1.\n.SH SEE ALSO\n";
        let page = page(manual);
        assert!(page.contains(expected), "{page}");
    }
}
