//! Types of the settings of routes that serve files.

use std::time::Duration;

use sandarac_policy::{FileName, Symlinks};

use crate::pool::PoolName;
use crate::report::Complaint;
use crate::setting::Kind;
use crate::value::{Text, choice};

choice!(Symlinks { "inside" => Symlinks::Inside, "never" => Symlinks::Never });

/// A member of `try`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Attempt {
    /// A file.
    File(FileName),
    /// A pool, which ends the list.
    Pool(PoolName),
}

/// The help for names with dots.
const OUTSIDE: &str = "names cannot lead out of the directory; a symbolic link can, with `also`";

/// Begins the name of a pool in `try`.
const POOL: &str = "pool:";

impl Text for Attempt {
    fn form() -> Kind {
        Kind::Text {
            name: "name of a file, or a pool",
            form: "a path below the directory, with {path} for that of the request, or pool:NAME",
            examples: &["{path}", "{path}/index.html", "/404.html", "pool:app"],
        }
    }

    fn from_text(text: &str) -> Result<Attempt, Complaint> {
        if let Some(name) = text.strip_prefix(POOL) {
            return <PoolName as crate::value::Key>::from_key(name).map(Attempt::Pool);
        }
        let complaint = Complaint::new(format!("{text:?} is not {}", Attempt::form().words()));
        let named = ["$uri", "{uri}", "{http.request.uri.path}"].iter().find(|other| text.contains(**other));
        if let Some(other) = named {
            return Err(complaint.help(format!("{:?}?", text.replace(other, FileName::PLACE))));
        }
        if let Some(name) = text.strip_prefix('@') {
            return Err(complaint.help(format!("a pool is written \"{POOL}{name}\"")));
        }
        if text.starts_with('=') {
            return Err(complaint.help(
                "what is not found is answered with 404 already, and `not_found` names a page for it",
            ));
        }
        if !text.starts_with('/') && !text.starts_with(FileName::PLACE) {
            return Err(complaint.help(format!("\"/{text}\"?")));
        }
        if text.split('/').any(|part| part == "..") || text.contains('\0') {
            return Err(complaint.help(OUTSIDE));
        }
        FileName::of(text).map(Attempt::File).ok_or_else(|| complaint.help("{path} can stand in it once"))
    }

    fn text(&self) -> String {
        match self {
            Attempt::File(name) => name.to_string(),
            Attempt::Pool(name) => format!("{POOL}{}", name.0),
        }
    }
}

/// The page for requests without a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PageName(pub(crate) FileName);

impl Text for PageName {
    fn form() -> Kind {
        Kind::Text {
            name: "name of a file",
            form: "a path below the directory",
            examples: &["/404.html", "/errors/404.html"],
        }
    }

    fn from_text(text: &str) -> Result<PageName, Complaint> {
        let complaint = Complaint::new(format!("{text:?} is not {}", PageName::form().words()));
        if text.contains(FileName::PLACE) {
            return Err(complaint
                .help("it is one page for all requests; names that depend on the path belong in `try`"));
        }
        if let Some(path) = text.strip_prefix("404 ") {
            return Err(complaint.help(format!("{path:?}?")));
        }
        if !text.starts_with('/') {
            return Err(complaint.help(format!("\"/{text}\"?")));
        }
        if text.split('/').any(|part| part == "..") || text.contains('\0') {
            return Err(complaint.help(OUTSIDE));
        }
        FileName::of(text).map(PageName).ok_or(complaint)
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// The name of a file that stands for its directory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IndexName(pub(crate) Box<str>);

impl IndexName {
    /// The usual name.
    pub(crate) const USUAL: &str = "index.html";

    /// A default.
    pub(crate) fn literal(name: &'static str) -> IndexName {
        IndexName(name.into())
    }
}

impl Text for IndexName {
    fn form() -> Kind {
        Kind::Text {
            name: "name of a file",
            form: "the name of a file, without slashes",
            examples: &[IndexName::USUAL],
        }
    }

    fn from_text(text: &str) -> Result<IndexName, Complaint> {
        let is_name = !text.is_empty()
            && text.len() < 256
            && !text.contains(['/', '\0'])
            && text != "."
            && text != "..";
        let words = || text.split(' ').filter(|word| !word.is_empty());
        if words().count() > 1 && words().all(|word| word.contains('.')) {
            let names: Vec<_> = words().map(|word| format!("{word:?}")).collect();
            return Err(Complaint::new(format!("{text:?} is several names of files"))
                .help(format!("write them as an array: [{}]", names.join(", "))));
        }
        match is_name {
            true => Ok(IndexName(text.into())),
            false => Err(Complaint::new(format!("{text:?} is not {}", IndexName::form().words()))),
        }
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// The default of `files_valid`: a page that was replaced is seen in a second, and a busy file is looked up once a second.
pub(crate) const VALID: Duration = Duration::from_secs(1);
