//! A chain with its key: read, judged, and written as PEM.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use instant_acme::CertificateIdentifier;
use rcgen::{KeyPair, PublicKeyData};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sandarac_message::Timestamp;
use std::time::Duration;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::X509Certificate;

use crate::fault::{CertificateFault, quoted};
use crate::schedule::Validity;

/// The most certificates of a chain. Public CAs send two to four.
const MAX_CHAIN: usize = 10;

/// How far the start of a certificate may be ahead of this machine's clock.
const CLOCK_SKEW: Duration = Duration::from_secs(24 * 3600);

/// A chain and its key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyedChain {
    /// The certificates, leaf first.
    pub chain_pem: String,
    /// The private key, PKCS#8.
    pub key_pem: String,
}

/// A certificate that was read and fits its key.
#[derive(Clone)]
pub(crate) struct Certificate {
    pub(crate) keyed: KeyedChain,
    pub(crate) validity: Validity,
    /// The identifier for ARI; `None` if it names no authority key, as self-made ones.
    pub(crate) id: Option<CertificateIdentifier<'static>>,
    /// The names in it, in lower case.
    names: Vec<String>,
}

impl Certificate {
    /// Reads a chain and a key. Text between the PEM blocks is dropped, and so are certificates from the first on that
    /// did not issue the one before it.
    pub(crate) fn read(chain_pem: &str, key_pem: &str) -> Result<Certificate, CertificateFault> {
        let unreadable = |why: &str| CertificateFault::Unreadable(quoted(why));
        let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes());
        let key = key.map_err(|error| CertificateFault::NoKey(error.to_string()))?;
        let key = KeyPair::try_from(&key).map_err(|error| CertificateFault::NoKey(error.to_string()))?;
        let chain: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(chain_pem.as_bytes()).take(MAX_CHAIN + 1).collect();
        let chain = chain.map_err(|error| unreadable(&error.to_string()))?;
        if chain.is_empty() || chain.len() > MAX_CHAIN {
            return Err(unreadable(&format!("a chain has 1 to {MAX_CHAIN} PEM certificates")));
        }
        let parsed = chain.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        let leaf = &parsed[0];
        let issued = parsed.windows(2).take_while(|pair| pair[0].issuer() == pair[1].subject()).count();
        if leaf.public_key().raw != key.subject_public_key_info() {
            return Err(CertificateFault::OtherKey);
        }
        let at = |time: i64| Timestamp::from_secs(u64::try_from(time).unwrap_or(0));
        Ok(Certificate {
            validity: Validity {
                not_before: at(leaf.validity().not_before.timestamp()),
                not_after: at(leaf.validity().not_after.timestamp()),
            },
            id: CertificateIdentifier::try_from(&chain[0]).ok().map(CertificateIdentifier::into_owned),
            names: names(leaf)?,
            keyed: KeyedChain {
                chain_pem: chain[..=issued].iter().map(pem).collect(),
                key_pem: key.serialize_pem(),
            },
        })
    }

    /// Reads the text of one file with chain and key.
    pub(crate) fn read_file(text: &str) -> Result<Certificate, CertificateFault> {
        Certificate::read(text, text)
    }

    /// The text of one file with chain and key.
    pub(crate) fn to_file(&self) -> String {
        format!("{}{}", self.keyed.chain_pem, self.keyed.key_pem)
    }

    /// Checks that the certificate serves `wanted` at `now`. Further names in it do no harm.
    pub(crate) fn check(&self, wanted: &[String], now: Timestamp) -> Result<(), CertificateFault> {
        if let Some(missing) = wanted.iter().find(|name| !self.names.contains(name)) {
            return Err(CertificateFault::NameMissing(missing.clone()));
        }
        if self.validity.not_before > now.plus(CLOCK_SKEW) {
            return Err(CertificateFault::NotYetValid);
        }
        if self.validity.not_after <= now {
            return Err(CertificateFault::Expired);
        }
        Ok(())
    }
}

fn parse<'a>(der: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, CertificateFault> {
    match x509_parser::parse_x509_certificate(der) {
        Ok(([], certificate)) => Ok(certificate),
        Ok(_) => Err(CertificateFault::Unreadable("bytes follow the certificate".to_owned())),
        Err(error) => Err(CertificateFault::Unreadable(quoted(&error.to_string()))),
    }
}

fn names(leaf: &X509Certificate<'_>) -> Result<Vec<String>, CertificateFault> {
    let alternative = leaf.subject_alternative_name();
    let alternative =
        alternative.map_err(|error| CertificateFault::Unreadable(quoted(&error.to_string())))?;
    let names = alternative.iter().flat_map(|extension| &extension.value.general_names);
    Ok(names
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
            _ => None,
        })
        .collect())
}

/// A certificate as a PEM block (RFC 7468).
fn pem(der: &CertificateDer<'_>) -> String {
    let text = STANDARD.encode(der);
    let mut pem = String::with_capacity(text.len() + text.len() / 64 + 64);
    pem.push_str("-----BEGIN CERTIFICATE-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

/// The key stays out of logs.
impl std::fmt::Debug for KeyedChain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyedChain").field("chain_pem", &self.chain_pem).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::make::stand_in;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer};

    const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn keyed(of: &[&str]) -> KeyedChain {
        stand_in(&names(of)).expect("a certificate")
    }

    fn read(chain: &str, key: &str) -> Result<Certificate, CertificateFault> {
        Certificate::read(chain, key)
    }

    #[test]
    fn a_file_holds_chain_and_key_and_reads_back() {
        let KeyedChain { chain_pem, key_pem } = keyed(&["a.example", "b.example"]);
        let certificate = read(&format!("rubbish\n{chain_pem}more\n"), &key_pem).expect("a certificate");
        assert_eq!(certificate.keyed.chain_pem, chain_pem);
        let again = Certificate::read_file(&certificate.to_file()).expect("a certificate");
        assert_eq!(again.keyed, certificate.keyed);
        assert_eq!(again.check(&names(&["b.example", "a.example"]), NOW), Ok(()));
        assert!(certificate.id.is_none());
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let (one, other) = (keyed(&["a.example"]), keyed(&["a.example"]));
        let fault = |chain: &str, key: &str| read(chain, key).err().expect("a fault").name();
        assert_eq!(fault(&one.chain_pem, &other.key_pem), "certificate_for_another_key");
        assert_eq!(fault(&one.chain_pem, ""), "certificate_without_key");
        assert_eq!(fault("", &one.key_pem), "certificate_unreadable");
        assert_eq!(fault("<html>", &one.key_pem), "certificate_unreadable");
        let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(fault(garbage, &one.key_pem), "certificate_unreadable");
        assert_eq!(fault(&format!("{}{garbage}", one.chain_pem), &one.key_pem), "certificate_unreadable");
        assert_eq!(fault(&one.chain_pem.repeat(11), &one.key_pem), "certificate_unreadable");
        let missing = read(&one.chain_pem, &one.key_pem).expect("one").check(&names(&["c.example"]), NOW);
        assert_eq!(missing, Err(CertificateFault::NameMissing("c.example".to_owned())));
    }

    #[test]
    fn a_certificate_is_used_within_its_validity_only() {
        let KeyedChain { chain_pem, key_pem } = keyed(&["a.example"]);
        let mut certificate = read(&chain_pem, &key_pem).expect("a certificate");
        let hour = Duration::from_secs(3600);
        for (not_before, not_after, expected) in [
            (NOW.minus(hour), NOW.plus(hour), Ok(())),
            // Clocks differ.
            (NOW.plus(hour), NOW.plus(2 * hour), Ok(())),
            (NOW.plus(25 * hour), NOW.plus(48 * hour), Err(CertificateFault::NotYetValid)),
            (NOW.minus(hour), NOW, Err(CertificateFault::Expired)),
        ] {
            certificate.validity = Validity { not_before, not_after };
            assert_eq!(certificate.check(&names(&["a.example"]), NOW), expected);
        }
    }

    #[test]
    fn certificates_that_issued_nothing_in_the_chain_are_dropped() {
        let (one, other) = (keyed(&["a.example"]), rcgen::generate_simple_self_signed(names(&["b.example"])));
        let other = other.expect("a certificate").cert.pem();
        let chain = format!("{}{other}{}", one.chain_pem, one.chain_pem);
        let certificate = read(&chain, &one.key_pem).expect("a certificate");
        assert_eq!(certificate.keyed.chain_pem, one.chain_pem);
    }

    #[test]
    fn the_identifier_of_a_certificate_is_its_issuers_key_and_its_serial() {
        let (key, ca_key) = (KeyPair::generate().expect("a key"), KeyPair::generate().expect("a key"));
        let mut ca = CertificateParams::default();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_identifier_method = rcgen::KeyIdMethod::PreSpecified(vec![0xc0, 0xff, 0xee]);
        let mut params = CertificateParams::new(names(&["A.example"])).expect("params");
        params.serial_number = Some(vec![0xca, 0xfe].into());
        params.use_authority_key_identifier_extension = true;
        let leaf = params.signed_by(&key, &Issuer::new(ca, ca_key)).expect("signed");
        let certificate = read(&leaf.pem(), &key.serialize_pem()).expect("a certificate");
        assert_eq!(certificate.id.map(|id| id.to_string()), Some("wP_u.AMr-".to_owned()));
        assert_eq!(certificate.names, ["a.example"]);
    }
}
