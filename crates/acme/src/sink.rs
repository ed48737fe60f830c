//! The receiver of what ACME obtains.

use crate::certificate::KeyedChain;
use crate::event::Event;
use crate::make::ChallengeCertificate;

/// Takes certificates and events. The methods are called on the thread that polls [`run`](crate::run), and MUST NOT
/// block it for long.
pub trait Sink: Send + Sync {
    /// Handshakes for `name` that offer `acme-tls/1` MUST get this certificate from the return of this call on; with
    /// `None`, none.
    fn challenge(&self, name: &str, certificate: Option<ChallengeCertificate>);

    /// Handshakes for `names` get this certificate from now on. It is valid, for these names, and fits its key.
    fn issued(&self, names: &[String], certificate: &KeyedChain);

    /// Something that an operator wants to know.
    fn event(&self, event: &Event);
}
