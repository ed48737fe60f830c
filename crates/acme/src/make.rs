//! Keys, requests and certificates that are made here.

use rcgen::{CertificateParams, CustomExtension, DistinguishedName, DnType, KeyPair};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

use crate::certificate::KeyedChain;
use crate::fault::Fault;

/// A certificate for the TLS-ALPN-01 challenge (RFC 8737): for handshakes that offer only `acme-tls/1`.
#[derive(Debug)]
pub struct ChallengeCertificate {
    /// The one certificate of the chain.
    pub certificate: CertificateDer<'static>,
    /// Its key.
    pub key: PrivateKeyDer<'static>,
}

impl ChallengeCertificate {
    /// The certificate in the form of rustls. Its `CertifiedKey::from_der` would refuse the extension, which is critical and
    /// unknown to it.
    ///
    /// # Errors
    /// [`Fault::CannotMake`], if the key cannot sign.
    pub fn certified_key(self) -> Result<CertifiedKey, Fault> {
        let key = any_supported_type(&self.key).map_err(|error| Fault::CannotMake(error.to_string()))?;
        Ok(CertifiedKey::new(vec![self.certificate], key))
    }
}

/// A new key, and the request to certify it for `names` (DER).
pub(crate) fn key_and_request(names: &[String]) -> Result<(KeyPair, Vec<u8>), Fault> {
    let key = KeyPair::generate().map_err(fault)?;
    let mut params = CertificateParams::new(names).map_err(fault)?;
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(&key).map_err(fault)?;
    Ok((key, request.der().to_vec()))
}

/// A self-signed certificate that stands in until the CA issued one. No browser trusts it.
///
/// # Errors
/// [`Fault::CannotMake`], if a name cannot be in a certificate.
pub fn stand_in(names: &[String]) -> Result<KeyedChain, Fault> {
    let key = KeyPair::generate().map_err(fault)?;
    let mut params = CertificateParams::new(names).map_err(fault)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "Sandarac stand-in until ACME succeeds");
    let certificate = params.self_signed(&key).map_err(fault)?;
    Ok(KeyedChain { chain_pem: certificate.pem(), key_pem: key.serialize_pem() })
}

/// The certificate of a challenge: `digest` is the SHA-256 of the key authorization.
pub(crate) fn challenge_certificate(name: &str, digest: &[u8; 32]) -> Result<ChallengeCertificate, Fault> {
    let key = KeyPair::generate().map_err(fault)?;
    let mut params = CertificateParams::new([name.to_owned()]).map_err(fault)?;
    params.custom_extensions.push(CustomExtension::new_acme_identifier(digest));
    let certificate = params.self_signed(&key).map_err(fault)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    Ok(ChallengeCertificate { certificate: certificate.into(), key })
}

#[allow(clippy::needless_pass_by_value)]
fn fault(error: rcgen::Error) -> Fault {
    Fault::CannotMake(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use x509_parser::oid_registry::Oid;

    #[test]
    fn the_certificate_of_a_challenge_has_one_name_and_the_critical_digest() {
        let made = challenge_certificate("a.example", &[7; 32]).expect("a certificate");
        let (_, parsed) = x509_parser::parse_x509_certificate(&made.certificate).expect("X.509");
        let names = parsed.subject_alternative_name().expect("extensions").expect("names");
        assert_eq!(names.value.general_names.len(), 1);
        // id-pe-acmeIdentifier (RFC 8737 §6.1)
        let oid = Oid::from(&[1, 3, 6, 1, 5, 5, 7, 1, 31]).expect("an OID");
        let identifier = parsed.get_extension_unique(&oid).expect("extensions").expect("the digest");
        assert!(identifier.critical);
        assert_eq!(identifier.value, [&[4, 32][..], &[7; 32]].concat());
        made.certified_key().expect("rustls takes it");
    }
}
