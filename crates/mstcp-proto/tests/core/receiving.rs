//! What a shell reads to where it stays: what the parser expects, and slices of the shell's own memory.

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use mstcp_proto::frame::{self, Expected, Parsed, Parser, LONG_HEADER_BYTES};
use mstcp_proto::{Connection, Control, Slice, Storage};
use proptest::prelude::*;

use super::{config, encoded};

const PAYLOAD_BYTES: usize = 1000;

fn random_bytes(length: usize) -> Vec<u8> {
    super::random_bytes(length, 7)
}

/// What the parser made of all of `input`: the payloads with their offsets, and how many control frames.
fn parse(parser: &mut Parser, input: &[u8], data: &mut Vec<(u64, Vec<u8>)>) -> usize {
    let (mut at, mut controls) = (0, 0);
    loop {
        let (consumed, parsed) = parser.next(&input[at..]).unwrap();
        at += consumed;
        match parsed {
            None => return controls,
            Some(Parsed::Data {
                offset, payload, ..
            }) => data.push((offset, payload.to_vec())),
            Some(Parsed::Control(_)) => controls += 1,
        }
    }
}

fn data_frame(offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::encode_data(&mut bytes, offset, &random_bytes(length), PAYLOAD_BYTES);
    bytes
}

fn expected(payload_bytes: usize, header_bytes: usize) -> Option<Expected> {
    Some(Expected {
        payload_bytes,
        header_bytes,
    })
}

#[test]
fn nothing_is_expected_before_a_frame_or_of_small_ones() {
    let mut parser = Parser::new(PAYLOAD_BYTES);
    assert_eq!(parser.expected(1), None);
    let frame = data_frame(0, 500);
    parse(&mut parser, &frame[..20], &mut Vec::new());
    assert_eq!(parser.expected(501), None);
    assert!(parser.expected(500).is_some());
}

#[test]
fn the_rest_of_a_large_frame_is_expected_and_then_a_header_like_its_own() {
    let mut parser = Parser::new(PAYLOAD_BYTES);
    let mut data = Vec::new();
    let first = data_frame(0, 70_000);
    let (header, payload) = first.split_at(LONG_HEADER_BYTES);
    parse(&mut parser, header, &mut data);
    assert_eq!(
        parser.expected(1 << 14),
        expected(70_000, LONG_HEADER_BYTES)
    );
    parse(&mut parser, &payload[..69_999], &mut data);
    assert_eq!(parser.expected(1 << 14), expected(1, LONG_HEADER_BYTES));
    parse(&mut parser, &payload[69_999..], &mut data);
    assert_eq!(parser.expected(1 << 14), expected(0, LONG_HEADER_BYTES));
    let second = data_frame(70_000, 70_000);
    parse(&mut parser, &second[..5], &mut data);
    assert_eq!(parser.expected(1 << 14), expected(0, LONG_HEADER_BYTES - 5));
    // With a header of another length it is a wrong guess without consequences.
    let mut parser = Parser::new(PAYLOAD_BYTES);
    parse(&mut parser, &first, &mut data);
    parse(
        &mut parser,
        &data_frame(70_000, PAYLOAD_BYTES)[..8],
        &mut data,
    );
    assert_eq!(parser.expected(1 << 14), None);
}

#[test]
fn nothing_is_expected_within_a_control_frame() {
    let mut parser = Parser::new(PAYLOAD_BYTES);
    let mut data = Vec::new();
    parse(&mut parser, &data_frame(0, 70_000), &mut data);
    let ping = encoded(&Control::Ping(7));
    let (last, head) = ping.split_last().unwrap();
    parse(&mut parser, head, &mut data);
    assert_eq!(parser.expected(1 << 14), None);
    assert_eq!(parse(&mut parser, &[*last], &mut data), 1);
    assert_eq!(parser.expected(1 << 14), expected(0, LONG_HEADER_BYTES));
}

proptest! {
    /// A shell that reads just what is expected gets each payload alone, and the same frames as any other.
    #[test]
    fn reading_what_is_expected_finds_the_same_frames(
        lengths in prop::collection::vec(prop_oneof![1usize..3000, 1usize << 14..40_000], 1..12),
        pings in prop::collection::vec(0usize..12, 0..4),
        most in 1usize..50_000,
    ) {
        let (mut input, mut offset) = (Vec::new(), 0);
        for (place, length) in lengths.iter().enumerate() {
            input.extend(data_frame(offset, *length));
            offset += *length as u64;
            if pings.contains(&place) {
                input.extend(encoded(&Control::Ping(1)));
            }
        }
        let (mut parser, mut at, mut data, mut controls) = (Parser::new(PAYLOAD_BYTES), 0, Vec::new(), 0);
        while at < input.len() {
            let before = data.len();
            let rest = &input[at..];
            let taken = match parser.expected(1 << 14) {
                Some(Expected { payload_bytes, header_bytes }) => {
                    let payload = payload_bytes.min(most).min(rest.len());
                    controls += parse(&mut parser, &rest[..payload], &mut data);
                    // No header is ever taken for payload.
                    prop_assert_eq!(data.len() - before, usize::from(payload > 0));
                    let header = if payload == payload_bytes { header_bytes } else { 0 };
                    let header = header.min(rest.len() - payload);
                    controls += parse(&mut parser, &rest[payload..payload + header], &mut data);
                    payload + header
                }
                None => {
                    let all = most.min(rest.len());
                    controls += parse(&mut parser, &rest[..all], &mut data);
                    all
                }
            };
            prop_assert!(taken > 0, "nothing to read is expected at {at}");
            at += taken;
        }
        let mut next = 0;
        let mut frames = lengths.iter().map(|length| random_bytes(*length)).collect::<Vec<_>>().concat();
        for (offset, payload) in data {
            prop_assert_eq!(offset, next);
            next += payload.len() as u64;
            prop_assert_eq!(&frames[..payload.len()], &payload[..]);
            frames.drain(..payload.len());
        }
        prop_assert!(frames.is_empty());
        prop_assert_eq!(controls, (0..lengths.len()).filter(|place| pings.contains(place)).count());
    }
}

/// Memory that notes when it is given up.
struct Counted {
    bytes: Vec<u8>,
    dropped: Arc<AtomicUsize>,
}

impl Storage for Counted {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

fn storage(bytes: &[u8]) -> (Slice, Arc<AtomicUsize>) {
    let dropped = Arc::new(AtomicUsize::new(0));
    let counted = Counted {
        bytes: bytes.to_vec(),
        dropped: Arc::clone(&dropped),
    };
    (Slice::of_storage(Arc::new(counted)), dropped)
}

#[test]
fn the_shell_knows_its_own_memory_again_if_it_is_whole() {
    let (whole, _) = storage(b"abcdef");
    assert_eq!(&whole[..], b"abcdef");
    let owner = whole.whole_storage().unwrap();
    assert!(owner.as_any().downcast_ref::<Counted>().is_some());
    assert!(whole.part(0..6).whole_storage().is_some());
    for range in [0..5, 1..6, 3..3] {
        assert_eq!(&whole.part(range.clone())[..], &b"abcdef"[range.clone()]);
        assert!(whole.part(range).whole_storage().is_none());
    }
    assert!(Slice::copy_of(b"abcdef").whole_storage().is_none());
}

#[test]
fn the_shells_memory_lives_as_long_as_a_part_of_it() {
    let (whole, dropped) = storage(b"abcdef");
    let part = whole.part(1..5).part(1..3);
    drop(whole);
    assert_eq!(&part[..], b"cd");
    assert_eq!(dropped.load(Ordering::Relaxed), 0);
    drop(part);
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
}

#[test]
fn appending_never_changes_the_shells_memory() {
    let (whole, dropped) = storage(b"abcdef");
    let mut longer = whole.part(2..4);
    longer.append(b"xy");
    longer.append(b"z");
    assert_eq!((&longer[..], &whole[..]), (&b"cdxyz"[..], &b"abcdef"[..]));
    // What was appended to is a copy, and holds the shell's memory no more.
    drop(whole);
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    // A copy's own memory is shared with its parts: they must not change either.
    let part = longer.part(0..2);
    longer.append(b"!");
    assert_eq!((&part[..], &longer[..]), (&b"cd"[..], &b"cdxyz!"[..]));
}

fn receiver() -> Connection {
    super::connection("weighted", config(2, PAYLOAD_BYTES))
}

/// Bring a frame's header, then its payload in memory of the shell's.
fn bring(
    to: &mut Connection,
    stream: usize,
    offset: u64,
    bytes: &[u8],
    out: &mut Vec<Slice>,
) -> Arc<AtomicUsize> {
    let mut header = Vec::new();
    frame::encode_data_header(&mut header, offset, bytes.len(), PAYLOAD_BYTES);
    to.on_slice(stream, &Slice::copy_of(&header), out).unwrap();
    let (payload, dropped) = storage(bytes);
    to.on_slice(stream, &payload, out).unwrap();
    dropped
}

#[test]
fn payload_that_was_read_to_where_it_stays_comes_out_as_it_is_though_it_had_to_wait() {
    let (mut connection, mut out) = (receiver(), Vec::new());
    let (early, late) = (random_bytes(1 << 14), random_bytes(1 << 15));
    bring(&mut connection, 0, early.len() as u64, &late, &mut out);
    assert!(out.is_empty());
    bring(&mut connection, 1, 0, &early, &mut out);
    let whole: Vec<_> = out
        .iter()
        .map(|slice| slice.whole_storage().is_some())
        .collect();
    assert_eq!(whole, [true, true]);
    assert_eq!([&out[0][..], &out[1][..]].concat(), [early, late].concat());
}

#[test]
fn a_small_piece_that_waits_holds_none_of_the_shells_memory() {
    let (mut connection, mut out) = (receiver(), Vec::new());
    let bytes = random_bytes(2000);
    let dropped = bring(&mut connection, 0, 1000, &bytes[1000..], &mut out);
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    let dropped = bring(&mut connection, 1, 0, &bytes[..1000], &mut out);
    assert_eq!(dropped.load(Ordering::Relaxed), 0);
    assert_eq!([&out[0][..], &out[1][..]].concat(), bytes);
}

#[test]
fn a_small_piece_that_joins_others_holds_none_of_the_shells_memory() {
    let (mut connection, mut out) = (receiver(), Vec::new());
    let bytes = random_bytes(6000);
    for (at, end) in [
        (1000, 2000),
        (4000, 6000),
        (2000, 3000),
        (3500, 4000),
        (3000, 3500),
    ] {
        let dropped = bring(&mut connection, 0, at as u64, &bytes[at..end], &mut out);
        assert_eq!(dropped.load(Ordering::Relaxed), 1, "{at} to {end}");
    }
    assert!(out.is_empty());
    // One that also brings what is there already.
    bring(&mut connection, 1, 0, &bytes[..2500], &mut out);
    let joined: Vec<_> = out.iter().flat_map(|slice| slice.to_vec()).collect();
    assert_eq!(joined, bytes);
}

#[test]
fn a_priority_out_of_range_is_named() {
    let mut connection = receiver();
    let (id, priority) = (0, 256);
    let status = encoded(&Control::Status { id, priority });
    let error = connection.on_received(0, &status, &mut Vec::new());
    assert_eq!(
        error.unwrap_err().to_string(),
        "a priority of 256 where 0 to 255 are allowed"
    );
}
