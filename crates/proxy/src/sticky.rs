//! Sticky sessions, by a cookie that identifies the backend without revealing its address.

use sandarac_config::{SameSite, Sticky};
use sandarac_message::target::Scheme;
use sandarac_message::{Fields, FieldsBuf, Name, TooLarge, cookies};
use std::fmt::Write;

/// The key of the backend that a request's cookie names.
pub(crate) fn named(sticky: &Sticky, request: Fields<'_>) -> Option<u64> {
    let value = cookies::cookie(request, sticky.cookie.as_str().as_bytes())?;
    let digits = std::str::from_utf8(value).ok().filter(|value| value.len() == 16)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u64::from_str_radix(digits, 16).ok())?
}

/// Makes the client's session stick to the backend of this key. A response with a cookie for one client is
/// not for others; directives tell shared caches so.
pub(crate) fn tell(
    sticky: &Sticky,
    key: u64,
    scheme: Scheme,
    response: &mut FieldsBuf,
) -> Result<(), TooLarge> {
    let mut cookie = format!("{}={key:016x}; Path={}; HttpOnly", sticky.cookie.as_str(), sticky.path);
    if let Some(age) = sticky.max_age {
        let _ = write!(cookie, "; Max-Age={}", age.as_secs());
    }
    let _ = write!(cookie, "; SameSite={}", sticky.same_site.attribute());
    if sticky.secure.unwrap_or(scheme == Scheme::Https) || sticky.same_site == SameSite::None {
        cookie.push_str("; Secure");
    }
    response.add(Name::SetCookie, cookie.as_bytes())?;
    let told = response.view().list(Name::CacheControl).any(|directive| {
        [&b"private"[..], b"no-store"].iter().any(|word| directive.eq_ignore_ascii_case(word))
    });
    if told { Ok(()) } else { response.add(Name::CacheControl, b"private") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sticky() -> Sticky {
        let text = "[[listen]]\naddress = \":0\"\n[pool.app]\nbackends = [\"http://a\"]\n\
                    sticky = { cookie = \"s\", max_age = \"1d\", path = \"/shop\" }\n[[route]]\npool = \"app\"";
        let (config, _) = sandarac_config::Config::from_toml("test.toml", text).unwrap();
        config.pools[0].sticky.clone().unwrap()
    }

    #[test]
    fn a_cookie_names_a_backend_or_nothing() {
        let named = |cookie: &str| {
            let request: FieldsBuf = [("Cookie", cookie)].into_iter().collect();
            super::named(&sticky(), request.view())
        };
        assert_eq!(named("a=1; s=00000000000000ff"), Some(255));
        for nothing in ["a=1", "s=", "s=ff", "s=+0000000000000ff", "s=00000000000000fg", "S=00000000000000ff"]
        {
            assert_eq!(named(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn a_client_is_told_and_no_one_else() {
        let mut response: FieldsBuf = [("Cache-Control", "max-age=60")].into_iter().collect();
        tell(&sticky(), 255, Scheme::Https, &mut response).unwrap();
        let cookie = response.view().get(Name::SetCookie).map(String::from_utf8_lossy).unwrap().into_owned();
        assert_eq!(cookie, "s=00000000000000ff; Path=/shop; HttpOnly; Max-Age=86400; SameSite=Lax; Secure");
        let told: Vec<_> = response.view().all(Name::CacheControl).collect();
        assert_eq!(told, [&b"max-age=60"[..], b"private"]);
        let mut response: FieldsBuf = [("Cache-Control", "No-Store")].into_iter().collect();
        tell(&sticky(), 255, Scheme::Http, &mut response).unwrap();
        assert_eq!(response.view().all(Name::CacheControl).count(), 1);
        assert!(!response.view().get(Name::SetCookie).unwrap().ends_with(b"Secure"));
    }
}
