//! Documents of the settings: the manual is current, every default is valid, the examples load.

use std::path::{Path, PathBuf};

use sandarac_config::{Absent, Config, Kind, Setting};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_manual_page_is_current() {
    let path = root().join("docs/manual/settings.md");
    let page = sandarac_config::manual();
    if std::env::var_os("SANDARAC_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == page, "docs/manual/settings.md is not current: run with SANDARAC_BLESS=1");
}

#[test]
fn the_listing_of_defaults_is_a_configuration_of_defaults() {
    let listed = crate::load(&sandarac_config::defaults());
    let short = crate::load(&format!("{}[[route]]\npool = \"app\"\n", crate::BASE));
    assert_eq!(format!("{listed:?}"), format!("{short:?}"));
}

/// Every setting with the table that it stands in, as keys to write before it.
fn walk(path: &str, settings: &[Setting], visit: &mut impl FnMut(&str, &Setting)) {
    for setting in settings {
        visit(path, setting);
        let (inner, path) = match (&setting.kind, path) {
            (Kind::Map { .. }, "") => (setting.kind.settings(), format!("{}.app.", setting.name)),
            _ => (setting.kind.settings(), format!("{path}{}.", setting.name)),
        };
        walk(&path, inner.unwrap_or_default(), visit);
    }
}

/// What else a table of a pool needs beside `name`.
fn needed(path: &str, name: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let others: &[_] = match (path, name) {
        ("pool.app.backends.", _) => &[("address", "\"http://a\"")],
        ("pool.app.class.", "of") => &[("regex", "'(?<class>.)'")],
        ("pool.app.resume.", "skills_file") => &[("skills", "\"inferred\"")],
        ("listen.tls.", "certificates" | "directory" | "acme") => &[],
        ("listen.tls.acme.", _) => &[("names", "\"a.example\"")],
        ("listen.tls.acme.external_account.", _) => &[("key_id", "\"a\""), ("key_file", "\"/a\"")],
        ("listen.tls.", _) => &[("directory", "\"/a\"")],
        ("listen.tls.certificates.", _) => &[("chain", "\"/a\"")],
        ("listen.tls.client_certificates.", _) => &[("ca", "\"/a\"")],
        ("pool.app.tls.client_certificate.", _) => &[("chain", "\"/a\"")],
        ("cache.shared.", "discover") => &[("secret_file", "\"/a\"")],
        ("cache.shared.", _) => &[
            ("servers", "\"127.0.0.1\""),
            ("secret_file", "\"/a\""),
            ("user", "\"a\""),
            ("password_file", "\"/b\""),
        ],
        ("pool.app.fastcgi.", _) => &[("root", "\"/a\"")],
        ("pool.app.discover.zookeeper." | "cache.shared.discover.zookeeper.", _) => {
            &[("servers", "\"a\""), ("path", "\"/a\"")]
        }
        ("pool.app.discover.etcd." | "cache.shared.discover.etcd.", _) => {
            &[("endpoints", "\"http://a\""), ("prefix", "\"/a\""), ("user", "\"a\""), ("password", "\"a\"")]
        }
        _ => &[],
    };
    others.iter().copied().filter(move |(other, _)| *other != name)
}

#[test]
fn every_default_and_every_example_is_valid_where_it_stands() {
    let mut seen = 0;
    walk("", &sandarac_config::settings(), &mut |path, setting| {
        let values = match &setting.absent {
            Absent::Value(value) => value,
            Absent::Unset { example, .. } | Absent::Required { example } => *example,
        };
        if values.is_empty() {
            return;
        }
        let mut line = format!("{path}{} = {values}", setting.name);
        for (key, value) in needed(path, setting.name) {
            line.push_str(&format!("\n{path}{key} = {value}"));
        }
        // What else the tables around it need.
        if path.starts_with("cache.shared.discover.") {
            line.push_str("\ncache.shared.secret_file = \"/a\"");
        } else if path == "cache.shared.ejection." {
            line.push_str("\ncache.shared.servers = \"127.0.0.1\"");
        } else if path == "listen.tls.acme.external_account." {
            line.push_str("\nlisten.tls.acme.names = \"a.example\"");
        } else if path == "listen.tls.client_certificates." {
            line.push_str("\nlisten.tls.directory = \"/a\"");
        }
        // What else the table needs.
        let (first, more) = match path {
            "listen." if setting.name == "mode" => (format!("[[listen]]\naddress = \"unix:/a\"\n{line}"), ""),
            "listen." if setting.name == "address" => (format!("[[listen]]\n{line}"), ""),
            path if path.starts_with("listen.tls.certificates.") => {
                let table = line.replace("listen.tls.certificates.", "");
                (format!("[[listen]]\naddress = \":1\"\n[[listen.tls.certificates]]\n{table}"), "")
            }
            path if path.starts_with("listen.") => (format!("[[listen]]\naddress = \":1\"\n{line}"), ""),
            "route." if matches!(setting.name, "answer" | "redirect" | "pool" | "files") => {
                (format!("[[route]]\n{line}"), "")
            }
            "route.answer." => (format!("[[route]]\n{line}"), ""),
            "route.redirect." if setting.name == "to" => (format!("[[route]]\n{line}"), ""),
            "route.redirect." => (format!("[[route]]\n{line}\nredirect.to = \"/\""), ""),
            path if path.starts_with("route.") => (format!("[[route]]\npool = \"app\"\n{line}"), ""),
            "pool.app." if setting.name == "backends" => (line.clone(), ""),
            _ => (line.clone(), "[[listen]]\naddress = \":2\"\n"),
        };
        let first = first.replace("\nroute.", "\n").replace("\nlisten.", "\n");
        let mut text = if path.starts_with("route.") || path.starts_with("listen.") {
            first
        } else {
            format!("{first}\n{more}")
        };
        if !text.contains("pool.app.backends") {
            let is_fastcgi = text.contains("pool.app.fastcgi") || text.contains("php = ");
            let scheme = if is_fastcgi { "fcgi" } else { "http" };
            text = format!("pool.app.backends = \"{scheme}://a\"\n{text}");
        }
        if !text.contains("[[listen]]") {
            text.push_str("\n[[listen]]\naddress = \":3\"\n");
        }
        if !text.contains("[[route]]") {
            text.push_str("\n[[route]]\npool = \"app\"\n");
        }
        if let Err(diagnostics) = Config::from_toml("default", &text) {
            panic!("{path}{}:\n{text}\n{diagnostics}", setting.name);
        }
        seen += 1;
    });
    assert!(seen > 130, "{seen}");
}

#[test]
fn every_setting_is_told_of() {
    let (manual, schema) = (sandarac_config::manual(), sandarac_config::schema());
    walk("", &sandarac_config::settings(), &mut |path, setting| {
        assert!(setting.text.ends_with('.') && setting.text.len() > 8, "{path}{}", setting.name);
        let written = ["`NAME`", "[NAME", ".NAME]"].map(|form| form.replace("NAME", setting.name));
        assert!(written.iter().any(|form| manual.contains(form)), "{path}{}", setting.name);
        assert!(schema.contains(&format!("\"{}\"", setting.name)), "{}", setting.name);
    });
}

#[test]
fn settings_that_need_a_restart_are_those_that_a_reload_reports() {
    let mut fixed = Vec::new();
    walk("", &sandarac_config::settings(), &mut |path, setting| {
        if setting.fixed {
            fixed.push(format!("{path}{}", setting.name));
        }
    });
    assert_eq!(fixed, ["user", "threads", "admin.listen", "admin.mode", "admin.group"]);
}

#[test]
fn the_schema_is_json_that_knows_every_table_and_no_other_key() {
    let schema: serde_json::Value = serde_json::from_str(&sandarac_config::schema()).unwrap();
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["timeouts"]["properties"]["head"]["default"], "10s");
    assert_eq!(schema["properties"]["pool"]["additionalProperties"]["properties"]["retries"]["maximum"], 2);
    let pool = &schema["properties"]["pool"]["additionalProperties"]["properties"];
    assert_eq!(pool["load_factor"]["type"], "number");
    assert_eq!(pool["load_factor"]["default"].as_f64(), Some(1.25));
    assert_eq!(pool["backends"]["anyOf"][0]["anyOf"][1]["required"][0], "address");
    assert_eq!(pool["discover"]["anyOf"][1]["items"]["additionalProperties"], false);
    assert_eq!(schema["properties"]["listen"]["items"]["required"][0], "address");
    assert_eq!(schema["properties"]["route"]["items"]["properties"]["cache"]["anyOf"][0]["enum"][1], "pass");
}

#[test]
fn the_examples_load_without_a_warning() {
    let mut names = Vec::new();
    let examples = root().join("examples");
    let directories = ["", "acme", "mediawiki", "static"].map(|directory| examples.join(directory));
    let listed = directories.map(|directory| std::fs::read_dir(directory).unwrap());
    for entry in listed.into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match Config::from_toml(&name, &std::fs::read_to_string(&path).unwrap()) {
            Ok((_, warnings)) => assert!(warnings.is_empty(), "{}", warnings[0]),
            Err(diagnostics) => panic!("{diagnostics}"),
        }
        names.push(name);
    }
    for (name, count) in [("wordpress.toml", 1), ("django.toml", 1), ("sandarac.toml", 3)] {
        assert_eq!(names.iter().filter(|found| *found == name).count(), count, "{name}");
    }
}
