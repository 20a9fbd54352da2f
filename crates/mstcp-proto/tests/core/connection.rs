//! How a connection offers frames. What comes of them is in failover.rs.

use mstcp_proto::scheduler::{Earliest, Stochastic};
use mstcp_proto::{Config, Connection, LocalError, Scheduler, Slice};

use super::{config, offer, random_bytes, sent};

fn connection_by(
    scheduler: Box<dyn Scheduler>,
    weights: &[f64],
    frame_payload_bytes: usize,
) -> Connection {
    let config = config(weights.len(), frame_payload_bytes);
    let mut connection = Connection::new(config, scheduler).unwrap();
    connection.set_weights(weights).unwrap();
    // The first acknowledgement, which tells the window, is out of the way.
    sent(&mut connection, 0);
    connection
}

fn connection(weights: &[f64], frame_payload_bytes: usize, seed: u64) -> Connection {
    connection_by(
        Box::new(Stochastic::new(seed)),
        weights,
        frame_payload_bytes,
    )
}

fn streams_drawn(seed: u64) -> Vec<usize> {
    let mut from = connection(&[1.0, 2.0, 3.0], 10, seed);
    from.write(&[7; 2000]).unwrap();
    let frames = sent(&mut from, 0);
    frames.into_iter().map(|(stream, _)| stream).collect()
}

#[test]
fn writes_by_reference_and_copies_keep_their_order() {
    let bytes = random_bytes(300, 7);
    let [mut from, mut to] = [1, 2].map(|seed| connection(&[1.0], 64, seed));
    from.write(&bytes[..50]).unwrap();
    from.write_slice(Slice::copy_of(&bytes).part(50..230))
        .unwrap();
    from.write(&bytes[230..]).unwrap();
    let mut got = Vec::new();
    for (_, data) in sent(&mut from, 0) {
        to.on_received(0, &data, &mut got).unwrap();
    }
    assert_eq!(got, bytes);
}

#[test]
fn a_seed_decides_all_draws() {
    assert_eq!(streams_drawn(5), streams_drawn(5));
    assert_ne!(streams_drawn(5), streams_drawn(6));
    assert_eq!(streams_drawn(5).len(), 200);
}

#[test]
fn a_write_of_exactly_one_payload_is_one_full_frame_at_once() {
    let mut from = connection(&[1.0, 1.0], 528, 3);
    for number in 0..100u64 {
        from.write(&[number as u8; 528]).unwrap();
        let (stream, data) = offer(&mut from, 0).unwrap();
        assert_eq!(data.len(), 536);
        assert_eq!(data[..8], (528 * number).to_be_bytes());
        assert!(!from.on_sent(stream, 536).unwrap());
        assert_eq!(from.poll_frame(0), None);
    }
}

#[test]
fn a_full_socket_leaves_the_frame_to_the_others() {
    let mut from = connection(&[1.0, 1.0], 10, 3);
    from.write(&[7; 20]).unwrap();
    let (first, _) = from.poll_frame(0).unwrap();
    from.on_sent(first, 0).unwrap();
    assert!(from.is_blocked(first));
    assert_eq!(from.queued_bytes(), 20);
    for number in 0..2u64 {
        let (stream, data) = offer(&mut from, 0).unwrap();
        assert_eq!(
            (stream, &data[..8]),
            (1 - first, &(10 * number).to_be_bytes()[..])
        );
        from.on_sent(1 - first, 18).unwrap();
    }
    assert_eq!(from.counters().streams[first].frames_sent, 0);
}

#[test]
fn a_frame_begun_is_completed_on_its_stream() {
    let mut from = connection(&[1.0, 1.0], 10, 3);
    from.write(&[7; 10]).unwrap();
    let (first, _) = from.poll_frame(0).unwrap();
    from.on_sent(first, 5).unwrap();
    assert_eq!(from.poll_frame(0), None);
    from.on_writable(first).unwrap();
    assert_eq!(from.poll_frame(0), Some((first, 13)));
}

#[test]
fn misuse_is_a_local_error_and_changes_nothing() {
    let mut from = connection(&[1.0], 10, 3);
    from.write(&[7; 10]).unwrap();
    assert_eq!(from.poll_frame(0), Some((0, 18)));
    assert_eq!(
        from.on_sent(0, 19),
        Err(LocalError::SentTooMuch {
            reported: 19,
            offered: 18
        })
    );
    assert_eq!(from.poll_frame(0), Some((0, 18)));
    assert_eq!(from.on_sent(1, 0), Err(LocalError::NoSuchStream(1)));
    assert_eq!(
        from.on_received(1, &[], &mut Vec::new()),
        Err(LocalError::NoSuchStream(1).into())
    );
    from.end();
    assert_eq!(from.write(&[1]), Err(LocalError::WriteAfterEnd));
}

#[test]
fn the_send_queue_is_bounded_but_an_empty_one_takes_any_write() {
    let config = Config {
        send_queue_bytes: 100,
        ..config(1, 10)
    };
    let mut from = Connection::new(config, Box::new(Stochastic::new(0))).unwrap();
    from.write(&[0; 500]).unwrap();
    assert_eq!(
        from.write(&[0]),
        Err(LocalError::SendQueueFull {
            queued: 500,
            limit: 100
        })
    );
}

#[test]
fn the_end_of_a_slow_stream_is_overtaken_from_its_back_as_far_as_that_is_earlier() {
    // All frames are on a stream of 0.3 Mbit/s; then one of 3 Mbit/s, 10 ms away, comes and has nothing to do.
    let (frames, payload) = (100, 300);
    let (slow_bps, fast_bps) = (0.3e6, 3e6);
    let mut from = connection_by(Box::new(Earliest), &[slow_bps], payload);
    from.write(&vec![7; frames * payload]).unwrap();
    sent(&mut from, 0);
    assert_eq!(from.counters().streams[0].frames_sent, frames as u64);
    let slot = from.add_stream(1, fast_bps).unwrap();
    from.set_delay(slot, 10_000_000).unwrap();
    sent(&mut from, 0);
    let begun = from.counters().streams[slot].frames_sent;
    assert_eq!(begun, 0, "more may come");
    from.end();
    sent(&mut from, 0);
    // This many of the last frames take as long over the fast stream as the rest over the slow one, less what may have come
    // unreported (50 ms) and what is not worth it (20 ms).
    let frame_s = |rate_bps: f64| 8.0 * payload as f64 / rate_bps;
    let balance = (frames as f64 * frame_s(slow_bps) - 0.05 - 0.02 - 0.01)
        / (frame_s(slow_bps) + frame_s(fast_bps));
    let counters = &from.counters().streams[slot];
    assert!((counters.frames_sent as f64 - balance).abs() <= 1.0);
    assert_eq!(counters.resent_bytes, counters.bytes_sent);
}

#[test]
fn large_frames_end_with_segments() {
    let mut from = connection_by(Box::new(Earliest), &[1e9], 1000);
    from.write(&[7; 40_500]).unwrap();
    let frames = sent(&mut from, 0);
    let (last, others) = frames.split_last().unwrap();
    for (_, data) in others {
        assert!(
            data.len() > 1008 && data.len() % 1008 == 0,
            "{}",
            data.len()
        );
    }
    assert!(last.1.len() % 1008 > 0);
}
