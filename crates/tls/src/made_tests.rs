//! Certificates made for the tests, and a directory that is removed with its value.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer, KeyIdMethod,
    KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256, RevokedCertParams, RsaKeySize, SerialNumber, date_time_ymd,
};
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

use crate::when_expired::WhenExpired;
use crate::{CertificateFiles, Loading, RuntimeCertificates};

/// The time of the tests: 2026-11-24. Certificates are valid from 2026-01-01 to 2027-01-01 unless stated otherwise.
pub(crate) const NOW: u64 = 1_795_478_400;

pub(crate) fn now() -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(NOW))
}

/// A clock that stands at the time of the tests.
#[derive(Debug)]
pub(crate) struct Still;

impl TimeProvider for Still {
    fn current_time(&self) -> Option<UnixTime> {
        Some(now())
    }
}

pub(crate) fn loading() -> Loading {
    Loading {
        when_expired: WhenExpired::Refuse,
        now: now(),
        clock: Arc::new(Still),
        process_secret: Arc::default(),
        runtime: Arc::new(RuntimeCertificates::default()),
    }
}

/// A directory for the files of a test.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new() -> Directory {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("sandarac-tls-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Directory(path)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("its mode");
        path
    }

    /// The files of a certificate, with `NAME.crt` and `NAME.key`.
    pub(crate) fn put(&self, name: &str, made: &Made) -> CertificateFiles {
        let chain = self.write(&format!("{name}.crt"), &made.chain);
        CertificateFiles { chain, key: self.write(&format!("{name}.key"), &made.key) }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

impl AsRef<Path> for Directory {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

/// The PEM texts of a certificate and its key.
pub(crate) struct Made {
    pub(crate) chain: String,
    pub(crate) key: String,
}

/// A CA.
pub(crate) struct Ca {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Ca {
    pub(crate) fn new(name: &str) -> Ca {
        let key = KeyPair::generate().expect("a key");
        let params = ca_params(name);
        let pem = params.self_signed(&key).expect("a CA").pem();
        Ca { pem, issuer: Issuer::new(params, key) }
    }

    /// A CA whose certificate this one issued.
    pub(crate) fn intermediate(&self, name: &str) -> Ca {
        let key = KeyPair::generate().expect("a key");
        let params = ca_params(name);
        let pem = params.signed_by(&key, &self.issuer).expect("a CA").pem();
        Ca { pem, issuer: Issuer::new(params, key) }
    }

    /// A certificate alone, without that of the CA behind it.
    pub(crate) fn issue(&self, names: &[&str]) -> Made {
        self.issue_with(params(names), &KeyPair::generate().expect("a key"))
    }

    pub(crate) fn issue_rsa(&self, names: &[&str]) -> Made {
        let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).expect("a key");
        self.issue_with(params(names), &key)
    }

    pub(crate) fn issue_with(&self, params: CertificateParams, key: &KeyPair) -> Made {
        let chain = params.signed_by(key, &self.issuer).expect("a certificate").pem();
        Made { chain, key: key.serialize_pem() }
    }

    /// A list that revokes the certificate with this serial number.
    pub(crate) fn revoke(&self, serial: u64, next_update_year: i32) -> String {
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2025, 1, 1),
            next_update: date_time_ymd(next_update_year, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![RevokedCertParams {
                serial_number: SerialNumber::from(serial),
                revocation_time: date_time_ymd(2026, 2, 1),
                reason_code: None,
                invalidity_date: None,
            }],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).expect("a list").pem().expect("PEM")
    }
}

pub(crate) fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("names");
    params.distinguished_name.push(DnType::CommonName, "the leaf");
    params.not_before = date_time_ymd(2026, 1, 1);
    params.not_after = date_time_ymd(2027, 1, 1);
    params
}

fn ca_params(name: &str) -> CertificateParams {
    let mut params = params(&[]);
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

pub(crate) fn self_signed(names: &[&str]) -> Made {
    let key = KeyPair::generate().expect("a key");
    Made { chain: params(names).self_signed(&key).expect("a certificate").pem(), key: key.serialize_pem() }
}
