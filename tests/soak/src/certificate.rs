//! The certificate that the proxy presents, and the clients that trust it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use sandarac_test_support::TempDir;

/// A certificate for [`name`].
pub(crate) struct Certificate {
    /// Its files, as the setting names them.
    pub(crate) files: String,
    pub(crate) client: Arc<ClientConfig>,
    /// A client that speaks HTTP/2.
    pub(crate) http2_client: Arc<ClientConfig>,
}

/// The name that clients ask for.
pub(crate) fn name() -> ServerName<'static> {
    ServerName::try_from("soak.example").expect("a name")
}

impl Certificate {
    /// Writes the files to `dir`.
    pub(crate) fn new(dir: &TempDir) -> Certificate {
        let made = rcgen::generate_simple_self_signed(["soak.example".to_owned()]).expect("a certificate");
        let (chain, key) = (dir.join("soak.crt"), dir.join("soak.key"));
        fs::write(&chain, made.cert.pem()).expect("the directory is ours");
        fs::write(&key, made.signing_key.serialize_pem()).expect("the directory is ours");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("the file is ours");
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).expect("a certificate");
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("versions");
        let client = builder.with_root_certificates(roots).with_no_client_auth();
        let files = format!(
            "[{{ chain = {:?}, key = {:?} }}]",
            chain.display().to_string(),
            key.display().to_string()
        );
        let mut http2_client = client.clone();
        http2_client.alpn_protocols = vec![b"h2".to_vec()];
        Certificate { files, client: Arc::new(client), http2_client: Arc::new(http2_client) }
    }
}
