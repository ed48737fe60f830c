//! The application behind a pool that speaks FastCGI.

use super::idle::IdleConns;
use super::request::CgiRequest;
use super::script::{Found, Script, find};
use super::stderr_rate::StderrRate;
use crate::Fault;
use crate::files::Programs;
use crate::request::requester::Requester;
use parking_lot::Mutex;
use rustix::fs::FileType;
use sandarac_config::FastCgiConfig;
use sandarac_message::target::{route_path, split_query};
use sandarac_policy::FileRule;
use std::ffi::OsStr;
use std::fs::{Metadata, canonicalize, metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// The application behind a pool: its files, and its idle connections.
pub(crate) struct Application {
    /// The name of the pool.
    pub(crate) pool: Box<str>,
    config: FastCgiConfig,
    /// The document root with its symbolic links resolved, and the directory that it was then.
    resolved: Mutex<Option<(DirectoryId, Arc<Path>)>>,
    configured_root: Arc<Path>,
    /// Connections kept between requests; `None` if none are.
    pub(crate) idle: Option<Arc<IdleConns>>,
    pub(crate) stderr_rate: StderrRate,
}

/// What tells a directory from others: its device, its number and the time of its last change, because
/// numbers are used again.
#[derive(Clone, Copy, PartialEq, Eq)]
struct DirectoryId(u64, u64, i64, i64);

impl DirectoryId {
    fn of(directory: &Metadata) -> DirectoryId {
        DirectoryId(directory.dev(), directory.ino(), directory.ctime(), directory.ctime_nsec())
    }
}

impl Application {
    pub(crate) fn new(pool: &str, config: &FastCgiConfig) -> Application {
        Application {
            pool: pool.into(),
            resolved: Mutex::default(),
            configured_root: config.root.as_path().into(),
            idle: config.keep_alive.then(|| Arc::new(IdleConns::new(config.max_idle))),
            stderr_rate: StderrRate::default(),
            config: config.clone(),
        }
    }

    /// The request for `target` as the application gets it. `rule` is that for the files of the route: what
    /// it refuses is not run either.
    ///
    /// # Errors
    /// [`Fault::NoScript`] if the path leads to no script; [`Fault::File`] if the rule refuses it.
    pub(crate) fn request<'a>(
        &'a self,
        target: &[u8],
        requester: &Requester<'a>,
        transaction: u64,
        rule: Option<&Arc<FileRule>>,
    ) -> Result<CgiRequest<'a>, Fault> {
        let root = self.root();
        let path = route_path(split_query(target).0).map_err(|_| Fault::NoScript)?;
        let rule = rule.filter(|_| self.config.local);
        let programs = rule.map(|rule| Programs::below(&self.config.root, rule)).transpose();
        let programs = programs.map_err(Fault::File)?;
        let look = |name: &[u8]| match &programs {
            Some(programs) => Ok(match programs.look(name)? {
                Some(FileType::RegularFile) => Found::File,
                Some(FileType::Directory) => Found::Directory,
                _ => Found::Nothing,
            }),
            None => Ok(look(&root, name)),
        };
        let script = find(&path, &self.config, look).map_err(Fault::File)?.ok_or(Fault::NoScript)?;
        Ok(CgiRequest {
            config: &self.config,
            root,
            script,
            script_name: None,
            requester: *requester,
            transaction,
        })
    }

    /// A request of the balancer's own for `target`, which need not be a script: php-fpm answers the path of
    /// its ping by itself, if that is `SCRIPT_NAME`. Other paths are run by the front controller, which reads
    /// the path from `REQUEST_URI`.
    pub(crate) fn own_request<'a>(&'a self, target: &[u8], requester: &Requester<'a>) -> CgiRequest<'a> {
        let path = split_query(target).0;
        let Ok(mut cgi) = self.request(target, requester, 0, None) else {
            return CgiRequest {
                config: &self.config,
                root: self.root(),
                script: Script { name: path.to_vec(), path_info: Vec::new() },
                script_name: None,
                requester: *requester,
                transaction: 0,
            };
        };
        let is_front =
            self.config.front_controller.as_ref().is_some_and(|front| front.as_bytes() == cgi.script.name);
        if is_front && path != b"/" && !path.starts_with(&cgi.script.name) {
            cgi.script_name = Some(path.to_vec());
        }
        cgi
    }

    /// The document root, resolved if that is configured and possible. A swapped link is followed at once;
    /// while the directory stays the same, its path is looked up once.
    fn root(&self) -> Arc<Path> {
        if !self.config.real_path {
            return self.configured_root.clone();
        }
        let Ok(directory) = metadata(&self.configured_root) else { return self.configured_root.clone() };
        let id = DirectoryId::of(&directory);
        let mut resolved = self.resolved.lock();
        match &*resolved {
            Some((known, path)) if *known == id => path.clone(),
            _ => match canonicalize(&self.configured_root) {
                Ok(path) => {
                    let path: Arc<Path> = path.into();
                    *resolved = Some((id, path.clone()));
                    path
                }
                Err(_) => self.configured_root.clone(),
            },
        }
    }
}

/// What `name`, which begins with a slash, leads to below `root`.
fn look(root: &Path, name: &[u8]) -> Found {
    let relative = Path::new(OsStr::from_bytes(&name[1..]));
    match metadata(root.join(relative)) {
        Ok(found) if found.is_file() => Found::File,
        Ok(found) if found.is_dir() => Found::Directory,
        _ => Found::Nothing,
    }
}
