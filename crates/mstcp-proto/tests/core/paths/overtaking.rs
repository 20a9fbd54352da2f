//! What goes once more over another stream.

use super::*;

#[test]
fn what_a_slow_stream_owes_goes_over_others_once_the_peers_window_is_full() {
    let mut connection = connection(&[1.0, 1.0]);
    connection.write(&[0; 300_000]).unwrap();
    // All that stream 1 brings comes, and nothing of stream 0 yet: the window of 256 KiB is full.
    let taken = send_and(&mut connection, 0, |connection| {
        let frames = connection.counters().streams[1].frames_sent;
        acknowledge(connection, 0, &[(1, frames)]);
    });
    assert_eq!(taken.iter().sum::<usize>(), 1 << 18);
    live(&mut connection, 0, 150 * MS);
    assert_eq!(connection.counters().streams[1].resent_bytes, 0);
    live(&mut connection, 150 * MS, 300 * MS);
    assert!(stalled(&connection).is_empty());
    let resent = connection.counters().streams[1].resent_bytes;
    assert_eq!(resent, taken[0] as u64);
}

#[test]
fn of_a_frame_that_the_peer_has_in_part_the_rest_alone_overtakes() {
    let mut from = connection_by("earliest", &[1e5]);
    from.write(&[7; PAYLOAD_BYTES]).unwrap();
    send(&mut from, 0);
    let fast = from.add_stream(1, 1e7).unwrap();
    from.end();
    acknowledge_up_to(&mut from, 300, 1 << 20, &[]);
    let resent = |of: &Connection| of.counters().streams[fast].resent_bytes;
    send(&mut from, 200 * MS);
    assert_eq!(resent(&from), PAYLOAD_BYTES as u64 - 300);
    send(&mut from, 300 * MS);
    assert_eq!(resent(&from), PAYLOAD_BYTES as u64 - 300, "once is enough");
}

#[test]
fn what_went_again_since_its_stream_stalled_does_not_overtake_as_well() {
    let mut from = connection(&[1e6, 1e6]);
    from.write(&[7; 10 * PAYLOAD_BYTES]).unwrap();
    let stalled = send(&mut from, 0)[0];
    // The other stream's frames are reported, the first's are not.
    let reported = from.counters().streams[1].frames_sent;
    acknowledge(&mut from, 1 << 20, &[(1, reported)]);
    live(&mut from, 0, 700 * MS);
    let resent = |of: &Connection| of.counters().streams[1].resent_bytes as usize;
    assert_eq!(resent(&from), stalled);
    from.end();
    send(&mut from, 750 * MS);
    assert_eq!(resent(&from), stalled);
}

#[test]
fn what_stalled_streams_hold_and_what_came_since_goes_over_the_first_that_is_not() {
    let mut connection = connection(&[1.0, 1.0]);
    connection.write(&[0; 2 * PAYLOAD_BYTES]).unwrap();
    send(&mut connection, 0);
    live(&mut connection, 0, 400 * MS);
    assert_eq!(stalled(&connection), [0, 1]);
    connection.write(&[0; 2 * PAYLOAD_BYTES]).unwrap();
    live(&mut connection, 400 * MS, 500 * MS);
    let third = connection.add_stream(2, 1.0).unwrap();
    let taken = |of: &Connection| of.counters().streams[third].bytes_sent;
    live(&mut connection, 500 * MS, 600 * MS);
    assert_eq!(taken(&connection), 4 * PAYLOAD_BYTES as u64);
}

#[test]
fn a_path_that_turns_out_to_be_slow_is_overtaken_though_nobody_reports_anything() {
    let mut from = connection_by("earliest", &[1e6, 1e6]);
    for stream in [0, 1] {
        measured(&mut from, stream, 1e8, MS);
    }
    from.write(&[7; 20 * PAYLOAD_BYTES]).unwrap();
    let taken = send(&mut from, 0);
    assert!(taken.iter().all(|bytes| *bytes > 0));
    let due_ns = from.timeout_ns().unwrap();
    assert!(due_ns < 10 * MS, "{due_ns}");
    let waiting = MeasuredPath {
        queue_bytes: taken[0] as f64,
        flight_bytes: taken[0] as f64,
        ..MeasuredPath::empty(2e6, MS)
    };
    from.on_measured(0, &waiting).unwrap();
    let resent = |of: &Connection| of.counters().streams[1].resent_bytes;
    send(&mut from, MS - 1);
    assert_eq!(resent(&from), 0, "more may be written");
    send(&mut from, due_ns);
    assert!(resent(&from) > 0);
}

#[test]
fn what_has_left_the_host_late_or_not_at_all_is_overtaken_though_it_could_have_arrived() {
    // Frames that are unsent until 99 ms, and at 100 ms: its window opens once in a round trip.
    for (before, now, overtaken) in [(9, 9, 9), (9, 0, 9), (0, 0, 0)] {
        let mut from = connection_by("earliest", &[4e7]);
        measured(&mut from, 0, 4e7, 100 * MS);
        from.write(&[7; 10 * PAYLOAD_BYTES]).unwrap();
        send(&mut from, 0);
        for (at_ms, frames) in [(2, before), (99, before), (100, now)] {
            (from.on_unsent(at_ms * MS, 0, frames * PAYLOAD_BYTES)).unwrap();
        }
        acknowledge(&mut from, 1 << 20, &[(0, 1)]);
        let quick = from.add_stream(1, 4e7).unwrap();
        measured(&mut from, quick, 4e7, MS);
        send(&mut from, 100 * MS);
        let resent = from.counters().streams[quick].resent_bytes;
        assert_eq!(resent, (overtaken * PAYLOAD_BYTES) as u64);
    }
}
