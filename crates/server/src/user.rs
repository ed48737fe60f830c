//! The user whose rights the process keeps.
//!
//! A process that root starts takes the rights of `user` before it opens anything but its configuration, not
//! after it has listened: then whatever it may not read or write shows at the start, and not at the first
//! reload or upgrade, which have no more rights than this. Of root's it keeps CAP_NET_BIND_SERVICE, for ports
//! below 1024 (capabilities(7)).

use std::ffi::CString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use nix::unistd::{Gid, Uid};
use rustix::fs::Access;
use rustix::process::DumpableBehavior;
use rustix::thread::{self, CapabilitySet, CapabilitySets};
use sandarac_config::{Config, User};

use crate::admin::Endpoint;
use crate::failure::Failure;
use crate::stderr::print_line;

/// The warning for root if no user is set.
const AS_ROOT: &str = "warning: started by root without a user, this runs as root, and so does whoever breaks into it: set \
                       user = \"www-data\" (--user), or let the service manager start it as another user; user = \"root\" if \
                       that is meant";

/// Takes the rights of the configured user for a process that serves, and says so. MUST be called while there
/// is one thread: capabilities are those of a thread.
pub(crate) fn become_user(config: &Config, file: Option<&Path>) -> Result<(), Failure> {
    let Some(account) = needed(config)? else { return Ok(()) };
    if Endpoint::of(config.admin.listen.as_ref()) == Endpoint::of_root() {
        let directory = Endpoint::directory_of_root();
        account.give_directory(directory).map_err(|error| {
            Failure::Failed(format!("cannot give {} to user {}: {error}", directory.display(), account.name))
        })?;
    }
    account.assume(file)?;
    print_line(format_args!("sandarac: runs as user {}", account.name));
    Ok(())
}

/// The same for a command that looks at what such a process could do.
pub(crate) fn look_as_user(config: &Config, file: &Path) -> Result<(), Failure> {
    match needed(config)? {
        Some(account) => account.assume(Some(file)),
        None => Ok(()),
    }
}

/// The warning of a process that is root's and stays so, unless that is meant.
pub(crate) fn warning(config: &Config) -> Option<&'static str> {
    (config.user.is_none() && Uid::effective().is_root()).then_some(AS_ROOT)
}

/// The account that this process has to become, if it is not that already.
fn needed(config: &Config) -> Result<Option<Account>, Failure> {
    let Some(user) = &config.user else { return Ok(None) };
    let account = Account::of(user)?;
    let own = Uid::effective();
    if account.user == own {
        return Ok(None);
    }
    if !own.is_root() {
        return Err(Failure::Usage(format!(
            "`user` is {}, and only root can become another user; this process was started by user {own}",
            account.name
        )));
    }
    Ok(Some(account))
}

/// A user with a group.
struct Account {
    name: String,
    user: Uid,
    group: Gid,
}

impl Account {
    fn of(wanted: &User) -> Result<Account, Failure> {
        let text = wanted.as_str();
        let number = text.parse().ok().filter(|&number| number != u32::MAX).map(Uid::from_raw);
        let known = match number {
            Some(number) => nix::unistd::User::from_uid(number),
            None => nix::unistd::User::from_name(text),
        };
        let known =
            known.map_err(|error| Failure::Failed(format!("cannot look for user {text}: {error}")))?;
        match (known, number) {
            (Some(known), _) => Ok(Account { name: known.name, user: known.uid, group: known.gid }),
            // As in a container, where nobody has a name.
            (None, Some(user)) => {
                Ok(Account { name: text.to_owned(), user, group: Gid::from_raw(user.as_raw()) })
            }
            (None, None) => Err(Failure::Usage(format!("there is no user called {text:?} (`user`)"))),
        }
    }

    /// Makes the directory if it is missing, and gives it to this user with the socket in it. In a directory
    /// that is not root's, nothing is given: whoever owns it could have put a link there.
    fn give_directory(&self, directory: &Path) -> io::Result<()> {
        match DirBuilder::new().mode(0o755).create(directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        if !std::fs::symlink_metadata(directory).is_ok_and(|found| found.is_dir() && found.uid() == 0) {
            return Ok(());
        }
        for path in [&directory.join(Endpoint::SOCKET), directory] {
            match std::os::unix::fs::lchown(path, Some(self.user.as_raw()), Some(self.group.as_raw())) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                given => given?,
            }
        }
        Ok(())
    }

    /// Becomes this user, who has to be able to read `file`, the configuration, again.
    fn assume(&self, file: Option<&Path>) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::Failed(format!("cannot become user {}: {error}", self.name));
        self.take_rights().map_err(failed)?;
        let Some(file) = file else { return Ok(()) };
        rustix::fs::access(file, Access::READ_OK).map_err(|error| {
            let (file, error) = (file.display(), io::Error::from(error));
            Failure::Usage(format!(
                "user {} cannot read {file}, which each reload has to: {error}\n  help: chgrp {} {file}; chmod 640 {file}",
                self.name, self.group
            ))
        })
    }

    fn take_rights(&self) -> io::Result<()> {
        let name = CString::new(self.name.as_str())?;
        let low_ports = thread::capabilities(None)?.permitted & CapabilitySet::NET_BIND_SERVICE;
        thread::set_keep_capabilities(true)?;
        nix::unistd::initgroups(&name, self.group)?;
        nix::unistd::setresgid(self.group, self.group, self.group)?;
        nix::unistd::setresuid(self.user, self.user, self.user)?;
        thread::set_capabilities(
            None,
            CapabilitySets { effective: low_ports, permitted: low_ports, inheritable: low_ports },
        )?;
        thread::set_keep_capabilities(false)?;
        if !low_ports.is_empty() {
            // A program that this one starts, to take over from it, has the right, too.
            thread::configure_capability_in_ambient_set(low_ports, true)?;
        }
        // The kernel hides what a process read as another user, such as its own /proc/self/fd. This one read
        // its configuration.
        rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        Ok(())
    }
}
