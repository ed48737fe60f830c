//! The digest of the rules of a route that decides which nodes share entries.

use sandarac_message::caching::{CookieRule, Policy, Profile};
use sandarac_message::glob::Glob;
use sandarac_message::vary::VaryRule;

use crate::cache_rule::{CacheRule, KeyRule};
use crate::edits::{Edits, FieldTemplate, ResponseEdits};
use crate::routes::{Action, Forward, Route};

/// The context of the digest. A new number goes with every change of what is digested, or how.
const CONTEXT: &str = "Sandarac shared tier 2: rules of a route";

impl Route {
    /// A digest of the rules that change which bytes are stored or who may have them; `None` if the cache is
    /// not used. Nodes may share the entries of routes with equal digests.
    ///
    /// Lifetimes, limits and pools are not part of it, so that a changed lifetime leaves the entries usable.
    /// Two facts about lifetimes decide what is stored, and are part of it: whether there is a forced
    /// lifetime, which overrides `no-cache`; and which statuses have a lifetime of their own, because other
    /// errors that blame one request are not stored.
    ///
    /// It is computed once: a route MUST NOT be changed afterwards, only a clone of it.
    pub fn rules_digest(&self) -> Option<[u8; 16]> {
        *self.digest.0.get_or_init(|| self.compute_rules_digest())
    }

    fn compute_rules_digest(&self) -> Option<[u8; 16]> {
        let Route {
            action,
            request,
            response,
            matches: _,
            // A stored body serves clients of every coding, as it came or recoded.
            compress: _,
            fragments,
            hsts: _,
            upgrade: _,
            connect: _,
            paths: _,
            gather: _,
            digest: _,
        } = self;
        let forward = match action {
            Action::Forward(forward) | Action::Files { rule: _, fallback: Some(forward) } => forward,
            Action::Files { .. } | Action::Internal(_) | Action::Answer(_) | Action::Redirect(_) => {
                return None;
            }
        };
        let Forward { cache: Some(rule), pool: _, unsafe_pool: _ } = forward else { return None };
        let mut digest = Digest(blake3::Hasher::new_derive_key(CONTEXT));
        digest.rule(rule);
        digest.edits(request);
        digest.response_edits(response);
        if fragments.is_some() {
            // Backends are told, and send pages that others cannot use.
            digest.text(b"fragments");
        }
        digest.0.finalize().as_bytes().first_chunk().copied()
    }
}

/// A digest in the making. Every value has a fixed length or its length before it, so that no two
/// sequences of values have the same bytes.
///
/// The methods take rules apart field by field. A new field does not compile until it is digested, or left
/// out with `_`.
struct Digest(blake3::Hasher);

impl Digest {
    fn rule(&mut self, rule: &CacheRule) {
        let CacheRule { policy, key, max_object: _, stale_after: _, shared: _, accept_encoding } = rule;
        self.policy(policy);
        self.key(key);
        if let Some(accept_encoding) = accept_encoding {
            self.text(accept_encoding.as_bytes());
        }
    }

    fn key(&mut self, key: &KeyRule) {
        let KeyRule { ignore_query, fields, cookies } = key;
        self.globs(ignore_query);
        // The values of fields are keyed in this order.
        self.list(fields, |digest, name| digest.text(&name.to_ascii_lowercase()));
        self.globs(cookies);
    }

    fn policy(&mut self, policy: &Policy) {
        let Policy {
            profile,
            bypass_authorization,
            bypass_cookies,
            ignored_cookies,
            minds_fields,
            harmless_fields,
            bypass_fields,
            request_directives,
            store_set_cookie,
            forced_ttl,
            forced_by_status,
            forced_overrides,
            ttl_by_status,
            vary,
            default_ttl: _,
            guessed_types: _,
            min_ttl: _,
            max_ttl: _,
            heuristics: _,
            grace: _,
            stale_if_error: _,
            keep: _,
            stale_when_disconnected: _,
        } = policy;
        self.number(match profile {
            Profile::Safe => 0,
            Profile::Rfc => 1,
        });
        self.flag(*bypass_authorization);
        match bypass_cookies {
            CookieRule::Never => self.number(0),
            CookieRule::Any => self.number(1),
            CookieRule::Named(names) => {
                self.number(2);
                self.globs(names);
            }
        }
        self.globs(ignored_cookies);
        self.flag(*minds_fields);
        self.globs(harmless_fields);
        self.globs(bypass_fields);
        self.flag(*request_directives);
        self.flag(*store_set_cookie);
        self.flag(forced_ttl.is_some());
        self.set(forced_by_status.iter().map(|(status, _)| status.to_le_bytes().to_vec()).collect());
        self.flag(*forced_overrides);
        self.set(ttl_by_status.iter().map(|(status, _)| status.to_le_bytes().to_vec()).collect());
        self.vary(vary);
    }

    fn vary(&mut self, vary: &VaryRule) {
        let VaryRule { ignored, written, raw_codings, of_allowed_origin } = vary;
        self.names(ignored);
        self.names(written);
        self.flag(*raw_codings);
        self.flag(*of_allowed_origin);
    }

    fn response_edits(&mut self, response: &ResponseEdits) {
        let ResponseEdits { all, stored, passed: _ } = response;
        self.edits(all);
        self.edits(stored);
    }

    fn edits(&mut self, edits: &Edits) {
        let Edits { remove, set, add } = edits;
        self.names(remove);
        self.list(set, Digest::field);
        self.list(add, Digest::field);
    }

    /// A field that is written. Its name keeps its letter case, and its order among others, because both
    /// reach the stored bytes.
    fn field(&mut self, (name, value): &FieldTemplate) {
        self.text(name);
        self.text(value.to_string().as_bytes());
    }

    /// Names of fields in any order and letter case.
    fn names(&mut self, names: &[Box<[u8]>]) {
        self.set(names.iter().map(|name| name.to_ascii_lowercase()).collect());
    }

    /// Patterns in any order.
    fn globs(&mut self, globs: &[Glob]) {
        self.set(globs.iter().map(|glob| glob.text().to_vec()).collect());
    }

    /// Texts whose order and repetition make no difference.
    fn set(&mut self, mut texts: Vec<Vec<u8>>) {
        texts.sort();
        texts.dedup();
        self.list(&texts, |digest, text| digest.text(text));
    }

    fn list<T>(&mut self, items: &[T], item: impl Fn(&mut Digest, &T)) {
        self.number(items.len() as u64);
        items.iter().for_each(|value| item(self, value));
    }

    fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.0.update(text);
    }

    fn flag(&mut self, flag: bool) {
        self.number(flag.into());
    }

    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sandarac_message::caching::Heuristics;

    use super::*;
    use crate::byte_size::ByteSize;
    use crate::cache_rule::SharedUse;
    use crate::digest_once::DigestOnce;
    use crate::pattern::MethodName;
    use crate::routes::{FixedAnswer, Match, PathReading, PoolId};
    use crate::template::{Template, TemplatePart, TemplatePiece};

    /// A route with a value in every list.
    fn route() -> Route {
        let rule = CacheRule {
            policy: Policy {
                bypass_cookies: CookieRule::Named(vec![Glob::new("session*"), Glob::new("wp-*")]),
                ignored_cookies: vec![Glob::new("_ga*"), Glob::new("theme")],
                ttl_by_status: vec![(404, Duration::from_secs(10)), (301, Duration::from_secs(3600))],
                vary: VaryRule {
                    ignored: vec![name("cookie"), name("User-Agent")],
                    written: vec![name("X-Client")],
                    raw_codings: false,
                    of_allowed_origin: true,
                },
                ..Policy::safe()
            },
            key: KeyRule {
                ignore_query: vec![Glob::new("utm_*"), Glob::new("fbclid")],
                fields: vec![name("X-Country"), name("X-Plan")],
                cookies: vec![Glob::new("theme")],
            },
            max_object: ByteSize(1 << 20),
            stale_after: None,
            accept_encoding: None,
            shared: SharedUse::ReadWrite,
        };
        let edits = |prefix: &str| Edits {
            remove: vec![name("Via"), name("Server")],
            set: vec![(name(&format!("{prefix}-Set")), literal("1"))],
            add: vec![(name(&format!("{prefix}-Add")), literal("2"))],
        };
        Route {
            matches: Vec::new(),
            action: Action::Forward(Forward {
                pool: PoolId::at(0),
                unsafe_pool: None,
                cache: Some(Box::new(rule)),
            }),
            request: edits("Request"),
            response: ResponseEdits { all: edits("All"), stored: edits("Stored"), passed: edits("Passed") },
            compress: None,
            fragments: None,
            hsts: None,
            upgrade: vec!["websocket".to_owned()],
            connect: false,
            paths: PathReading::Strict,
            gather: None,
            digest: DigestOnce::default(),
        }
    }

    fn name(name: &str) -> Box<[u8]> {
        name.as_bytes().into()
    }

    fn literal(text: &str) -> Template {
        Template::new(vec![TemplatePiece::Literal(text.into())])
    }

    fn rule_of(route: &mut Route) -> &mut CacheRule {
        match &mut route.action {
            Action::Forward(Forward { cache: Some(rule), .. }) => rule,
            other => panic!("{other:?}"),
        }
    }

    fn digest_with(change: impl FnOnce(&mut Route)) -> [u8; 16] {
        let mut route = route();
        change(&mut route);
        route.rules_digest().unwrap()
    }

    fn with_rule(change: impl FnOnce(&mut CacheRule)) -> [u8; 16] {
        digest_with(|route| change(rule_of(route)))
    }

    fn with_policy(change: impl FnOnce(&mut Policy)) -> [u8; 16] {
        with_rule(|rule| change(&mut rule.policy))
    }

    #[test]
    fn bytes_and_access_change_the_digest() {
        let same = digest_with(|_| {});
        let changed = [
            ("profile", with_policy(|policy| policy.profile = Profile::Rfc)),
            ("authorization", with_policy(|policy| policy.bypass_authorization = false)),
            ("any cookie", with_policy(|policy| policy.bypass_cookies = CookieRule::Any)),
            ("no cookie", with_policy(|policy| policy.bypass_cookies = CookieRule::Never)),
            (
                "a cookie",
                with_policy(|policy| policy.bypass_cookies = CookieRule::Named(vec![Glob::new("a")])),
            ),
            ("ignored cookie", with_policy(|policy| policy.ignored_cookies.truncate(1))),
            ("directives", with_policy(|policy| policy.request_directives = true)),
            ("Set-Cookie", with_policy(|policy| policy.store_set_cookie = true)),
            ("ttl or none", with_policy(|policy| policy.forced_ttl = Some(Duration::ZERO))),
            ("status", with_policy(|policy| policy.ttl_by_status[0].0 = 403)),
            ("override", with_policy(|policy| policy.forced_overrides = true)),
            ("Vary ignored", with_policy(|policy| policy.vary.ignored.truncate(1))),
            ("Vary written", with_policy(|policy| policy.vary.written.clear())),
            ("accept_encoding", with_rule(|rule| rule.accept_encoding = Some("gzip"))),
            ("codings", with_policy(|policy| policy.vary.raw_codings = true)),
            ("query", with_rule(|rule| rule.key.ignore_query.truncate(1))),
            ("keyed field", with_rule(|rule| rule.key.fields.truncate(1))),
            ("order of keyed fields", with_rule(|rule| rule.key.fields.reverse())),
            ("keyed cookie", with_rule(|rule| rule.key.cookies.clear())),
            ("removed", digest_with(|route| route.request.remove.truncate(1))),
            ("set", digest_with(|route| route.request.set.clear())),
            ("added", digest_with(|route| route.request.add.clear())),
            ("set, not added", digest_with(|route| route.request.set.append(&mut route.request.add))),
            ("value", digest_with(|route| route.response.all.set[0].1 = literal("{host}"))),
            (
                "template",
                digest_with(|route| {
                    route.response.all.set[0].1 =
                        Template::new(vec![TemplatePiece::Part(TemplatePart::Host)]);
                }),
            ),
            ("name", digest_with(|route| route.response.all.set[0].0 = name("X"))),
            ("stored", digest_with(|route| route.response.stored.remove.push(name("Set-Cookie")))),
            (
                "edits of requests for edits of responses",
                digest_with(|route| std::mem::swap(&mut route.request, &mut route.response.all)),
            ),
        ];
        for (at, (what, digest)) in changed.iter().enumerate() {
            assert_ne!(*digest, same, "{what}");
            assert!(changed[..at].iter().all(|(_, other)| other != digest), "{what}");
        }
    }

    #[test]
    fn lifetimes_limits_pools_and_ways_of_writing_do_not_change_the_digest() {
        let same = digest_with(|_| {});
        let second = Duration::from_secs(1);
        let forced = |ttl| with_policy(|policy| policy.forced_ttl = Some(ttl));
        assert_eq!(forced(second), forced(second * 2));
        let unchanged = [
            ("default_ttl", with_policy(|policy| policy.default_ttl = second)),
            ("status_ttl", with_policy(|policy| policy.ttl_by_status[0].1 = second)),
            ("min_ttl", with_policy(|policy| policy.min_ttl = second)),
            ("max_ttl", with_policy(|policy| policy.max_ttl = second)),
            (
                "heuristics",
                with_policy(|policy| policy.heuristics = Some(Heuristics { percent: 10, cap: second })),
            ),
            ("grace", with_policy(|policy| policy.grace = second)),
            ("stale_if_error", with_policy(|policy| policy.stale_if_error = second)),
            ("keep", with_policy(|policy| policy.keep = second)),
            ("disconnected", with_policy(|policy| policy.stale_when_disconnected = false)),
            ("max_object", with_rule(|rule| rule.max_object = ByteSize(1))),
            ("stale_after", with_rule(|rule| rule.stale_after = Some(second))),
            ("shared", with_rule(|rule| rule.shared = SharedUse::Read)),
            ("order of cookies", with_policy(|policy| policy.ignored_cookies.reverse())),
            (
                "letter case of Vary",
                with_policy(|policy| policy.vary.ignored = vec![name("user-agent"), name("Cookie")]),
            ),
            ("repetition", with_rule(|rule| rule.key.cookies.push(Glob::new("theme")))),
            ("letter case of the key", with_rule(|rule| rule.key.fields[0] = name("x-country"))),
            ("passed", digest_with(|route| route.response.passed = Edits::default())),
            (
                "pools",
                digest_with(|route| {
                    let Action::Forward(Forward { pool, unsafe_pool, .. }) = &mut route.action else {
                        panic!()
                    };
                    (*pool, *unsafe_pool) = (PoolId::at(1), Some(PoolId::at(2)));
                }),
            ),
            (
                "matches",
                digest_with(|route| {
                    route.matches = vec![Match { methods: vec![MethodName::new("GET")], ..Match::default() }];
                }),
            ),
            ("upgrade", digest_with(|route| route.upgrade.clear())),
            ("connect", digest_with(|route| route.connect = true)),
            ("paths", digest_with(|route| route.paths = PathReading::Raw)),
        ];
        for (what, digest) in unchanged {
            assert_eq!(digest, same, "{what}");
        }
    }

    #[test]
    fn a_route_without_a_cache_has_no_digest() {
        let action = Action::Forward(Forward { pool: PoolId::at(0), unsafe_pool: None, cache: None });
        assert_eq!(Route { action, ..route() }.rules_digest(), None);
        let answer = FixedAnswer { status: 200, fields: Vec::new(), body: String::new() };
        assert_eq!(Route { action: Action::Answer(answer), ..route() }.rules_digest(), None);
    }

    /// Nodes of different versions share entries only if these stay as they are. A change needs a new number
    /// in [`CONTEXT`].
    #[test]
    fn digests_are_the_same_in_every_version() {
        let hex = |digest: [u8; 16]| format!("{:032x}", u128::from_be_bytes(digest));
        let plain = |policy: Policy| {
            let rule = CacheRule {
                policy,
                key: KeyRule::default(),
                max_object: ByteSize(1),
                stale_after: None,
                accept_encoding: None,
                shared: SharedUse::Off,
            };
            let action = Action::Forward(Forward {
                pool: PoolId::at(0),
                unsafe_pool: None,
                cache: Some(Box::new(rule)),
            });
            let (request, response) = (Edits::default(), ResponseEdits::default());
            Route { action, request, response, ..route() }.rules_digest().unwrap()
        };
        assert_eq!(hex(digest_with(|_| {})), "4890ff317c0a5ebe6fb81a8097d3671c");
        assert_eq!(hex(plain(Policy::safe())), "10cb768005de9a8c19608ee28d106cd7");
        assert_eq!(hex(plain(Policy::rfc())), "04904e6f5b924bdfb608d98aeb97cfd4");
    }
}
