//! What a frame costs does not depend on how many others wait for the peer's report: a peer decides what it reports, and may ask
//! for frames of one byte.
//!
//! Each test compares the processor times of two runs, so that it depends neither on the machine's speed nor on what else it does.

use std::time::Duration;

use mstcp_proto::{Config, Connection, Control};
use rustix::time::{clock_gettime, ClockId};

use super::{config, connection, encoded, MS};

/// Costs that grow with what waits differ by more than twenty times between few and many frames; those of a search among them, and
/// of memory that no cache holds, by six.
const MAX_TIMES: u32 = 12;

/// The processor time of this thread.
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A side that sends small frames over two streams, and what its peer knows.
struct Side {
    connection: Connection,
    now_ns: u64,
    /// Data frames sent, by stream.
    frames: [u64; 2],
    /// The end of the last bytes that were sent.
    sent: u64,
    received: u64,
    window_bytes: u64,
    limit: u64,
}

impl Side {
    fn new(payload: usize, window_bytes: u64) -> Self {
        let config = Config {
            reorder_buffer_bytes: 1 << 18,
            ..config(2, payload)
        };
        Self {
            connection: connection("weighted", config),
            now_ns: MS,
            frames: [0; 2],
            sent: 0,
            received: 0,
            window_bytes,
            limit: window_bytes,
        }
    }

    fn write(&mut self, bytes: usize) {
        self.connection.write(&vec![7; bytes]).unwrap();
    }

    /// Send what goes out; returns how many data frames that were.
    fn send(&mut self) -> u64 {
        let before: u64 = self.frames.iter().sum();
        for (slot, data) in super::sent(&mut self.connection, self.now_ns) {
            let length = data.len();
            let word = u64::from_be_bytes(data[..8].try_into().unwrap());
            let header_bytes = match word >> 62 {
                0 => Some(8),
                1 => Some(10),
                _ => None, // a control frame: long ones are not sent
            };
            if let Some(header_bytes) = header_bytes {
                self.frames[slot] += 1;
                let end = (word & !(3 << 62)) + length as u64 - header_bytes;
                self.sent = self.sent.max(end);
            }
        }
        self.frames.iter().sum::<u64>() - before
    }

    /// The peer reports the frames of these streams.
    fn report(&mut self, slots: &[usize]) {
        let counts = slots.iter().map(|&slot| (slot as u32, self.frames[slot]));
        let ack = Control::Ack {
            received: self.received,
            limit: self.limit,
            streams: counts.collect(),
        };
        let mut out = Vec::new();
        let ack = encoded(&ack);
        self.connection.on_received(1, &ack, &mut out).unwrap();
    }

    /// Send this many bytes, all reported at once: more may be on the way then.
    fn send_promptly(&mut self, bytes: u64) {
        self.write(bytes as usize);
        let end = self.received + bytes;
        while self.received < end {
            self.now_ns += MS;
            self.send();
            self.received = self.sent;
            self.limit = self.received + self.window_bytes;
            self.report(&[0, 1]);
        }
    }
}

/// The least time of several attempts, which other work on the machine disturbs the least.
fn least(mut attempt: impl FnMut() -> Duration) -> Duration {
    (0..3).map(|_| attempt()).min().unwrap()
}

#[test]
fn frames_that_are_acknowledged_and_not_reported_cost_nothing_more() {
    const STEP: u64 = 2000;
    let (mut few, mut many) = (Duration::MAX, Duration::MAX);
    for _ in 0..3 {
        let mut side = Side::new(1, 1 << 18);
        side.send_promptly(1_000_000);
        // Acknowledged in steps of which the piece limit allows each, so that only what is unreported grows.
        let mut times = Vec::new();
        for _ in 0..20 {
            let start = spent();
            side.write(STEP as usize);
            let end = side.received + STEP;
            while side.received < end {
                side.now_ns += 1000;
                let sent = side.send();
                assert!(sent > 0, "nothing goes out any more");
                side.received = side.sent;
                side.limit = side.received + side.window_bytes;
                side.report(&[]);
            }
            times.push(spent() - start);
        }
        few = few.min(times[0]);
        many = many.min(times[19]);
    }
    assert!(many < MAX_TIMES * few, "{many:?} against {few:?}");
}

#[test]
fn overtaking_a_stream_that_holds_much_costs_no_more_a_frame() {
    let attempt = |waiting: u64| {
        let mut side = Side::new(1, 1 << 24);
        side.send_promptly(1_000_000);
        side.write(waiting as usize);
        side.send();
        side.now_ns += MS;
        side.report(&[1]);
        // What one stream holds would take seconds, and the other has nothing to do.
        side.connection.set_weights(&[1e4, 1e9]).unwrap();
        side.connection.end();
        let start = spent();
        let overtaken = side.send();
        assert!(overtaken > waiting / 4, "{overtaken} overtaken");
        (spent() - start) / overtaken as u32
    };
    let few = least(|| attempt(1000));
    let many = least(|| attempt(128_000));
    assert!(many < MAX_TIMES * few, "{many:?} against {few:?}");
}

#[test]
fn a_full_window_costs_no_more_where_a_late_stream_holds_much() {
    const PAYLOAD: u64 = 200;
    let attempt = |frames: u64| {
        let mut side = Side::new(PAYLOAD as usize, frames * PAYLOAD);
        side.send_promptly(8 * frames * PAYLOAD);
        side.write(2 * (frames * PAYLOAD) as usize);
        side.send();
        // One stream's frames are late, and all that the peer grants is sent.
        side.now_ns += 170 * MS;
        side.report(&[1]);
        let start = spent();
        let again = side.send();
        assert!(again > frames / 4, "{again} sent again");
        (spent() - start) / again as u32
    };
    let few = least(|| attempt(4000));
    let many = least(|| attempt(64_000));
    assert!(many < MAX_TIMES * few, "{many:?} against {few:?}");
}
