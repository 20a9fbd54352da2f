//! Hellos, answers and confirmations that were changed, swapped or cut on the way, and fields that only one side may set.

use mstcp_proto::handshake::{Admission, ClientHandshake, ClientHello, NotAdmitted};
use mstcp_proto::hello::{split, Hello, PROOF_BYTES};
use mstcp_proto::RemoteError;

use super::{config, connection};

type Change = fn(&mut Hello);

fn greeting() -> (ClientHandshake, ClientHello) {
    let mut client = ClientHandshake::new(b"", [7; 16], 2, 1000);
    let greeting = client.greet([1; 32], 0, &[]).unwrap();
    (client, greeting)
}

fn changed(opening: &[u8], change: impl FnOnce(&mut Hello)) -> Vec<u8> {
    let mut hello = Hello::decode_body(split(opening).unwrap().1).unwrap();
    change(&mut hello);
    [hello.encode(), vec![0; PROOF_BYTES]].concat()
}

#[test]
fn a_hello_that_refuses_is_malformed() {
    let (_, greeting) = greeting();
    let hello = changed(&greeting.bytes, |hello| hello.refusal = 1);
    let error = Admission::new(b"", 1).admit(0, &hello, [2; 32], |_| None);
    assert!(matches!(error, Err(NotAdmitted::Malformed(_))), "{error:?}");
}

#[test]
fn an_answer_says_nothing_that_only_a_client_may_say() {
    let changes: [Change; 3] = [
        |answer| answer.priority = 1,
        |answer| answer.early_data = vec![1],
        |answer| answer.least_version = 2,
    ];
    for change in changes {
        let (mut client, greeting) = greeting();
        let admitted = Admission::new(b"", 1).admit(0, &greeting.bytes, [2; 32], |_| None);
        let answer = changed(&admitted.unwrap().answer, change);
        let error = client.on_answer(&greeting, &answer).unwrap_err();
        assert!(matches!(error, RemoteError::WrongAnswer(_)), "{error}");
    }
}

/// A client's and a server's first words.
fn opened(
    client: &mut ClientHandshake,
    admission: &mut Admission,
    nonce: u8,
) -> (ClientHello, Vec<u8>) {
    let greeting = client.greet([nonce; 32], 0, &[]).unwrap();
    let admitted = admission.admit(0, &greeting.bytes, [nonce | 128; 32], |_| Some(1));
    (greeting, admitted.unwrap().answer)
}

#[test]
fn an_answer_that_was_changed_swapped_or_cut_is_not_taken() {
    let mut admission = Admission::new(b"ours", 10);
    let mut client = ClientHandshake::new(b"ours", [7; 16], 3, 100);
    let (first, answer) = opened(&mut client, &mut admission, 1);
    let mut stranger = ClientHandshake::new(b"ours", [8; 16], 3, 100);
    let (_, other) = opened(&mut stranger, &mut admission, 2);
    let damaged = [&answer[..answer.len() - 1], &[answer[answer.len() - 1] ^ 1]].concat();
    let changes: [(Change, &str); 6] = [
        (|said| said.connection_id = [0; 16], "another connection"),
        (|said| said.stream_id = 9, "another stream"),
        (|said| said.stream_count = 2, "stream_count differs"),
        (
            |said| said.frame_payload_bytes = 99,
            "frame_payload_bytes differs",
        ),
        (|said| said.nonce = [3; 32], "does not prove"),
        (|said| said.version = 9, "none that was offered"),
    ];
    let changes = changes.map(|(change, why)| (changed(&answer, change), why));
    let whole = [(damaged, "does not prove"), (other, "another connection")];
    for (wrong, why) in whole.into_iter().chain(changes) {
        let error = client.on_answer(&first, &wrong).unwrap_err();
        assert!(error.to_string().contains(why), "{error} instead of {why}");
    }
    client.on_answer(&first, &answer).unwrap();
    let joins = [5, 6].map(|nonce| opened(&mut client, &mut admission, nonce));
    for ((greeting, own), (_, others)) in joins.iter().zip(joins.iter().rev()) {
        for (wrong, why) in [
            (others, "another stream"),
            (&greeting.bytes, "our own nonce"),
        ] {
            let error = client.on_answer(greeting, wrong).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
        for length in 0..own.len() {
            client.on_answer(greeting, &own[..length]).unwrap_err();
        }
        client.on_answer(greeting, own).unwrap();
    }
}

#[test]
fn every_byte_of_a_hello_is_proved() {
    let mut client = ClientHandshake::new(b"ours", [0; 16], 3, 100);
    let hello = client.greet([1; 32], 0, b"early").unwrap().bytes;
    let admit = |hello: &[u8]| Admission::new(b"ours", 10).admit(0, hello, [0; 32], |_| None);
    for place in 0..hello.len() {
        let mut damaged = hello.clone();
        damaged[place] ^= 1;
        admit(&damaged).expect_err("no byte may differ");
    }
    admit(&hello).unwrap();
}

#[test]
fn confirmations_that_are_swapped_let_neither_stream_in() {
    let mut client = ClientHandshake::new(b"ours", [0; 16], 3, 100);
    let mut admission = Admission::new(b"ours", 10);
    let mut connection = connection("earliest", config(3, 100));
    let mut confirms = Vec::new();
    for stream in 0..3 {
        let greeting = client.greet([stream; 32], 0, &[]).unwrap();
        let admitted = admission.admit(0, &greeting.bytes, [stream | 128; 32], |_| Some(1));
        let admitted = admitted.unwrap();
        (connection.expect_confirm(stream.into(), admitted.confirm)).unwrap();
        confirms.push(client.on_answer(&greeting, &admitted.answer).unwrap());
    }
    let data = [0; 8 + 100];
    let mut out = Vec::new();
    connection.on_received(0, &confirms[0], &mut out).unwrap();
    for (stream, swapped) in [(1, 2), (2, 1)] {
        let came = [&confirms[swapped][..], &data].concat();
        connection.on_received(stream, &came, &mut out).unwrap();
    }
    assert!(out.is_empty());
    assert_eq!(connection.alive().bits(), 1);
}
