//! Routes with `php`, and files that responses name.

use std::path::Path;

use sandarac_config::{Config, Flags};
use sandarac_policy::Action;

use crate::load;

const LISTEN: &str = "[[listen]]\naddress = \":8080\"\n";

fn flags() -> Flags {
    let php_fpm = Some("fcgi+unix:/run/php/php-fpm.sock".to_owned());
    Flags { listen: vec![":8080".to_owned()], php_fpm, ..Flags::default() }
}

fn with_php_fpm(text: &str) -> Result<Config, String> {
    Config::from_toml_and_flags("sandarac.toml", &format!("{LISTEN}{text}"), &flags())
        .map(|(config, _)| config)
        .map_err(|errors| errors.to_string())
}

#[test]
fn a_directory_is_all_that_a_php_application_needs() {
    let short = with_php_fpm("[[route]]\nphp = \"/srv/wiki\"\n").unwrap();
    let long = load(&format!(
        "{LISTEN}[pool.php]\nbackends = [\"fcgi+unix:/run/php/php-fpm.sock\"]\n\
         [pool.php.fastcgi]\nroot = \"/srv/wiki\"\nfront_controller = \"/index.php\"\n\
         [[route]]\nfiles = \"/srv/wiki\"\nindex = [\"index.php\", \"index.html\"]\ntry = [\"{{path}}\", \"pool:php\"]\n"
    ));
    assert_eq!(format!("{short:?}"), format!("{long:?}"));
    let alone = Flags { php: Some("/srv/wiki".to_owned()), ..flags() };
    assert_eq!(format!("{:?}", Config::from_flags(&alone).unwrap().0), format!("{long:?}"));
}

#[test]
fn every_directory_has_a_pool_of_its_own() {
    let text = "[[route]]\nmatch = \"a.example\"\nphp = \"/srv/a\"\n[[route]]\nmatch = \"b.example\"\nphp = \"/srv/b\"\n\
                [[route]]\nphp = \"/srv/a\"\ncache = \"pass\"\n";
    let config = with_php_fpm(text).unwrap();
    let roots: Vec<_> = config
        .pools
        .iter()
        .map(|pool| (pool.name.as_str(), pool.fastcgi.as_ref().unwrap().root.as_path()))
        .collect();
    assert_eq!(roots, [("php", Path::new("/srv/a")), ("php-2", Path::new("/srv/b"))]);
}

#[test]
fn a_pool_that_is_there_is_used_and_says_where_php_fpm_is() {
    for route in ["php = \"/srv/a\"", "php = \"/srv/a\"\npool = \"php\""] {
        let config = load(&format!(
            "{LISTEN}[pool.php]\nbackends = [\"fcgi://127.0.0.1:9001\"]\nmax_in_flight = 5\n[[route]]\n{route}\n"
        ));
        let [pool] = &config.pools[..] else { panic!("one pool: {config:?}") };
        assert_eq!(pool.backends[0].address.to_string(), "fcgi://127.0.0.1:9001");
        assert_eq!(pool.fastcgi.as_ref().unwrap().front_controller.as_deref(), Some("/index.php"));
    }
}

#[test]
fn what_cannot_work_is_refused() {
    let refused = |text: &str| {
        let text = format!("{LISTEN}{text}");
        Config::from_toml("sandarac.toml", &text).unwrap_err().to_string()
    };
    let missing = refused("[[route]]\nphp = \"/srv/wiki\"\n");
    assert!(missing.contains("no php-fpm was found") && missing.contains("apt install php-fpm"), "{missing}");
    assert!(!missing.contains("a route needs"), "{missing}");
    let other = refused(
        "[pool.php]\nbackends = [\"fcgi://a\"]\nfastcgi.root = \"/srv/b\"\n[[route]]\nphp = \"/srv/a\"\n",
    );
    assert!(other.contains("the pool `php` runs the scripts of /srv/b, not of /srv/a"), "{other}");
    let both = refused("[[route]]\nphp = \"/srv/a\"\nfiles = \"/srv/a\"\n");
    assert!(both.contains("`php` serves the files"), "{both}");
    let unknown = refused("[[route]]\nphp = \"/srv/a\"\npool = \"fpm\"\n");
    assert!(unknown.contains("there is no pool called `fpm`"), "{unknown}");
    let no_fastcgi = Flags { php_fpm: Some("http://127.0.0.1:9000".to_owned()), ..flags() };
    let told = Config::from_flags(&no_fastcgi).unwrap_err().to_string();
    assert!(told.contains("--php-fpm: http://127.0.0.1:9000 is not reached by FastCGI"), "{told}");
}

#[test]
fn the_words_of_nginx_get_a_hint() {
    for (text, hint) in [
        ("[[route]]\nmatch = '~ \\.php$'\npool = \"app\"", "php = \"/srv/app\""),
        ("[[route]]\nmatch = '~* \\.(png|jpg)$'\npool = \"app\"", "a star matches any run of characters"),
        ("[pool.a]\nbackends = [\"fastcgi://a:9000\"]", "did you mean \"fcgi://a:9000\"?"),
        ("[pool.a]\nbackends = [\"grpc://a:50051\"]", "did you mean \"h2://a:50051\"?"),
        ("[pool.a]\nfastcgi_pass = \"unix:/a\"", "here it is called `backends`"),
    ] {
        let told = Config::from_toml("sandarac.toml", &format!("{LISTEN}{text}\n")).unwrap_err().to_string();
        assert!(told.contains(hint), "{told}");
    }
}

#[test]
fn an_internal_route_has_files_and_no_pool() {
    let pool = "[pool.app]\nbackends = [\"http://a\"]\nx_accel_redirect = true\nx_sendfile = \"/srv/x\"\n";
    let rest = "[[route]]\npool = \"app\"\n";
    let of = |keys: &str, pool: &str| {
        let text = format!("{LISTEN}{pool}[[route]]\nmatch = \"/p/\"\n{keys}\n{rest}");
        Config::from_toml("sandarac.toml", &text)
    };
    let (config, warnings) = of("files = \"/srv/p\"\ninternal = true", pool).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert!(
        matches!(&config.routes.all()[0].action, Action::Internal(rule) if rule.root == Path::new("/srv/p"))
    );
    assert_eq!(config.pools[0].x_sendfile.as_deref(), Some(Path::new("/srv/x")));
    for (keys, told) in [
        (
            "files = \"/srv/p\"\ninternal = true\ntry = [\"{path}\", \"pool:app\"]",
            "an internal route has no pool",
        ),
        ("pool = \"app\"\ninternal = true", "only a route with `files` can be internal"),
    ] {
        let refused = of(keys, pool).unwrap_err().to_string();
        assert!(refused.contains(told), "{refused}");
    }
    let unable = "[pool.app]\nbackends = [\"http://a\"]\n";
    let (_, warnings) = of("files = \"/srv/p\"\ninternal = true", unable).unwrap();
    assert!(warnings[0].to_string().contains("no pool may lead to this internal route"), "{warnings:?}");
    let (_, warnings) = of("files = \"/srv/p\"", pool).unwrap();
    assert!(warnings[0].to_string().contains("`x_accel_redirect` leads to no file"), "{warnings:?}");
}
