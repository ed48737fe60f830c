//! Settings of routes that serve files, and their conversion to a [`FileRule`].

use std::time::Duration;

use sandarac_policy::{FileName, FileRule, PoolId, Symlinks};

use crate::file::RouteSettings;
use crate::pool::PoolName;
use crate::report::{At, Complaint, Report};
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
            return Err(complaint.help("what is not found is answered with 404 already"));
        }
        if !text.starts_with('/') && !text.starts_with(FileName::PLACE) {
            return Err(complaint.help(format!("\"/{text}\"?")));
        }
        if text.split('/').any(|part| part == "..") || text.contains('\0') {
            return Err(
                complaint.help("names cannot lead out of the directory; a symbolic link can, with `also`")
            );
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

/// The name of a file that stands for its directory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IndexName(Box<str>);

impl IndexName {
    /// The usual name.
    pub(crate) const USUAL: &str = "index.html";

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

/// The rule for files of a route with `files`, and the pool for requests without a file. `None` on an error.
pub(crate) fn file_rule(
    route: &RouteSettings,
    find: &impl Fn(&At<PoolName>, &mut Report) -> Option<PoolId>,
    report: &mut Report,
) -> Option<(FileRule, Option<PoolId>)> {
    let root = route.files.as_ref()?;
    let mut names = Vec::new();
    let mut pool = None;
    for (at, attempt) in route.r#try.iter().enumerate() {
        match &attempt.value {
            Attempt::File(name) => names.push(name.clone()),
            Attempt::Pool(_) if at + 1 < route.r#try.len() => {
                let message = "a pool is the last in `try`, because it answers every request";
                report.error(attempt.place.clone(), message);
            }
            Attempt::Pool(name) => {
                let name = At { value: name.clone(), place: attempt.place.clone() };
                pool = Some(find(&name, report)?);
            }
        }
    }
    if names.is_empty() && route.r#try.iter().any(|attempt| attempt.place.is_some()) {
        let place = route.r#try.first().and_then(|attempt| attempt.place.clone());
        let error = report.error(place, "`try` has no file");
        error.help = Some("try = [\"{path}\", \"pool:app\"], or only pool = \"app\"".to_owned());
    }
    if root.value.to_path() == std::path::Path::new("/") {
        report.warning(root.place.clone(), "`files` is the whole file system: every readable file is served");
    }
    if route.symlinks.value == Symlinks::Never && !route.also.is_empty() {
        let place = route.also.first().and_then(|also| also.place.clone());
        report.error(place, "`also` is for symbolic links, and symlinks = \"never\"");
    }
    let rule = FileRule {
        root: root.value.to_path(),
        also: route.also.iter().map(|also| also.value.to_path()).collect(),
        symlinks: route.symlinks.value,
        names,
        index: route.index.value.iter().map(|name| name.0.clone()).collect(),
        listing: route.listing.value,
        precompressed: route.precompressed.value,
        valid: route.files_valid.value,
    };
    Some((rule, pool))
}

/// Warns of settings for files on a route without `files`.
pub(crate) fn warn_of_settings_without_files(route: &RouteSettings, report: &mut Report) {
    let written = [
        ("try", route.r#try.first().and_then(|attempt| attempt.place.clone())),
        ("index", route.index.place.clone()),
        ("listing", route.listing.place.clone()),
        ("symlinks", route.symlinks.place.clone()),
        ("also", route.also.first().and_then(|also| also.place.clone())),
        ("precompressed", route.precompressed.place.clone()),
        ("files_valid", route.files_valid.place.clone()),
    ];
    for (name, place) in written {
        if place.is_some() {
            report.warning(place, format!("`{name}` has no effect on a route without `files`"));
        }
    }
}
