//! Why a certificate, a key or another file of TLS cannot be used.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::patience::PATIENCE;

/// A file that cannot be used. The text names the file, the fault and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file, or the directory.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: Reason,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The file cannot be opened or read.
    Unreadable(io::ErrorKind),
    /// A directory, a pipe or a device.
    NotAFile,
    /// More than [`MAX_FILE_BYTES`](crate::MAX_FILE_BYTES).
    TooLarge,
    /// A PEM section is cut off, or is not base64.
    MalformedPem(Box<str>),
    /// No certificate in a file that must have one.
    NoCertificate,
    /// No private key in a file that must have one.
    NoKey,
    /// Chain and key were given in each other's place; the path is that of the key.
    Swapped,
    /// Several private keys, so that it is unclear which one is meant.
    SeveralKeys(usize),
    /// The private key is protected by a password.
    EncryptedKey,
    /// The key is of a kind or a size that is not supported.
    UnusableKey(Box<str>),
    /// The key belongs to another certificate than that of the chain, which is in this file.
    KeyMismatch(PathBuf),
    /// The certificate of the key is not the first one; its number, from 1.
    LeafNotFirst(usize),
    /// A certificate is followed by one that did not issue it.
    WrongOrder {
        /// The number of the certificate, from 1.
        position: usize,
        /// Its issuer.
        issuer: Box<str>,
        /// The subject of the certificate that follows it.
        followed_by: Box<str>,
    },
    /// The number of a certificate, from 1, that is not X.509.
    MalformedCertificate(usize),
    /// A certificate of the chain is valid only from this time on, in seconds since 1970.
    NotYetValid(i64),
    /// A certificate of the chain was valid until this time, in seconds since 1970.
    Expired(i64),
    /// No DNS name and no IP address among the subject's alternative names.
    NoNames,
    /// A directory without certificates.
    EmptyDirectory,
    /// A certificate in a directory that has no key beside it.
    KeyFileMissing(PathBuf),
    /// A file of revoked certificates without any list of them.
    NoRevocationList,
    /// A malformed list of revoked certificates, or one of a kind that is not supported.
    MalformedRevocationList(Box<str>),
    /// A CA certificate that cannot be used as one.
    UnusableCa(Box<str>),
    /// A secret that is shorter than [`MIN_SECRET_BYTES`](crate::MIN_SECRET_BYTES).
    ShortSecret(usize),
    /// The system has no CA certificates.
    NoSystemRoots(Box<str>),
    /// The file for session keys cannot be opened for writing.
    Unwritable(io::ErrorKind),
    /// The settings do not fit together.
    Settings(Box<str>),
}

impl Fault {
    pub(crate) fn new(path: &Path, reason: Reason) -> Fault {
        Fault { path: path.to_owned(), reason }
    }
}

impl Reason {
    /// The name in logs and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Reason::Unreadable(_) => "unreadable",
            Reason::NotAFile => "not_a_file",
            Reason::TooLarge => "too_large",
            Reason::MalformedPem(_) => "malformed_pem",
            Reason::NoCertificate => "no_certificate",
            Reason::NoKey => "no_key",
            Reason::Swapped => "swapped",
            Reason::SeveralKeys(_) => "several_keys",
            Reason::EncryptedKey => "encrypted_key",
            Reason::UnusableKey(_) => "unusable_key",
            Reason::KeyMismatch(_) => "key_mismatch",
            Reason::LeafNotFirst(_) => "leaf_not_first",
            Reason::WrongOrder { .. } => "wrong_order",
            Reason::MalformedCertificate(_) => "malformed_certificate",
            Reason::NotYetValid(_) => "not_yet_valid",
            Reason::Expired(_) => "expired",
            Reason::NoNames => "no_names",
            Reason::EmptyDirectory => "empty_directory",
            Reason::KeyFileMissing(_) => "key_file_missing",
            Reason::NoRevocationList => "no_revocation_list",
            Reason::MalformedRevocationList(_) => "malformed_revocation_list",
            Reason::UnusableCa(_) => "unusable_ca",
            Reason::ShortSecret(_) => "short_secret",
            Reason::NoSystemRoots(_) => "no_system_roots",
            Reason::Unwritable(_) => "unwritable",
            Reason::Settings(_) => "settings",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.reason {
            Reason::Unreadable(io::ErrorKind::PermissionDenied) => {
                write!(f, "cannot read {path}: permission denied; let the user of this process read it")
            }
            Reason::Unreadable(io::ErrorKind::TimedOut) => write!(
                f,
                "cannot read {path}: its file system did not answer for {} s; see whether it is still mounted",
                PATIENCE.as_secs()
            ),
            Reason::Unreadable(io::ErrorKind::NotFound) => write!(f, "there is no file {path}"),
            Reason::Unreadable(kind) => write!(f, "cannot read {path}: {kind}"),
            Reason::NotAFile => write!(f, "{path} is not a regular file"),
            Reason::TooLarge => {
                write!(f, "{path} has more than {} KiB; it must be another file", crate::MAX_FILE_BYTES >> 10)
            }
            Reason::MalformedPem(fault) => {
                write!(f, "{path} has a malformed PEM section ({fault}); copy the file again")
            }
            Reason::NoCertificate => {
                write!(
                    f,
                    "{path} holds no certificate; PEM text with -----BEGIN CERTIFICATE----- is expected"
                )
            }
            Reason::NoKey => {
                write!(
                    f,
                    "{path} holds no private key; PEM text with -----BEGIN PRIVATE KEY----- is expected"
                )
            }
            Reason::Swapped => {
                write!(f, "chain and key are swapped: {path} holds certificates, and the other file the key")
            }
            Reason::SeveralKeys(count) => {
                write!(f, "{path} holds {count} private keys; keep the one of the certificate")
            }
            Reason::EncryptedKey => write!(
                f,
                "the private key in {path} is encrypted, and passwords are not supported; decrypt it: \
                 openssl pkey -in {path} -out NEW.key"
            ),
            Reason::UnusableKey(fault) => write!(
                f,
                "the private key in {path} cannot be used ({fault}); use ECDSA P-256, P-384 or P-521, Ed25519, or RSA \
                 with 2048 to 8192 bits"
            ),
            Reason::KeyMismatch(chain) => write!(
                f,
                "the private key in {path} does not belong to the certificate in {}; give the key that the \
                 certificate was requested with",
                chain.display()
            ),
            Reason::LeafNotFirst(position) => write!(
                f,
                "the certificate of the key is number {position} in {path}; it must be the first, and that of its \
                 issuer the next"
            ),
            Reason::WrongOrder { position, issuer, followed_by } => write!(
                f,
                "certificate {position} in {path} was issued by {issuer}, but the next one is that of {followed_by}; \
                 each certificate must be followed by that of its issuer"
            ),
            Reason::MalformedCertificate(position) => {
                write!(f, "certificate {position} in {path} is not an X.509 certificate")
            }
            Reason::NotYetValid(from) => write!(
                f,
                "a certificate in {path} is valid from {} on; check the clock, or wait",
                crate::time::civil(*from)
            ),
            Reason::Expired(until) => {
                write!(f, "a certificate in {path} expired at {}; renew it", crate::time::civil(*until))
            }
            Reason::NoNames => write!(
                f,
                "the certificate in {path} names no host (no subject alternative name), and no client would accept \
                 it; request one with its names"
            ),
            Reason::EmptyDirectory => write!(
                f,
                "{path} holds no certificates; NAME.crt and NAME.key, one NAME.pem with both, or NAME/fullchain.pem and \
                 NAME/privkey.pem are expected"
            ),
            Reason::KeyFileMissing(key) => write!(
                f,
                "{path} holds a certificate without a private key, and there is no {}",
                key.display()
            ),
            Reason::NoRevocationList => {
                write!(
                    f,
                    "{path} holds no revocation list; PEM text with -----BEGIN X509 CRL----- or DER is expected"
                )
            }
            Reason::MalformedRevocationList(fault) => {
                write!(f, "the revocation list in {path} cannot be used: {fault}")
            }
            Reason::UnusableCa(fault) => write!(f, "a certificate in {path} cannot be used as a CA: {fault}"),
            Reason::ShortSecret(bytes) => write!(
                f,
                "{path} has {bytes} bytes, too few for a secret of at least {}; make one: \
                 head -c 48 /dev/urandom > {path}",
                crate::MIN_SECRET_BYTES
            ),
            Reason::NoSystemRoots(fault) => write!(
                f,
                "the system has no CA certificates{}{fault}; install the package ca-certificates, or set `ca`",
                if fault.is_empty() { "" } else { ": " }
            ),
            Reason::Unwritable(kind) => write!(f, "cannot write {path}: {kind}"),
            Reason::Settings(fault) => write!(f, "{fault}"),
        }
    }
}

impl std::error::Error for Fault {}
