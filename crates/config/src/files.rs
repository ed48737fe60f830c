//! Conversion of the settings of a route that serves files to a [`FileRule`].

use sandarac_policy::{FileRule, PoolId, Symlinks};

use crate::file::RouteSettings;
use crate::file_names::Attempt;
use crate::pool::PoolName;
use crate::report::{At, Report};

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
    if let Some(page) = &route.not_found {
        let why = match (&pool, route.internal.value) {
            (Some(_), _) => Some("the pool in `try` answers requests without a file"),
            (None, true) => Some("no client gets an answer from an internal route"),
            (None, false) => None,
        };
        if let Some(why) = why {
            report.warning(page.place.clone(), format!("`not_found` has no effect: {why}"));
        }
    }
    let rule = FileRule {
        root: root.value.to_path(),
        also: route.also.iter().map(|also| also.value.to_path()).collect(),
        symlinks: route.symlinks.value,
        names,
        not_found: route.not_found.as_ref().map(|page| page.value.0.clone()),
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
        ("not_found", route.not_found.as_ref().and_then(|page| page.place.clone())),
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
