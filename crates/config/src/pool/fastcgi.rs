//! FastCGI to the backends of a pool.

use std::path::PathBuf;

use crate::definition::settings;
use crate::limited::Bounded;
use crate::path::AbsolutePath;
use crate::report::{At, Complaint, Report};
use crate::setting::Kind;
use crate::value::{Key, Map, Text};

settings! {
    /// FastCGI to the backends.
    pub(crate) struct FastCgiSettings {
        /// The document root, as the application sees it: `SCRIPT_FILENAME` is this and the path of the script.
        root: Option<At<AbsolutePath>> = None, required "\"/srv/wiki\"";
        /// Whether `root` is also on this machine. If so, a script runs only if it is a file there. If not, every request
        /// goes to `front_controller`, which must be set.
        local: bool = true;
        /// Whether symbolic links in `root` are resolved for each request, so that a swapped release takes effect at once
        /// under opcache.
        real_path: bool = true;
        /// The ends of the names of scripts. The first file of such a name in the path of a request is the script, and the
        /// rest of the path is `PATH_INFO`.
        extensions: Vec<Extension> = vec![Extension(".php".to_owned())];
        /// The script of a path that ends in a slash.
        index: FileName = FileName("index.php".to_owned());
        /// The script for paths that lead to no script; its path below `root`.
        front_controller: Option<ScriptPath> = None, unset "such requests are answered with 404" "\"/index.php\"";
        /// More parameters, or other values for the usual ones. An empty value removes one.
        params: Map<ParamName, ParamValue> = Map::default();
        /// Whether connections are kept between requests. A kept connection occupies a process of php-fpm, also while it is
        /// idle.
        keep_alive: bool = false;
        /// The most idle connections to a backend, over all cores.
        // One less than the processes that php-fpm of Debian starts at most, so that one is always free for others.
        max_idle: Bounded<1, 10_000> = Bounded::of::<4>();
    }
}

/// FastCGI to the backends of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastCgiConfig {
    /// The document root, as the application sees it.
    pub root: PathBuf,
    /// Whether it is on this machine.
    pub local: bool,
    /// Whether symbolic links in it are resolved; only if it is local.
    pub real_path: bool,
    /// The ends of the names of scripts, each with its dot.
    pub extensions: Vec<String>,
    /// The name of the script of a directory.
    pub index: String,
    /// The path of the script for paths that lead to none, with its leading slash.
    pub front_controller: Option<String>,
    /// Parameters that are added or replaced; an empty value removes one.
    pub params: Vec<(String, String)>,
    /// Whether connections are kept.
    pub keep_alive: bool,
    /// The most idle connections to a backend.
    pub max_idle: usize,
}

impl FastCgiSettings {
    /// Those of a site whose front controller has its usual name.
    pub(crate) fn of_site(root: AbsolutePath) -> FastCgiSettings {
        let front_controller = Some(ScriptPath("/index.php".to_owned()));
        FastCgiSettings { root: Some(At::nowhere(root)), front_controller, ..FastCgiSettings::default() }
    }

    /// The document root, if it is set.
    pub(crate) fn root(&self) -> Option<&At<AbsolutePath>> {
        self.root.as_ref()
    }

    pub(crate) fn make(settings: &At<FastCgiSettings>, report: &mut Report) -> FastCgiConfig {
        let At { value: settings, place } = settings;
        if settings.root.is_none() {
            report.missing(place.clone(), "`fastcgi` needs a `root`", "root = \"/srv/wiki\"");
        }
        if !settings.local && settings.front_controller.is_none() {
            let message = "with `local = false` it is not known which files are scripts";
            report.error(place.clone(), message).help = Some("front_controller = \"/index.php\"".to_owned());
        }
        FastCgiConfig {
            root: settings.root.as_ref().map(|root| root.value.to_path()).unwrap_or_default(),
            local: settings.local,
            real_path: settings.real_path && settings.local,
            extensions: settings.extensions.iter().map(|end| end.0.clone()).collect(),
            index: settings.index.0.clone(),
            front_controller: settings.front_controller.as_ref().map(|script| script.0.clone()),
            params: settings
                .params
                .0
                .iter()
                .map(|(name, value)| (name.value.0.clone(), value.0.clone()))
                .collect(),
            keep_alive: settings.keep_alive,
            max_idle: settings.max_idle.get() as usize,
        }
    }
}

/// The end of a file's name, with its dot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Extension(String);

impl Text for Extension {
    fn form() -> Kind {
        Kind::Text { name: "extension", form: "the end of a file's name, with its dot", examples: &[".php"] }
    }

    fn from_text(text: &str) -> Result<Extension, Complaint> {
        let letters = text.strip_prefix('.').unwrap_or(text);
        let valid =
            !letters.is_empty() && letters.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
        match text.starts_with('.') && valid {
            true => Ok(Extension(text.to_owned())),
            false => {
                let complaint = Complaint::new(format!("{text:?} is not {}", Extension::form().words()));
                Err(if valid { complaint.help(format!("\".{letters}\"?")) } else { complaint })
            }
        }
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}

/// The name of a file, without a path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FileName(String);

impl Text for FileName {
    fn form() -> Kind {
        Kind::Text { name: "file name", form: "the name of a file", examples: &["index.php"] }
    }

    fn from_text(text: &str) -> Result<FileName, Complaint> {
        match is_segment(text) {
            true => Ok(FileName(text.to_owned())),
            false => Err(Complaint::new(format!("{text:?} is not {}", FileName::form().words()))),
        }
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}

/// The path of a script below the document root, with its leading slash.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScriptPath(String);

impl Text for ScriptPath {
    fn form() -> Kind {
        Kind::Text { name: "path", form: "the path of a script below the root", examples: &["/index.php"] }
    }

    fn from_text(text: &str) -> Result<ScriptPath, Complaint> {
        let complaint = || Complaint::new(format!("{text:?} is not {}", ScriptPath::form().words()));
        let Some(path) = text.strip_prefix('/') else {
            return Err(complaint().help(format!("it begins with a slash: \"/{text}\"")));
        };
        match path.split('/').all(is_segment) {
            true => Ok(ScriptPath(text.to_owned())),
            false => Err(complaint()),
        }
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}

/// Whether `text` names a file or a directory in another.
fn is_segment(text: &str) -> bool {
    !matches!(text, "" | "." | "..")
        && text.len() < 256
        && !text.contains(['/', '\0'])
        && !text.contains(char::is_control)
}

/// The name of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ParamName(String);

impl Key for ParamName {
    const WHAT: &'static str = "names";

    fn from_key(key: &str) -> Result<ParamName, Complaint> {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        match (1..=256).contains(&key.len()) && key.bytes().all(letter) {
            // A client could choose the proxy of the application's own requests (httpoxy).
            true if key == "HTTP_PROXY" => Err(Complaint::new("`HTTP_PROXY` is never sent")),
            true => Ok(ParamName(key.to_owned())),
            false => Err(Complaint::new(format!("{key:?} is not a name of letters, digits and `_`"))),
        }
    }
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ParamValue(String);

impl Text for ParamValue {
    fn form() -> Kind {
        Kind::Text { name: "value", form: "the value of a parameter", examples: &["production"] }
    }

    fn from_text(text: &str) -> Result<ParamValue, Complaint> {
        match text.len() <= 8192 && !text.contains('\0') {
            true => Ok(ParamValue(text.to_owned())),
            false => Err(Complaint::new("the value of a parameter has at most 8 KiB, and no NUL")),
        }
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}
