//! The table of variables and modules against the manual pages of Varnish 7.1.1, where these are installed.
//!
//! Known differences between that version and the table are listed here with their reasons.

use std::collections::BTreeMap;
use std::process::Command;

use sandarac_vcl::Dialect;
use sandarac_vcl::table::{Function, Release, Subs, Type, modules, variables};

/// The text of a manual page in lines as long as its paragraphs; `None` if it is not installed.
fn manual(page: &str) -> Option<String> {
    let output =
        Command::new("man").args(["-P", "cat", page]).env("MANWIDTH", "1000").env("LC_ALL", "C").output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned()).filter(|text| text.lines().count() > 20)
}

/// The subs that a manual page names: `all`, `client`, `backend`, or names of subs.
fn subs(words: &str) -> Subs {
    words.split(',').map(str::trim).fold(Subs::NONE, |set, word| {
        set | match word {
            "all" => Subs::ALL,
            "client" => Subs::CLIENT,
            "backend" => Subs::BACKEND,
            _ => {
                let row = sandarac_vcl::table::SUBS.iter().find(|row| row.name == word);
                row.unwrap_or_else(|| panic!("no sub {word}")).subs
            }
        }
    })
}

/// A variable of a manual page: type, and where it can be read, set and unset.
type Row = (String, [Subs; 3]);

/// The variables of vcl-var(7) by name and syntax.
fn documented_variables(text: &str) -> BTreeMap<(String, Option<Dialect>), Row> {
    let mut found: BTreeMap<_, Row> = BTreeMap::new();
    let mut current = None;
    for line in text.lines() {
        let indentation = line.len() - line.trim_start().len();
        let line = line.trim();
        if indentation == 7 {
            let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
            let syntax = match rest.trim() {
                "" => None,
                "VCL <= 4.0" => Some(Dialect::V4_0),
                "VCL >= 4.1" => Some(Dialect::V4_1),
                _ => continue,
            };
            current = Some((name.to_owned(), syntax));
            continue;
        }
        let Some(key) = &current else { continue };
        let Some((label, value)) = line.split_once(": ") else { continue };
        let at =
            ["Readable from", "Writable from", "Unsetable from"].iter().position(|known| *known == label);
        if at.is_none() && label != "Type" {
            continue;
        }
        let row = found.entry(key.clone()).or_insert((String::new(), [Subs::NONE; 3]));
        match at {
            Some(at) => row.1[at] = subs(value),
            None => row.0 = value.to_owned(),
        }
    }
    found
}

/// Variables whose rows differ from the manual page of 7.1.1, with the reason.
const DIFFERENT_VARIABLES: &[(&str, &str)] = &[
    ("req.xid", "INT since 8"),
    ("bereq.xid", "INT since 8"),
    ("sess.xid", "INT since 8"),
    ("req.hash", "also in vcl_synth and vcl_pipe since 8"),
    ("storage.<name>", "the page has it only in the text"),
];

#[test]
fn variables_agree_with_the_manual_page() {
    let Some(text) = manual("vcl-var") else {
        println!("skipped: the manual page vcl-var(7) is not installed");
        return;
    };
    let documented = documented_variables(&text);
    assert!(documented.len() > 90, "only {} variables were read", documented.len());
    let is_different = |name: &str| DIFFERENT_VARIABLES.iter().any(|(known, _)| *known == name);
    // vcl_backend_refresh has come later; the rows have it where vcl_backend_response and _error are.
    let without_refresh = |set: Subs| {
        let old = set.rows().filter(|row| row.subs != Subs::BACKEND_REFRESH);
        old.fold(Subs::NONE, |set, row| set | row.subs)
    };
    let mut faults = Vec::new();
    for ((name, syntax), (kind, sets)) in &documented {
        let row = variables().iter().find(|row| row.name == name && row.syntax == *syntax);
        let Some(row) = row else {
            faults.extend((!is_different(name)).then(|| format!("{name} {syntax:?} is not in the table")));
            continue;
        };
        let unset = if row.unset_release == Release::Both { row.unset } else { Subs::NONE };
        let ours = [row.read, row.set, unset].map(without_refresh);
        let is_same = row.kind.name() == kind && ours == sets.map(without_refresh);
        if is_same == is_different(name) {
            faults.push(format!("{name}: {kind} {sets:?} in the manual page, {} {ours:?} here", row.kind));
        }
    }
    for row in variables().iter().filter(|row| row.release == Release::Both && !is_different(row.name)) {
        if !documented.contains_key(&(row.name.to_owned(), row.syntax)) {
            faults.push(format!("{} {:?} is not in the manual page", row.name, row.syntax));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The types of the parameters of a signature such as `(STRING s, [INT n])`, with their names.
fn parameters(text: &str) -> Vec<(String, String)> {
    let parts = text.split(',').map(|part| part.trim().trim_matches(['[', ']']));
    let words = |part: &str| {
        let mut words = part.split([' ', '=']).filter(|word| !word.is_empty());
        (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned())
    };
    parts.filter(|part| !part.is_empty()).map(words).collect()
}

/// Functions that no manual page of 7.1.1 has although it has them, or whose rows differ, with the reason.
const DIFFERENT_FUNCTIONS: &[(&str, &str)] = &[("std.getenv", "has a fallback since 9.1")];

#[test]
fn functions_agree_with_the_manual_pages() {
    let mut count = 0;
    let mut faults = Vec::new();
    for module in modules() {
        let Some(text) = manual(&format!("vmod_{}", module.name)) else {
            println!("skipped: the manual page vmod_{}(3) is not installed", module.name);
            continue;
        };
        let synopsis = text.split_once("SYNOPSIS").map_or("", |(_, rest)| rest);
        let synopsis = synopsis.split("\nDESCRIPTION").next().unwrap_or_default();
        let mut documented: BTreeMap<String, (String, String)> = BTreeMap::new();
        let mut class = String::new();
        for line in synopsis.lines().map(str::trim) {
            let Some((head, rest)) = line.split_once('(') else { continue };
            let signature = rest.trim_end_matches(')').to_owned();
            let Some((result, name)) = head.rsplit_once(' ') else { continue };
            if !line.starts_with("new ") && Type::named(result).is_none() {
                continue;
            }
            if line.starts_with("new ") {
                class = name.split('.').nth(1).unwrap_or_default().to_owned();
                documented.insert(format!("{}.{class}", module.name), ("VOID".into(), signature));
            } else if let Some((_, method)) = name.split_once('.') {
                documented.insert(format!("{}.{class}.{method}", module.name), (result.into(), signature));
            } else {
                documented.insert(format!("{}.{name}", module.name), (result.into(), signature));
            }
        }
        let mut ours: BTreeMap<String, &Function> = BTreeMap::new();
        for function in &module.functions {
            ours.insert(format!("{}.{}", module.name, function.name), function);
        }
        for class in &module.classes {
            ours.insert(format!("{}.{}", module.name, class.name), &class.constructor);
            for method in &class.methods {
                ours.insert(format!("{}.{}.{}", module.name, class.name, method.name), method);
            }
        }
        for (name, (result, signature)) in &documented {
            count += 1;
            if DIFFERENT_FUNCTIONS.iter().any(|(known, _)| known == name) {
                continue;
            }
            let Some(function) = ours.get(name) else {
                faults.push(format!("{name} is not in the table"));
                continue;
            };
            let here: Vec<(String, String)> = function
                .parameters
                .iter()
                .map(|parameter| (parameter.kind.name().into(), parameter.name.unwrap_or_default().into()))
                .collect();
            if function.result.name() != result || here != parameters(signature) {
                faults.push(format!("{name}: {result} ({signature}) in the manual page, {function:?} here"));
            }
        }
        let is_of_7 = |function: &Function| {
            function.release == Release::Both
                || (function.release == Release::Until7 && function.result != Type::Void)
        };
        for (name, _) in ours.iter().filter(|(_, function)| is_of_7(function)) {
            let is_alias = name == "cookie.format_rfc1123";
            if !documented.contains_key(name) && !is_alias {
                faults.push(format!("{name} is not in the manual page"));
            }
        }
    }
    println!("{count} functions were compared");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
