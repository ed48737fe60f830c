//! The statements of a certificate, read from its DER.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;
use x509_parser::x509::X509Name;

use crate::names::{Name, normal};

/// The longest subject or issuer that is kept; they go into logs.
const MAX_SUBJECT_CHARS: usize = 200;

/// The kind of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyType {
    /// ECDSA on a curve of so many bits.
    Ecdsa(u16),
    /// Ed25519.
    Ed25519,
    /// RSA with a modulus of so many bits.
    Rsa(u16),
    /// Another kind.
    Other,
}

impl std::fmt::Display for KeyType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            KeyType::Ecdsa(bits) => write!(f, "ECDSA P-{bits}"),
            KeyType::Ed25519 => f.write_str("Ed25519"),
            KeyType::Rsa(bits) => write!(f, "RSA {bits}"),
            KeyType::Other => f.write_str("unknown"),
        }
    }
}

/// What a certificate states.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// The subject's alternative names, sorted.
    pub(crate) names: Vec<Name>,
    /// In seconds since 1970.
    pub(crate) not_before: i64,
    pub(crate) not_after: i64,
    pub(crate) key_type: KeyType,
    /// The public key, as SubjectPublicKeyInfo.
    pub(crate) public_key: Vec<u8>,
    /// Subject and issuer, as DER and as text.
    pub(crate) subject: (Vec<u8>, Box<str>),
    pub(crate) issuer: (Vec<u8>, Box<str>),
}

impl Facts {
    /// Reads a certificate. `None` if it is malformed.
    pub(crate) fn read(der: &[u8]) -> Option<Facts> {
        let (rest, certificate) = X509Certificate::from_der(der).ok()?;
        if !rest.is_empty() {
            return None;
        }
        let key = certificate.public_key();
        let key_type = match key.parsed().ok()? {
            PublicKey::RSA(rsa) => KeyType::Rsa(rsa.key_size().try_into().unwrap_or(u16::MAX)),
            PublicKey::EC(_) => ecdsa(key.raw),
            _ if key.algorithm.algorithm.to_id_string() == "1.3.101.112" => KeyType::Ed25519,
            _ => KeyType::Other,
        };
        let mut names: Vec<Name> = Vec::new();
        for extension in certificate.extensions() {
            if let ParsedExtension::SubjectAlternativeName(list) = extension.parsed_extension() {
                names.extend(list.general_names.iter().filter_map(name));
            }
        }
        names.sort();
        names.dedup();
        Some(Facts {
            names,
            not_before: certificate.validity().not_before.timestamp(),
            not_after: certificate.validity().not_after.timestamp(),
            key_type,
            public_key: key.raw.to_vec(),
            subject: entity(certificate.subject()),
            issuer: entity(certificate.issuer()),
        })
    }

    pub(crate) fn is_self_signed(&self) -> bool {
        self.subject.0 == self.issuer.0
    }
}

/// The curve, by its object identifier in SubjectPublicKeyInfo. The size of the point would not tell P-521's.
fn ecdsa(public_key: &[u8]) -> KeyType {
    const P256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
    const P384: &[u8] = &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22];
    const P521: &[u8] = &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x23];
    let has = |curve: &[u8]| public_key.windows(curve.len()).take(32).any(|part| part == curve);
    match () {
        () if has(P256) => KeyType::Ecdsa(256),
        () if has(P384) => KeyType::Ecdsa(384),
        () if has(P521) => KeyType::Ecdsa(521),
        () => KeyType::Other,
    }
}

fn name(name: &GeneralName<'_>) -> Option<Name> {
    match name {
        GeneralName::DNSName(dns) if !dns.is_empty() => Some(Name::Dns(normal(dns).into())),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(|bytes| IpAddr::V4(Ipv4Addr::from(bytes)));
            let v6 = <[u8; 16]>::try_from(*bytes).map(|bytes| IpAddr::V6(Ipv6Addr::from(bytes)));
            Some(Name::Ip(v4.or(v6).ok()?))
        }
        _ => None,
    }
}

/// The DER of a name, and a text for people: its common name, or else all of it. Control characters are replaced.
fn entity(name: &X509Name<'_>) -> (Vec<u8>, Box<str>) {
    let common = name.iter_common_name().next().and_then(|name| name.as_str().ok());
    let text = common.map_or_else(|| name.to_string(), str::to_owned);
    let text = if text.is_empty() { "a subject without a name".to_owned() } else { text };
    let clean = text.chars().take(MAX_SUBJECT_CHARS).map(|c| if c.is_control() { '\u{fffd}' } else { c });
    (name.as_raw().to_vec(), clean.collect::<String>().into())
}
