//! One order: from the request for a certificate to the checked chain (RFC 8555 §7.4).

use std::time::Duration;

use instant_acme::{
    AuthorizationStatus, CertificateIdentifier, ChallengeType, Identifier, NewOrder, Order, OrderStatus,
};
use tokio::time::{sleep, timeout};

use crate::ca::{Refusal, Session, problem_fault};
use crate::certificate::Certificate;
use crate::challenges::{Challenges, Published, is_token};
use crate::client::Clock;
use crate::fault::{Fault, quoted};
use crate::make::{challenge_certificate, key_and_request};
use crate::settings::{ChallengeKind, Settings};
use crate::sink::Sink;

/// The longest pause between two questions for the state of an order.
const LONGEST_POLL: Duration = Duration::from_secs(30);

/// What an order needs beside the account.
pub(crate) struct Desk<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) challenges: &'a Challenges,
    pub(crate) sink: &'a dyn Sink,
    pub(crate) clock: &'a Clock,
}

impl Desk<'_> {
    /// Orders a certificate, verified by `kind`. `replaces` names the one that it renews.
    pub(crate) async fn order(
        &self,
        session: &Session,
        kind: ChallengeKind,
        replaces: Option<CertificateIdentifier<'static>>,
    ) -> Result<Certificate, Refusal> {
        let limit = self.settings.limits.order;
        match timeout(limit, self.place(session, kind, replaces)).await {
            Ok(result) => result,
            Err(_) => Err(Fault::OrderTimedOut(limit).into()),
        }
    }

    async fn place(
        &self,
        session: &Session,
        kind: ChallengeKind,
        replaces: Option<CertificateIdentifier<'static>>,
    ) -> Result<Certificate, Refusal> {
        let names = &self.settings.names;
        let identifiers: Vec<Identifier> = names.iter().cloned().map(Identifier::Dns).collect();
        let mut new = NewOrder::new(&identifiers);
        if let Some(replaces) = replaces.filter(|_| session.client.heard().offers_renewal_info) {
            new = new.replaces(replaces);
        }
        let order = session.account.new_order(&new).await;
        let mut order = order.map_err(|error| session.refusal("the order", error))?;

        let published = self.answer_challenges(session, &mut order, kind).await?;
        self.wait(session, &mut order, &[OrderStatus::Ready, OrderStatus::Valid], kind).await?;
        drop(published);

        let (key, request) = key_and_request(names)?;
        let finalized = order.finalize_csr(&request).await;
        finalized.map_err(|error| session.refusal("the certificate request", error))?;
        self.wait(session, &mut order, &[OrderStatus::Valid], kind).await?;
        let chain = order.certificate().await;
        let chain = chain.map_err(|error| session.refusal("the certificate", error))?.unwrap_or_default();

        let certificate = Certificate::read(&chain, &key.serialize_pem()).map_err(Fault::BadCertificate)?;
        certificate.check(names, (self.clock)()).map_err(Fault::BadCertificate)?;
        Ok(certificate)
    }

    /// Publishes the answer of each pending challenge, then tells the CA to look.
    async fn answer_challenges(
        &self,
        session: &Session,
        order: &mut Order,
        kind: ChallengeKind,
    ) -> Result<Vec<Answer<'_>>, Refusal> {
        let count = order.state().authorizations.len();
        if count > self.settings.names.len() {
            let said = format!("it has {count} authorizations for {} names", self.settings.names.len());
            return Err(Fault::OrderInvalid(said).into());
        }
        let mut answers = Vec::new();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization =
                authorization.map_err(|error| session.refusal("an authorization", error))?;
            let name = authorization.identifier().to_string().to_ascii_lowercase();
            if !self.settings.names.contains(&name) {
                return Err(Fault::OtherNamesOrdered(quoted(&name)).into());
            }
            match authorization.status {
                AuthorizationStatus::Valid => continue,
                AuthorizationStatus::Pending => {}
                status => return Err(Fault::OrderInvalid(format!("{name} is {status:?}")).into()),
            }
            let Some((kind, offered)) = self.choose(&authorization.challenges, kind) else {
                let allowed = self.settings.challenges.iter().map(ToString::to_string);
                let allowed = allowed.collect::<Vec<_>>().join(", ");
                return Err(Fault::NoUsableChallenge { name, allowed }.into());
            };
            let mut challenge = authorization.challenge(offered).expect("it was just found");
            if !is_token(&challenge.token) {
                return Err(Fault::BadToken(name).into());
            }
            let answer = challenge.key_authorization();
            let now = (self.clock)();
            let lasts = self.settings.limits.order;
            answers.push(match kind {
                ChallengeKind::Http01 => {
                    let published = self.challenges.publish_http01(
                        &name,
                        &challenge.token,
                        answer.as_str(),
                        lasts,
                        now,
                    )?;
                    Answer { _published: published, shown: None }
                }
                ChallengeKind::TlsAlpn01 => {
                    let digest = answer.digest();
                    let digest: &[u8; 32] =
                        digest.as_ref().try_into().expect("a SHA-256 digest has 32 bytes");
                    let published = self.challenges.publish_tls_alpn01(&name, digest, lasts, now)?;
                    self.sink.challenge(&name, Some(challenge_certificate(&name, digest)?));
                    Answer { _published: published, shown: Some((self.sink, name)) }
                }
            });
            challenge.set_ready().await.map_err(|error| session.refusal("an answered challenge", error))?;
        }
        Ok(answers)
    }

    /// The challenge to answer: of `kind`, or else of the first allowed one that is offered.
    fn choose(
        &self,
        offered: &[instant_acme::Challenge],
        kind: ChallengeKind,
    ) -> Option<(ChallengeKind, ChallengeType)> {
        let allowed = &self.settings.challenges;
        let mut kinds = std::iter::once(kind).chain(allowed.iter().copied()).map(|kind| match kind {
            ChallengeKind::Http01 => (kind, ChallengeType::Http01),
            ChallengeKind::TlsAlpn01 => (kind, ChallengeType::TlsAlpn01),
        });
        kinds.find(|(_, wanted)| offered.iter().any(|challenge| challenge.r#type == *wanted))
    }

    /// Asks for the state of the order until it is one of `wanted`.
    async fn wait(
        &self,
        session: &Session,
        order: &mut Order,
        wanted: &[OrderStatus],
        kind: ChallengeKind,
    ) -> Result<(), Refusal> {
        let mut pause = self.settings.limits.first_order_poll;
        loop {
            let state = order.state();
            let (status, error) = (state.status, state.error.clone());
            if wanted.contains(&status) {
                return Ok(());
            }
            if status == OrderStatus::Invalid || error.is_some() {
                if let Some(fault) = self.unverified(order, kind).await {
                    return Err(fault.into());
                }
                let fault = error.map(|problem| problem_fault("the order", &problem));
                return Err(fault
                    .unwrap_or_else(|| Fault::OrderInvalid("no reason given".to_owned()))
                    .into());
            }
            let asked = session.client.heard().retry_after.unwrap_or(pause);
            sleep(asked.clamp(self.settings.limits.first_order_poll, LONGEST_POLL)).await;
            pause = (2 * pause).min(LONGEST_POLL);
            order.refresh().await.map_err(|error| session.refusal("the state of the order", error))?;
        }
    }

    /// The name that could not be verified, from the authorizations of an invalid order.
    async fn unverified(&self, order: &mut Order, kind: ChallengeKind) -> Option<Fault> {
        let mut authorizations = order.authorizations();
        while let Some(Ok(mut authorization)) = authorizations.next().await {
            if authorization.refresh().await.is_err() {
                continue;
            }
            let name = quoted(&authorization.identifier().to_string());
            let failed = authorization.challenges.iter().find_map(|challenge| {
                let challenge_name = match challenge.r#type {
                    ChallengeType::Http01 => ChallengeKind::Http01.name(),
                    ChallengeType::TlsAlpn01 => ChallengeKind::TlsAlpn01.name(),
                    _ => kind.name(),
                };
                Some((challenge_name, challenge.error.as_ref()?))
            });
            if let Some((challenge, problem)) = failed {
                return Some(Fault::NotVerified { name, challenge, why: quoted(&problem.to_string()) });
            }
        }
        None
    }
}

/// An answer that stands until this is dropped.
struct Answer<'a> {
    _published: Published,
    /// The receiver of the certificate of the challenge, and its name.
    shown: Option<(&'a dyn Sink, String)>,
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        if let Some((sink, name)) = &self.shown {
            sink.challenge(name, None);
        }
    }
}
