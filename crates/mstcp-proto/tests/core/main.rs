//! The core as a shell sees it. What several files need stands here.

mod answers;
mod connection;
mod cost;
mod ending;
mod failover;
mod hello;
mod keepalive;
mod opening;
mod paths;
mod plain;
mod receiving;
mod records;
mod scheduler;
mod vectors;

use std::iter::from_fn;

use mstcp_proto::scheduler::by_name;
use mstcp_proto::{frame, Config, Connection, Control, Event, Outcome, SplitMix64};

const MS: u64 = 1_000_000;

/// Settings without a bound of the send queue.
fn config(stream_count: usize, frame_payload_bytes: usize) -> Config {
    Config {
        stream_count,
        frame_payload_bytes,
        send_queue_bytes: usize::MAX,
        reorder_buffer_bytes: 1 << 20,
    }
}

fn connection(scheduler: &str, config: Config) -> Connection {
    Connection::new(config, by_name(scheduler, 1).unwrap()).unwrap()
}

/// The stream of the frame that goes next, and the bytes that are left of it.
fn offer(connection: &mut Connection, now_ns: u64) -> Option<(usize, Vec<u8>)> {
    let (stream, length) = connection.poll_frame(now_ns)?;
    let mut bytes = Vec::with_capacity(length);
    connection.rest(stream, |piece| bytes.extend_from_slice(piece));
    Some((stream, bytes))
}

/// Send all there is; returns the frames with their streams.
fn sent(connection: &mut Connection, now_ns: u64) -> Vec<(usize, Vec<u8>)> {
    let frames = from_fn(|| {
        let (stream, data) = offer(connection, now_ns)?;
        connection.on_sent(stream, data.len()).unwrap();
        Some((stream, data))
    });
    frames.collect()
}

fn events(connection: &mut Connection) -> Vec<Event> {
    from_fn(|| connection.poll_event()).collect()
}

fn outcome(connection: &mut Connection) -> Option<Outcome> {
    let closed = |event| match event {
        Event::Closed(outcome) => Some(outcome),
        _ => None,
    };
    events(connection).into_iter().find_map(closed)
}

fn encoded(control: &Control) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::encode_control(&mut bytes, control);
    bytes
}

/// A data frame of zeros.
fn encoded_data(offset: u64, length: usize, frame_payload_bytes: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::encode_data(&mut bytes, offset, &vec![0; length], frame_payload_bytes);
    bytes
}

fn random_bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut rng = SplitMix64::new(seed);
    (0..length).map(|_| rng.next_u64() as u8).collect()
}
