//! Error codes (RFC 9113 §7).

macro_rules! codes {
    ($($(#[$doc:meta])* $constant:ident = $value:literal),* $(,)?) => {
        /// An error code of RST_STREAM or GOAWAY (RFC 9113 §7). Any number may be received.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct ErrorCode(pub u32);

        impl ErrorCode {
            $($(#[$doc])* pub const $constant: ErrorCode = ErrorCode($value);)*

            /// The name in RFC 9113; `UNKNOWN` for codes that it does not define.
            pub const fn name(self) -> &'static str {
                match self.0 { $($value => stringify!($constant),)* _ => "UNKNOWN" }
            }
        }
    };
}

codes! {
    /// No fault: an orderly end.
    NO_ERROR = 0,
    /// The peer broke the protocol.
    PROTOCOL_ERROR = 1,
    /// A fault on this side.
    INTERNAL_ERROR = 2,
    /// The peer exceeded a flow-control window.
    FLOW_CONTROL_ERROR = 3,
    /// The peer did not acknowledge settings in time.
    SETTINGS_TIMEOUT = 4,
    /// A frame for a stream that the peer had ended.
    STREAM_CLOSED = 5,
    /// A frame of an invalid size.
    FRAME_SIZE_ERROR = 6,
    /// The stream was not processed at all; the request may be sent again.
    REFUSED_STREAM = 7,
    /// The stream is not needed any more.
    CANCEL = 8,
    /// The HPACK state is lost.
    COMPRESSION_ERROR = 9,
    /// The connection behind a CONNECT request was lost.
    CONNECT_ERROR = 10,
    /// The peer causes too much work.
    ENHANCE_YOUR_CALM = 11,
    /// The transport is not secure enough.
    INADEQUATE_SECURITY = 12,
    /// The request needs HTTP/1.1.
    HTTP_1_1_REQUIRED = 13,
}
