//! Two endpoints over real sockets of the loopback: bytes arrive once, in order and in bounded memory.

use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mstcp_net::{Endpoint, OwnMemory};
use mstcp_proto::{scheduler, Config, Connection};

const STREAMS: usize = 3;
const PAYLOAD_BYTES: usize = 1440;
const LIMIT: Duration = Duration::from_secs(60);

struct End {
    endpoint: Endpoint,
    streams: Vec<TcpStream>,
    received: Vec<u8>,
}

fn core() -> Connection {
    let config = Config {
        stream_count: STREAMS,
        frame_payload_bytes: PAYLOAD_BYTES,
        send_queue_bytes: 64 << 20,
        reorder_buffer_bytes: 1 << 20,
    };
    Connection::new(config, scheduler::by_name("weighted", 1).unwrap()).unwrap()
}

fn pair() -> [End; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut ends = [(); 2].map(|()| End {
        endpoint: Endpoint::new(core()),
        streams: Vec::new(),
        received: Vec::new(),
    });
    for stream in 0..STREAMS {
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        for (end, socket) in ends.iter_mut().zip([near, far]) {
            socket.set_nonblocking(true).unwrap();
            let sockets = end.endpoint.sockets();
            sockets
                .attach(stream, socket.as_raw_fd(), None, PAYLOAD_BYTES, 8)
                .unwrap();
            end.streams.push(socket);
        }
    }
    ends
}

impl End {
    /// Read what came, and send what is to be sent; take what is in order if `takes`.
    fn turn(&mut self, now_ns: u64, takes: bool) {
        self.endpoint.hold(!takes);
        for stream in 0..STREAMS {
            match self.endpoint.read(&mut OwnMemory, stream).unwrap() {
                Ok(count) => assert!(count > 0, "stream {stream} ended"),
                Err(errno) => assert_eq!(errno, mstcp_net::Errno::AGAIN),
            }
            self.endpoint.core.on_writable(stream).unwrap();
        }
        while takes && self.endpoint.ready_bytes() > 0 {
            for slice in self.endpoint.take() {
                self.received.extend_from_slice(&slice);
            }
            self.endpoint.reclaim();
        }
        let sent = self.endpoint.transmit(now_ns).unwrap();
        assert_eq!(sent.failed, None);
    }
}

fn bytes(seed: u32, count: usize) -> Vec<u8> {
    let mut state = seed;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect()
}

fn run(ends: &mut [End; 2], done: impl Fn(&[End; 2]) -> bool, takes: impl Fn(u64) -> bool) {
    let began = Instant::now();
    let mut turns = 0;
    while !done(ends) {
        assert!(began.elapsed() < LIMIT, "it stands still");
        for end in ends.iter_mut() {
            end.turn(began.elapsed().as_nanos() as u64, takes(turns));
        }
        turns += 1;
    }
}

#[test]
fn both_directions_at_once_bring_every_byte_once() {
    let mut ends = pair();
    let data = [bytes(1, 6_000_000), bytes(2, 3_000_001)];
    for (end, bytes) in ends.iter_mut().zip(&data) {
        // Large and small writes: the first are referred to, the others gathered.
        let (large, small) = bytes.split_at(bytes.len() - 10_000);
        end.endpoint
            .core
            .write_shared(Arc::new(large.to_vec()))
            .unwrap();
        for piece in small.chunks(33) {
            end.endpoint.core.write(piece).unwrap();
        }
    }
    let lengths = [data[1].len(), data[0].len()];
    run(
        &mut ends,
        |ends| (0..2).all(|at| ends[at].received.len() >= lengths[at]),
        |_| true,
    );
    assert!(ends[0].received == data[1] && ends[1].received == data[0]);
}

#[test]
fn what_nobody_takes_is_held_and_comes_later() {
    let mut ends = pair();
    let data = bytes(3, 2_000_000);
    for piece in data.chunks(700) {
        ends[0].endpoint.core.write(piece).unwrap();
    }
    // The window is a megabyte: the rest is sent when the first was taken.
    run(
        &mut ends,
        |ends| ends[1].endpoint.ready_bytes() > 900_000,
        |_| false,
    );
    assert!(ends[1].endpoint.ready_bytes() <= 1 << 20);
    run(
        &mut ends,
        |ends| ends[1].received.len() >= data.len(),
        |turn| turn % 3 == 0,
    );
    assert!(ends[1].received == data);
}
