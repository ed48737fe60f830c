//! `sandarac probe`: what pages depend on, and what of it is shared all the same.

use sandarac_test_support::{Origin, Reply, Request, reply};

use crate::{sandarac, site};

/// An application that chooses by the field which the path names.
fn by_field(request: &Request) -> Reply {
    let name = request.path().trim_start_matches('/');
    let says = reply(200).with("Content-Type", "text/html").with("X-Serial", &request.serial.to_string());
    let says = if name == "accept-charset" { says.with("Vary", "Accept-Charset") } else { says };
    says.body(format!("for {:?}", request.field(name)))
}

#[test]
fn a_wrong_language_or_device_is_named_and_fails() {
    let origin = Origin::new(by_field);
    let probe = |path: &str| {
        let url = format!("http://a.example/{path}");
        sandarac().arg("probe").arg("-b").arg(origin.url()).arg(url).run()
    };
    for (path, field) in [
        ("accept-language", "Accept-Language: de"),
        ("user-agent", "User-Agent: Mozilla/5.0 (Linux; Android"),
        ("sec-ch-ua-mobile", "Sec-CH-UA-Mobile: ?1"),
    ] {
        let failed = probe(path).failure();
        assert!(
            failed.stdout.contains(&format!("DIFFERS, AND IS SHARED       {field}")),
            "{}",
            failed.stdout
        );
        assert!(failed.stderr.contains("shared although the page depends on it"), "{}", failed.stderr);
    }
    for (path, field) in [
        ("cookie", "Cookie: session=probe"),
        ("authorization", "Authorization: Bearer probe"),
        ("x-api-key", "X-API-Key: probe"),
        ("hx-request", "HX-Request: true"),
        ("accept", "Accept: application/json"),
    ] {
        let said = probe(path).success().stdout;
        assert!(said.contains(&format!("differs, and is not shared   {field}")), "{said}");
        assert!(
            said.contains("200, stored (hit; ttl=1") || said.contains("200, stored (fwd=uri-miss"),
            "{said}"
        );
    }
    let said = probe("nothing").success().stdout;
    assert!(said.contains("the same with                Cookie, Authorization, Accept-Language"), "{said}");
}

/// Regression: only bodies were compared, and a page of one line with a token in it was the same as any other.
#[test]
fn redirects_are_compared_and_what_cannot_be_is_said() {
    let origin = Origin::new(|request| match request.path() {
        "/" => {
            let language = request.field("accept-language").unwrap_or("none").to_owned();
            reply(301).with("Location", &format!("/{language}/"))
        }
        _ => {
            reply(200).with("Content-Type", "text/html").body(format!("<p>news</p><i>{}</i>", request.serial))
        }
    });
    let probe = |path: &str| {
        sandarac()
            .arg("probe")
            .arg("-b")
            .arg(origin.url())
            .arg(format!("http://a.example{path}"))
            .run()
            .failure()
            .stdout
    };
    let redirect = probe("/");
    assert!(redirect.contains("DIFFERS, AND IS SHARED       Accept-Language: de"), "{redirect}");
    let changing = probe("/news");
    assert!(changing.contains("CANNOT BE COMPARED"), "{changing}");
}

#[test]
fn the_rules_of_a_configuration_decide_and_more_fields_can_be_tried() {
    let origin = Origin::new(by_field);
    let probe = |rule: &str, path: &str, field: &str| {
        let setup = sandarac().config(site(&origin.url(), rule, "")).arg("probe");
        setup.arg("-H").arg(field).arg(format!("http://a.example/{path}")).run()
    };
    let plan = "X-Plan: gold";
    assert!(probe("", "x-plan", plan).success().stdout.contains("differs, and is not shared   X-Plan: gold"));
    let harmless = "cache = { harmless_fields = [\"X-Plan\"] }";
    assert!(
        probe(harmless, "x-plan", plan)
            .failure()
            .stdout
            .contains("DIFFERS, AND IS SHARED       X-Plan: gold")
    );
    let keyed = "cache = { key_fields = [\"X-Plan\"] }";
    assert!(
        probe(keyed, "x-plan", plan).success().stdout.contains("differs, and is not shared   X-Plan: gold")
    );
    let varied = probe("", "accept-charset", "Accept-Charset: x").success().stdout;
    assert!(varied.contains("differs, and is not shared   Accept-Charset: x"), "{varied}");
    let ignored = "cache = { ignore_cookies = [\"*\"] }";
    // No cookie reaches the application with a request for the store: what the others get was made without one.
    assert!(
        probe(ignored, "cookie", plan)
            .failure()
            .stdout
            .contains("DIFFERS, AND IS SHARED       Cookie: session=probe")
    );
}

#[test]
fn what_cannot_be_asked_is_said() {
    let said = |arguments: &[&str]| {
        let setup = arguments.iter().fold(sandarac().arg("probe"), |setup, argument| setup.arg(*argument));
        setup.run().failure().stderr
    };
    assert!(said(&["http://a.example/"]).contains("name a configuration, `-c FILE`, or an application"));
    assert!(said(&["-b", "http://127.0.0.1:9", "a.example"]).contains("is no URL"));
    assert!(said(&["-b", "http://127.0.0.1:9", "-H", "x", "http://a.example/"]).contains("is no field"));
    assert!(
        said(&["-b", "http://127.0.0.1:9", "http://a.example/"]).contains("the application does not answer")
    );
}
