//! The certificates of a listener, and the choice among them.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::certificate::Certificate;
use crate::choices::Choices;
use crate::names::{Name, normal, wildcard_of};
use crate::runtime::RuntimeCertificates;

/// The protocol of TLS-ALPN-01 challenges (RFC 8737). A connection that has negotiated it serves no requests: it is
/// closed after the handshake.
pub const ACME_TLS_ALPN: &[u8] = b"acme-tls/1";

/// The certificates of a listener, chosen by the name that the client asks for (SNI) and the signatures it accepts.
#[derive(Debug)]
pub struct Certificates {
    all: Vec<Arc<Certificate>>,
    /// By names in lower case; those that begin with `*.` cover one label in its place.
    by_name: HashMap<Box<str>, Choices>,
    default: Choices,
    has_self_signed: bool,
    runtime: Option<Arc<RuntimeCertificates>>,
}

/// Why a client gets a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// The certificate has this name.
    Exact,
    /// The certificate has a wildcard that covers the name.
    Wildcard,
    /// No certificate has the name, or the client named none.
    Default,
}

impl Match {
    /// The word for it in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Match::Exact => "exact",
            Match::Wildcard => "wildcard",
            Match::Default => "default",
        }
    }
}

/// A certificate that is never chosen for one of its names, because an earlier one has the same name and kind of key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shadowed {
    /// The name that both have.
    pub name: Name,
    /// The file of the one that is chosen.
    pub chosen: PathBuf,
    /// The file of the other one.
    pub ignored: PathBuf,
}

impl Certificates {
    /// The certificates of a listener, in the order of the configuration; the first is the default one, unless
    /// `default` is the place of another. Certificates of the same names as the default one and with other kinds of
    /// keys stand beside it. `runtime` holds those that arrive later.
    pub fn new(
        all: Vec<Arc<Certificate>>,
        default: usize,
        runtime: Option<Arc<RuntimeCertificates>>,
    ) -> (Certificates, Vec<Shadowed>) {
        let mut by_name: HashMap<Box<str>, Choices> = HashMap::new();
        let mut shadowed = Vec::new();
        for certificate in &all {
            for name in certificate.names() {
                let Name::Dns(dns) = name else { continue };
                let before =
                    by_name.entry(dns.clone()).or_default().add(certificate.clone()).map(|one| path(one));
                if let Some(chosen) = before {
                    shadowed.push(Shadowed { name: name.clone(), chosen, ignored: path(certificate) });
                }
            }
        }
        let mut choices = Choices::default();
        if let Some(first) = all.get(default) {
            choices.add(first.clone());
            for other in all.iter().filter(|other| other.names() == first.names()) {
                choices.add(other.clone());
            }
        }
        let has_self_signed = all.iter().any(|certificate| certificate.is_self_signed());
        (Certificates { all, by_name, default: choices, has_self_signed, runtime }, shadowed)
    }

    /// The configured certificates, then those that arrived at run time.
    pub fn all(&self) -> Vec<Arc<Certificate>> {
        let issued = self.runtime.iter().flat_map(|runtime| runtime.issued());
        self.all.iter().cloned().chain(issued).collect()
    }

    /// Whether any of them is self-signed, as one that stands in until a CA has issued the first.
    pub fn has_self_signed(&self) -> bool {
        self.has_self_signed || self.runtime.as_ref().is_some_and(|runtime| runtime.has_self_signed())
    }

    /// The configured certificates.
    pub fn configured(&self) -> &[Arc<Certificate>] {
        &self.all
    }

    /// The certificates that a client gets that asks for `name`: the first whose signatures it accepts. `None` stands
    /// for a client that names no host.
    pub fn for_name(&self, name: Option<&str>) -> (Match, Vec<Arc<Certificate>>) {
        let (found, choices) = self.find(name);
        (found, choices.all().to_vec())
    }

    fn find(&self, name: Option<&str>) -> (Match, Choices) {
        if let Some(name) = name.map(normal) {
            if let Some(choices) = self.named(&name) {
                return (Match::Exact, choices);
            }
            if let Some(choices) = wildcard_of(&name).and_then(|wildcard| self.named(&wildcard)) {
                return (Match::Wildcard, choices);
            }
        }
        if self.default.all().is_empty()
            && let Some(issued) = self.runtime.as_ref().and_then(|runtime| runtime.first())
        {
            let mut choices = Choices::default();
            choices.add(issued);
            return (Match::Default, choices);
        }
        (Match::Default, self.default.clone())
    }

    /// Configured certificates come before those that arrived at run time.
    fn named(&self, name: &str) -> Option<Choices> {
        let configured = self.by_name.get(name).cloned();
        configured.or_else(|| self.runtime.as_ref()?.for_name(name))
    }

    fn choose<'a>(
        &self,
        name: Option<&str>,
        mut protocols: impl Iterator<Item = &'a [u8]>,
        schemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        // A client that speaks this protocol is a CA's verifier, and MUST get the certificate of the challenge or none.
        if protocols.any(|protocol| protocol == ACME_TLS_ALPN) {
            return self.runtime.as_ref()?.challenge(&normal(name?));
        }
        self.find(name).1.choose(schemes).cloned()
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let protocols = hello.alpn().into_iter().flatten();
        self.choose(hello.server_name(), protocols, hello.signature_schemes())
    }
}

impl fmt::Display for Shadowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} and {} are both for {} with the same kind of key; the first is used",
            self.chosen.display(),
            self.ignored.display(),
            self.name
        )
    }
}

fn path(certificate: &Certificate) -> PathBuf {
    certificate.files().map_or_else(PathBuf::new, |files| files.chain.clone())
}
