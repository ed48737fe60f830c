//! Backends as the command line writes them.

/// A backend as varnishd writes it, `host[:port]` or `/path`, as a URL.
pub(super) fn as_url(backend: &str) -> String {
    match backend {
        path if path.starts_with('/') => format!("unix:{path}"),
        url if url.contains("://") || url.starts_with("unix:") => url.to_owned(),
        host => format!("http://{host}"),
    }
}
