//! Streams before they are confirmed.

use super::*;

#[test]
fn a_connection_that_its_client_never_confirmed_waits_for_a_second() {
    for (is_confirmed, wait_ns) in [(false, 1000 * MS), (true, 5000 * MS)] {
        let mut connection = connection(&[1.0]);
        connection.expect_confirm(0, [7; 32]).unwrap();
        if is_confirmed {
            tell(&mut connection, &Control::Confirm([7; 32]));
        }
        send(&mut connection, 0);
        connection.on_stream_end(0).unwrap();
        send(&mut connection, MS);
        for (now_ns, is_over) in [(wait_ns, false), (wait_ns + 2 * MS, true)] {
            send(&mut connection, now_ns);
            let ended = outcome(&mut connection);
            assert_eq!(ended == Some(Outcome::Lost), is_over, "at {now_ns} ns");
        }
    }
}

#[test]
fn a_stream_that_joins_takes_no_data_before_it_is_confirmed() {
    // A path that works from the client alone brings hellos, and no answers: the client says others again and again.
    let mut connection = connection(&[1.0]);
    let slot = connection.add_stream(1, 1e9).unwrap();
    connection.expect_confirm(slot, [7; 32]).unwrap();
    connection.write(&[0; 10 * PAYLOAD_BYTES]).unwrap();
    assert_eq!(send(&mut connection, 0), [10 * PAYLOAD_BYTES, 0]);
    let confirm = encoded(&Control::Confirm([7; 32]));
    connection
        .on_received(slot, &confirm, &mut Vec::new())
        .unwrap();
    connection.write(&[0; 10 * PAYLOAD_BYTES]).unwrap();
    assert!(send(&mut connection, MS)[slot] > 0);
    // Also if it is the only one: what it takes meanwhile would have to go again.
    let later = connection.add_stream(2, 1e9).unwrap();
    connection.expect_confirm(later, [7; 32]).unwrap();
    for lost in [0, slot] {
        connection.on_stream_end(lost).unwrap();
    }
    assert_eq!(send(&mut connection, 2 * MS), [0; 3]);
}

#[test]
fn a_stream_that_joins_acknowledges_nothing_once_more() {
    let mut connection = connection(&[1.0]);
    connection.add_stream(1, 1.0).unwrap();
    assert!(sent(&mut connection, MS).is_empty());
}
