//! The first hello, said by the connection itself: what goes with it, behind it, and again on another path.

use mstcp_proto::handshake::{Admission, Admitted, ClientHandshake, CONFIRM_BYTES};
use mstcp_proto::{Connection, Error, Event, RemoteError};

use super::{config, offer, MS};

const FIRST_FLIGHT_BYTES: usize = 14_480;

fn connection() -> Connection {
    super::connection("earliest", config(1, 1440))
}

fn client(written: &[u8]) -> Connection {
    let mut connection = connection();
    connection.open_by(ClientHandshake::new(b"", [1; 16], 2, 1440));
    connection.write(written).unwrap();
    connection
}

/// All that a connection sends on stream 0 now.
fn sent(connection: &mut Connection, now_ns: u64) -> Vec<u8> {
    let frames = super::sent(connection, now_ns).into_iter();
    let bytes = frames.flat_map(|(stream, data)| {
        assert_eq!(stream, 0);
        data
    });
    bytes.collect()
}

fn hello_bytes(came: &[u8]) -> usize {
    let prefix = came[..12].try_into().unwrap();
    12 + mstcp_proto::hello::rest_bytes(prefix).unwrap()
}

fn admit(admission: &mut Admission, hello: &[u8], nonce: u8) -> Admitted {
    admission.admit(0, hello, [nonce; 32], |_| Some(1)).unwrap()
}

fn server(admitted: &Admitted) -> Connection {
    let mut connection = connection();
    connection.expect_confirm(0, admitted.confirm).unwrap();
    connection.take_unconfirmed();
    connection
}

fn take(connection: &mut Connection, came: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    connection.on_received(0, came, &mut out).unwrap();
    out
}

fn early(connection: &mut Connection, admitted: &Admitted) -> Vec<u8> {
    let mut out = Vec::new();
    connection.on_early(&admitted.hello.early_data, &mut out);
    out.iter().flat_map(|slice| slice.to_vec()).collect()
}

#[test]
fn what_is_written_goes_with_the_hello_and_behind_it_before_the_answer() {
    let written: Vec<u8> = (0..40_000_u32).map(|at| (at % 251) as u8).collect();
    let mut from = client(&written);
    assert!(sent(&mut from, 0).is_empty(), "nothing before the hello");
    from.greet([2; 32], 0, FIRST_FLIGHT_BYTES).unwrap();
    let flight = sent(&mut from, 0);
    let hello = hello_bytes(&flight);
    assert!(
        hello <= FIRST_FLIGHT_BYTES && hello > FIRST_FLIGHT_BYTES - 100,
        "{hello}"
    );

    let mut admission = Admission::new(b"", 10);
    let admitted = admit(&mut admission, &flight[..hello], 3);
    let mut to = server(&admitted);
    let mut got = early(&mut to, &admitted);
    got.extend(take(&mut to, &flight[hello..]));
    assert_eq!(
        got, written,
        "all of it, half a round trip after the client connected"
    );
    assert!(to.is_unconfirmed());

    // The answer, in two pieces, and frames of the server's behind it.
    to.write(b"answer").unwrap();
    let mut back = admitted.answer.clone();
    back.extend(sent(&mut to, MS));
    assert!(take(&mut from, &back[..50]).is_empty());
    assert_eq!(from.poll_event(), None);
    assert_eq!(take(&mut from, &back[50..]), b"answer");
    assert_eq!(from.poll_event(), Some(Event::Opened));
    assert!(from.client().is_some());
    from.end();
    take(&mut to, &sent(&mut from, 2 * MS));
    assert!(!to.is_unconfirmed() && to.is_ended());
}

#[test]
fn another_path_says_the_same_hello_and_nothing_comes_twice() {
    let written = [7_u8; 30_000];
    let mut from = client(&written);
    from.greet([2; 32], 0, FIRST_FLIGHT_BYTES).unwrap();
    let first = sent(&mut from, 0);
    let mut admission = Admission::new(b"", 10);
    let admitted = admit(&mut admission, &first[..hello_bytes(&first)], 3);
    let mut to = server(&admitted);
    let mut got = early(&mut to, &admitted);
    got.extend(take(&mut to, &first[hello_bytes(&first)..][..5000]));

    // No answer comes: the stream is given up, and another takes its place.
    assert!(!from.on_stream_end(0).unwrap());
    assert_eq!(from.add_stream(0, 1.0), Ok(0));
    assert!(
        sent(&mut from, 500 * MS).is_empty(),
        "the hello is first there too"
    );
    from.greet([4; 32], 0, FIRST_FLIGHT_BYTES / 2).unwrap();
    let second = sent(&mut from, 500 * MS);
    let hello = &second[..hello_bytes(&second)];
    let again = admission.admit(0, hello, [5; 32], |_| Some(1));
    assert!(again.is_err(), "only while the server says so");
    admission.admit_again(&[1; 16], to.is_unconfirmed());
    let admitted = admit(&mut admission, hello, 5);
    to.on_stream_end(0).unwrap();
    assert_eq!(to.add_stream(0, 1.0), Ok(0));
    to.expect_confirm(0, admitted.confirm).unwrap();
    got.extend(early(&mut to, &admitted));
    got.extend(take(&mut to, &second[hello.len()..]));
    assert_eq!(got, written);

    take(&mut from, &admitted.answer);
    take(&mut to, &sent(&mut from, 501 * MS));
    assert!(!to.is_unconfirmed());
    admission.admit_again(&[1; 16], to.is_unconfirmed());
    assert!(admission.admit(0, hello, [6; 32], |_| Some(1)).is_err());
}

#[test]
fn what_is_no_answer_ends_the_connection() {
    let mut from = client(b"");
    from.greet([2; 32], 0, FIRST_FLIGHT_BYTES).unwrap();
    let error = from.on_received(0, b"HTTP/1.1 400", &mut Vec::new());
    assert_eq!(error, Err(Error::Remote(RemoteError::NotMstcp)));
}

/// A client and a server whose first hello was answered.
fn opened() -> (Connection, Connection, Admission) {
    let mut from = client(b"");
    from.greet([2; 32], 0, FIRST_FLIGHT_BYTES).unwrap();
    let hello = sent(&mut from, 0);
    let mut admission = Admission::new(b"", 10);
    let admitted = admit(&mut admission, &hello, 3);
    let mut to = server(&admitted);
    take(&mut from, &admitted.answer);
    assert_eq!(from.poll_event(), Some(Event::Opened));
    take(&mut to, &sent(&mut from, MS));
    (from, to, admission)
}

/// Have a stream join whose hello is followed by what is written now; returns all that it sends.
fn join(from: &mut Connection, written: &[u8]) -> Vec<u8> {
    let greeting = (from.client().unwrap().clone()).greet([8; 32], 0, &[]);
    assert_eq!(from.join(greeting.unwrap(), 1e9), Ok(1));
    from.write(written).unwrap();
    from.ping(1);
    let mut bytes = Vec::new();
    while let Some((stream, data)) = offer(from, 2 * MS) {
        let count = if stream == 1 { data.len() } else { 0 };
        bytes.extend_from_slice(&data[..count]);
        from.on_sent(stream, count).unwrap();
    }
    bytes
}

#[test]
fn data_follows_the_hello_of_a_stream_that_joins() {
    let (mut from, mut to, mut admission) = opened();
    let written = [5; 4000];
    let flight = join(&mut from, &written);
    let (hello, behind) = flight.split_at(hello_bytes(&flight));
    let admitted = admit(&mut admission, hello, 9);
    assert_eq!(to.add_stream(1, 1.0), Ok(1));
    to.expect_confirm(1, admitted.confirm).unwrap();
    let mut got = Vec::new();
    to.on_received(1, behind, &mut got).unwrap();
    assert_eq!(
        got, written,
        "all of it, and no control frame before CONFIRM"
    );

    from.on_received(1, &admitted.answer, &mut Vec::new())
        .unwrap();
    assert_eq!(from.poll_event(), Some(Event::StreamJoined { slot: 1 }));
    let (stream, confirm) = offer(&mut from, 3 * MS).unwrap();
    assert!(stream == 1 && confirm.len() >= CONFIRM_BYTES);
    from.on_sent(1, confirm.len()).unwrap();
    to.on_received(1, &confirm, &mut Vec::new()).unwrap();
    assert!(to.alive().contains(1));
}

#[test]
fn what_followed_a_hello_that_is_refused_goes_over_others() {
    let (mut from, mut to, _) = opened();
    let written = [6; 4000];
    join(&mut from, &written);
    from.on_received(1, b"HTTP/1.1 400", &mut Vec::new())
        .unwrap();
    let error = RemoteError::NotMstcp;
    assert_eq!(
        from.poll_event(),
        Some(Event::StreamRefused { slot: 1, error })
    );
    from.on_writable(0).unwrap();
    assert_eq!(take(&mut to, &sent(&mut from, 4 * MS)), written);
}
