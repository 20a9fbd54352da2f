//! What a connection makes of what it is told of its streams' paths.

use mstcp_core::control::Control;
use mstcp_core::{frame, scheduler, Config, Connection, LocalError};

const PAYLOAD_BYTES: usize = 1000;
const MS: u64 = 1_000_000;
/// What the shell gives a stream whose rate nobody said.
const UNKNOWN_BPS: f64 = 1e10;

fn connection(weights: &[f64]) -> Connection {
    connection_by("weighted", weights)
}

fn connection_by(scheduler: &str, weights: &[f64]) -> Connection {
    let config = Config {
        stream_count: weights.len(),
        frame_payload_bytes: PAYLOAD_BYTES,
        send_queue_bytes: usize::MAX,
        reorder_buffer_bytes: 1 << 20,
    };
    let scheduler = scheduler::by_name(scheduler, 1).unwrap();
    let mut connection = Connection::new(config, scheduler).unwrap();
    connection.set_weights(weights).unwrap();
    // The first acknowledgement is out of the way.
    let (stream, size) = connection.poll_frame(0).unwrap();
    connection.on_sent(stream, size).unwrap();
    connection
}

/// Send all there is; return how many bytes each stream took.
fn send(connection: &mut Connection, now_ns: u64) -> Vec<usize> {
    let carried = |of: &Connection| -> Vec<u64> {
        let counters = of.counters();
        counters
            .streams
            .iter()
            .map(|stream| stream.bytes_sent)
            .collect()
    };
    let before = carried(connection);
    while let Some((stream, size)) = connection.poll_frame(now_ns) {
        connection.on_sent(stream, size).unwrap();
    }
    let after = carried(connection);
    let taken = after.iter().zip(before);
    taken
        .map(|(after, before)| (after - before) as usize)
        .collect()
}

/// The peer's word of what it got, by stream, and what it grants.
fn acknowledge(connection: &mut Connection, limit: u64, streams: &[(u32, u64)]) {
    acknowledge_up_to(connection, 0, limit, streams);
}

fn acknowledge_up_to(
    connection: &mut Connection,
    received: u64,
    limit: u64,
    streams: &[(u32, u64)],
) {
    let ack = Control::Ack {
        received,
        limit,
        streams: streams.to_vec(),
    };
    let mut bytes = Vec::new();
    frame::encode_control(&mut bytes, &ack);
    connection.on_received(0, &bytes, &mut Vec::new()).unwrap();
}

#[test]
fn streams_without_rates_share_by_what_they_were_found_to_carry() {
    const ALL_BYTES: usize = 4_000_000;
    let mut connection = connection(&[UNKNOWN_BPS, UNKNOWN_BPS]);
    acknowledge(&mut connection, 1 << 40, &[]);
    for (rates_bps, share) in [([30e6, 10e6], 0.75), ([10e6, 10e6], 0.5), ([1e6, 4e6], 0.2)] {
        for (stream, rate_bps) in rates_bps.into_iter().enumerate() {
            connection.on_measured(stream, rate_bps, 5 * MS).unwrap();
        }
        connection.write(&[0; ALL_BYTES]).unwrap();
        let taken = send(&mut connection, 0);
        assert_eq!(taken.iter().sum::<usize>(), ALL_BYTES);
        let found = taken[0] as f64 / ALL_BYTES as f64;
        assert!((found - share).abs() < 0.01, "{found} of {rates_bps:?}");
    }
}

#[test]
fn a_stream_that_is_to_carry_nothing_keeps_that_whatever_its_path_could() {
    let mut connection = connection(&[0.0, 1e6]);
    connection.on_measured(0, 30e6, 5 * MS).unwrap();
    connection.write(&[0; 10 * PAYLOAD_BYTES]).unwrap();
    assert_eq!(send(&mut connection, 0), [0, 10 * PAYLOAD_BYTES]);
}

#[test]
fn measures_that_make_no_sense_are_refused_and_change_nothing() {
    let mut connection = connection(&[30e6, 10e6]);
    for rate_bps in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let refused = connection.on_measured(0, rate_bps, MS);
        assert_eq!(refused, Err(LocalError::BadWeights));
    }
    assert_eq!(
        connection.on_measured(2, 1e6, MS),
        Err(LocalError::NoSuchStream(2))
    );
    connection.write(&[0; 40 * PAYLOAD_BYTES]).unwrap();
    let taken = send(&mut connection, 0);
    assert!(
        taken[0].abs_diff(30 * PAYLOAD_BYTES) <= PAYLOAD_BYTES,
        "{taken:?}"
    );
}

#[test]
fn a_stream_stalls_after_a_second_and_two_round_trips() {
    let mut connection = connection(&[1.0, 1.0]);
    connection.set_delay(1, 300 * MS).unwrap();
    connection.write(&[0; 2 * PAYLOAD_BYTES]).unwrap();
    assert_eq!(send(&mut connection, 0), [PAYLOAD_BYTES; 2]);
    let stalled = |connection: &Connection| -> Vec<usize> { connection.stalled().iter().collect() };
    for (now_ns, expected) in [
        (1000 * MS - 1, &[][..]),
        (1000 * MS, &[0]),
        (2200 * MS - 1, &[0]),
        (2200 * MS, &[0, 1]),
    ] {
        if now_ns % MS == 0 {
            assert_eq!(
                connection.timeout_ns(),
                Some(now_ns),
                "no call is asked for then"
            );
        }
        connection.poll_frame(now_ns);
        assert_eq!(stalled(&connection), expected, "at {now_ns} ns");
    }
    let counters = connection.counters();
    assert_eq!(
        counters
            .streams
            .iter()
            .map(|stream| stream.stalls)
            .collect::<Vec<_>>(),
        [1, 1]
    );
}

#[test]
fn what_a_path_was_found_to_take_counts_for_its_stalls() {
    let mut connection = connection(&[1.0, 1.0]);
    connection.write(&[0; 2 * PAYLOAD_BYTES]).unwrap();
    assert_eq!(send(&mut connection, 0), [PAYLOAD_BYTES; 2]);
    for stream in [0, 1] {
        // A queue has grown since.
        connection.on_measured(stream, 1e6, 500 * MS).unwrap();
    }
    assert_eq!(connection.timeout_ns(), Some(3000 * MS));
}

#[test]
fn a_report_begins_the_time_anew() {
    let mut connection = connection(&[1.0, 1.0]);
    connection.write(&[0; 4 * PAYLOAD_BYTES]).unwrap();
    assert_eq!(send(&mut connection, 0), [2 * PAYLOAD_BYTES; 2]);
    connection.poll_frame(900 * MS);
    acknowledge(&mut connection, 1 << 18, &[(0, 1)]);
    connection.poll_frame(1000 * MS);
    assert_eq!(connection.stalled().iter().collect::<Vec<_>>(), [1]);
    connection.poll_frame(1900 * MS - 1);
    assert!(!connection.stalled().contains(0));
    connection.poll_frame(1900 * MS);
    assert!(connection.stalled().contains(0));
}

#[test]
fn the_only_stream_never_stalls() {
    let mut connection = connection(&[1.0]);
    connection.write(&[0; PAYLOAD_BYTES]).unwrap();
    assert_eq!(send(&mut connection, 0), [PAYLOAD_BYTES]);
    assert_eq!(connection.timeout_ns(), None);
    assert!(connection.poll_frame(1 << 50).is_none());
    assert!(connection.stalled().is_empty());
}

#[test]
fn a_stream_that_leaves_the_host_faster_than_its_path_carries_gets_no_more_than_its_rate() {
    // 99.4 % of two streams' rates. The second is longer, and the host never has a byte waiting.
    let (rate_bps, seconds, wire_bytes) = (4.5e6, 20.0, PAYLOAD_BYTES as f64 + 8.0);
    let mut from = connection_by("earliest", &[rate_bps, rate_bps]);
    from.set_delay(1, 20 * MS).unwrap();
    let interval_s = wire_bytes * 8.0 / (2.0 * rate_bps * 0.994);
    let mut first_bytes = 0.0;
    for number in 0..(seconds / interval_s) as u64 {
        let now_ns = (number as f64 * interval_s * 1e9) as u64;
        from.write(&[0; PAYLOAD_BYTES]).unwrap();
        first_bytes += send(&mut from, now_ns)[0] as f64;
        (0..2).for_each(|stream| from.on_unsent(now_ns, stream, 0).unwrap());
        let frames = from.counters().streams;
        let told = [(0, frames[0].frames_sent), (1, frames[1].frames_sent)];
        acknowledge(&mut from, u64::MAX >> 2, &told);
    }
    // More would wait on the path: what brings it level with the second is 20 ms of its rate.
    let most_bytes = rate_bps / 8.0 * (seconds + 0.02) * PAYLOAD_BYTES as f64 / wire_bytes;
    assert!(first_bytes <= most_bytes + 2.0 * PAYLOAD_BYTES as f64);
    assert!(first_bytes >= 0.99 * most_bytes);
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
    send(&mut from, 2000 * MS);
    let resent = |of: &Connection| of.counters().streams[1].resent_bytes as usize;
    assert_eq!(resent(&from), stalled);
    from.end();
    send(&mut from, 2050 * MS);
    assert_eq!(resent(&from), stalled);
}
