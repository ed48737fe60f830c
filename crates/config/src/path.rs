//! Paths of files and directories, as settings.

use std::path::PathBuf;

use crate::report::Complaint;
use crate::setting::Kind;
use crate::value::Text;

/// An absolute path: a watched path must not depend on the directory in which the process was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AbsolutePath(Box<str>);

impl AbsolutePath {
    /// A path that MUST be absolute, for defaults.
    pub(crate) fn of(path: &'static str) -> AbsolutePath {
        debug_assert!(path.starts_with('/'));
        AbsolutePath(path.into())
    }

    pub(crate) fn to_path(&self) -> PathBuf {
        PathBuf::from(&*self.0)
    }
}

impl Text for AbsolutePath {
    fn form() -> Kind {
        Kind::Text { name: "path", form: "a path from the root", examples: &["/run/app"] }
    }

    fn from_text(text: &str) -> Result<AbsolutePath, Complaint> {
        match text.starts_with('/') && text.len() < 4096 && !text.contains('\0') {
            true => Ok(AbsolutePath(text.into())),
            false => Err(Complaint::new(format!("{text:?} is not {}", AbsolutePath::form().words()))),
        }
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}
