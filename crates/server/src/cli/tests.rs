//! Tests of the command line.

use clap::CommandFactory;
use clap::error::ErrorKind;
use sandarac_config::{Config, LogFormat, LogTarget};

use super::*;

fn parse(line: &str) -> Result<Job, clap::Error> {
    Cli::read(["sandarac"].into_iter().chain(line.split_whitespace()).map(OsString::from)).map(Cli::job)
}

fn run(line: &str) -> RunArgs {
    match parse(line) {
        Ok(Job::Run(run)) => run,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_definition_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn long_and_varnish_flags_mean_the_same() {
    let long = run("--listen :80 --backend http://localhost:8000 --memory 1GiB").flags().unwrap();
    let short = run("-a http=:80,HTTP -b localhost:8000 -s malloc,1GiB").flags().unwrap();
    assert_eq!(long.listen, short.listen);
    assert_eq!(long.backends, short.backends);
    assert_eq!(long.memory, short.memory);
    assert_eq!(long.listen, [":80"]);
    assert_eq!(
        run("-b /run/app.sock -b unix:/b").flags().unwrap().backends,
        ["unix:/run/app.sock", "unix:/b"]
    );
}

#[test]
fn a_varnish_listener_for_the_proxy_protocol_becomes_one() {
    let args = run("-a :80 -a front=127.0.0.1:81,PROXY -b localhost");
    let (mut config, _) = Config::from_flags(&args.flags().unwrap()).unwrap();
    args.apply(&mut config);
    let protocols: Vec<_> = config.listeners.iter().map(|listener| listener.proxy_protocol).collect();
    assert_eq!(protocols, [false, true]);
}

#[test]
fn a_varnish_listener_on_a_unix_socket_may_have_a_mode() {
    let args =
        run("-a s=/run/a,b.sock,PROXY,mode=666 -a unix:/c.sock,mode=0600,HTTP -a /d.sock -b localhost");
    let (mut config, _) = Config::from_flags(&args.flags().unwrap()).unwrap();
    args.apply(&mut config);
    let listeners: Vec<_> =
        config.listeners.iter().map(|one| (one.address.to_string(), one.mode, one.proxy_protocol)).collect();
    let expected = [
        ("unix:/run/a,b.sock".to_owned(), Some(0o666), true),
        ("unix:/c.sock".to_owned(), Some(0o600), false),
        ("unix:/d.sock".to_owned(), None, false),
    ];
    assert_eq!(listeners, expected);
}

#[test]
fn a_directory_of_sockets_may_be_named_from_here() {
    let here = std::env::current_dir().unwrap().join("sockets");
    let flags = run("-a :80 --sockets ./sockets").flags().unwrap();
    assert_eq!(flags.sockets.as_deref(), here.to_str());
    assert_eq!(run("--sockets /run/shop").flags().unwrap().sockets.as_deref(), Some("/run/shop"));
}

#[test]
fn logs_are_set_by_flags() {
    let args = run("-a :80 -b localhost --access-log ./a.log --log-format json");
    let (mut config, _) = Config::from_flags(&args.flags().unwrap()).unwrap();
    args.apply(&mut config);
    assert_eq!(config.log.access, LogTarget::File("./a.log".into()));
    assert_eq!(config.log.format, LogFormat::Json);
}

#[test]
fn what_cannot_be_meant_is_told_with_what_can() {
    for (line, expected) in [
        ("-s file,/tmp/x,1G", "the cache is in memory: malloc,1G"),
        ("-s file,/tmp/x", "the cache is in memory: malloc,512m"),
        ("-a /x.sock,mode=999", "octal mode"),
        ("-a /x.sock,mode=1777", "\"1777\" is not an octal mode up to 777, such as 660"),
        ("-a :80,mode=666", "only a Unix socket has a mode"),
        ("-a /x.sock,user=www,mode=666", "user= is not supported"),
        ("-s 1G", "malloc,SIZE"),
        ("--memory 1G -s malloc,1G", "cannot be used with"),
        ("--log-format xml", "combined"),
        ("--bakend http://a", "--backend"),
        ("stauts", "status"),
        ("purge", "--all"),
        ("purge --all http://a/", "cannot be used with"),
        ("config", "--schema"),
        ("pool", "drain"),
        ("pool add app", "<ADDRESS>"),
        ("pool add app http://a --weight 0", "1..=1000"),
        ("pools --class a --classes 3", "cannot be used with"),
        ("status --admin :6081", "127.0.0.1:6081"),
        ("demo --seconds x", "--seconds"),
        ("check sandarac.toml", "sandarac check -c sandarac.toml"),
        ("check -q sandarac.toml", "sandarac check -c sandarac.toml"),
        ("sandarac.toml", "sandarac -c sandarac.toml"),
        ("-a :80 -f default.vcl", "there is no VCL here"),
        ("-a :80 -b localhost -t 120", "`[cache] default_ttl`"),
        ("-T localhost:6082", "--admin"),
        ("-F -a :80", "always in the foreground"),
        ("-n instance -a :80", "--admin"),
        ("-p default_grace=1h -a :80", "sandarac config --defaults"),
        ("-S /etc/varnish/secret", "--admin-token-file"),
        ("replay a.log -b http://a --for 0s", "expected a time above 0, such as 30s"),
    ] {
        let error = parse(line).unwrap_err();
        assert!(error.to_string().contains(expected), "{line}: {error}");
        assert_eq!(error.exit_code(), 2, "{line}");
    }
}

#[test]
fn tags_and_urls_are_lists() {
    let Ok(Job::Other(Command::Purge(purge))) = parse("purge --soft --tag a b --tag c") else { panic!() };
    assert_eq!(purge.tags.len(), 3);
    assert!(purge.soft);
    assert_eq!(purge.urls.len(), 0);
    let Ok(Job::Other(Command::Purge(purge))) = parse("purge http://a/ http://b/") else { panic!() };
    assert_eq!(purge.urls.len(), 2);
}

#[test]
fn a_backend_of_a_pool_is_written_as_one_of_a_run() {
    let Ok(Job::Other(Command::Pool(pool))) = parse("pool add app 10.0.0.7:8000 --weight 2") else {
        panic!()
    };
    let PoolOrder::Add(add) = pool.order else { panic!() };
    assert_eq!(add.backend.backend, "http://10.0.0.7:8000");
    assert_eq!(add.weight, 2);
}

#[test]
fn help_teaches_by_example() {
    let error = parse("--help").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DisplayHelp);
    let help = error.to_string();
    assert!(help.contains("sandarac --listen :8080 --backend http://localhost:8000"), "{help}");
    assert!(run("").lacks_everything() && !run("-c a.toml").lacks_everything());
    assert!(!run("--sockets .").lacks_everything());
}
