//! Streams that bring what they hold too late.

use super::*;

#[test]
fn where_all_streams_are_stalled_one_that_is_only_slow_is_opened_again() {
    let mut connection = connection(&[1.0, 1.0]);
    connection.write(&[0; 4 * PAYLOAD_BYTES]).unwrap();
    assert_eq!(send(&mut connection, 0), [2 * PAYLOAD_BYTES; 2]);
    // The peer has reported frames of the first stream, and none of the second.
    live(&mut connection, 0, 100 * MS);
    acknowledge(&mut connection, 1 << 18, &[(0, 1)]);
    live(&mut connection, 100 * MS, 600 * MS);
    assert_eq!(stalled(&connection), [0, 1]);
    live(&mut connection, 700 * MS, 800 * MS - 1);
    assert_eq!(stalled(&connection), [0, 1]);
    live(&mut connection, 800 * MS, 800 * MS);
    assert_eq!(stalled(&connection), [1]);
    assert_eq!(told(&mut connection).1, [0]);
    // The one that takes its place is given little before anything is reported of it.
    let slot = connection.add_stream(2, 1e9).unwrap();
    connection.write(&[0; 100 * PAYLOAD_BYTES]).unwrap();
    let taken = send(&mut connection, 900 * MS)[slot];
    assert!(taken <= 6 * PAYLOAD_BYTES, "{taken}");
}

/// Have the peer report a further frame of stream 0 every 100 ms, from the first after `from_ms` to that at `to_ms`.
fn report_slowly(connection: &mut Connection, from_ms: u64, to_ms: u64) {
    for ms in (from_ms..to_ms).step_by(100) {
        live(connection, ms * MS, (ms + 100) * MS - 1);
        acknowledge(connection, 1 << 18, &[(0, ms / 100 + 1)]);
        live(connection, (ms + 100) * MS, (ms + 100) * MS);
    }
}

#[test]
fn a_stream_that_is_late_by_a_second_is_opened_again_where_no_other_takes_what_was_lost() {
    let mut connection = connection(&[1.0, 1.0]);
    connection.write(&[0; 40 * PAYLOAD_BYTES]).unwrap();
    assert_eq!(send(&mut connection, 0), [20 * PAYLOAD_BYTES; 2]);
    acknowledge(&mut connection, 1 << 18, &[(1, 20)]);
    report_slowly(&mut connection, 0, 900);
    // The quick one takes what the slow one may not, and brings nothing any more.
    connection.write(&[0; PAYLOAD_BYTES]).unwrap();
    report_slowly(&mut connection, 900, 1_500);
    assert_eq!(told(&mut connection), (vec![1], vec![]));
    report_slowly(&mut connection, 1_500, 1_600);
    assert_eq!(told(&mut connection), (vec![], vec![0]));
}

#[test]
fn a_stream_that_is_late_stays_where_nothing_was_lost() {
    let mut connection = connection(&[1.0]);
    connection.write(&[0; 20 * PAYLOAD_BYTES]).unwrap();
    send(&mut connection, 0);
    report_slowly(&mut connection, 0, 1_900);
    assert_eq!(told(&mut connection), (vec![], vec![]));
}

#[test]
fn what_late_streams_hold_goes_first_over_one_that_joins() {
    for (joins_ms, is_late) in [(100, false), (200, true)] {
        let mut connection = connection(&[1.0]);
        connection.write(&[0; 100 * PAYLOAD_BYTES]).unwrap();
        let held = send(&mut connection, 0)[0];
        live(&mut connection, 0, joins_ms * MS);
        let slot = connection.add_stream(1, 1.0).unwrap();
        send(&mut connection, joins_ms * MS);
        let resent = connection.counters().streams[slot].resent_bytes;
        assert_eq!(resent, if is_late { held as u64 } else { 0 });
    }
}
