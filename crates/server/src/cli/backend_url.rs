//! Backends in the syntax of the command line.

/// A backend in varnishd's syntax, `host[:port]` or `/path`, as a URL.
pub(super) fn as_url(backend: &str) -> String {
    match backend {
        path if path.starts_with('/') => format!("unix:{path}"),
        url if url.contains("://") || url.starts_with("unix:") => url.to_owned(),
        host => format!("http://{host}"),
    }
}
