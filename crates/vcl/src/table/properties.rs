//! Properties of backends and probes.

use crate::table::Release;

/// The kind of value of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropertyKind {
    /// A text.
    Text,
    /// Texts side by side; each is a line.
    Lines,
    /// A port or the name of a service, in quotes.
    Port,
    /// An integer of at least this value.
    Integer(i64),
    /// A duration.
    Duration,
    /// `true` or `false`.
    Boolean,
    /// Binary data.
    Blob,
    /// The name of a probe, or a probe in braces.
    Probe,
    /// The name of a backend.
    Backend,
}

/// A property.
#[derive(Debug)]
pub struct PropertyRow {
    /// The name, without its dot.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: PropertyKind,
    /// The versions that have it.
    pub release: Release,
    /// Its meaning in one sentence.
    pub text: &'static str,
}

const fn row(name: &'static str, kind: PropertyKind, text: &'static str) -> PropertyRow {
    PropertyRow { name, kind, release: Release::Both, text }
}

const fn newer(name: &'static str, kind: PropertyKind, text: &'static str) -> PropertyRow {
    PropertyRow { name, kind, release: Release::From8, text }
}

/// The properties of backends.
#[rustfmt::skip]
pub const BACKEND_PROPERTIES: &[PropertyRow] = &[
    row("host", PropertyKind::Text, "Address or name of the machine."),
    row("port", PropertyKind::Port, "Port or name of the service; `http` by default."),
    row("path", PropertyKind::Text, "Absolute path of a Unix socket, instead of a host."),
    row("host_header", PropertyKind::Text, "`Host` of requests that have none."),
    row("connect_timeout", PropertyKind::Duration, "Time limit of connecting."),
    row("first_byte_timeout", PropertyKind::Duration, "Time limit of the first byte of a response."),
    row("between_bytes_timeout", PropertyKind::Duration, "Longest pause between bytes of a response."),
    row("max_connections", PropertyKind::Integer(0), "Connections at one time."),
    row("proxy_header", PropertyKind::Integer(1), "Version of the PROXY protocol: 1 or 2."),
    row("preamble", PropertyKind::Blob, "Bytes sent first on every connection."),
    row("probe", PropertyKind::Probe, "Health probe."),
    newer("via", PropertyKind::Backend, "Backend that connects to this one."),
    newer("authority", PropertyKind::Text, "Name that the backend in `.via` uses for TLS."),
    newer("wait_limit", PropertyKind::Integer(0), "Fetches that may wait for a connection."),
    newer("wait_timeout", PropertyKind::Duration, "Time for which a fetch waits for a connection."),
];

/// The properties of probes.
#[rustfmt::skip]
pub const PROBE_PROPERTIES: &[PropertyRow] = &[
    row("url", PropertyKind::Text, "Path and query of the request."),
    row("request", PropertyKind::Lines, "Lines of the whole request, instead of a URL."),
    row("expected_response", PropertyKind::Integer(100), "Status of a healthy backend; 200 by default."),
    row("timeout", PropertyKind::Duration, "Time limit of one probe; 2 s by default."),
    row("interval", PropertyKind::Duration, "Time between probes; 5 s by default."),
    row("window", PropertyKind::Integer(1), "Number of the latest probes that count; 8 by default."),
    row("threshold", PropertyKind::Integer(0), "Good probes in the window of a healthy backend; 3 by default."),
    row("initial", PropertyKind::Integer(0), "Good probes that count at the start."),
    newer("expect_close", PropertyKind::Boolean, "Whether the backend closes the connection of a probe."),
];
