//! Flags and a file are one thing.

use std::time::Duration;

use sandarac_config::{AdminToken, Config, Flags, ListenAddress, Source};
use sandarac_message::caching::Profile;
use sandarac_policy::{Action, ByteSize, Forward};

use crate::BASE;

fn flags() -> Flags {
    Flags {
        listen: vec![":8080".to_owned()],
        backends: vec!["http://localhost:8000".to_owned()],
        ..Flags::default()
    }
}

fn token(text: &str) -> AdminToken {
    AdminToken { from: "SANDARAC_TOKEN".to_owned(), text: text.to_owned() }
}

fn refused(file: &str, flags: &Flags) -> String {
    Config::from_toml_and_flags("sandarac.toml", file, flags).unwrap_err().to_string()
}

#[test]
fn flags_alone_make_what_a_short_file_makes() {
    let (from_flags, warnings) = Config::from_flags(&flags()).unwrap();
    assert!(warnings.is_empty());
    let file = "[[listen]]\naddress = \":8080\"\n[pool.default]\nbackends = \"http://localhost:8000\"\n[[route]]\npool = \"default\"\n";
    assert_eq!(format!("{from_flags:?}"), format!("{:?}", crate::load(file)));
}

#[test]
fn flags_count_more_than_the_file() {
    let file = format!("{BASE}[[route]]\npool = \"app\"\n[cache]\nmemory = \"2MiB\"\ngrace = \"1s\"\n");
    let flags = Flags {
        listen: vec!["127.0.0.1:0".to_owned(), "[::1]:0".to_owned()],
        listen_in_clear: vec![false, true],
        certificates: vec![("/a.crt".to_owned(), "/a.key".to_owned())],
        acme: vec!["a.example".to_owned()],
        acme_directory: Some("staging".to_owned()),
        acme_state: Some("/var/lib/acme".to_owned()),
        listen_unless_configured: Some(":1".to_owned()),
        backends: vec!["http://a".to_owned(), "unix:/b".to_owned()],
        files: None,
        php: None,
        php_fpm: None,
        sockets: Some("/run/app".to_owned()),
        balance: Some("round_robin".to_owned()),
        memory: Some("1G".to_owned()),
        memcached: vec!["localhost".to_owned()],
        shared_secret: Some("/etc/secret".to_owned()),
        grace: Some("30s".to_owned()),
        admin: Some("/run/a.sock".to_owned()),
        presented: None,
        token: Some(token("0123456789abcdef\n")),
        user: Some("www-data".to_owned()),
        threads: Some(4),
        profile: Some("rfc".to_owned()),
    };
    let (config, _) = Config::from_toml_and_flags("sandarac.toml", &file, &flags).unwrap();
    assert_eq!(config.listeners.len(), 2);
    assert_eq!(config.listeners.iter().map(|one| one.tls.is_some()).collect::<Vec<_>>(), [true, false]);
    assert_eq!(config.pools[0].name, "app");
    assert_eq!(config.pools[0].backends.len(), 2);
    assert_eq!(config.pools[0].discover, [Source::Directory("/run/app".into())]);
    assert_eq!(config.pools[0].algorithm().name(), "round_robin");
    assert_eq!(config.cache.memory, ByteSize(1 << 30));
    assert_eq!(config.cache.profile, Profile::Rfc);
    assert_eq!(config.admin.listen, Some(ListenAddress::Unix("/run/a.sock".into())));
    assert_eq!(config.admin.token.as_deref(), Some("0123456789abcdef"));
    assert_eq!(config.user.as_ref().map(|user| user.as_str()), Some("www-data"));
    assert_eq!(config.threads, Some(4));
    let Action::Forward(Forward { cache: Some(rule), .. }) = &config.routes.all()[0].action else { panic!() };
    assert_eq!(rule.policy.grace, Duration::from_secs(30));
}

#[test]
fn a_wrong_flag_is_named_with_what_was_meant() {
    let memory = Flags { memory: Some("1".to_owned()), ..flags() };
    assert_eq!(refused("", &memory), "error: --memory: \"1\" has no unit\n  = help: \"1MiB\"?\n");
    let file = format!("{BASE}[[route]]\npool = \"app\"\n");
    assert_eq!(refused(&file, &memory), refused("", &memory), "a file is not to blame");
    let short = Flags { token: Some(token("hunter2")), ..flags() };
    assert!(refused("", &short).starts_with("error: SANDARAC_TOKEN: a token has at least 16 characters"));
    assert!(!format!("{short:?}{}", refused("", &short)).contains("hunter2"));
    let open = refused("", &Flags { admin: Some("127.0.0.1:0".to_owned()), ..flags() });
    assert!(open.contains("--admin-token-file FILE") && open.contains("SANDARAC_TOKEN"), "{open}");
    let listen = Flags { listen: vec!["8080".to_owned()], ..flags() };
    assert!(refused("", &listen).starts_with("error: --listen: \"8080\" is not an address to listen on"));
    let relative = refused("", &Flags { admin: Some("run/x.sock".to_owned()), ..flags() });
    assert!(relative.contains("did you mean \"./run/x.sock\"?"), "{relative}");
    let backend = Flags { backends: vec!["localhost:8000".to_owned()], ..flags() };
    assert!(refused("", &backend).contains("did you mean \"http://localhost:8000\"?"));
    assert!(
        refused("", &Flags { threads: Some(0), ..flags() }).contains("--threads: 0 is not a number from 1")
    );
    assert!(
        refused("", &Flags { profile: Some("strict".to_owned()), ..flags() }).contains("--cache-profile")
    );
}

#[test]
fn a_directory_of_sockets_alone_makes_a_pool_that_is_balanced_by_resume_and_checked() {
    let flags =
        Flags { listen: vec![":8080".to_owned()], sockets: Some("/run/shop".to_owned()), ..Flags::default() };
    let (from_flags, warnings) = Config::from_flags(&flags).unwrap();
    assert!(warnings.is_empty());
    let file = "[[listen]]\naddress = \":8080\"\n[pool.default]\nbalance = \"resume\"\n\
                discover = { directory = \"/run/shop\" }\ncheck = { status = [\"100-599\"] }\n\
                [[route]]\npool = \"default\"\n";
    assert_eq!(format!("{from_flags:?}"), format!("{:?}", crate::load(file)));
    let (config, _) =
        Config::from_flags(&Flags { balance: Some("random".to_owned()), ..flags.clone() }).unwrap();
    assert_eq!(config.pools[0].algorithm().name(), "random");
    // How the pool of a file is balanced is the file's to say.
    let file = format!("{BASE}[[route]]\npool = \"app\"\n");
    let (config, _) = Config::from_toml_and_flags("sandarac.toml", &file, &flags).unwrap();
    assert_eq!(config.pools[0].algorithm().name(), "least_requests");
    assert_eq!(config.pools[0].discover, [Source::Directory("/run/shop".into())]);
    let relative = Flags { sockets: Some("shop".to_owned()), ..flags };
    assert!(refused("", &relative).contains("--sockets: \"shop\" is not a path from the root"));
}

#[test]
fn a_backend_for_a_file_of_several_pools_is_refused() {
    let file = format!("{BASE}[pool.b]\nbackends = \"http://b\"\n[[route]]\npool = \"app\"\n");
    assert!(refused(&file, &flags()).contains("--backend: the file has several pools"));
    let sockets = Flags { backends: Vec::new(), sockets: Some("/run/shop".to_owned()), ..flags() };
    assert!(refused(&file, &sockets).contains("--sockets: the file has several pools"));
}

#[test]
fn what_flags_leave_out_is_missed() {
    let no_backend = Flags { backends: Vec::new(), ..flags() };
    assert!(refused("", &no_backend).contains("--backend"));
    let no_listener = Flags { listen: Vec::new(), ..flags() };
    assert!(refused("", &no_listener).contains("--listen :8080"));
}

#[test]
fn the_ca_and_the_state_of_acme_are_flags() {
    let acme = |directory: Option<&str>, state: Option<&str>| {
        let flags = Flags {
            listen: vec![":443".to_owned()],
            backends: vec!["http://127.0.0.1:1".to_owned()],
            acme: vec!["a.example".to_owned()],
            acme_directory: directory.map(str::to_owned),
            acme_state: state.map(str::to_owned),
            ..Flags::default()
        };
        let (config, _) = Config::from_flags(&flags).map_err(|error| error.to_string())?;
        Ok::<_, String>(config.listeners[0].tls.clone().unwrap().acme.unwrap())
    };
    let usual = acme(None, None).unwrap();
    assert_eq!(&*usual.directory, "https://acme-v02.api.letsencrypt.org/directory");
    assert_eq!(usual.state.to_str(), Some("/var/lib/sandarac/acme"));
    let staging = acme(Some("staging"), Some("/state")).unwrap();
    assert_eq!(&*staging.directory, "https://acme-staging-v02.api.letsencrypt.org/directory");
    assert_eq!(staging.state.to_str(), Some("/state"));
    assert_eq!(&*acme(Some("https://ca.example/"), None).unwrap().directory, "https://ca.example/");
    let refused = acme(Some("http://ca.example/"), None).unwrap_err();
    assert!(refused.contains("is not a URL of https"), "{refused}");
}

#[test]
fn acme_on_port_443_takes_port_80_of_the_same_address_where_it_may() {
    let listeners = |listen: &[&str], names: &[&str]| {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let flags = Flags {
            listen: owned(listen),
            acme: owned(names),
            certificates: vec![("/a.crt".to_owned(), "/a.key".to_owned())],
            backends: vec!["http://a".to_owned()],
            ..Flags::default()
        };
        let (config, _) = Config::from_flags(&flags).unwrap();
        let summary = config
            .listeners
            .iter()
            .map(|one| (one.address.to_string(), one.tls.is_some(), one.redirect_to_https, one.is_optional));
        summary.collect::<Vec<_>>()
    };
    let https = |address: &str| (address.to_owned(), true, false, false);
    let optional = |address: &str| (address.to_owned(), false, true, true);
    let acme = &["a.example"];
    assert_eq!(listeners(&[":443"], acme), [https(":443"), optional(":80")]);
    assert_eq!(listeners(&["127.0.0.1:443"], acme), [https("127.0.0.1:443"), optional("127.0.0.1:80")]);
    assert_eq!(listeners(&["[::1]:443"], acme), [https("[::1]:443"), optional("[::1]:80")]);
    // Port 80 is taken, port 443 is elsewhere, or the certificates are in files.
    let given = (":80".to_owned(), false, true, false);
    assert_eq!(listeners(&[":80", ":443"], acme), [given, https(":443")]);
    assert_eq!(listeners(&[":8443"], acme), [https(":8443")]);
    assert_eq!(listeners(&[":443"], &[]), [https(":443")]);
}
