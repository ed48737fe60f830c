//! Faults of frames, streams and connections.

use super::code::ErrorCode;

macro_rules! faults {
    ($($(#[$doc:meta])* $variant:ident = $code:ident $name:literal $text:literal),* $(,)?) => {
        /// A fault in what the peer sent. It ends the stream or the connection, with [`Fault::code`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Fault {
            $($(#[$doc])* #[doc = concat!("\n\nCode: ", stringify!($code), ".")] $variant),*
        }

        impl Fault {
            /// Every fault.
            pub const ALL: &'static [Fault] = &[$(Fault::$variant),*];

            /// The code in GOAWAY or RST_STREAM (RFC 9113 §7).
            pub const fn code(self) -> ErrorCode {
                match self { $(Fault::$variant => ErrorCode::$code),* }
            }

            /// The name, for logs, counters and tests.
            pub const fn name(self) -> &'static str {
                match self { $(Fault::$variant => $name),* }
            }

            /// A short description, without a full stop.
            pub const fn text(self) -> &'static str {
                match self { $(Fault::$variant => $text),* }
            }
        }
    };
}

faults! {
    /// The connection does not begin with the preface (RFC 9113 §3.4).
    InvalidPreface = PROTOCOL_ERROR "invalid-preface" "invalid connection preface",
    /// The first frame is not SETTINGS (RFC 9113 §3.4).
    MissingSettings = PROTOCOL_ERROR "missing-settings" "the first frame is not SETTINGS",
    /// A frame longer than SETTINGS_MAX_FRAME_SIZE (RFC 9113 §4.2).
    FrameTooLarge = FRAME_SIZE_ERROR "frame-too-large" "frame too large",
    /// A payload whose length does not suit its frame type (RFC 9113 §6).
    InvalidFrameLength = FRAME_SIZE_ERROR "invalid-frame-length" "invalid length of a frame",
    /// A frame of a stream on stream 0, or of the connection on another (RFC 9113 §6).
    InvalidStreamId = PROTOCOL_ERROR "invalid-stream-id" "invalid stream identifier for this frame type",
    /// As much padding as payload, or more (RFC 9113 §6.1).
    InvalidPadding = PROTOCOL_ERROR "invalid-padding" "padding longer than its frame",
    /// A stream that depends on itself (RFC 7540 §5.3.1).
    SelfDependency = PROTOCOL_ERROR "self-dependency" "a stream depends on itself",
    /// A setting outside its range (RFC 9113 §6.5.2).
    InvalidSetting = PROTOCOL_ERROR "invalid-setting" "invalid value of a setting",
    /// SETTINGS_INITIAL_WINDOW_SIZE above 2^31-1 (RFC 9113 §6.5.2).
    InvalidInitialWindow = FLOW_CONTROL_ERROR "invalid-initial-window" "initial window too large",
    /// WINDOW_UPDATE by zero (RFC 9113 §6.9).
    ZeroIncrement = PROTOCOL_ERROR "zero-increment" "window opened by zero",
    /// A window above 2^31-1 (RFC 9113 §6.9.1).
    WindowOverflow = FLOW_CONTROL_ERROR "window-overflow" "window opened too far",
    /// More data than the window allows (RFC 9113 §6.9.1).
    WindowExceeded = FLOW_CONTROL_ERROR "window-exceeded" "more data than the window allows",
    /// A frame of another stream or type inside a header block (RFC 9113 §6.10).
    InterruptedHeaders = PROTOCOL_ERROR "interrupted-headers" "frame inside a header block",
    /// CONTINUATION without HEADERS before it (RFC 9113 §6.10).
    UnexpectedContinuation = PROTOCOL_ERROR "unexpected-continuation" "CONTINUATION outside a header block",
    /// A header block of more bytes than the limit.
    HeaderBlockTooLarge = ENHANCE_YOUR_CALM "header-block-too-large" "header block too large",
    /// A header block that grows many times over when it is decoded.
    HeaderBomb = ENHANCE_YOUR_CALM "header-bomb" "header block decodes to far more than the limit",
    /// A header block that ends inside a field (RFC 7541 §6).
    TruncatedBlock = COMPRESSION_ERROR "truncated-block" "header block ends inside a field",
    /// An integer that is too large or too long (RFC 7541 §5.1).
    InvalidInteger = COMPRESSION_ERROR "invalid-integer" "invalid HPACK integer",
    /// An index outside both tables (RFC 7541 §2.3.3).
    InvalidIndex = COMPRESSION_ERROR "invalid-index" "invalid HPACK index",
    /// Huffman data with EOS, or with invalid padding (RFC 7541 §5.2).
    InvalidHuffman = COMPRESSION_ERROR "invalid-huffman" "invalid Huffman data",
    /// A table size update above the setting, after a field, or missing (RFC 7541 §4.2, §6.3).
    InvalidTableSize = COMPRESSION_ERROR "invalid-table-size" "invalid HPACK table size update",
    /// A frame on a stream that was not opened (RFC 9113 §5.1).
    IdleStream = PROTOCOL_ERROR "idle-stream" "frame on an idle stream",
    /// A frame on a stream that has ended (RFC 9113 §5.1).
    ClosedStream = STREAM_CLOSED "closed-stream" "frame on a closed stream",
    /// HEADERS on a stream below the highest one that is not known to have been open (RFC 9113 §5.1.1).
    SkippedStream = PROTOCOL_ERROR "skipped-stream" "stream identifier below an earlier one",
    /// A frame after END_STREAM (RFC 9113 §5.1).
    HalfClosedStream = STREAM_CLOSED "half-closed-stream" "frame after the end of a stream",
    /// A new stream whose identifier has the parity of our own (RFC 9113 §5.1.1).
    WrongParity = PROTOCOL_ERROR "wrong-parity" "stream identifier of the wrong parity",
    /// More streams than SETTINGS_MAX_CONCURRENT_STREAMS (RFC 9113 §5.1.2).
    TooManyStreams = REFUSED_STREAM "too-many-streams" "too many concurrent streams",
    /// A stream above the last one of our GOAWAY (RFC 9113 §6.8).
    GoingAway = REFUSED_STREAM "going-away" "the connection accepts no more streams",
    /// PUSH_PROMISE, which we disable or a client cannot send (RFC 9113 §8.4).
    Push = PROTOCOL_ERROR "push" "PUSH_PROMISE",
    /// A GOAWAY that raises the last stream of an earlier one (RFC 9113 §6.8).
    RaisedGoAway = PROTOCOL_ERROR "raised-goaway" "GOAWAY with a higher last stream than before",
    /// PRIORITY_UPDATE from a server, or for a stream that cannot exist (RFC 9218 §7.1).
    InvalidPriorityUpdate = PROTOCOL_ERROR "invalid-priority-update" "invalid PRIORITY_UPDATE",
    /// A malformed message (RFC 9113 §8.1.1).
    MalformedMessage = PROTOCOL_ERROR "malformed-message" "malformed message",
    /// Data that contradicts Content-Length (RFC 9113 §8.1.1).
    ContentLengthMismatch = PROTOCOL_ERROR "content-length-mismatch" "Content-Length contradicts the data",
    /// Requests that the client cancels before they are answered (CVE-2023-44487).
    RapidReset = ENHANCE_YOUR_CALM "rapid-reset" "too many cancelled requests",
    /// Resets that the peer's frames force us to send (CVE-2025-8671).
    ForcedReset = ENHANCE_YOUR_CALM "forced-reset" "too many faults on streams",
    /// Many CONTINUATION frames (CVE-2024-27316).
    ContinuationFlood = ENHANCE_YOUR_CALM "continuation-flood" "too many CONTINUATION frames",
    /// Many SETTINGS frames (CVE-2019-9515).
    SettingsFlood = ENHANCE_YOUR_CALM "settings-flood" "too many SETTINGS frames",
    /// Many PING frames (CVE-2019-9512).
    PingFlood = ENHANCE_YOUR_CALM "ping-flood" "too many PING frames",
    /// Many frames without content (CVE-2019-9518).
    EmptyFrameFlood = ENHANCE_YOUR_CALM "empty-frame-flood" "too many empty frames",
    /// Many WINDOW_UPDATE frames of small increments (CVE-2019-9511).
    WindowUpdateFlood = ENHANCE_YOUR_CALM "window-update-flood" "too many small window updates",
    /// Many PRIORITY and PRIORITY_UPDATE frames (CVE-2019-9513).
    PriorityFlood = ENHANCE_YOUR_CALM "priority-flood" "too many changes of priority",
    /// Many frames of unknown types, or on streams that have ended.
    UselessFrameFlood = ENHANCE_YOUR_CALM "useless-frame-flood" "too many useless frames",
    /// More replies to control frames than the peer reads (CVE-2019-9512, CVE-2019-9515).
    UnreadReplies = ENHANCE_YOUR_CALM "unread-replies" "replies to control frames are not read",
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Fault {}

/// A fault in a single frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameError {
    /// The fault.
    pub fault: Fault,
    /// The stream that it ends, and the bytes of the frame, which MUST be skipped. `None`: it ends the
    /// connection, and no further byte may be used.
    pub stream: Option<(u32, usize)>,
}

impl FrameError {
    pub(super) const fn connection(fault: Fault) -> FrameError {
        FrameError { fault, stream: None }
    }
}
