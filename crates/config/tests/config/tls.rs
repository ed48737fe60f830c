//! TLS on listeners and to backends, from the file and from flags.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sandarac_config::{
    ClientCertificateForward, ClientCertificateMode, Config, Flags, ListenerTls, TlsVersion,
};
use sandarac_message::target::Scheme;

use crate::{load, refused, warnings};

const REST: &str = "[pool.app]\nbackends = \"http://127.0.0.1:8000\"\n[[route]]\npool = \"app\"\n";

fn listener(more: &str) -> String {
    format!("[[listen]]\naddress = \":443\"\n{more}\n{REST}")
}

fn tls(more: &str) -> ListenerTls {
    load(&listener(more)).listeners.remove(0).tls.unwrap()
}

/// The first error: its message, the text that is marked, and the help.
fn error(text: &str) -> (String, String, String) {
    let diagnostics = refused(text);
    let first = &diagnostics.errors()[0];
    let marked = first.place.clone().and_then(|place| text.get(place)).unwrap_or_default();
    (first.message.clone(), marked.to_owned(), first.help.clone().unwrap_or_default())
}

#[test]
fn a_directory_is_enough() {
    let config = load(&listener("tls.directory = \"/etc/certificates\""));
    assert_eq!(config.listeners[0].scheme, Scheme::Https);
    let tls = config.listeners[0].tls.clone().unwrap();
    assert_eq!(tls.directory, Some(PathBuf::from("/etc/certificates")));
    assert_eq!((tls.minimum_version, tls.cipher_suites.len()), (TlsVersion::Tls12, 0));
    assert_eq!((tls.ticket_lifetime, tls.ticket_secret_file), (Duration::from_secs(43_200), None));
    assert_eq!((tls.client_certificates, tls.dangerous_key_log), (None, false));
    assert_eq!(tls.handshake_timeout, Duration::from_secs(10));
}

#[test]
fn a_list_of_tables_may_be_one_in_braces() {
    for certificate in ["{ chain = \"/a.crt\", key = \"/a.key\" }", "{chain=\"/a.crt\",key=\"/a.key\"}"] {
        let tls = tls(&format!("[listen.tls]\ncertificates = {certificate}"));
        let files: Vec<_> = tls.certificates.iter().map(|one| (one.chain.clone(), one.key.clone())).collect();
        assert_eq!(files, [("/a.crt".into(), "/a.key".into())], "{certificate}");
    }
    for table in
        ["[listen.tls.certificates]\nchain = \"/a.crt\"", "[listen.tls]\ncertificates.chain = \"/a.crt\""]
    {
        let (message, _, help) = error(&listener(table));
        assert_eq!(message, "expected an array of tables, found a table", "{table}");
        assert_eq!(help, "write the name in double brackets", "{table}");
    }
}

#[test]
fn every_setting_is_read() {
    let tls = tls("[listen.tls]
        certificates = [{ chain = \"/a.crt\", key = \"/a.key\" }, { chain = \"/b.pem\", default = true }]
        minimum_version = \"1.3\"
        cipher_suites = [\"TLS_AES_128_GCM_SHA256\"]
        ticket_secret_file = \"/tickets\"
        ticket_lifetime = \"1h\"
        client_certificates = { mode = \"optional\", ca = \"/ca.pem\", crl = [\"/a.crl\", \"/b.crl\"], forward = \"chain\" }
        handshake_timeout = \"3s\"
        dangerous_key_log = true");
    let files: Vec<_> =
        tls.certificates.iter().map(|one| (one.chain.clone(), one.key.clone(), one.default)).collect();
    assert_eq!(files, [("/a.crt".into(), "/a.key".into(), false), ("/b.pem".into(), "/b.pem".into(), true)]);
    assert_eq!((tls.minimum_version, tls.ticket_lifetime), (TlsVersion::Tls13, Duration::from_secs(3600)));
    assert_eq!(tls.cipher_suites, ["TLS_AES_128_GCM_SHA256".into()]);
    assert_eq!(tls.ticket_secret_file, Some("/tickets".into()));
    let clients = tls.client_certificates.unwrap();
    assert_eq!((clients.mode, clients.ca.len(), clients.crl.len()), (ClientCertificateMode::Optional, 1, 2));
    assert_eq!(clients.forward, ClientCertificateForward::Chain);
    assert!(tls.dangerous_key_log && tls.handshake_timeout == Duration::from_secs(3));
}

#[test]
fn mistakes_are_named_with_what_was_meant() {
    for (text, message, marked, help) in [
        ("tls = {}", "`tls` needs `certificates`, a `directory` or `acme`", "{}", "certificates = [{"),
        (
            "tls.certificates = [{ key = \"/a\" }]",
            "a certificate needs a `chain`",
            "{ key = \"/a\" }",
            "chain =",
        ),
        (
            "tls.directory = \"certificates\"",
            "\"certificates\" is not a path from the root",
            "\"certificates\"",
            "",
        ),
        ("tls.directory = \"/a\"\ntls.certs = []", "unknown key `certs`", "certs", "certificates"),
        (
            "tls = { directory = \"/a\", minimum_version = \"1.1\" }",
            "\"1.1\" is not \"1.2\" or \"1.3\"",
            "\"1.1\"",
            "",
        ),
        (
            "tls = { directory = \"/a\", cipher_suites = \"TLS_AES_128_GCM_SHA25\" }",
            "there is no cipher suite \"TLS_AES_128_GCM_SHA25\"",
            "\"TLS_AES_128_GCM_SHA25\"",
            "the suites are TLS_AES_256_GCM_SHA384, ",
        ),
        (
            "tls = { directory = \"/a\", minimum_version = \"1.3\", cipher_suites = \"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\" }",
            "none of these suites is of TLS 1.3, the minimum version",
            "\"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\"",
            "leave out `cipher_suites`",
        ),
        (
            "tls = { directory = \"/a\", client_certificates = {} }",
            "`client_certificates` needs a `ca`: the certificates of those who issue them",
            "{}",
            "ca =",
        ),
        (
            "tls.directory = \"/a\"\nscheme = \"http\"",
            "clients reach a listener with `tls` by https",
            "\"http\"",
            "",
        ),
        (
            "tls.certificates = [{ chain = \"/a\" }, { chain = \"/a\" }]",
            "the certificate /a is listed twice",
            "{ chain = \"/a\" }",
            "",
        ),
        (
            "tls.certificates = [{ chain = \"/a\", default = true }, { chain = \"/b\", default = true }]",
            "only one certificate can be the default",
            "true",
            "",
        ),
    ] {
        let found = error(&listener(text));
        assert!(found.0.starts_with(message), "{text}: {}", found.0);
        assert_eq!(found.1, marked, "{text}");
        assert!(found.2.contains(help), "{text}: {}", found.2);
    }
}

#[test]
fn https_backends_have_settings_of_their_pool() {
    let text =
        "[[listen]]\naddress = \":80\"\n[pool.app]\nbackends = \"https://a\"\n[[route]]\npool = \"app\"\n";
    assert!(load_quietly(text).pools[0].backends[0].address.is_tls());
    let pool = "[[listen]]\naddress = \":80\"\n[pool.app]\nbackends = \"http://a\"\ntls = { ca = \"/ca.pem\", \
                server_name = \"App.Internal\", client_certificate = { chain = \"/c.pem\" } }\n[[route]]\npool = \"app\"\n";
    let config = load_quietly(pool);
    let tls = &config.pools[0].tls;
    assert_eq!((tls.ca.len(), tls.server_name.as_deref()), (1, Some("app.internal")));
    assert_eq!(tls.client_certificate.as_ref().map(|one| one.key.clone()), Some("/c.pem".into()));
    let found = warnings(pool);
    assert!(found[0].contains("`tls` has no effect: no backend's address begins with https://"), "{found:?}");
    for (more, message) in [
        ("server_name = \"a b\"", "\"a b\" is not the name of a host"),
        (
            "ca = \"/a\", dangerous_skip_verification = true",
            "with `dangerous_skip_verification`, `ca` would have no effect",
        ),
    ] {
        let text = pool.replace("ca = \"/ca.pem\"", more).replace(", server_name = \"App.Internal\"", "");
        let found = error(&text).0;
        assert!(found.starts_with(message), "{found}");
    }
}

fn load_quietly(text: &str) -> Config {
    Config::from_toml("test.toml", text).unwrap().0
}

#[test]
fn a_redirect_to_https_is_for_listeners_in_clear() {
    let config = load(&listener("redirect_to_https = true"));
    assert!(config.listeners[0].redirect_to_https && config.listeners[0].tls.is_none());
    let found = warnings(&listener("redirect_to_https = true\ntls.directory = \"/a\""));
    assert!(found[0].contains("`redirect_to_https` has no effect on a listener with `tls`"), "{found:?}");
}

#[test]
fn flags_give_certificates_to_the_addresses_for_https() {
    let flags = |listen: &[&str], in_clear: &[bool]| Flags {
        listen: listen.iter().map(|address| (*address).to_owned()).collect(),
        listen_in_clear: in_clear.to_vec(),
        certificates: vec![("/a.crt".to_owned(), "/a.key".to_owned())],
        backends: vec!["http://127.0.0.1:8000".to_owned()],
        ..Flags::default()
    };
    let encrypted = |flags: &Flags| -> Vec<bool> {
        let (config, _) = Config::from_flags(flags).unwrap();
        config.listeners.iter().map(|listener| listener.tls.is_some()).collect()
    };
    assert_eq!(encrypted(&flags(&[":80", ":443", "[::1]:8443"], &[])), [false, true, true]);
    assert_eq!(encrypted(&flags(&[":8080", ":443"], &[true, false])), [false, true]);
    let none = Config::from_flags(&flags(&[":80"], &[])).unwrap_err();
    assert!(none.to_string().contains("--certificate: no --listen is for https"), "{none}");
}

#[test]
fn a_route_binds_browsers_to_https() {
    let hsts = |value: &str| {
        let config =
            load(&listener("").replace("pool = \"app\"", &format!("pool = \"app\"\nhsts = {value}")));
        config.routes.all()[0].hsts.clone().unwrap().into_string()
    };
    assert_eq!(hsts("\"1h\""), "max-age=3600");
    assert_eq!(hsts("{}"), "max-age=31536000");
    assert_eq!(
        hsts("{ max_age = \"730d\", include_subdomains = true, preload = true }"),
        "max-age=63072000; includeSubDomains; preload"
    );
}

#[test]
fn acme_has_defaults_for_all_but_the_names() {
    let text = "[[listen]]\naddress = \":443\"\ntls.acme.names = [\"Example.org.\", \"www.example.org\"]\n\
                [[route]]\nanswer = { status = 200 }";
    let (config, warnings) = Config::from_toml("test.toml", text).unwrap();
    assert!(warnings.is_empty());
    let acme = config.listeners[0].tls.as_ref().and_then(|tls| tls.acme.clone()).expect("ACME");
    assert_eq!(acme.names, ["example.org".into(), "www.example.org".into()]);
    assert_eq!(&*acme.directory, "https://acme-v02.api.letsencrypt.org/directory");
    assert_eq!(acme.state, Path::new("/var/lib/sandarac/acme"));
    assert!(acme.contact.is_none() && acme.ca.is_none() && acme.external_account.is_none());
}

#[test]
fn acme_takes_another_ca_and_staging_by_one_word() {
    let read = |acme: &str| {
        let text = format!(
            "[[listen]]\naddress = \":443\"\ntls.acme = {{ names = \"a.example\", {acme} }}\n\
             [[route]]\nanswer = {{ status = 200 }}"
        );
        let (config, _) = Config::from_toml("test.toml", &text).unwrap_or_else(|errors| panic!("{errors}"));
        config.listeners[0].tls.as_ref().and_then(|tls| tls.acme.clone()).expect("ACME")
    };
    assert_eq!(&*read("staging = true").directory, "https://acme-staging-v02.api.letsencrypt.org/directory");
    let own = read(
        "directory = \"https://ca.internal/acme\", state = \"/srv/acme\", ca = \"/etc/ca.pem\", \
         contact = \"a@b.example\", external_account = { key_id = \"kid\", key_file = \"/etc/eab\" }",
    );
    assert_eq!((&*own.directory, &*own.state), ("https://ca.internal/acme", Path::new("/srv/acme")));
    assert_eq!(
        (own.ca.as_deref(), own.contact.as_deref()),
        (Some(Path::new("/etc/ca.pem")), Some("a@b.example"))
    );
    let account = own.external_account.expect("an account");
    assert_eq!((&*account.key_id, &*account.key_file), ("kid", Path::new("/etc/eab")));
}

#[test]
fn mistakes_in_acme_are_named() {
    for (acme, message) in [
        ("{}", "`acme` needs `names`"),
        ("{ names = [\"*.example.org\"] }", "\"*.example.org\" is a wildcard"),
        ("{ names = \"192.0.2.1\" }", "\"192.0.2.1\" is an address"),
        ("{ name = \"a\" }", "unknown key `name`"),
        ("{ names = \"a\", directory = \"http://ca\" }", "\"http://ca\" is not a URL of https"),
        ("{ names = \"a\", directory = \"https://ca\", staging = true }", "`staging` is for Let's Encrypt"),
        ("{ names = \"a\", contact = \"mailto:a@b\" }", "\"mailto:a@b\" is not a mail address"),
        ("{ names = \"a\", state = \"acme\" }", "\"acme\" is not a path from the root"),
        ("{ names = \"a\", external_account = {} }", "`external_account` needs a `key_id` and a `key_file`"),
    ] {
        let text = format!(
            "[[listen]]\naddress = \":443\"\ntls.acme = {acme}\n[[route]]\nanswer = {{ status = 200 }}"
        );
        let errors = Config::from_toml("test.toml", &text).expect_err(acme).to_string();
        assert!(errors.contains(message), "{acme}: {errors}");
    }
}

#[test]
fn the_flag_acme_is_for_the_addresses_for_https() {
    let flags = |listen: &[&str], names: &[&str]| Flags {
        listen: listen.iter().map(|address| (*address).to_owned()).collect(),
        acme: names.iter().map(|name| (*name).to_owned()).collect(),
        backends: vec!["http://127.0.0.1:8000".to_owned()],
        ..Flags::default()
    };
    let (config, _) = Config::from_flags(&flags(&[":80", ":443"], &["a.example", "b.example"])).unwrap();
    assert!(config.listeners[0].tls.is_none() && config.listeners[0].redirect_to_https);
    let acme = config.listeners[1].tls.as_ref().and_then(|tls| tls.acme.as_ref()).expect("ACME");
    assert_eq!(acme.names, ["a.example".into(), "b.example".into()]);
    let wrong = Config::from_flags(&flags(&[":443"], &["*.example"])).unwrap_err();
    assert!(wrong.to_string().contains("--acme: \"*.example\" is a wildcard"), "{wrong}");
}
