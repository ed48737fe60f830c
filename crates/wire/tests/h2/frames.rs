//! Frames, read and written.

use proptest::prelude::*;
use sandarac_wire::h1::{self, Parsed};
use sandarac_wire::h2::frame::{Dependency, Frame, decode, encode};
use sandarac_wire::h2::settings::Settings;
use sandarac_wire::h2::{ErrorCode, Fault, FrameError, Refusal};
use std::collections::BTreeSet;

/// A frame in bytes, of any type.
pub(crate) fn raw(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn read(bytes: &[u8]) -> Result<Frame<'_>, Fault> {
    match decode(bytes, 16_384) {
        Ok(Parsed::Complete((frame, len))) => {
            assert_eq!(len, bytes.len());
            for cut in 0..len {
                assert_eq!(decode(&bytes[..cut], 16_384), Ok(Parsed::Partial));
            }
            Ok(frame)
        }
        Ok(Parsed::Partial) => panic!("a whole frame is partial"),
        Err(error) => Err(error.fault),
    }
}

#[test]
fn every_frame_type_is_read() {
    let data = |data, flow, end_stream| Frame::Data { stream: 1, data, flow, end_stream };
    assert_eq!(read(&raw(0, 0, 1, b"abc")), Ok(data(b"abc", 3, false)));
    assert_eq!(read(&raw(0, 1 | 8, 1, b"\x02abc\0\0")), Ok(data(b"abc", 6, true)));
    assert_eq!(read(&raw(0, 8, 1, b"\0")), Ok(data(b"", 1, false)));
    let headers = |block, dependency| Frame::Headers {
        stream: 3,
        block,
        dependency,
        end_stream: true,
        end_headers: true,
    };
    assert_eq!(read(&raw(1, 5, 3, b"xy")), Ok(headers(b"xy", None)));
    let dependency = Dependency { on: 1, exclusive: true, weight: 7 };
    assert_eq!(
        read(&raw(1, 5 | 8 | 32, 3, b"\x01\x80\0\0\x01\x07xyp")),
        Ok(headers(b"xy", Some(dependency)))
    );
    assert_eq!(read(&raw(2, 0, 3, b"\x80\0\0\x01\x07")), Ok(Frame::Priority { stream: 3, dependency }));
    assert_eq!(read(&raw(3, 0, 3, b"\0\0\0\x08")), Ok(Frame::Reset { stream: 3, code: ErrorCode::CANCEL }));
    let bytes = raw(4, 0, 0, b"\0\x01\0\0\0\0\0\x09\0\0\0\x01");
    let Ok(Frame::Settings(parameters)) = read(&bytes) else { panic!() };
    assert_eq!(parameters.collect::<Vec<_>>(), [(1, 0), (9, 1)]);
    assert_eq!(read(&raw(4, 1, 0, b"")), Ok(Frame::SettingsAck));
    assert_eq!(
        read(&raw(5, 4, 1, b"\0\0\0\x02xy")),
        Ok(Frame::PushPromise { stream: 1, promised: 2, block: b"xy", end_headers: true })
    );
    assert_eq!(read(&raw(6, 1, 0, b"12345678")), Ok(Frame::Ping { ack: true, data: *b"12345678" }));
    assert_eq!(
        read(&raw(7, 0, 0, b"\x80\0\0\x05\0\0\0\x0bwhy")),
        Ok(Frame::GoAway { last_stream: 5, code: ErrorCode::ENHANCE_YOUR_CALM, debug: b"why" })
    );
    assert_eq!(read(&raw(8, 0, 0, b"\x80\0\x01\0")), Ok(Frame::WindowUpdate { stream: 0, increment: 256 }));
    assert_eq!(
        read(&raw(9, 0, 5, b"xy")),
        Ok(Frame::Continuation { stream: 5, block: b"xy", end_headers: false })
    );
    assert_eq!(
        read(&raw(16, 0, 0, b"\0\0\0\x05u=1, i")),
        Ok(Frame::PriorityUpdate { stream: 5, value: b"u=1, i" })
    );
    assert_eq!(read(&raw(200, 255, 9, b"any")), Ok(Frame::Unknown { kind: 200, stream: 9 }));
}

#[test]
fn every_fault_and_refusal_has_its_own_name() {
    let names: BTreeSet<_> = Fault::ALL.iter().map(|fault| fault.name()).collect();
    assert_eq!(names.len(), Fault::ALL.len());
    let names: BTreeSet<_> = Refusal::ALL.iter().map(|refusal| refusal.name()).collect();
    assert_eq!(names.len(), Refusal::ALL.len());
    // The same fault of a message has the same status in both versions.
    for refusal in Refusal::ALL {
        for same in h1::Refusal::ALL.iter().filter(|same| same.name() == refusal.name()) {
            assert_eq!(same.status(), refusal.status(), "{}", refusal.name());
        }
    }
}

#[test]
fn the_reserved_bit_is_ignored() {
    let bytes = raw(0, 0, 1 | 1 << 31, b"");
    assert_eq!(read(&bytes), Ok(Frame::Data { stream: 1, data: b"", flow: 0, end_stream: false }));
}

#[test]
fn frames_of_the_wrong_stream_or_size_are_refused() {
    for kind in [0, 1, 2, 3, 5, 9] {
        assert_eq!(read(&raw(kind, 0, 0, b"12345")), Err(Fault::InvalidStreamId), "{kind}");
    }
    for kind in [4, 6, 7, 16] {
        assert_eq!(read(&raw(kind, 0, 1, b"12345678")), Err(Fault::InvalidStreamId), "{kind}");
    }
    let wrong: &[(u8, u8, u32, &[u8])] = &[
        (0, 8, 1, b""),
        (1, 32, 1, b"1234"),
        (2, 0, 1, b"1234"),
        (2, 0, 1, b"123456"),
        (3, 0, 1, b"123"),
        (4, 0, 0, b"12345"),
        (4, 1, 0, b"123456"),
        (5, 0, 1, b"123"),
        (6, 0, 0, b"1234567"),
        (6, 0, 0, b"123456789"),
        (7, 0, 0, b"1234567"),
        (8, 0, 0, b"123"),
        (16, 0, 0, b"123"),
    ];
    for &(kind, flags, stream, payload) in wrong {
        let bytes = raw(kind, flags, stream, payload);
        assert_eq!(read(&bytes), Err(Fault::InvalidFrameLength), "{kind} {payload:?}");
    }
    for (kind, payload) in [(0, &b"\x03ab"[..]), (1, b"\x01"), (5, b"\x07\0\0\0\x02xy")] {
        assert_eq!(read(&raw(kind, 8, 1, payload)), Err(Fault::InvalidPadding), "{kind}");
    }
}

#[test]
fn a_frame_above_the_limit_is_refused_by_its_header() {
    let bytes = raw(0, 0, 1, &[0; 16_385]);
    let refused = FrameError { fault: Fault::FrameTooLarge, stream: None };
    assert_eq!(decode(&bytes[..9], 16_384), Err(refused));
    assert!(matches!(decode(&bytes, 16_385), Ok(Parsed::Complete(_))));
}

#[test]
fn a_priority_frame_of_the_wrong_size_ends_its_stream_only() {
    let bytes = raw(2, 0, 7, b"1234");
    let refused = FrameError { fault: Fault::InvalidFrameLength, stream: Some((7, 13)) };
    assert_eq!(decode(&bytes, 16_384), Err(refused));
}

#[test]
fn settings_outside_their_range_are_refused() {
    let mut settings = Settings::default();
    for (parameter, fault) in [
        ((2, 2), Fault::InvalidSetting),
        ((4, 1 << 31), Fault::InvalidInitialWindow),
        ((5, 16_383), Fault::InvalidSetting),
        ((5, 1 << 24), Fault::InvalidSetting),
        ((8, 2), Fault::InvalidSetting),
        ((9, 2), Fault::InvalidSetting),
    ] {
        assert_eq!(settings.apply(parameter), Err(fault), "{parameter:?}");
    }
    assert_eq!(settings.apply((8, 1)), Ok(()));
    assert_eq!(settings.apply((8, 0)), Err(Fault::InvalidSetting));
    assert_eq!(settings.apply((77, 5)), Ok(()));
}

#[test]
fn a_long_header_block_is_split() {
    let mut out = Vec::new();
    encode::headers(&mut out, 1, b"x", &[b'x'; 24], true, 10);
    let expected = [raw(1, 1, 1, &[b'x'; 10]), raw(9, 0, 1, &[b'x'; 10]), raw(9, 4, 1, &[b'x'; 5])];
    assert_eq!(out, expected.concat());
}

proptest! {
    #[test]
    fn what_is_written_is_read(stream in 1..1u32 << 31, code: u32, data: [u8; 8], value: Vec<u8>, end: bool) {
        let mut out = Vec::new();
        encode::data_header(&mut out, stream, value.len() as u32, end);
        out.extend(&value);
        prop_assert_eq!(
            read(&out),
            Ok(Frame::Data { stream, data: &value, flow: value.len() as u32, end_stream: end })
        );
        out.clear();
        encode::reset(&mut out, stream, ErrorCode(code));
        prop_assert_eq!(read(&out), Ok(Frame::Reset { stream, code: ErrorCode(code) }));
        out.clear();
        encode::ping(&mut out, data, end);
        prop_assert_eq!(read(&out), Ok(Frame::Ping { ack: end, data }));
        out.clear();
        encode::go_away(&mut out, stream, ErrorCode(code), &value);
        prop_assert_eq!(
            read(&out),
            Ok(Frame::GoAway { last_stream: stream, code: ErrorCode(code), debug: &value })
        );
        out.clear();
        encode::window_update(&mut out, stream, stream);
        prop_assert_eq!(read(&out), Ok(Frame::WindowUpdate { stream, increment: stream }));
        out.clear();
        encode::priority_update(&mut out, stream, &value);
        prop_assert_eq!(read(&out), Ok(Frame::PriorityUpdate { stream, value: &value }));
    }

    #[test]
    fn written_settings_are_applied(table: u32, push: bool, streams: u32, window in 0..1u32 << 31,
            frame in 16_384..1u32 << 24, list: u32, connect: bool, old: bool) {
        let settings = Settings {
            header_table_size: table,
            enable_push: push,
            max_concurrent_streams: streams,
            initial_window_size: window,
            max_frame_size: frame,
            max_header_list_size: list,
            enable_connect_protocol: connect,
            no_rfc7540_priorities: old,
        };
        let mut out = Vec::new();
        encode::settings(&mut out, &settings);
        let Ok(Frame::Settings(parameters)) = read(&out) else { panic!() };
        let mut applied = Settings::default();
        for parameter in parameters {
            applied.apply(parameter).unwrap();
        }
        prop_assert_eq!(applied, settings);
    }

    #[test]
    fn no_bytes_make_the_reader_fail(bytes: Vec<u8>) {
        let _ = decode(&bytes, 16_384);
    }
}
