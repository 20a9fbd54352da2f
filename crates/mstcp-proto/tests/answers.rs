//! Fields that only one of the two sides may set, and confirmations of other streams.

use mstcp_proto::handshake::{Admission, Client, Greeting, NotAdmitted};
use mstcp_proto::hello::{split, Hello, PROOF_BYTES};
use mstcp_proto::scheduler::Earliest;
use mstcp_proto::{Config, Connection, RemoteError};

fn greeting() -> (Client, Greeting) {
    let mut client = Client::new(b"", [7; 16], 2, 1000);
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
    let changes: [fn(&mut Hello); 3] = [
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

#[test]
fn confirmations_that_are_swapped_let_neither_stream_in() {
    let config = Config {
        stream_count: 3,
        frame_payload_bytes: 100,
        send_queue_bytes: 1 << 16,
        reorder_buffer_bytes: 1 << 18,
    };
    let mut client = Client::new(b"ours", [0; 16], 3, 100);
    let mut admission = Admission::new(b"ours", 10);
    let mut connection = Connection::new(config, Box::new(Earliest)).unwrap();
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
