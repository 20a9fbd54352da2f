//! The receiving direction: frames however they are cut, peers that break the rules, which streams are read.

use mstcp_core::error::Error;
use mstcp_core::frame::{self, Frame, Parser};
use mstcp_core::reassembly::FRAME_OVERHEAD_BYTES;
use mstcp_core::receiver::Receiver;
use mstcp_core::RemoteError;
use proptest::prelude::*;

const PAYLOAD: usize = 10;

fn data(number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    frame::encode_data(&mut out, number, &[number as u8; PAYLOAD], PAYLOAD);
    out
}

fn fin(count: u64) -> Vec<u8> {
    let mut out = Vec::new();
    frame::encode_fin(&mut out, count);
    out
}

/// A frame's word with kind, type and length of a control frame.
fn control(kind: u64, length: u64) -> Vec<u8> {
    (2u64 << 62 | kind << 56 | length).to_be_bytes().to_vec()
}

/// Feed (stream, bytes) to a receiver of two streams and return the error of the last.
fn last_error(steps: &[(usize, Vec<u8>)]) -> RemoteError {
    let mut to = Receiver::new(2, PAYLOAD, 1000);
    let (last, before) = steps.split_last().unwrap();
    for (stream, bytes) in before {
        to.on_received(*stream, bytes, &mut Vec::new()).unwrap();
    }
    match to.on_received(last.0, &last.1, &mut Vec::new()) {
        Err(Error::Remote(error)) => error,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn the_parser_finds_the_same_frames_however_the_bytes_are_cut(
        sizes in prop::collection::vec(1usize..=20, 1..30),
        cuts in prop::collection::vec(1usize..30, 1..30),
    ) {
        let bytes: Vec<u8> = (0..20).collect();
        let mut encoded = Vec::new();
        for (number, &size) in sizes.iter().enumerate() {
            frame::encode_data(&mut encoded, number as u64, &bytes[..size], 20);
        }
        frame::encode_fin(&mut encoded, sizes.len() as u64);
        let mut parser = Parser::new(20);
        let mut found = Vec::new();
        let mut rest = &encoded[..];
        let mut cuts = cuts.iter().cycle();
        while !rest.is_empty() {
            let (mut input, later) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
            rest = later;
            while let (consumed, Some(frame)) = parser.next(input).unwrap() {
                input = &input[consumed..];
                match frame {
                    Frame::Data { number, payload } => {
                        prop_assert_eq!(number, found.len() as u64);
                        prop_assert_eq!(payload, &bytes[..payload.len()]);
                        found.push(payload.len());
                    }
                    other => prop_assert_eq!(other, Frame::Fin { frame_count: sizes.len() as u64 }),
                }
            }
        }
        prop_assert_eq!(found, sizes);
        prop_assert!(!parser.in_frame());
    }
}

#[test]
fn a_peer_that_breaks_the_rules_is_told_apart() {
    let mut short = (1u64 << 62).to_be_bytes().to_vec();
    short.extend(10u16.to_be_bytes());
    let mut empty = (1u64 << 62).to_be_bytes().to_vec();
    empty.extend([0, 0]);
    assert_eq!(
        last_error(&[(0, vec![0xff; 8])]),
        RemoteError::UnknownFrameKind
    );
    assert_eq!(
        last_error(&[(0, short)]),
        RemoteError::BadFrameLength {
            length: 10,
            limit: 9
        }
    );
    assert_eq!(
        last_error(&[(0, empty)]),
        RemoteError::BadFrameLength {
            length: 0,
            limit: 9
        }
    );
    assert_eq!(
        last_error(&[(0, control(9, 1025))]),
        RemoteError::BadFrameLength {
            length: 1025,
            limit: 1024
        }
    );
    assert_eq!(last_error(&[(0, control(1, 0))]), RemoteError::BadFin);
    assert_eq!(
        last_error(&[(0, data(3)), (0, data(2))]),
        RemoteError::NumberNotRising {
            number: 2,
            previous: 3
        }
    );
    assert_eq!(
        last_error(&[(0, data(2)), (1, data(3))]),
        RemoteError::MissingFrame(0)
    );
    assert_eq!(
        last_error(&[(0, fin(0)), (0, data(0))]),
        RemoteError::DataAfterFin
    );
    assert_eq!(
        last_error(&[(0, fin(0)), (0, data(0)[..3].to_vec())]),
        RemoteError::DataAfterFin
    );
    assert_eq!(
        last_error(&[(0, fin(2)), (1, data(2))]),
        RemoteError::BadFin
    );
    assert_eq!(
        last_error(&[(0, data(4)), (1, fin(4))]),
        RemoteError::BadFin
    );
    assert_eq!(last_error(&[(0, fin(3)), (1, fin(4))]), RemoteError::BadFin);
    assert_eq!(
        last_error(&[(0, fin(1)), (1, fin(1))]),
        RemoteError::MissingFrame(0)
    );
}

#[test]
fn copies_are_dropped_and_the_first_counts() {
    let mut to = Receiver::new(3, PAYLOAD, 1000);
    let mut got = Vec::new();
    for (stream, number) in [(0, 1), (1, 1), (1, 2), (2, 0), (0, 2)] {
        to.on_received(stream, &data(number), &mut got).unwrap();
    }
    let expected: Vec<u8> = (0..3).flat_map(|number| [number; PAYLOAD]).collect();
    assert_eq!(got, expected);
    assert_eq!(to.reassembly().memory_bytes(), 0);
    assert_eq!(to.reassembly().out_of_order_frames(), 2);
}

#[test]
fn a_stream_that_ends_before_its_fin_is_truncated() {
    let mut to = Receiver::new(2, PAYLOAD, 1000);
    to.on_received(0, &fin(0), &mut Vec::new()).unwrap();
    assert!(to.is_ended());
    assert_eq!(to.on_stream_end(0), Ok(()));
    assert_eq!(
        to.on_stream_end(1),
        Err(RemoteError::StreamTruncated(1).into())
    );
}

#[test]
fn unknown_control_frames_are_skipped() {
    let mut to = Receiver::new(1, PAYLOAD, 1000);
    let bytes = [control(9, 3), vec![1, 2, 3], control(8, 0), data(0)].concat();
    let mut got = Vec::new();
    to.on_received(0, &bytes, &mut got).unwrap();
    assert_eq!(got, [0; PAYLOAD]);
}

#[test]
fn a_stream_that_is_ahead_is_not_read_and_the_one_behind_always_is() {
    let mut to = Receiver::new(2, PAYLOAD, 3 * (PAYLOAD + FRAME_OVERHEAD_BYTES));
    let mut got = Vec::new();
    for number in 1..4 {
        assert!(to.readable().contains(1));
        to.on_received(1, &data(number), &mut got).unwrap();
    }
    assert_eq!(to.readable().bits(), 0b01);
    assert_eq!(to.reassembly().out_of_order_frames(), 3);
    assert_eq!(to.reassembly().max_waiting_bytes(), 30);
    to.on_received(0, &data(0), &mut got).unwrap();
    assert_eq!(to.readable().bits(), 0b11);
    assert_eq!(got.len(), 40);
    assert_eq!(to.reassembly().waiting_bytes(), 0);
}
