//! Backends in the syntax of the command line.

/// A backend in varnishd's syntax, `host[:port]` or `/path`, as a URL.
pub(crate) fn as_url(backend: &str) -> String {
    match backend {
        path if path.starts_with('/') => format!("unix:{path}"),
        url if url.contains("://") || url.starts_with("unix:") => url.to_owned(),
        host => format!("http://{host}"),
    }
}

/// The address of a FastCGI application, `host:port` or `/path`, as a URL.
pub(super) fn as_fastcgi_url(address: &str) -> String {
    match address {
        path if path.starts_with('/') => format!("fcgi+unix:{path}"),
        path if path.starts_with("unix:") => format!("fcgi+{path}"),
        url if url.contains("://") || url.starts_with("fcgi+unix:") => url.to_owned(),
        host => format!("fcgi://{host}"),
    }
}
