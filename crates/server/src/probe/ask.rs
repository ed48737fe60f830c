//! The requests of a probe.

use std::sync::Arc;
use std::time::Duration;

use sandarac_cache::{Purge, Store};
use sandarac_message::target::{Scheme, Target, with_path};
use sandarac_message::{Fields, Method, RequestHead, Version};
use sandarac_net::{ListenAddress, wall};

use super::compare::Pages;
use crate::failure::Failure;
use crate::load_client::{LoadClient, LoadResponse, is_hit};
use crate::process::Process;

/// How long a page may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A URL to probe.
pub(super) struct Url {
    /// As given.
    pub(super) text: String,
    scheme: Scheme,
    host: String,
    target: String,
}

impl Url {
    pub(super) fn read(text: &str) -> Result<Url, Failure> {
        let refuse =
            || Failure::Usage(format!("{text:?} is no URL\n  help: write http://localhost:8080/news"));
        let shown = text.split('#').next().unwrap_or_default().as_bytes();
        let completed = with_path(shown);
        let head = RequestHead {
            method: Method::Get,
            method_text: b"GET",
            target: completed.as_deref().unwrap_or(shown),
            version: Version::Http10,
            fields: Fields::default(),
        };
        let Ok(Target { scheme: Some(scheme), authority: Some(authority), path_and_query, .. }) =
            Target::of(&head)
        else {
            return Err(refuse());
        };
        let own = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Ok(Url { text: text.to_owned(), scheme, host: own(authority.text), target: own(path_and_query) })
    }
}

/// A field that a request has in place of that of a plain one.
type Field<'a> = Option<(&'a str, &'a str)>;

/// The clients that ask for one URL, through the cache and past it.
pub(super) struct Asker {
    url: (String, String),
    store: Arc<Store>,
    cached: LoadClient,
    bare: LoadClient,
}

impl Asker {
    pub(super) fn new(url: &Url, cached: &Process, bare: &Process) -> Result<Asker, Failure> {
        let client = |process: &Process| match process.listeners()[url.scheme as usize] {
            ListenAddress::Tcp(address) => Ok(LoadClient::new(address)),
            _ => Err(Failure::Failed("a TCP address was asked for".to_owned())),
        };
        Ok(Asker {
            url: (url.host.clone(), url.target.clone()),
            store: cached.shared().store.clone(),
            cached: client(cached)?,
            bare: client(bare)?,
        })
    }

    /// The page past the cache, twice.
    pub(super) async fn pages(&mut self, field: Field<'_>) -> Result<Pages, String> {
        let request = self.request(field);
        let mut page = async || {
            let response = ask(&mut self.bare, &request).await?;
            if matches!(response.status, 502..=504) && response.proxy_status.is_some() {
                let why = String::from_utf8_lossy(response.proxy_status.as_deref().unwrap_or_default());
                return Err(format!("the application does not answer: {why}"));
            }
            // Where a redirect leads is the page.
            Ok((response.status, [&response.body[..], b"\n", &response.told].concat()))
        };
        Ok(Pages::new(page().await?, page().await?))
    }

    /// Whether a plain page is stored, and for how long, in words.
    pub(super) async fn keeping(&mut self) -> Result<String, String> {
        self.forget();
        let request = self.request(None);
        let first = ask(&mut self.cached, &request).await?;
        let (status, told) = (first.status, text(first));
        let second = ask(&mut self.cached, &request).await?;
        let hit = is_hit(second.cache_status.as_deref().unwrap_or_default());
        let how = if hit { "stored" } else { "not stored" };
        Ok(format!("{status}, {how} ({told})"))
    }

    /// Whether the second request gets what was stored for the first.
    pub(super) async fn shares(&mut self, first: Field<'_>, second: Field<'_>) -> Result<bool, String> {
        self.forget();
        let (first, second) = (self.request(first), self.request(second));
        ask(&mut self.cached, &first).await?;
        let second = ask(&mut self.cached, &second).await?;
        Ok(is_hit(second.cache_status.as_deref().unwrap_or_default()))
    }

    fn forget(&self) {
        self.store.purge_all(Purge::Hard, wall());
    }

    /// A request as of a browser, with `field` in place of its own.
    fn request(&self, field: Field<'_>) -> Vec<u8> {
        let usual = [
            ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; sandarac probe) Chrome/140.0.0.0 Safari/537.36"),
            ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8"),
            ("Accept-Language", "en"),
        ];
        let (host, target) = &self.url;
        let mut request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n");
        let own = usual
            .into_iter()
            .filter(|(name, _)| !field.is_some_and(|(changed, _)| changed.eq_ignore_ascii_case(name)));
        for (name, value) in own.chain(field) {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        request.into_bytes()
    }
}

async fn ask<'a>(client: &'a mut LoadClient, request: &[u8]) -> Result<&'a LoadResponse, String> {
    match tokio::time::timeout(PATIENCE, client.ask(request)).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(fault)) => Err(fault.to_string()),
        Err(_) => Err(format!("no answer in {} s", PATIENCE.as_secs())),
    }
}

/// The member of this cache in Cache-Status, without the name.
fn text(response: &LoadResponse) -> String {
    let all = response.cache_status.as_deref().unwrap_or_default();
    let own = sandarac_message::members(all).last().unwrap_or_default();
    let own = String::from_utf8_lossy(own).into_owned();
    own.split_once("; ").map_or(own.clone(), |(_, rest)| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_scheme_and_a_host() {
        let read = |text: &str| Url::read(text).ok().map(|url| (url.scheme, url.host, url.target));
        let parts = |scheme, host: &str, target: &str| Some((scheme, host.to_owned(), target.to_owned()));
        assert_eq!(read("http://a:81/b?c#d"), parts(Scheme::Http, "a:81", "/b?c"));
        assert_eq!(read("https://a?x"), parts(Scheme::Https, "a", "/?x"));
        for text in ["a/b", "/b", "http://", "http:///x", "http://a/ b", "ftp://a/", "http://a/\r\nX: y"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
