//! Fields that only one of the two sides may set.

use mstcp_proto::handshake::{Admission, Client, Greeting, NotAdmitted};
use mstcp_proto::hello::{split, Hello, PROOF_BYTES};
use mstcp_proto::RemoteError;

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
