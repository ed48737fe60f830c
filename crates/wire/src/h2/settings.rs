//! Settings (RFC 9113 §6.5.2).

use super::fault::Fault;

/// The largest window, and the largest increment of one (RFC 9113 §6.9.1).
pub const MAX_WINDOW: u32 = (1 << 31) - 1;

/// The initial window of connections and streams (RFC 9113 §6.9.2).
pub const DEFAULT_WINDOW: u32 = 65_535;

/// The largest frame payload unless a setting allows more (RFC 9113 §4.2).
pub const DEFAULT_FRAME_SIZE: u32 = 16_384;

/// The settings of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of the HPACK table that this side's decoder keeps (RFC 7541 §4.2).
    pub header_table_size: u32,
    /// Whether this side accepts PUSH_PROMISE.
    pub enable_push: bool,
    /// Streams that the other side may have open; `u32::MAX` is no limit.
    pub max_concurrent_streams: u32,
    /// Bytes that the other side may send on a new stream.
    pub initial_window_size: u32,
    /// The longest payload that this side accepts: 16 384 to 16 777 215.
    pub max_frame_size: u32,
    /// Bytes of the longest header list that this side accepts, with 32 more for each field. Advisory;
    /// `u32::MAX` is no limit.
    pub max_header_list_size: u32,
    /// Whether this side accepts extended CONNECT (RFC 8441 §3).
    pub enable_connect_protocol: bool,
    /// Whether this side ignores the priorities of RFC 7540 (RFC 9218 §2.1).
    pub no_rfc7540_priorities: bool,
}

impl Default for Settings {
    /// The values in force before any SETTINGS frame (RFC 9113 §6.5.2).
    fn default() -> Settings {
        Settings {
            header_table_size: 4096,
            enable_push: true,
            max_concurrent_streams: u32::MAX,
            initial_window_size: DEFAULT_WINDOW,
            max_frame_size: DEFAULT_FRAME_SIZE,
            max_header_list_size: u32::MAX,
            enable_connect_protocol: false,
            no_rfc7540_priorities: false,
        }
    }
}

impl Settings {
    /// Applies one parameter. Unknown ones are ignored (RFC 9113 §6.5.2).
    pub fn apply(&mut self, (id, value): (u16, u32)) -> Result<(), Fault> {
        match id {
            1 => self.header_table_size = value,
            2 => self.enable_push = flag(value)?,
            3 => self.max_concurrent_streams = value,
            4 if value > MAX_WINDOW => return Err(Fault::InvalidInitialWindow),
            4 => self.initial_window_size = value,
            5 if !(DEFAULT_FRAME_SIZE..1 << 24).contains(&value) => return Err(Fault::InvalidSetting),
            5 => self.max_frame_size = value,
            6 => self.max_header_list_size = value,
            // Once allowed, extended CONNECT cannot be forbidden again (RFC 8441 §3).
            8 if self.enable_connect_protocol && value == 0 => return Err(Fault::InvalidSetting),
            8 => self.enable_connect_protocol = flag(value)?,
            9 => self.no_rfc7540_priorities = flag(value)?,
            _ => {}
        }
        Ok(())
    }

    /// Passes the parameters that differ from the defaults to `take`.
    pub fn changed(&self, mut take: impl FnMut(u16, u32)) {
        let default = Settings::default();
        let mut each = |id, value: u32, usual: u32| {
            if value != usual {
                take(id, value);
            }
        };
        each(1, self.header_table_size, default.header_table_size);
        each(2, self.enable_push.into(), default.enable_push.into());
        each(3, self.max_concurrent_streams, default.max_concurrent_streams);
        each(4, self.initial_window_size, default.initial_window_size);
        each(5, self.max_frame_size, default.max_frame_size);
        each(6, self.max_header_list_size, default.max_header_list_size);
        each(8, self.enable_connect_protocol.into(), default.enable_connect_protocol.into());
        each(9, self.no_rfc7540_priorities.into(), default.no_rfc7540_priorities.into());
    }
}

fn flag(value: u32) -> Result<bool, Fault> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Fault::InvalidSetting),
    }
}
