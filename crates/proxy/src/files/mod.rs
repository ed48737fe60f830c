//! Files: requests that are answered from a directory tree.
//!
//! ```text
//! path ── name ── resolve ─┬ file ───── deliver (whole, ranges, 304)
//!          (cache, tree)   ├ redirect to the path with a slash
//!                          ├ listing
//!                          └ nothing ── the pool of the route, or a refusal
//! ```
//!
//! A core answers in place from what it knows, and from what the system has in memory. Only what may wait for
//! a disk becomes an exchange, whose work is done by another thread.

mod cache;
mod deliver;
mod listing;
mod name;
mod named;
mod programs;
mod representation;
mod resolve;
mod tree;
mod walk;

use crate::report::file_refusal::FileRefusal;
pub(crate) use cache::FileCache;
pub(crate) use programs::Programs;

use crate::request::received::Received;
use crate::respond::Synthetic;
use crate::site::{LocalSite, Site};
use bytes::Bytes;
use cache::{KeyOf, Looked};
use deliver::choose;
pub(crate) use deliver::{ChosenFile, FileBody};
pub(crate) use name::is_hidden;
pub(crate) use named::{FileAt, NamedFile, NotSent};
use representation::{EditsOf, Means, Representation};
use resolve::{Asked, Resolution, resolve};
use sandarac_message::target::route_path;
use sandarac_message::{Fields, FieldsBuf, Name, StoredHead};
use sandarac_net::{Held, Holder, Moment, Places, off_core};
use sandarac_policy::{Edits, FileName, FileRule, RequestParts, RouteId};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tree::{Absent, On, Tree, refused};

/// How long a request waits for a disk.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A request for a file.
pub(crate) struct FileRequest<'a> {
    site: &'a LocalSite,
    rule: &'a Arc<FileRule>,
    received: &'a Received<'a>,
    wanted: Wanted,
    path: Cow<'a, [u8]>,
    /// What its response depends on.
    key: Cow<'a, [u8]>,
}

/// Which names are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// Those that the route tries for the path of the request.
    File,
    /// That of the page for requests without a file.
    Page,
}

impl Wanted {
    fn names(self, rule: &FileRule) -> &[FileName] {
        match self {
            Wanted::File => &rule.names,
            Wanted::Page => rule.not_found.as_slice(),
        }
    }

    /// The edits of the response, of which the page gets none: a lifetime is meant for files that are there.
    fn edits(self, route: &Edits) -> Cow<'_, Edits> {
        match self {
            Wanted::File => Cow::Borrowed(route),
            Wanted::Page => Cow::Owned(Edits::default()),
        }
    }
}

/// What answers a request.
pub(crate) enum Found {
    /// A file.
    File(FileFound),
    /// A redirect.
    Redirect(Synthetic),
    /// A list of a directory, which has to be made.
    Listing(ListingFound),
    /// There is no file.
    Nothing(FileRefusal),
}

/// A file that answers requests for one path, in all its codings.
pub(crate) struct FileFound(Arc<Resolution>);

/// A directory that is to be listed.
pub(crate) struct ListingFound {
    tree: Arc<Tree>,
    name: Vec<u8>,
    /// The path as routes see it.
    shown: Vec<u8>,
}

impl<'a> FileRequest<'a> {
    /// A request that was received by a route with this rule.
    pub(crate) fn of(
        site: &'a LocalSite,
        rule: &'a Arc<FileRule>,
        received: &'a Received<'a>,
    ) -> FileRequest<'a> {
        // It was read before, to find the route.
        let path = route_path(received.target.path()).unwrap_or_default();
        let key = match received.route.response.all.are_constant() {
            true => path.clone(),
            false => Cow::Owned([&received.host, &b" "[..], received.target.path_and_query].concat()),
        };
        FileRequest { site, rule, received, wanted: Wanted::File, path, key }
    }

    /// The same for the page that such a route sends where there is no file; `None` if it has none.
    pub(crate) fn of_page(
        site: &'a LocalSite,
        rule: &'a Arc<FileRule>,
        received: &'a Received<'a>,
    ) -> Option<FileRequest<'a>> {
        // No path is like this key.
        let (path, key) = (Cow::Borrowed(&b"/"[..]), Cow::Borrowed(&b"\n"[..]));
        rule.not_found.as_ref()?;
        Some(FileRequest { site, rule, received, wanted: Wanted::Page, path, key })
    }

    fn key(&self) -> KeyOf<'_> {
        KeyOf { route: self.received.route_id, text: &self.key }
    }

    /// What answers it, if that can be told without waiting.
    pub(crate) fn known(&self) -> Option<Found> {
        match self.look() {
            Ok(found) => Some(found),
            Err(Absent::Waits) => None,
            Err(Absent::Refused(refusal)) => Some(Found::Nothing(refusal)),
        }
    }

    fn look(&self) -> Result<Found, Absent> {
        let files = self.site.files();
        let now = Moment::now();
        let mut looked = files.look(self.key(), now);
        if let Looked::Due(tree) = &looked {
            let tree = Tree::open(self.rule, tree.as_ref(), On::Core)?;
            files.looked_at(self.received.route_id, tree, now);
            looked = files.look_again(self.key());
        }
        match looked {
            Looked::Valid(resolution) => Ok(self.found(resolution)),
            Looked::Old(before, tree, turn) if tree.is_local => {
                let edits = self.wanted.edits(&self.received.route.response.all);
                let request = RequestParts {
                    host: &self.received.host,
                    target: self.received.target.path_and_query,
                    ..RequestParts::default()
                };
                let edits = EditsOf { edits: &edits, request };
                let means = Means { tree: &tree, edits, places: files.places(), on: On::Core };
                let names = self.wanted.names(self.rule);
                let asked = Asked { means, names, path: &self.path, known: before.as_deref() };
                // Without a descriptor, the exchange closes some and tries again.
                let resolution = resolve(asked).map_err(|absent| match absent {
                    Absent::Refused(FileRefusal::NoDescriptors) => Absent::Waits,
                    absent => absent,
                })?;
                let resolution = Arc::new(resolution);
                files.keep(self.key(), resolution.clone(), turn);
                Ok(self.found(resolution))
            }
            Looked::Old(..) | Looked::Due(_) => Err(Absent::Waits),
        }
    }

    /// What answers it. Other threads do what may wait.
    pub(crate) async fn find(&self) -> Found {
        match self.find_or_refuse().await {
            Ok(found) => found,
            Err(refusal) => Found::Nothing(refusal),
        }
    }

    async fn find_or_refuse(&self) -> Result<Found, FileRefusal> {
        let files = self.site.files();
        let mut may_retry = true;
        loop {
            match self.look() {
                Err(Absent::Waits) => {}
                Err(Absent::Refused(refusal)) => return Err(refusal),
                Ok(found) => return Ok(found),
            }
            let opening = match files.open(self.key()) {
                Ok(opening) => opening,
                Err(waiters) => {
                    waiters.notified().await;
                    continue;
                }
            };
            let began = Moment::now();
            let (tree, is_due, before) = match files.look(self.key(), began) {
                Looked::Old(before, tree, _) => (Some(tree), false, before),
                Looked::Due(tree) => (tree, true, None),
                Looked::Valid(_) => continue,
            };
            let work = Work {
                site: self.site.shared(),
                route: self.received.route_id,
                rule: self.rule.clone(),
                wanted: self.wanted,
                tree,
                is_due,
                before,
                places: files.places().clone(),
                path: self.path.to_vec(),
                host: self.received.host.to_vec(),
                target: self.received.target.path_and_query.to_vec(),
            };
            let done = off_core(move || work.run()).await.ok_or(FileRefusal::Unreadable)?;
            drop(opening);
            let (tree, resolution) = match done {
                // With those that were closed, it may go now.
                Err(FileRefusal::NoDescriptors) if std::mem::take(&mut may_retry) => {
                    files.close_half();
                    continue;
                }
                done => done?,
            };
            if is_due {
                files.looked_at(self.received.route_id, tree.clone(), began);
            }
            let resolution = Arc::new(resolution);
            if let Looked::Old(_, current, turn) = files.look_again(self.key())
                && Arc::ptr_eq(&current, &tree)
            {
                files.keep(self.key(), resolution.clone(), turn);
            }
            return Ok(self.found(resolution));
        }
    }

    fn found(&self, resolution: Arc<Resolution>) -> Found {
        match &*resolution {
            Resolution::File(_) => Found::File(FileFound(resolution)),
            Resolution::Listing(tree, name) => {
                let (tree, name, shown) = (tree.clone(), name.clone(), self.path.to_vec());
                Found::Listing(ListingFound { tree, name, shown })
            }
            Resolution::WithSlash => Found::Redirect(self.redirect()),
            Resolution::Nothing(refusal) => Found::Nothing(*refusal),
        }
    }

    /// To the same path with a slash, so that references in the page are below it.
    fn redirect(&self) -> Synthetic {
        // It was read before, to find the file.
        let name = name::file_path(&self.path).unwrap_or_default();
        let to = name::with_slash(&name, self.received.target.query());
        let mut fields = FieldsBuf::new();
        let _ = fields.add(Name::Location, &to);
        Synthetic { status: 301, fields, body: Bytes::new() }
    }
}

impl FileFound {
    /// Its length, without a coding.
    pub(crate) fn len(&self) -> u64 {
        self.files().first().map_or(0, |file| file.len())
    }

    fn files(&self) -> &[Arc<Representation>] {
        match &*self.0 {
            Resolution::File(files) => files,
            _ => &[],
        }
    }

    /// The same file without a coding, under another head.
    pub(crate) fn under(&self, head: StoredHead) -> FileFound {
        let plain = self.files().first().map(|file| Arc::new(file.under(head)));
        FileFound(Arc::new(Resolution::File(plain.into_iter().collect())))
    }

    /// The one that a request with these fields gets.
    pub(crate) fn choose(&self, request: Fields<'_>) -> ChosenFile<'_> {
        choose(self.files(), request)
    }
}

impl ListingFound {
    /// Makes the page for `holder`, on another thread.
    pub(crate) async fn page(self, holder: &Holder) -> Result<Synthetic, FileRefusal> {
        let ListingFound { tree, name, shown } = self;
        let mut held = holder.nothing(Held::Text);
        // The thread goes on when the client has left.
        let listed = off_core(move || (listing::list(&tree, &name, &shown, &mut held), held)).await;
        let (page, _held) = listed.ok_or(FileRefusal::Unreadable)?;
        let page = page.map_err(refused)?;
        let body = holder.keep(Held::Text, page.into_bytes().into_boxed_slice());
        let mut fields = FieldsBuf::new();
        for (name, value) in [
            (&b"Content-Type"[..], &b"text/html; charset=utf-8"[..]),
            (b"Cache-Control", b"no-cache"),
            (b"Content-Security-Policy", b"default-src 'none'; style-src 'unsafe-inline'"),
        ] {
            let _ = fields.push(name, value);
        }
        Ok(Synthetic { status: 200, fields, body })
    }
}

/// The work of a thread: to look at a tree, if that is due, and at a file in it.
struct Work {
    site: Arc<Site>,
    route: RouteId,
    rule: Arc<FileRule>,
    wanted: Wanted,
    tree: Option<Arc<Tree>>,
    is_due: bool,
    before: Option<Arc<Resolution>>,
    places: Arc<Places>,
    path: Vec<u8>,
    host: Vec<u8>,
    target: Vec<u8>,
}

impl Work {
    fn run(self) -> Result<(Arc<Tree>, Resolution), FileRefusal> {
        let tree = match self.tree {
            Some(tree) if !self.is_due => tree,
            before => Tree::open(&self.rule, before.as_ref(), On::Thread).map_err(refused)?,
        };
        let request = RequestParts { host: &self.host, target: &self.target, ..RequestParts::default() };
        let edits = self.wanted.edits(&self.site.config.routes[self.route].response.all);
        let edits = EditsOf { edits: &edits, request };
        let names = self.wanted.names(&self.rule);
        let known = self.before.as_deref();
        let means = Means { tree: &tree, edits, places: &self.places, on: On::Thread };
        let asked = Asked { means, names, path: &self.path, known };
        let resolution = resolve(asked).map_err(refused)?;
        Ok((tree, resolution))
    }
}
