//! The script that a path leads to.

use crate::files::is_hidden;
use crate::report::file_refusal::FileRefusal;
use sandarac_config::FastCgiConfig;

/// A script, and the rest of the path that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    /// Its path below the document root, decoded, with its leading slash: `SCRIPT_NAME`.
    pub(super) name: Vec<u8>,
    /// The rest of the path, decoded: `PATH_INFO`. Empty or with a leading slash.
    pub(super) path_info: Vec<u8>,
}

/// What a path below the document root leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    File,
    Directory,
    Nothing,
}

/// The script that `path` leads to: the only beginning of the path that has the name of a script and is a
/// file, else the index of a directory, else the front controller. `path` is in the form that routes match
/// on: decoded except `%2F` and `%25`, without dot segments.
///
/// Of the beginnings of a path at most one is a regular file, so this has one result, and an application that
/// looks for the script itself, such as PHP with `cgi.fix_pathinfo`, finds the same one. `/image.png/x.php`
/// leads to no script: nothing can be in a file.
///
/// A name that `look` refuses is not passed over: what it stands for is the same with every method.
pub(super) fn find(
    path: &[u8],
    rules: &FastCgiConfig,
    look: impl Fn(&[u8]) -> Result<Found, FileRefusal>,
) -> Result<Option<Script>, FileRefusal> {
    if path.first() != Some(&b'/') {
        return Ok(None);
    }
    if rules.local
        && let Some(script) = local(path, rules, &look)?
    {
        return Ok(Some(script));
    }
    let Some(name) = rules.front_controller.as_ref().map(String::as_bytes) else { return Ok(None) };
    // Otherwise the application would be asked for a script that is not there.
    if rules.local && look(name)? != Found::File {
        return Ok(None);
    }
    let rest = path.strip_prefix(name).filter(|rest| matches!(rest.first(), None | Some(b'/')));
    Ok(Some(Script { name: name.to_vec(), path_info: decoded(rest.unwrap_or_default()) }))
}

fn local(
    path: &[u8],
    rules: &FastCgiConfig,
    look: &impl Fn(&[u8]) -> Result<Found, FileRefusal>,
) -> Result<Option<Script>, FileRefusal> {
    let mut from = 1;
    loop {
        let end = path[from..].iter().position(|&byte| byte == b'/').map_or(path.len(), |at| from + at);
        let segment = &path[from..end];
        let is_script = |end: &String| segment.len() > end.len() && segment.ends_with(end.as_bytes());
        if rules.extensions.iter().any(is_script) {
            let Some(name) = file_name(&path[..end]) else { return Ok(None) };
            match look(&name)? {
                Found::File => return Ok(Some(Script { name, path_info: decoded(&path[end..]) })),
                Found::Directory => {}
                Found::Nothing => return Ok(None),
            }
        }
        if end == path.len() {
            break;
        }
        from = end + 1;
    }
    if path.last() != Some(&b'/') {
        return Ok(None);
    }
    let Some(mut name) = file_name(path) else { return Ok(None) };
    name.extend_from_slice(rules.index.as_bytes());
    let found = look(&name)?;
    Ok((found == Found::File).then(|| Script { name, path_info: Vec::new() }))
}

/// A path as the name of a file; `None` if a part of it holds a slash, which no name does, or is hidden.
fn file_name(path: &[u8]) -> Option<Vec<u8>> {
    let encoded = |letters: &[u8; 3]| path.windows(3).any(|window| window == letters);
    if encoded(b"%2F") {
        return None;
    }
    let name = if encoded(b"%25") { decoded(path) } else { path.to_vec() };
    (!is_hidden(&name)).then_some(name)
}

/// Decodes what is still encoded in a path that routes match on.
fn decoded(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.iter().position(|&byte| byte == b'%') {
        out.extend_from_slice(&rest[..at]);
        let (byte, len) = match &rest[at..] {
            [b'%', b'2', b'F', ..] => (b'/', 3),
            [b'%', b'2', b'5', ..] => (b'%', 3),
            _ => (b'%', 1),
        };
        out.push(byte);
        rest = &rest[at + len..];
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_message::target::route_path;

    /// A site: files, and directories that end in a slash.
    const SITE: &[&str] = &[
        "/index.php",
        "/load.php",
        "/image.png",
        "/blog/",
        "/blog/index.php",
        "/odd.php/",
        "/odd.php/x.php",
        "/100%.php",
        "/empty/",
        "/page.phtml",
        "/.dot.php",
        "/.h/",
        "/.h/x.php",
        "/.h/index.php",
        "/.well-known/x.php",
    ];

    fn rules(front_controller: Option<&str>) -> FastCgiConfig {
        FastCgiConfig {
            root: "/srv".into(),
            local: true,
            real_path: false,
            extensions: vec![".php".to_owned()],
            index: "index.php".to_owned(),
            front_controller: front_controller.map(str::to_owned),
            params: Vec::new(),
            keep_alive: false,
            max_idle: 1,
        }
    }

    fn look(name: &[u8]) -> Result<Found, FileRefusal> {
        let name = std::str::from_utf8(name).unwrap();
        Ok(if SITE.contains(&name) {
            Found::File
        } else if SITE.contains(&&*format!("{name}/")) {
            Found::Directory
        } else {
            Found::Nothing
        })
    }

    /// The name and the rest for a path as received.
    fn of(path: &str, rules: &FastCgiConfig) -> Option<(String, String)> {
        let script = find(&route_path(path.as_bytes()).unwrap(), rules, look).unwrap()?;
        Some((String::from_utf8(script.name).unwrap(), String::from_utf8(script.path_info).unwrap()))
    }

    #[track_caller]
    fn leads(path: &str, name: &str, rest: &str) {
        assert_eq!(of(path, &rules(None)), Some((name.to_owned(), rest.to_owned())), "{path}");
    }

    #[test]
    fn a_script_is_a_file_and_the_rest_is_path_info() {
        leads("/index.php", "/index.php", "");
        leads("/index.php/Main_Page", "/index.php", "/Main_Page");
        leads("/index.php/", "/index.php", "/");
        leads("//load.php", "/load.php", "");
        leads("/index.php/a/x.php", "/index.php", "/a/x.php");
        leads("/odd.php/x.php/more", "/odd.php/x.php", "/more");
        leads("/%69ndex.php/AC%2FDC%25", "/index.php", "/AC/DC%");
        leads("/100%25.php", "/100%.php", "");
        leads("/.well-known/x.php", "/.well-known/x.php", "");
        leads("/index.php/.h", "/index.php", "/.h");
    }

    #[test]
    fn a_directory_has_its_index() {
        leads("/", "/index.php", "");
        leads("/blog/", "/blog/index.php", "");
        assert_eq!(of("/empty/", &rules(None)), None);
        assert_eq!(of("/blog", &rules(None)), None);
    }

    #[test]
    fn nothing_runs_that_is_not_the_file_named() {
        for path in [
            "/image.png/x.php",
            "/image.png%2Fx.php",
            "/missing.php",
            "/missing.php/index.php",
            "/index.php5",
            "/.php",
            "/page.phtml",
            "/odd.php",
            "/load%2Fx.php",
            "/INDEX.PHP",
            "/index.php%20",
            "/blog%2Findex.php",
            "/.dot.php",
            "/%2edot.php/a",
            "/.h/x.php",
            "/.h/",
        ] {
            assert_eq!(of(path, &rules(None)), None, "{path}");
        }
        assert_eq!(find(b"*", &rules(Some("/index.php")), look), Ok(None));
    }

    #[test]
    fn the_front_controller_takes_what_is_no_script() {
        let rules = rules(Some("/index.php"));
        let front = Some(("/index.php".to_owned(), String::new()));
        for path in ["/about/us", "/image.png/x.php", "/missing.php", "/empty/"] {
            assert_eq!(of(path, &rules), front, "{path}");
        }
        assert_eq!(of("/load.php", &rules), Some(("/load.php".to_owned(), String::new())));
        let missing = FastCgiConfig { front_controller: Some("/missing.php".to_owned()), ..rules };
        assert_eq!(of("/about/us", &missing), None);
    }

    #[test]
    fn where_the_root_is_elsewhere_only_the_front_controller_runs() {
        let rules = FastCgiConfig { local: false, ..rules(Some("/index.php")) };
        let front = |rest: &str| Some(("/index.php".to_owned(), rest.to_owned()));
        assert_eq!(of("/load.php", &rules), front(""));
        assert_eq!(of("/index.php/a%2Fb", &rules), front("/a/b"));
        assert_eq!(of("/index.phpx", &rules), front(""));
        assert_eq!(of("/uploads/image.png/x.php", &rules), front(""));
    }
}
