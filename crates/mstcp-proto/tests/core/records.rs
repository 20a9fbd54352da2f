//! What somebody in the path does to a stream whose frames are authenticated: nothing of it comes through.

use mstcp_proto::handshake::{Admission, ClientHandshake};
use mstcp_proto::RemoteError;
use mstcp_proto::{RecordKeys, RecordReader, RecordWriter, MAX_RECORD_BYTES};

const SECRET: &[u8] = b"between us";

/// The keys of the first streams of a connection, as client and server have them.
fn keys(streams: u8) -> Vec<RecordKeys> {
    let mut client = ClientHandshake::new(SECRET, [7; 16], u32::from(streams), 1000).with_records();
    let mut admission = Admission::new(SECRET, 10).requiring_records();
    let agreed = (0..streams).map(|stream| {
        let greeting = client.greet([stream; 32], 0, &[]).unwrap();
        let admitted = admission.admit(0, &greeting.bytes, [stream | 0x80; 32], |_| Some(1));
        let admitted = admitted.unwrap();
        client.on_answer(&greeting, &admitted.answer).unwrap();
        let ours = client.record_keys(&greeting, &admitted.answer).unwrap();
        assert_eq!(Some(ours), admitted.record_keys);
        ours
    });
    agreed.collect()
}

fn records(key: [u8; 32], pieces: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut writer = RecordWriter::new(key);
    let write = |piece: &&[u8]| {
        let mut out = Vec::new();
        writer.write(piece, &mut out);
        out
    };
    pieces.iter().map(write).collect()
}

fn read(key: [u8; 32], data: &[u8]) -> (Vec<u8>, Result<(), RemoteError>) {
    let (mut reader, mut out) = (RecordReader::new(key), Vec::new());
    let result = reader.read(data, &mut out);
    (out, result)
}

#[test]
fn whatever_pieces_records_come_in_they_carry_what_was_written() {
    let key = keys(1)[0].client;
    let written: Vec<u8> = (0..MAX_RECORD_BYTES + 5).map(|at| at as u8).collect();
    let wire = records(key, &[&written, b"x"]).concat();
    assert_eq!(wire.len(), written.len() + 1 + 3 * 20);
    for size in [1, 19, 1000, wire.len()] {
        let (mut reader, mut out) = (RecordReader::new(key), Vec::new());
        for piece in wire.chunks(size) {
            reader.read(piece, &mut out).unwrap();
        }
        assert!(out[..written.len()] == written && out[written.len()..] == *b"x");
    }
}

#[test]
fn a_record_that_was_changed_carries_nothing() {
    let key = keys(1)[0].client;
    let wire = records(key, &[b"pay 5 to Eve"]).concat();
    for place in 0..wire.len() {
        let mut changed = wire.clone();
        changed[place] ^= 1;
        // A longer length waits for bytes that another tag would have to be right for.
        changed.resize(2 * MAX_RECORD_BYTES, 0);
        let (out, result) = read(key, &changed);
        assert_eq!(
            (out.len(), result),
            (0, Err(RemoteError::BadRecord)),
            "{place}"
        );
    }
}

#[test]
fn a_record_that_is_replayed_left_out_or_moved_is_refused() {
    let key = keys(1)[0].client;
    let [first, second, third] = &records(key, &[b"one", b"two", b"three"])[..] else {
        unreachable!("three were written")
    };
    for (name, wire, carried) in [
        ("replayed", [first, first, second], &b"one"[..]),
        ("left out", [first, third, third], b"one"),
        ("moved", [second, first, third], b""),
    ] {
        let (out, result) = read(key, &wire.map(Clone::clone).concat());
        assert_eq!(
            (&out[..], result),
            (carried, Err(RemoteError::BadRecord)),
            "{name}"
        );
    }
}

#[test]
fn a_record_is_good_in_its_direction_and_on_its_stream_alone() {
    let keys = keys(2);
    let wire = records(keys[0].client, &[b"mine"]).concat();
    // Sent back, given to another stream, or to another connection of the same secret.
    for other in [keys[0].server, keys[1].client, keys[1].server] {
        assert_eq!(
            read(other, &wire),
            (Vec::new(), Err(RemoteError::BadRecord))
        );
    }
}

#[test]
fn what_is_cut_short_carries_whole_records_alone() {
    let key = keys(1)[0].client;
    let wire = records(key, &[b"whole", b"cut short"]).concat();
    let (out, result) = read(key, &wire[..wire.len() - 1]);
    assert_eq!((&out[..], result), (&b"whole"[..], Ok(())));
}

#[test]
fn a_record_carries_at_most_what_the_protocol_allows() {
    let mut wire = Vec::new();
    RecordWriter::new([0; 32]).write(&[0; 65_537], &mut wire);
    assert_eq!(wire[..4], 65_536u32.to_be_bytes());
}

#[test]
fn empty_and_huge_records_are_refused_before_anything_is_stored() {
    for length in [0, MAX_RECORD_BYTES as u32 + 1, u32::MAX] {
        let (_, result) = read([0; 32], &length.to_be_bytes());
        assert_eq!(result, Err(RemoteError::BadRecord));
    }
}

#[test]
fn nobody_can_talk_the_two_out_of_it() {
    // A server that requires records refuses a client that does not ask for them.
    let mut plain = ClientHandshake::new(SECRET, [8; 16], 1, 1000);
    let greeting = plain.greet([1; 32], 0, &[]).unwrap();
    let mut strict = Admission::new(SECRET, 10).requiring_records();
    assert!(strict.admit(0, &greeting.bytes, [2; 32], |_| None).is_err());
    // A client that asks takes no answer without them: here of a server that does not know the field and skips it.
    let mut client = ClientHandshake::new(SECRET, [9; 16], 1, 1000).with_records();
    let asked = client.greet([1; 32], 0, &[]).unwrap();
    let mut other = ClientHandshake::new(SECRET, [9; 16], 1, 1000);
    let without = other.greet([1; 32], 0, &[]).unwrap();
    let mut admission = Admission::new(SECRET, 10);
    let answer = admission
        .admit(0, &without.bytes, [2; 32], |_| None)
        .unwrap()
        .answer;
    let error = client.on_answer(&asked, &answer).unwrap_err();
    assert!(matches!(error, RemoteError::WrongAnswer(_)), "{error}");
}
