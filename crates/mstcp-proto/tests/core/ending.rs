//! How a connection ends where its last streams are lost: both sides come to the same outcome.

use mstcp_proto::handshake::{Admission, ClientHandshake, NotAdmitted};
use mstcp_proto::hello::{rest_bytes, PREFIX_BYTES};
use mstcp_proto::{Connection, ConnectionState, Control, Outcome, RecordReader};

use super::{config, encoded, outcome, sent, MS};

fn connection() -> Connection {
    super::connection("earliest", config(1, 1400))
}

/// Bring what `from` sends to `to`, or lose it.
fn carry(now_ns: u64, from: &mut Connection, to: Option<&mut Connection>) {
    let frames = sent(from, now_ns);
    if let Some(to) = to {
        for (_, data) in frames {
            to.on_received(0, &data, &mut Vec::new()).unwrap();
        }
    }
}

/// Have each side hear the other, five times within half a second.
fn exchange(client: &mut Connection, server: &mut Connection) {
    for now_ms in 0..5 {
        carry(100 * now_ms * MS, client, Some(server));
        carry(100 * now_ms * MS, server, Some(client));
    }
}

/// A server whose client has asked, and ended the only stream.
fn asked() -> Connection {
    let (mut client, mut server) = (connection(), connection());
    client.write(b"question").unwrap();
    client.shut();
    exchange(&mut client, &mut server);
    assert!(server.on_stream_end(0).unwrap());
    assert_eq!(outcome(&mut server), None);
    server
}

/// Client and server that have closed, all but the last acknowledgement, which `lost_from` sends, has come.
fn nearly_ended() -> (Connection, Connection) {
    let (mut client, mut server) = (connection(), connection());
    client.reopen_streams();
    client.write(b"question").unwrap();
    server.write(b"answer").unwrap();
    for side in [&mut client, &mut server] {
        side.shut();
    }
    for _ in 0..2 {
        carry(0, &mut client, Some(&mut server));
    }
    (client, server)
}

#[test]
fn a_server_that_has_closed_tells_a_client_that_joins() {
    for has_records in [false, true] {
        let mut admission = Admission::new(b"secret", 1);
        let mut opener = ClientHandshake::new(b"secret", [7; 16], 1, 1400);
        if has_records {
            opener = opener.with_records();
        }
        let hello = opener.greet([1; 32], 0, &[]).unwrap();
        let admitted = admission.admit(0, &hello.bytes, [2; 32], |_| None).unwrap();
        opener.on_answer(&hello, &admitted.answer).unwrap();
        let (mut client, mut server) = (connection(), connection());
        client.reopen_streams();
        for side in [&mut client, &mut server] {
            side.write(b"bytes").unwrap();
            side.shut();
        }
        // The server's bytes come before the client's, so that its acknowledgement of these goes alone, and is lost.
        carry(0, &mut server, Some(&mut client));
        carry(50 * MS, &mut client, Some(&mut server));
        carry(100 * MS, &mut server, None);
        assert_eq!(client.state(), ConnectionState::Draining);
        assert_eq!(server.state(), ConnectionState::Ending);
        for side in [&mut client, &mut server] {
            assert!(!side.on_stream_end(0).unwrap());
        }
        assert_eq!(outcome(&mut server), Some(Outcome::Delivered));
        assert_eq!(outcome(&mut client), None);
        admission.remember(0, &[7; 16], server.farewell().unwrap());
        // It joins, and is told; a stranger is not.
        let join = opener.greet([3; 32], 0, &[]).unwrap();
        let Err(NotAdmitted::Ended { answer }) =
            admission.admit(MS, &join.bytes, [4; 32], |_| None)
        else {
            panic!("the connection is not remembered");
        };
        let length = PREFIX_BYTES + rest_bytes(answer[..PREFIX_BYTES].try_into().unwrap()).unwrap();
        opener.on_answer(&join, &answer[..length]).unwrap();
        let mut farewell = answer[length..].to_vec();
        if has_records {
            let keys = opener.record_keys(&join, &answer[..length]).unwrap();
            let mut plain = Vec::new();
            let mut reader = RecordReader::new(keys.server);
            reader.read(&farewell, &mut plain).unwrap();
            farewell = plain;
        }
        let slot = client.add_stream(join.hello.stream_id, 1.0).unwrap();
        client
            .on_received(slot, &farewell, &mut Vec::new())
            .unwrap();
        assert!(client.on_stream_end(slot).unwrap());
        assert_eq!(outcome(&mut client), Some(Outcome::Delivered));
        let stranger = ClientHandshake::new(b"other", [7; 16], 1, 1400)
            .greet([5; 32], 0, &[])
            .unwrap();
        let refused = admission.admit(2 * MS, &stranger.bytes, [6; 32], |_| None);
        assert!(matches!(refused, Err(NotAdmitted::Refused { code: 4, .. })));
        let late = opener.greet([7; 32], 0, &[]).unwrap();
        let refused = admission.admit(40_000 * MS, &late.bytes, [8; 32], |_| None);
        assert!(matches!(refused, Err(NotAdmitted::Refused { code: 3, .. })));
    }
}

#[test]
fn a_client_whose_last_acknowledgement_is_lost_tells_it_on_another_stream() {
    let (mut client, mut server) = nearly_ended();
    carry(50 * MS, &mut server, Some(&mut client));
    carry(60 * MS, &mut client, None); // this tells that the client has everything
    assert_eq!(client.state(), ConnectionState::Ending);
    for side in [&mut client, &mut server] {
        assert!(!side.on_stream_end(0).unwrap());
    }
    assert_eq!(outcome(&mut client), None);
    for side in [&mut client, &mut server] {
        assert_eq!(side.add_stream(1, 1.0), Ok(0));
    }
    carry(100 * MS, &mut client, Some(&mut server));
    carry(100 * MS, &mut server, Some(&mut client));
    for side in [&mut client, &mut server] {
        side.poll_frame(101 * MS);
        assert_eq!(outcome(side), Some(Outcome::Delivered));
    }
}

#[test]
fn a_client_that_reaches_nobody_ends_after_two_seconds() {
    let (mut client, mut server) = nearly_ended();
    carry(50 * MS, &mut server, Some(&mut client));
    carry(60 * MS, &mut client, None);
    client.on_stream_end(0).unwrap();
    client.poll_frame(2_059 * MS);
    assert_eq!(outcome(&mut client), None);
    client.poll_frame(2_060 * MS);
    assert_eq!(outcome(&mut client), Some(Outcome::Delivered));
}

#[test]
fn a_stream_that_was_taken_out_is_not_the_end_of_the_peer() {
    let (mut client, mut server) = (connection(), connection());
    for side in [&mut client, &mut server] {
        side.reopen_streams();
        side.add_stream(1, 1.0).unwrap();
        side.remove_stream(1).unwrap();
        side.on_received(1, &encoded(&Control::Last), &mut Vec::new())
            .unwrap();
        assert!(side.on_stream_end(1).unwrap());
    }
    client.write(b"question").unwrap();
    client.shut();
    exchange(&mut client, &mut server);
    assert_eq!(client.state(), ConnectionState::Ending);
    assert_eq!(outcome(&mut client), None, "the server has not ended");
}

#[test]
fn who_closes_after_the_peer_has_ended_all_streams_is_done_at_once() {
    let mut server = asked();
    server.shut();
    assert_eq!(outcome(&mut server), Some(Outcome::Delivered));
}

#[test]
fn what_is_written_after_the_peer_has_ended_all_streams_is_lost_at_once() {
    let mut server = asked();
    server.write(b"").unwrap();
    assert_eq!(outcome(&mut server), None);
    server.write(b"answer").unwrap();
    assert!(server.timeout_ns() == Some(0) && server.state() == ConnectionState::Closed);
    assert_eq!(outcome(&mut server), Some(Outcome::Lost));
    server.write(b"more").unwrap();
    assert_eq!(outcome(&mut server), None);
}

/// A socket that is closed with bytes unread is reset, and the peer then loses what was on its way.
#[test]
fn a_stream_is_read_to_its_last_frame_before_the_end_or_for_half_a_second() {
    for is_told_on_both in [true, false] {
        let (mut client, mut server) = nearly_ended();
        client.add_stream(1, 1.0).unwrap();
        carry(50 * MS, &mut server, Some(&mut client));
        carry(60 * MS, &mut client, None);
        client
            .on_received(0, &encoded(&Control::Last), &mut Vec::new())
            .unwrap();
        client.poll_frame(61 * MS);
        assert_eq!(outcome(&mut client), None);
        if is_told_on_both {
            client
                .on_received(1, &encoded(&Control::Last), &mut Vec::new())
                .unwrap();
        }
        client.poll_frame(500 * MS);
        assert_eq!(outcome(&mut client).is_some(), is_told_on_both);
        client.poll_frame(560 * MS);
        assert_eq!(outcome(&mut client).is_some(), !is_told_on_both);
    }
}
