//! What a connection makes of what it is told of its streams' paths.

use mstcp_core::control::Control;
use mstcp_core::{frame, scheduler, Config, Connection, Event, LocalError, Outcome};

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
    tell(&mut connection, &Control::Seen(vec![(stream as u32, 1)]));
    connection
}

/// What the peer says on stream 0.
fn tell(connection: &mut Connection, control: &Control) {
    let mut bytes = Vec::new();
    frame::encode_control(&mut bytes, control);
    connection.on_received(0, &bytes, &mut Vec::new()).unwrap();
}

/// Let time pass until then, while the peer gives signs of life.
fn live(connection: &mut Connection, from_ns: u64, to_ns: u64) {
    for now_ns in (from_ns..to_ns).step_by(100 * MS as usize).chain([to_ns]) {
        tell(connection, &Control::Pong(0));
        while let Some((stream, size)) = connection.poll_frame(now_ns) {
            connection.on_sent(stream, size).unwrap();
        }
    }
}

/// As `live`, of a peer of which only data comes.
fn live_on_data(connection: &mut Connection, from_ns: u64, to_ns: u64) {
    for now_ns in (from_ns..to_ns).step_by(100 * MS as usize).chain([to_ns]) {
        let mut bytes = Vec::new();
        frame::encode_data_header(&mut bytes, 0, 1, PAYLOAD_BYTES);
        bytes.push(0);
        connection.on_received(0, &bytes, &mut Vec::new()).unwrap();
        send(connection, now_ns);
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
    for (rates_bps, share) in [([30e6, 10e6], 0.75), ([10e6, 10e6], 0.5), ([1e6, 4e6], 0.2)] {
        for (stream, rate_bps) in rates_bps.into_iter().enumerate() {
            connection.on_measured(stream, rate_bps, 5 * MS).unwrap();
        }
        connection.write(&[0; ALL_BYTES]).unwrap();
        let taken = send_reported(&mut connection, 0);
        assert_eq!(taken.iter().sum::<usize>(), ALL_BYTES);
        let carried = taken[0] as f64 / ALL_BYTES as f64;
        assert!((carried - share).abs() < 0.01, "{carried} of {rates_bps:?}");
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
    assert_eq!(stalled(&connection), []);
    acknowledge(&mut connection, 1 << 20, &[(1, 1)]);
    live(&mut connection, 3399 * MS, 6000 * MS);
    assert_eq!(stalled(&connection), []);
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
        connection.on_measured(stream, 1e6, 500 * MS).unwrap();
    }
    live(&mut connection, 0, 2300 * MS);
    assert_eq!(stalled(&connection), []);
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
        for stream in connection.doubted(now_ns).iter() {
            connection.on_unanswered(now_ns, stream, false);
        }
        send(&mut connection, now_ns);
        calls += 1;
    }
    // Five times a second for five seconds, and then once a second.
    assert!((70..=90).contains(&calls), "{calls}");
    assert_eq!(stalled(&connection), []);
}

/// Events about streams: those that stalled, those that were given up.
fn told(connection: &mut Connection) -> (Vec<usize>, Vec<usize>) {
    let (mut stalled, mut gone) = (Vec::new(), Vec::new());
    while let Some(event) = connection.poll_event() {
        match event {
            Event::StreamStalled { slot } => stalled.push(slot),
            Event::StreamGone { slot } => gone.push(slot),
            _ => {}
        }
    }
    (stalled, gone)
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
    assert_eq!(stalled(&connection), []);
    let resent = connection.counters().streams[1].resent_bytes;
    assert_eq!(resent, taken[0] as u64);
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
    live(&mut from, 0, 700 * MS);
    let resent = |of: &Connection| of.counters().streams[1].resent_bytes as usize;
    assert_eq!(resent(&from), stalled);
    from.end();
    send(&mut from, 750 * MS);
    assert_eq!(resent(&from), stalled);
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
        for stream in connection.doubted(now_ns).iter() {
            connection.on_unanswered(now_ns, stream, stream == 1);
        }
        send(&mut connection, now_ns);
        while let Some(event) = connection.poll_event() {
            gone |= event == Event::StreamGone { slot: 1 };
        }
    }
    assert!(gone && now_ns >= 800 * MS, "{now_ns}");
    assert!(connection.alive().contains(0));
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
fn a_stream_that_is_full_gets_an_answer_before_more_data() {
    let mut connection = connection(&[1.0, 1.0]);
    acknowledge(&mut connection, 1 << 30, &[]);
    connection.write(&vec![0; 100 * PAYLOAD_BYTES]).unwrap();
    // Stream 1 is slow and always full; stream 0 takes everything.
    let full = |connection: &mut Connection, now_ns: u64| {
        while let Some((stream, size)) = connection.poll_frame(now_ns) {
            connection
                .on_sent(stream, if stream == 1 { 0 } else { size })
                .unwrap();
        }
    };
    full(&mut connection, MS);
    tell(&mut connection, &Control::Ping(1));
    full(&mut connection, 100 * MS);
    connection.write(&vec![0; 100 * PAYLOAD_BYTES]).unwrap();
    connection.on_writable(1).unwrap();
    let (stream, _) = connection.poll_frame(101 * MS).unwrap();
    let mut header = Vec::new();
    connection.rest(stream, |piece| header.extend_from_slice(piece));
    assert_eq!((stream, header[0] >> 6), (1, 2), "a control frame");
}

#[test]
fn a_path_that_reports_nothing_is_given_no_more_than_tcp_begins_with() {
    let mut connection = connection(&[UNKNOWN_BPS]);
    acknowledge(&mut connection, 1 << 40, &[]);
    connection.on_measured(0, 1e10, MS / 10).unwrap();
    connection.write(&[0; 4_000_000]).unwrap();
    let first = send(&mut connection, 0)[0];
    assert!((1 << 14..1 << 16).contains(&first), "{first}");
    // What it reports at once doubles what it gets.
    let frames = connection.counters().streams[0].frames_sent;
    acknowledge(&mut connection, 0, &[(0, frames)]);
    let second = send(&mut connection, MS)[0];
    assert!(second > 3 * first / 2, "{second} after {first}");
    // Where the oldest is late it gets nothing.
    acknowledge(&mut connection, 0, &[(0, frames + 1)]);
    assert_eq!(send(&mut connection, 300 * MS)[0], 0);
}

#[test]
fn an_acknowledgement_goes_also_over_a_much_quicker_path() {
    for (delay_ns, carriers) in [(205 * MS, vec![0, 1]), (12 * MS, vec![1])] {
        let mut connection = connection(&[1.0, 1.0]);
        connection.set_delay(0, 5 * MS).unwrap();
        connection.set_delay(1, delay_ns).unwrap();
        let mut bytes = Vec::new();
        frame::encode_data_header(&mut bytes, 0, 1, PAYLOAD_BYTES);
        bytes.push(0);
        connection.on_received(1, &bytes, &mut Vec::new()).unwrap();
        let mut acks = Vec::new();
        for now_ns in [0, 50 * MS] {
            while let Some((stream, size)) = connection.poll_frame(now_ns) {
                connection.on_sent(stream, size).unwrap();
                acks.push(stream);
            }
        }
        acks.sort_unstable();
        assert_eq!(acks, carriers, "{delay_ns}");
    }
}

#[test]
fn the_acknowledgement_before_the_last_frame_may_be_seen() {
    let mut connection = connection(&[1.0, 1.0]);
    acknowledge_up_to(&mut connection, 0, 1 << 20, &[]);
    connection.shut();
    let mut acks = [0u64; 2];
    let mut count_acks = |connection: &mut Connection, now_ns: u64| {
        while let Some((stream, size)) = connection.poll_frame(now_ns) {
            let mut bytes = Vec::new();
            connection.rest(stream, |piece| bytes.extend_from_slice(piece));
            let mut rest = &bytes[..];
            while rest.len() >= 8 {
                acks[stream] += u64::from(rest[0] == 0x82);
                rest = &rest[8 + usize::from(u16::from_be_bytes([rest[6], rest[7]]))..];
            }
            connection.on_sent(stream, size).unwrap();
        }
        acks
    };
    count_acks(&mut connection, MS);
    acknowledge_up_to(&mut connection, 1, 1 << 20, &[]);
    let acks = count_acks(&mut connection, 2 * MS);
    assert_eq!(connection.state(), mstcp_core::ConnectionState::Ending);
    assert!(acks.iter().all(|count| *count >= 1), "{acks:?}");
    // The first of stream 0 went before.
    tell(
        &mut connection,
        &Control::Seen(vec![(0, acks[0] + 1), (1, acks[1])]),
    );
}

#[test]
fn where_all_streams_are_stalled_one_that_is_only_slow_is_opened_again() {
    let mut connection = connection(&[1.0, 1.0]);
    connection.write(&[0; 4 * PAYLOAD_BYTES]).unwrap();
    assert_eq!(send(&mut connection, 0), [2 * PAYLOAD_BYTES; 2]);
    // Of the first stream something is reported; the second has brought nothing at all.
    live(&mut connection, 0, 100 * MS);
    acknowledge(&mut connection, 1 << 18, &[(0, 1)]);
    live(&mut connection, 100 * MS, 600 * MS);
    assert_eq!(stalled(&connection), [0, 1]);
    live(&mut connection, 700 * MS, 800 * MS - 1);
    assert_eq!(stalled(&connection), [0, 1]);
    live(&mut connection, 800 * MS, 800 * MS);
    assert_eq!(stalled(&connection), [1]);
    let gone = |event| event == Event::StreamGone { slot: 0 };
    assert!(std::iter::from_fn(|| connection.poll_event()).any(gone));
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
            let lost = |event| event == Event::Closed(Outcome::Lost);
            let ended = std::iter::from_fn(|| connection.poll_event()).any(lost);
            assert_eq!(ended, is_over, "at {now_ns} ns");
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
    let mut confirm = Vec::new();
    frame::encode_control(&mut confirm, &Control::Confirm([7; 32]));
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
