//! Any input is a configuration or told what is wrong with it.

use proptest::prelude::*;
use sandarac_config::{AdminToken, Config, Flags, explain};

fn try_all(text: &str) {
    match Config::from_toml("any", text) {
        Ok((config, warnings)) => {
            explain(&config);
            config.routes.find(b"a.example", b"/x", b"GET");
            warnings.iter().for_each(|warning| assert!(!warning.to_string().is_empty()));
        }
        Err(diagnostics) => {
            assert!(!diagnostics.errors().is_empty());
            assert!(diagnostics.to_string().starts_with("error: "));
        }
    }
}

/// A whole configuration with much in it, to be damaged.
const WHOLE: &str = include_str!("../../../../examples/django.toml");

fn key() -> impl Strategy<Value = String> {
    let mut keys: Vec<String> = Vec::new();
    collect(&sandarac_config::settings(), "", &mut keys);
    prop::sample::select(keys)
}

fn collect(settings: &[sandarac_config::Setting], path: &str, keys: &mut Vec<String>) {
    for setting in settings {
        let name = format!("{path}{}", setting.name);
        keys.push(name.clone());
        if let Some(inner) = setting.kind.settings() {
            collect(inner, &format!("{name}."), keys);
        }
    }
}

const VALUES: &str = "\"[ -~é]{0,12}\"|-?[0-9]{1,25}|true|0x1F|1\\.5|1979-05-27|\\[\\]|\\{\\}|\\[1, \"a\"\\]|\"[/*=]{1,3}[a-z*/?%]{0,8}\"|\"[0-9]{1,30}(s|KiB|m)?\"|\\{ a = 1 \\}|\\[\\[\\], \\{\\}\\]";

proptest! {
    #[test]
    fn any_text(text: String) {
        try_all(&text);
    }

    #[test]
    fn any_value_at_any_key(lines in prop::collection::vec((key(), VALUES), 1..6)) {
        let text: String = lines.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        try_all(&text);
        for (key, value) in &lines {
            let inside = |header: &str| {
                let key = key.split_once('.').map_or(key.as_str(), |(_, rest)| rest);
                format!("[[listen]]\naddress=\":1\"\n[pool.app]\nbackends=\"http://a\"\n{header}\n{key} = {value}\n")
            };
            try_all(&inside("[[route]]\nmatch = \"/a\"\npool = \"app\"\n[[route]]\npool = \"app\""));
            try_all(&inside("[[listen]]"));
            try_all(&inside("[pool.b]"));
            try_all(&inside("[[route]]"));
        }
    }

    #[test]
    fn a_whole_file_damaged_anywhere(at in 0..WHOLE.len(), len in 0_usize..40, with in "[ -~\\n]{0,8}") {
        let start = WHOLE.floor_char_boundary(at);
        let end = WHOLE.floor_char_boundary((at + len).min(WHOLE.len())).max(start);
        try_all(&format!("{}{with}{}", &WHOLE[..start], &WHOLE[end..]));
    }

    #[test]
    fn any_flags(listen: Option<String>, backend: Option<String>, memory: Option<String>, threads: Option<u32>) {
        let flags = Flags {
            listen_unless_configured: listen.clone(),
            listen: listen.into_iter().collect(),
            listen_in_clear: Vec::new(),
            acme: memory.iter().cloned().collect(),
            acme_directory: memory.clone(),
            acme_state: memory.clone(),
            certificates: memory.iter().map(|path| (path.clone(), path.clone())).collect(),
            backends: backend.into_iter().collect(),
            files: memory.clone(),
            php: memory.clone(),
            php_fpm: memory.clone(),
            sockets: memory.clone(),
            user: memory.clone(),
            balance: memory.clone(),
            memcached: memory.clone().into_iter().collect(),
            shared_secret: memory.clone(),
            grace: memory.clone(),
            admin: memory.clone(),
            presented: None,
            token: memory.clone().map(|text| AdminToken { from: "SANDARAC_TOKEN".to_owned(), text }),
            profile: memory.clone(),
            memory,
            threads,
        };
        if let Err(diagnostics) = Config::from_flags(&flags) {
            prop_assert!(diagnostics.to_string().starts_with("error: "));
        }
    }
}

#[test]
fn deep_and_wide_files_are_told_of_and_cost_little() {
    try_all(&format!("a = {}", "[".repeat(100_000)));
    try_all(&"[[route]]\n".repeat(5000));
    try_all(&format!("{} = 1", vec!["a"; 50_000].join(".")));
    try_all(&format!("x = \"{}\"", "é".repeat(1_000_000)));
}
