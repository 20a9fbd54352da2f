//! A connection of one stream, which has no other to compare with.

use super::*;

#[test]
fn the_only_stream_of_a_silent_peer_never_stalls_and_it_is_asked_ever_less_often() {
    let mut connection = connection(&[1.0]);
    connection.write(&[0; PAYLOAD_BYTES]).unwrap();
    assert_eq!(send(&mut connection, 1), [PAYLOAD_BYTES]);
    let mut calls = 0;
    let mut now_ns = 0;
    while now_ns < 60_000 * MS {
        now_ns = connection.timeout_ns().unwrap();
        // TCP says that its peer acknowledges.
        for stream in connection.streams_to_query(now_ns).iter() {
            connection.on_unanswered(now_ns, stream, Unanswered::Nothing);
        }
        send(&mut connection, now_ns);
        calls += 1;
    }
    // Five times a second for five seconds, and then once a second.
    assert!((70..=90).contains(&calls), "{calls}");
    assert!(stalled(&connection).is_empty());
}

#[test]
fn the_only_stream_is_opened_again_where_reports_wait_behind_what_the_peer_sent() {
    let mut connection = connection(&[1.0]);
    connection.write(&[0; 4 * PAYLOAD_BYTES]).unwrap();
    send(&mut connection, 0);
    live_on_data(&mut connection, 0, 100 * MS);
    acknowledge(&mut connection, 1 << 18, &[(0, 1)]);
    live_on_data(&mut connection, 100 * MS, 600 * MS);
    assert_eq!(told(&mut connection), (vec![0], vec![]));
    assert_eq!(
        connection.counters().streams[0].resent_bytes,
        0,
        "on itself"
    );
    live_on_data(&mut connection, 600 * MS, 900 * MS);
    assert_eq!(told(&mut connection), (vec![], vec![0]));
    // The next stream brings it.
    let slot = connection.add_stream(1, 1.0).unwrap();
    assert_eq!(send(&mut connection, 950 * MS)[slot], 3 * PAYLOAD_BYTES);
}

#[test]
fn the_only_stream_is_opened_again_where_the_answer_to_a_ping_waits_behind_what_the_peer_sent() {
    let mut connection = with_a_full_window();
    live_on_data(&mut connection, 100 * MS, 500 * MS);
    assert_eq!(told(&mut connection), (vec![], vec![]), "no answer is late");
    live_on_data(&mut connection, 500 * MS, 1_000 * MS);
    assert_eq!(told(&mut connection), (vec![0], vec![0]));
}

#[test]
fn joins_that_are_never_confirmed_change_nothing_for_the_only_stream() {
    let mut connection = with_a_full_window();
    for (id, from_ms) in [(1, 100), (2, 450), (3, 800)] {
        let slot = connection.add_stream(id, 1.0).unwrap();
        connection.expect_confirm(slot, [7; 32]).unwrap();
        live_on_data(&mut connection, from_ms * MS, (from_ms + 350) * MS);
        connection.on_stream_end(slot).unwrap();
    }
    let (stalled, gone) = told(&mut connection);
    assert!(
        stalled.contains(&0) && gone.contains(&0),
        "{stalled:?} {gone:?}"
    );
}
