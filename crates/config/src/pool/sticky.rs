//! Sticky sessions, by a cookie.

use std::time::Duration;

use crate::definition::settings;
use crate::field::Token;
use crate::limited::Timeout;
use crate::report::{At, Complaint, Report};
use crate::setting::Kind;
use crate::value::{Text, choice};

settings! {
    /// How sessions stick to a backend.
    pub(crate) struct StickySettings {
        /// The name of the cookie. Its value identifies the backend without revealing its address. It does not make
        /// requests bypass the cache.
        cookie: Token = Token::literal("sandarac_backend");
        /// How long browsers keep it.
        max_age: Option<Timeout> = None, unset "until the browser is closed" "\"1d\"";
        /// The path for which it is sent, including everything below it.
        path: CookiePath = CookiePath("/".to_owned());
        /// Whether browsers send it by https only.
        secure: Option<bool> = None, unset "if it was set by https" "true";
        /// Whether it is sent with requests from other sites. `strict`: never. `lax`: when following a link. `none`:
        /// always; this needs `secure = true`.
        same_site: SameSite = SameSite::Lax;
    }
}

/// How sessions stick to a backend. The cookie is `HttpOnly`, because no script needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sticky {
    /// The name of the cookie.
    pub cookie: Token,
    /// How long browsers keep it; `None` for as long as they run.
    pub max_age: Option<Duration>,
    /// The value of `Path`.
    pub path: String,
    /// Whether it is `Secure`; with `None`, it is if the request came by https.
    pub secure: Option<bool>,
    /// The value of `SameSite`.
    pub same_site: SameSite,
}

/// Whether a cookie is sent with requests from other sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameSite {
    /// Never.
    Strict,
    /// When following a link.
    Lax,
    /// Always.
    None,
}

choice!(SameSite { "strict" => SameSite::Strict, "lax" => SameSite::Lax, "none" => SameSite::None });

impl SameSite {
    /// The value of the attribute.
    pub const fn attribute(self) -> &'static str {
        match self {
            SameSite::Strict => "Strict",
            SameSite::Lax => "Lax",
            SameSite::None => "None",
        }
    }
}

impl StickySettings {
    pub(crate) fn make(settings: &At<StickySettings>, report: &mut Report) -> Sticky {
        let At { value: StickySettings { cookie, max_age, path, secure, same_site }, place } = settings;
        if *same_site == SameSite::None && *secure != Some(true) {
            let message = "browsers refuse a cookie with `same_site = \"none\"` that is not secure";
            report.error(place.clone(), message).help = Some("add secure = true".to_owned());
        }
        if max_age.is_some_and(|age| *age < Duration::from_secs(1)) {
            report.error(
                place.clone(),
                "browsers count `max_age` in whole seconds, and delete a cookie with less than one",
            );
        }
        // RFC 6265bis §4.1.3: name prefixes that require certain attributes.
        let prefixed = |prefix: &str| {
            cookie.as_str().get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        let insecure = *secure == Some(false);
        let broken = if prefixed("__Host-") && (insecure || path.0 != "/") {
            Some("path = \"/\", secure = true")
        } else if prefixed("__Secure-") && insecure {
            Some("secure = true")
        } else {
            None
        };
        if let Some(wants) = broken {
            let message =
                format!("browsers refuse a cookie named {} that is not set with {wants}", cookie.as_str());
            report.error(place.clone(), message);
        }
        Sticky {
            cookie: cookie.clone(),
            max_age: max_age.map(|age| *age),
            path: path.0.clone(),
            secure: *secure,
            same_site: *same_site,
        }
    }
}

/// The path of a cookie (RFC 6265 §4.1.1).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CookiePath(String);

impl Text for CookiePath {
    fn form() -> Kind {
        Kind::Text { name: "path", form: "the path of a cookie", examples: &["/", "/shop"] }
    }

    fn from_text(text: &str) -> Result<CookiePath, Complaint> {
        let not = || Complaint::new(format!("{text:?} is not {}", CookiePath::form().words()));
        if !text.starts_with('/') {
            return Err(not().help(format!("a path begins with a slash: \"/{text}\"")));
        }
        match text.len() <= 1024 && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b';') {
            true => Ok(CookiePath(text.to_owned())),
            false => Err(not()),
        }
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}
