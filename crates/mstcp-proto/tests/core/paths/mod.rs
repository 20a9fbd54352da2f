//! What a connection makes of what it is told of its streams' paths.

mod acknowledging;
mod joining;
mod late;
mod only_stream;
mod overtaking;
mod silence;

use mstcp_proto::{Connection, Control, Event, LocalError, MeasuredPath, Outcome, Unanswered};

use super::{config, encoded, encoded_data, events, offer, outcome, sent, MS};

const PAYLOAD_BYTES: usize = 1000;
/// What the shell gives a stream whose rate nobody said.
const UNKNOWN_BPS: f64 = 1e10;

fn connection(weights: &[f64]) -> Connection {
    connection_by("weighted", weights)
}

fn connection_by(scheduler: &str, weights: &[f64]) -> Connection {
    let mut connection = super::connection(scheduler, config(weights.len(), PAYLOAD_BYTES));
    connection.set_weights(weights).unwrap();
    // The first acknowledgement is out of the way.
    let (stream, size) = connection.poll_frame(0).unwrap();
    connection.on_sent(stream, size).unwrap();
    tell(&mut connection, &Control::Seen(vec![(stream as u32, 1)]));
    connection
}

/// What the peer says on stream 0.
fn tell(connection: &mut Connection, control: &Control) {
    let bytes = encoded(control);
    connection.on_received(0, &bytes, &mut Vec::new()).unwrap();
}

/// A byte of data that the peer sends on a stream.
fn bring_data(connection: &mut Connection, stream: usize) {
    let data = encoded_data(0, 1, PAYLOAD_BYTES);
    (connection.on_received(stream, &data, &mut Vec::new())).unwrap();
}

fn measured(connection: &mut Connection, stream: usize, rate_bps: f64, delay_ns: u64) {
    let path = MeasuredPath::empty(rate_bps, delay_ns);
    connection.on_measured(stream, &path).unwrap();
}

/// Let time pass until then, while the peer gives signs of life.
fn live(connection: &mut Connection, from_ns: u64, to_ns: u64) {
    for now_ns in (from_ns..to_ns).step_by(100 * MS as usize).chain([to_ns]) {
        tell(connection, &Control::Pong(0));
        sent(connection, now_ns);
    }
}

/// As `live`, of a peer of which only data comes.
fn live_on_data(connection: &mut Connection, from_ns: u64, to_ns: u64) {
    for now_ns in (from_ns..to_ns).step_by(100 * MS as usize).chain([to_ns]) {
        bring_data(connection, 0);
        sent(connection, now_ns);
    }
}

/// After 100 ms, a connection of one stream that has sent all that the peer allows and was told that it came.
fn with_a_full_window() -> Connection {
    let mut connection = connection(&[1.0]);
    let window_bytes = 262_144;
    connection.write(&vec![0; window_bytes + 1]).unwrap();
    send_reported(&mut connection, 0);
    acknowledge_up_to(
        &mut connection,
        window_bytes as u64,
        window_bytes as u64,
        &[],
    );
    live_on_data(&mut connection, 0, 100 * MS);
    tell(&mut connection, &Control::Pong(0));
    connection
}

fn stalled(connection: &Connection) -> Vec<usize> {
    connection.stalled().iter().collect()
}

/// Send all there is; return how many bytes each stream took.
fn send(connection: &mut Connection, now_ns: u64) -> Vec<usize> {
    send_and(connection, now_ns, |_| ())
}

/// As `send`, to a peer that reports each frame at once.
fn send_reported(connection: &mut Connection, now_ns: u64) -> Vec<usize> {
    send_and(connection, now_ns, |connection| {
        let streams = connection.counters().streams;
        let sent = streams.iter().map(|stream| stream.frames_sent);
        let reports: Vec<_> = (0..).zip(sent).collect();
        acknowledge(connection, 0, &reports);
    })
}

fn send_and(
    connection: &mut Connection,
    now_ns: u64,
    after_each: impl Fn(&mut Connection),
) -> Vec<usize> {
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
        after_each(connection);
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
    tell(connection, &ack);
}

#[test]
fn streams_without_rates_share_by_what_they_were_found_to_carry() {
    const ALL_BYTES: usize = 4_000_000;
    let mut connection = connection(&[UNKNOWN_BPS, UNKNOWN_BPS]);
    acknowledge(&mut connection, 1 << 40, &[]);
    let mut now_ns = 0;
    for (rates_bps, share) in [([30e6, 10e6], 0.75), ([10e6, 10e6], 0.5), ([1e6, 4e6], 0.2)] {
        now_ns += 100_000 * MS; // all has left the host by then
        for (stream, rate_bps) in rates_bps.into_iter().enumerate() {
            measured(&mut connection, stream, rate_bps, 5 * MS);
        }
        connection.write(&[0; ALL_BYTES]).unwrap();
        let taken = send_reported(&mut connection, now_ns);
        assert_eq!(taken.iter().sum::<usize>(), ALL_BYTES);
        let carried = taken[0] as f64 / ALL_BYTES as f64;
        assert!((carried - share).abs() < 0.01, "{carried} of {rates_bps:?}");
    }
}

#[test]
fn what_tcps_full_window_holds_back_arrives_a_round_trip_after_what_fills_it() {
    for (waiting, taken) in [(0, [2 * PAYLOAD_BYTES, 0]), (1, [0, 2 * PAYLOAD_BYTES])] {
        let mut connection = connection(&[1e8]);
        connection.write(&[0; 10 * PAYLOAD_BYTES]).unwrap();
        send(&mut connection, 0);
        connection
            .on_unsent(MS, 0, waiting * PAYLOAD_BYTES)
            .unwrap();
        connection.add_stream(1, 1e8).unwrap();
        measured(&mut connection, 1, 1e8, 15 * MS);
        let path = MeasuredPath {
            flight_bytes: (10 - waiting as u32) as f64 * PAYLOAD_BYTES as f64,
            ..MeasuredPath::empty(1e8, 10 * MS)
        };
        connection.on_measured(0, &path).unwrap();
        (connection.on_unsent(2 * MS, 0, waiting * PAYLOAD_BYTES)).unwrap();
        connection.write(&[0; 2 * PAYLOAD_BYTES]).unwrap();
        assert_eq!(send(&mut connection, 2 * MS), taken);
    }
}

#[test]
fn a_stream_that_is_to_carry_nothing_keeps_that_whatever_its_path_could() {
    let mut connection = connection(&[0.0, 1e6]);
    measured(&mut connection, 0, 30e6, 5 * MS);
    connection.write(&[0; 10 * PAYLOAD_BYTES]).unwrap();
    assert_eq!(send(&mut connection, 0), [0, 10 * PAYLOAD_BYTES]);
}

#[test]
fn measures_that_make_no_sense_are_refused_and_change_nothing() {
    let mut connection = connection(&[30e6, 10e6]);
    for rate_bps in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let refused = connection.on_measured(0, &MeasuredPath::empty(rate_bps, MS));
        assert_eq!(refused, Err(LocalError::BadWeights));
    }
    assert_eq!(
        connection.on_measured(2, &MeasuredPath::empty(1e6, MS)),
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
fn a_stream_stalls_after_its_time_and_two_round_trips_while_the_peer_lives() {
    let mut connection = connection(&[1.0, 1.0]);
    connection.set_delay(1, 100 * MS).unwrap();
    connection.write(&[0; 2 * PAYLOAD_BYTES]).unwrap();
    assert_eq!(send(&mut connection, 0), [PAYLOAD_BYTES; 2]);
    for (now_ns, expected) in [(800 * MS - 1, &[][..]), (800 * MS, &[0, 1])] {
        live(&mut connection, now_ns - 300 * MS, now_ns);
        assert_eq!(stalled(&connection), expected, "at {now_ns} ns");
    }
    let streams = connection.counters().streams;
    let stalls: Vec<u64> = streams.iter().map(|stream| stream.stalls).collect();
    assert_eq!(stalls, [1, 1]);
}

#[test]
fn a_peer_that_is_held_up_stalls_no_stream_and_nothing_is_sent_twice() {
    let mut connection = connection(&[1.0, 1.0]);
    connection.write(&[0; 2 * PAYLOAD_BYTES]).unwrap();
    send(&mut connection, 0);
    live(&mut connection, 0, 100 * MS);
    // Its loop is blocked for three seconds, or ours is.
    for now_ms in (200..3100).step_by(50) {
        send(&mut connection, now_ms * MS);
    }
    // It goes on with one stream; the other has its time from now on.
    acknowledge(&mut connection, 1 << 20, &[(0, 1)]);
    live(&mut connection, 3100 * MS, 3399 * MS);
    assert!(stalled(&connection).is_empty());
    acknowledge(&mut connection, 1 << 20, &[(1, 1)]);
    live(&mut connection, 3399 * MS, 6000 * MS);
    assert!(stalled(&connection).is_empty());
    let streams = connection.counters().streams;
    assert!(streams.iter().all(|stream| stream.resent_bytes == 0));
}

#[test]
fn what_a_path_was_found_to_take_counts_for_its_stalls() {
    let mut connection = connection(&[1.0, 1.0]);
    connection.write(&[0; 2 * PAYLOAD_BYTES]).unwrap();
    assert_eq!(send(&mut connection, 0), [PAYLOAD_BYTES; 2]);
    for stream in [0, 1] {
        // A queue has grown since.
        measured(&mut connection, stream, 1e6, 500 * MS);
    }
    live(&mut connection, 0, 2300 * MS);
    assert!(stalled(&connection).is_empty());
    live(&mut connection, 2300 * MS, 2400 * MS);
    assert_eq!(stalled(&connection), [0, 1]);
}

#[test]
fn a_report_restarts_the_time() {
    let mut connection = connection(&[1.0, 1.0]);
    connection.write(&[0; 4 * PAYLOAD_BYTES]).unwrap();
    assert_eq!(send(&mut connection, 0), [2 * PAYLOAD_BYTES; 2]);
    live(&mut connection, 0, 300 * MS);
    acknowledge(&mut connection, 1 << 18, &[(0, 1)]);
    live(&mut connection, 300 * MS, 400 * MS);
    assert_eq!(stalled(&connection), [1]);
    live(&mut connection, 500 * MS, 700 * MS - 1);
    assert_eq!(stalled(&connection), [1]);
    live(&mut connection, 700 * MS, 700 * MS);
    assert_eq!(stalled(&connection), [0, 1]);
}

/// Events about streams: those that stalled, those that were given up.
fn told(connection: &mut Connection) -> (Vec<usize>, Vec<usize>) {
    let (mut stalled, mut gone) = (Vec::new(), Vec::new());
    for event in events(connection) {
        match event {
            Event::StreamStalled { slot } => stalled.push(slot),
            Event::StreamGone { slot } => gone.push(slot),
            _ => {}
        }
    }
    (stalled, gone)
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
fn a_stream_whose_tcp_is_not_answered_is_given_up_though_the_peer_is_silent_on_all() {
    let mut connection = connection(&[1.0, 1.0]);
    connection.write(&[0; 2 * PAYLOAD_BYTES]).unwrap();
    send(&mut connection, 0);
    let (mut now_ns, mut turns) = (0, 0);
    let mut gone = false;
    while connection.alive().contains(1) {
        now_ns = connection.timeout_ns().unwrap().max(now_ns);
        turns += 1;
        assert!(
            turns < 30 && now_ns < 1500 * MS,
            "{turns} turns, {now_ns} ns"
        );
        for stream in connection.streams_to_query(now_ns).iter() {
            let unanswered = match stream {
                1 => Unanswered::SentAgain,
                _ => Unanswered::Nothing,
            };
            connection.on_unanswered(now_ns, stream, unanswered);
        }
        send(&mut connection, now_ns);
        gone |= events(&mut connection).contains(&Event::StreamGone { slot: 1 });
    }
    assert!(gone && now_ns >= 800 * MS, "{now_ns}");
    assert!(connection.alive().contains(0));
}

#[test]
fn a_path_that_reports_nothing_is_given_no_more_than_tcp_sends_in_two_round_trips() {
    let mut connection = connection(&[UNKNOWN_BPS]);
    acknowledge(&mut connection, 1 << 40, &[]);
    measured(&mut connection, 0, 1e10, MS / 10);
    connection.write(&[0; 4_000_000]).unwrap();
    let first = send(&mut connection, 0)[0];
    assert!((1 << 14..=1 << 16).contains(&first), "{first}");
    // What it reports at once doubles what it gets.
    let frames = connection.counters().streams[0].frames_sent;
    acknowledge(&mut connection, 0, &[(0, frames)]);
    let second = send(&mut connection, MS)[0];
    assert!(second > 3 * first / 2, "{second} after {first}");
    // Where the oldest is late it gets nothing.
    acknowledge(&mut connection, 0, &[(0, frames + 1)]);
    assert_eq!(send(&mut connection, 300 * MS)[0], 0);
}
