//! Mounts for tests, which need root.

use std::fmt::Debug;

/// What was mounted; `None` only if `SANDARAC_NO_MOUNTS` is 1, by which a user who is not root leaves out what needs it.
///
/// # Panics
/// If nothing could be mounted otherwise: a test that cannot test does not pass.
pub(crate) fn unless_left_out<T, E: Debug>(result: Result<T, E>) -> Option<T> {
    match result {
        Ok(mounted) => Some(mounted),
        Err(_) if std::env::var("SANDARAC_NO_MOUNTS").as_deref() == Ok("1") => None,
        Err(error) => {
            panic!(
                "the test needs to mount a file system, as root, or SANDARAC_NO_MOUNTS=1 to be left out: {error:?}"
            )
        }
    }
}
