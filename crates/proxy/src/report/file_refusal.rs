//! Why a request gets no file.

use sandarac_message::status_fields::ProxyError;

/// Why a request gets no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRefusal {
    /// There is none of this name.
    NotFound,
    /// The name begins with a dot.
    Hidden,
    /// It is a program of PHP, whose source is never sent.
    Script,
    /// It is a directory without an index file, and directories are not listed.
    NoIndex,
    /// The system does not let this process read it.
    Denied,
    /// A symbolic link that is not followed.
    Link,
    /// Neither a regular file nor a directory.
    NotRegular,
    /// Only GET and HEAD have a meaning for files.
    Method,
    /// The disk did not answer in time.
    Late,
    /// Opening or reading it failed.
    Unreadable,
    /// This process, or the system, has no descriptor left.
    NoDescriptors,
    /// Connections hold too much memory for a list of files.
    Memory,
    /// The directory tree is not there.
    NoTree,
}

impl FileRefusal {
    /// All of them.
    pub const ALL: [FileRefusal; 13] = [
        FileRefusal::NotFound,
        FileRefusal::Hidden,
        FileRefusal::Script,
        FileRefusal::NoIndex,
        FileRefusal::Denied,
        FileRefusal::Link,
        FileRefusal::NotRegular,
        FileRefusal::Method,
        FileRefusal::Late,
        FileRefusal::Unreadable,
        FileRefusal::NoDescriptors,
        FileRefusal::Memory,
        FileRefusal::NoTree,
    ];

    /// The name in logs and counters.
    pub const fn name(self) -> &'static str {
        match self {
            FileRefusal::NotFound => "file-not-found",
            FileRefusal::Hidden => "file-hidden",
            FileRefusal::Script => "file-script",
            FileRefusal::NoIndex => "file-no-index",
            FileRefusal::Denied => "file-denied",
            FileRefusal::Link => "file-link",
            FileRefusal::NotRegular => "file-not-regular",
            FileRefusal::Method => "file-method",
            FileRefusal::Late => "file-late",
            FileRefusal::Unreadable => "file-unreadable",
            FileRefusal::NoDescriptors => "file-no-descriptors",
            FileRefusal::Memory => "file-memory",
            FileRefusal::NoTree => "files-missing",
        }
    }

    /// The status of the response. A hidden file looks like one that is not there.
    pub const fn status(self) -> u16 {
        match self {
            FileRefusal::NotFound | FileRefusal::Hidden => 404,
            FileRefusal::Script
            | FileRefusal::NoIndex
            | FileRefusal::Denied
            | FileRefusal::Link
            | FileRefusal::NotRegular => 403,
            FileRefusal::Method => 405,
            FileRefusal::Unreadable => 500,
            FileRefusal::NoDescriptors | FileRefusal::Memory | FileRefusal::NoTree => 503,
            FileRefusal::Late => 504,
        }
    }

    /// The error type for Proxy-Status (RFC 9209 §2.3).
    pub(crate) const fn proxy_error(self) -> ProxyError {
        match self {
            FileRefusal::NotFound | FileRefusal::Hidden => ProxyError::DestinationNotFound,
            FileRefusal::Script
            | FileRefusal::NoIndex
            | FileRefusal::Denied
            | FileRefusal::Link
            | FileRefusal::NotRegular
            | FileRefusal::Method => ProxyError::HttpRequestDenied,
            FileRefusal::Late => ProxyError::HttpResponseTimeout,
            FileRefusal::Unreadable | FileRefusal::NoDescriptors | FileRefusal::Memory => {
                ProxyError::ProxyInternalError
            }
            FileRefusal::NoTree => ProxyError::DestinationUnavailable,
        }
    }

    /// A description for people, which shows no path of this machine.
    pub const fn text(self) -> &'static str {
        match self {
            FileRefusal::NotFound | FileRefusal::Hidden => "there is no such file",
            FileRefusal::Script => "a program is not sent as a file, and no pool runs it here",
            FileRefusal::NoIndex => "the directory has no index, and is not listed",
            FileRefusal::Denied => "the file may not be read",
            FileRefusal::Link => "the symbolic link is not followed",
            FileRefusal::NotRegular => "this is not a regular file",
            FileRefusal::Method => "a file is read with GET or HEAD",
            FileRefusal::Late => "the disk did not answer in time",
            FileRefusal::Unreadable => "the file cannot be read",
            FileRefusal::NoDescriptors => "too many files are open (limit on open files)",
            FileRefusal::Memory => "too much memory is in use",
            FileRefusal::NoTree => "the directory of the files is not there",
        }
    }

    /// Whether there is no file to be sent, so that a pool may answer instead.
    pub(crate) const fn is_absence(self) -> bool {
        matches!(
            self,
            FileRefusal::NotFound | FileRefusal::Hidden | FileRefusal::Script | FileRefusal::NoIndex
        )
    }
}
