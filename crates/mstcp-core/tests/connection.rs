//! Properties of a whole connection: any split, any interleaving of the streams, any cuts between reads.

use std::collections::VecDeque;

use mstcp_core::error::Error;
use mstcp_core::frame;
use mstcp_core::reassembly::FRAME_OVERHEAD_BYTES;
use mstcp_core::rng::SplitMix64;
use mstcp_core::{scheduler, Config, Connection, LocalError, Stochastic};
use proptest::prelude::*;

fn connection_by(
    name: &str,
    weights: &[f64],
    frame_payload_bytes: usize,
    reorder: usize,
    seed: u64,
) -> Connection {
    let config = Config {
        stream_count: weights.len(),
        frame_payload_bytes,
        send_queue_bytes: usize::MAX,
        reorder_buffer_bytes: reorder,
    };
    let mut connection = Connection::new(config, scheduler::by_name(name, seed).unwrap()).unwrap();
    connection.set_weights(weights).unwrap();
    connection
}

fn connection(
    weights: &[f64],
    frame_payload_bytes: usize,
    reorder: usize,
    seed: u64,
) -> Connection {
    connection_by("stochastic", weights, frame_payload_bytes, reorder, seed)
}

fn random_bytes(length: usize) -> Vec<u8> {
    let mut rng = SplitMix64::new(7);
    (0..length).map(|_| rng.next_u64() as u8).collect()
}

/// Streams as TCP has them: bytes in order, in a bounded buffer, delivered in any pieces.
struct Streams {
    pipes: Vec<VecDeque<u8>>,
    capacity: usize,
    finished: Vec<bool>,
}

impl Streams {
    fn new(count: usize, capacity: usize) -> Self {
        Self {
            pipes: vec![VecDeque::new(); count],
            capacity,
            finished: vec![false; count],
        }
    }

    /// Send what the sender offers until no stream has room.
    fn pump(&mut self, from: &mut Connection) {
        for index in 0..self.pipes.len() {
            from.on_writable(index).unwrap();
        }
        while let Some(offer) = from.poll(0) {
            let stream = offer.stream;
            let room = self.capacity - self.pipes[stream].len();
            let count = offer.data.len().min(room);
            self.pipes[stream].extend(&offer.data[..count]);
            if from.on_sent(stream, count).unwrap() {
                self.finished[stream] = true;
            }
        }
    }
}

/// The most bytes of one read.
const READ_BYTES: usize = 64;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_split_and_interleaving_gives_the_same_bytes(
        weights in prop::collection::vec(0.1f64..10.0, 1..9),
        payload in 1usize..80,
        writes in prop::collection::vec(0usize..400, 0..20),
        capacity in 1usize..500,
        reorder in 0usize..2000,
        name in prop::sample::select(&scheduler::NAMES[..]),
        seed: u64,
    ) {
        let count = weights.len();
        let expected = random_bytes(writes.iter().sum());
        let mut from = connection_by(name, &weights, payload, 0, seed);
        let mut to = connection(&weights, payload, reorder, 0);
        let mut streams = Streams::new(count, capacity);
        let mut rng = SplitMix64::new(seed ^ 1);
        let mut got = Vec::new();
        let mut rest = &expected[..];
        let mut writes = writes.iter();
        let mut ended = vec![false; count];
        // A stream that is ahead waits, so any order of reads comes to an end; the number only stops a failure.
        for _ in 0..1_000_000 {
            match writes.next() {
                Some(&size) => {
                    let (now, later) = rest.split_at(size);
                    from.write(now).unwrap();
                    rest = later;
                }
                None => from.end(),
            }
            streams.pump(&mut from);
            let stream = (rng.next_u64() % count as u64) as usize;
            if to.readable().contains(stream) {
                let size = (1 + rng.next_u64() as usize % READ_BYTES).min(streams.pipes[stream].len());
                let data: Vec<u8> = streams.pipes[stream].drain(..size).collect();
                to.on_received(stream, &data, &mut got).unwrap();
                if streams.finished[stream] && streams.pipes[stream].is_empty() && !ended[stream] {
                    to.on_stream_end(stream).unwrap();
                    ended[stream] = true;
                }
            }
            // A read ends at most READ_BYTES frames, the first of which may have begun before it.
            let beyond = count * (READ_BYTES * (1 + FRAME_OVERHEAD_BYTES) + payload);
            prop_assert!(to.statistics().reorder_bytes <= reorder + beyond);
            if ended.iter().all(|&ended| ended) {
                break;
            }
        }
        prop_assert!(to.is_ended());
        prop_assert!(from.is_finished());
        prop_assert_eq!(&got, &expected);
        if name == "redundant" {
            return Ok(());
        }
        let sent: u64 = from.statistics().streams.iter().map(|stream| stream.bytes_sent).sum();
        let received: u64 = to.statistics().streams.iter().map(|stream| stream.bytes_received).sum();
        prop_assert_eq!(sent, expected.len() as u64);
        prop_assert_eq!(received, expected.len() as u64);
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_give_remote_errors_alone(
        data in prop::collection::vec(any::<u8>(), 0..2000),
        payload in 1usize..200,
        piece in 1usize..300,
    ) {
        let mut to = connection(&[1.0, 1.0], payload, 1000, 0);
        let mut got = Vec::new();
        for (index, piece) in data.chunks(piece).enumerate() {
            match to.on_received(index % 2, piece, &mut got) {
                Ok(()) => {}
                Err(Error::Remote(_)) => break,
                Err(Error::Local(error)) => prop_assert!(false, "{}", error),
            }
        }
        prop_assert!(got.len() <= data.len());
    }

    #[test]
    fn well_formed_frames_in_any_order_never_panic(
        frames in prop::collection::vec((0usize..3, 0u64..12, 1usize..=10, any::<bool>()), 0..40),
    ) {
        let mut to = connection(&[1.0; 3], 10, 100, 0);
        let mut got = Vec::new();
        for (stream, number, size, fin) in frames {
            let mut encoded = Vec::new();
            if fin {
                frame::encode_fin(&mut encoded, number);
            } else {
                frame::encode_data(&mut encoded, number, &[0; 10][..size], 10);
            }
            if to.on_received(stream, &encoded, &mut got).is_err() {
                break;
            }
        }
    }
}

fn streams_drawn(seed: u64) -> Vec<usize> {
    let mut from = connection(&[1.0, 2.0, 3.0], 10, 0, seed);
    from.write(&random_bytes(2000)).unwrap();
    let mut drawn = Vec::new();
    while let Some(offer) = from.poll(0) {
        let (stream, count) = (offer.stream, offer.data.len());
        drawn.push(stream);
        from.on_sent(stream, count).unwrap();
    }
    drawn
}

#[test]
fn a_seed_decides_all_draws() {
    assert_eq!(streams_drawn(5), streams_drawn(5));
    assert_ne!(streams_drawn(5), streams_drawn(6));
    assert_eq!(streams_drawn(5).len(), 200);
}

#[test]
fn a_write_of_exactly_one_payload_is_one_full_frame_at_once() {
    let mut from = connection(&[1.0, 1.0], 528, 0, 3);
    for number in 0..100u64 {
        from.write(&[number as u8; 528]).unwrap();
        let offer = from.poll(0).unwrap();
        assert_eq!(offer.data.len(), 536);
        assert_eq!(offer.data[..8], number.to_be_bytes());
        let stream = offer.stream;
        assert!(!from.on_sent(stream, 536).unwrap());
        assert_eq!(from.poll(0), None);
    }
}

#[test]
fn a_full_socket_leaves_the_frame_to_the_others() {
    let mut from = connection(&[1.0, 1.0], 10, 0, 3);
    from.write(&[7; 20]).unwrap();
    let first = from.poll(0).unwrap().stream;
    from.on_sent(first, 0).unwrap();
    assert!(from.is_blocked(first));
    assert_eq!(from.queued_bytes(), 20);
    for number in 0..2u64 {
        let offer = from.poll(0).unwrap();
        assert_eq!(
            (offer.stream, &offer.data[..8]),
            (1 - first, &number.to_be_bytes()[..])
        );
        from.on_sent(1 - first, 18).unwrap();
    }
    assert_eq!(from.statistics().streams[first].frames_sent, 0);
}

#[test]
fn a_frame_begun_is_completed_on_its_stream() {
    let mut from = connection(&[1.0, 1.0], 10, 0, 3);
    from.write(&[7; 10]).unwrap();
    let first = from.poll(0).unwrap().stream;
    from.on_sent(first, 5).unwrap();
    assert_eq!(from.poll(0), None);
    from.on_writable(first).unwrap();
    let offer = from.poll(0).unwrap();
    assert_eq!((offer.stream, offer.data.len()), (first, 13));
}

#[test]
fn misuse_is_a_local_error_and_changes_nothing() {
    let mut from = connection(&[1.0], 10, 0, 3);
    from.write(&[7; 10]).unwrap();
    assert_eq!(from.poll(0).unwrap().data.len(), 18);
    assert_eq!(
        from.on_sent(0, 19),
        Err(LocalError::SentTooMuch {
            reported: 19,
            offered: 18
        })
    );
    assert_eq!(from.poll(0).unwrap().data.len(), 18);
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
        stream_count: 1,
        frame_payload_bytes: 10,
        send_queue_bytes: 100,
        reorder_buffer_bytes: 0,
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
