//! Pages of the repository: every configuration in them loads, and every link leads somewhere.

use std::path::{Path, PathBuf};

use sandarac_config::Config;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every Markdown file of the repository, less what tools have put there.
fn pages() -> Vec<(PathBuf, String)> {
    let mut pages = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !name.starts_with('.') && !matches!(name.as_str(), "target" | "node_modules" | "corpus") {
                    folders.push(path);
                }
            } else if name.ends_with(".md") {
                let text = std::fs::read_to_string(&path).unwrap();
                pages.push((path, text));
            }
        }
    }
    pages
}

/// The fenced blocks of `text` in `language`, each with the number of its first line.
fn blocks(text: &str, language: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(bool, usize, String)> = None;
    for (at, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), open.take()) {
            (Some(named), None) => open = Some((named == language, at + 2, String::new())),
            (Some(_), Some((wanted, first, block))) => {
                if wanted {
                    found.push((first, block));
                }
            }
            (None, Some((wanted, first, block))) => open = Some((wanted, first, block + line + "\n")),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block has no end");
    found
}

/// A part of a configuration, with what is left out of it: a listener, a pool called `app`, a route to it.
fn completed(part: &str) -> String {
    let mut whole = part.to_owned();
    let pool = part.split_once("[pool.").and_then(|(_, rest)| rest.split(['.', ']']).next()).unwrap_or("app");
    let route = format!("\n[[route]]\npool = \"{pool}\"\n");
    for (table, more) in [
        ("[[listen]]", "\n[[listen]]\naddress = \":8080\"\n"),
        ("[pool.", "\n[pool.app]\nbackends = [\"http://127.0.0.1:8000\"]\n"),
        ("[[route]]", &*route),
    ] {
        let needs_no_pool = table == "[pool." && part.contains("files = ") && !part.contains("pool:");
        if !part.contains(table) && !needs_no_pool {
            whole.push_str(more);
        }
    }
    whole
}

/// Where the links of a page lead, as written.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut code = false;
    for line in text.lines() {
        code ^= line.trim_start().starts_with("```");
        if code {
            continue;
        }
        if let Some((_, target)) = line.split_once("]: ").filter(|(name, _)| name.starts_with('[')) {
            found.push(target.trim().to_owned());
        }
        for part in line.split("](").skip(1) {
            if let Some((target, _)) = part.split_once(')') {
                found.push(target.to_owned());
            }
        }
    }
    found
}

/// The anchor that a heading gets: its words in lower case, joined by hyphens.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter_map(|line| line.trim_start_matches('#').strip_prefix(' '));
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    headings
        .map(|heading| heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-"))
        .collect()
}

#[test]
fn every_configuration_on_a_page_loads() {
    let mut seen = 0;
    for (path, text) in pages() {
        for (line, block) in blocks(&text, "toml") {
            let name = format!("{}:{line}", path.display());
            match Config::from_toml(&name, &completed(&block)) {
                Ok((_, warnings)) => assert!(warnings.is_empty(), "{name}: {}", warnings[0]),
                Err(diagnostics) => panic!("{diagnostics}"),
            }
            seen += 1;
        }
    }
    assert!(seen > 5, "only {seen} configurations were found");
}

#[test]
fn every_link_leads_somewhere() {
    let mut seen = 0;
    for (path, text) in pages() {
        for link in links(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: {link} leads nowhere", path.display());
            if !anchor.is_empty() && file.ends_with(".md") {
                let there = anchors(&std::fs::read_to_string(&target).unwrap());
                assert!(
                    there.iter().any(|found| found == anchor),
                    "{}: {link}: no such heading",
                    path.display()
                );
            }
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} links were found");
}

#[test]
fn blocks_links_and_headings_are_found() {
    let page = "# A `[b]` c\n[x](y.md#z) and [u](v)\n```toml\na = 1\n```\n```console\n[n](o)\n```\n[r]: s\n";
    assert_eq!(blocks(page, "toml"), [(4, "a = 1\n".to_owned())]);
    assert_eq!(links(page), ["y.md#z", "v", "s"]);
    assert_eq!(anchors(page), ["a-b-c"]);
}
