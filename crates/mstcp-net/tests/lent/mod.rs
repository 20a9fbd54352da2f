//! Both ends of a connection that threads drive.

use std::convert::Infallible;
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use mstcp_net::inbox::Target;
use mstcp_net::shared::{Bell, Clock, Outcome, SharedEndpoint, Use, Wish};
use mstcp_net::{Endpoint, OwnMemory};
use mstcp_proto::{scheduler, Config, Connection};

const PAYLOAD_BYTES: usize = 1440;
pub const SECOND_NS: u64 = 1_000_000_000;
pub const LIMIT_NS: u64 = 60 * SECOND_NS;

pub struct End {
    pub shared: Arc<SharedEndpoint>,
    pub bell: Arc<Bell>,
    pub clock: Clock,
    pub began: Instant,
    pub streams: Vec<TcpStream>,
}

/// Streams without rates.
pub fn pair(streams: usize) -> [End; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sockets = [Vec::new(), Vec::new()];
    for _ in 0..streams {
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        sockets[1].push(listener.accept().unwrap().0);
        sockets[0].push(near);
    }
    sockets.map(|streams| {
        let config = Config {
            stream_count: streams.len(),
            frame_payload_bytes: PAYLOAD_BYTES,
            send_queue_bytes: 64 << 20,
            reorder_buffer_bytes: 1 << 20,
        };
        let scheduler = scheduler::by_name("weighted", 1).unwrap();
        let mut endpoint = Endpoint::new(Connection::new(config, scheduler).unwrap());
        for (stream, socket) in streams.iter().enumerate() {
            socket.set_nonblocking(true).unwrap();
            let sockets = endpoint.sockets();
            sockets
                .attach(stream, socket.as_raw_fd(), None, PAYLOAD_BYTES, 8)
                .unwrap();
        }
        let (shared, bell) = (
            Arc::new(SharedEndpoint::new(endpoint)),
            Arc::new(Bell::new().unwrap()),
        );
        shared.lend(Arc::clone(&bell), 7);
        End {
            shared,
            bell,
            clock: Clock::new(0),
            began: Instant::now(),
            streams,
        }
    })
}

impl End {
    /// Do as the loop does, until told to stop: act on what threads come upon, and carry on what they leave.
    pub fn loop_until(&self, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            let now_ns = self.now_ns();
            let mut locked = self.shared.lock();
            let claimed = locked.claim();
            let broken = claimed.broken.iter().map(|(stream, _)| *stream);
            for stream in claimed.ended.iter().chain(broken) {
                locked.on_stream_end(stream).unwrap();
            }
            if locked.look(now_ns, SECOND_NS / 500) == Use::Idle {
                locked.hold(true);
                for stream in locked.core.alive().iter() {
                    let _ = locked.read(&mut OwnMemory, stream).unwrap();
                    locked.core.on_writable(stream).unwrap();
                }
                let _ = locked.transmit(now_ns).unwrap();
            }
            drop(locked);
            thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    pub fn wait(&self, wish: &mut Wish<'_>, for_ns: u64) -> Outcome {
        let until_ns = Some(self.now_ns() + for_ns);
        (self.shared)
            .wait(wish, &self.clock, until_ns, || Ok::<(), Infallible>(()))
            .unwrap()
    }

    pub fn receive(&self, size: usize, for_ns: u64) -> (Outcome, Vec<u8>) {
        let mut buffer = vec![MaybeUninit::new(0_u8); size];
        let outcome = self.wait(&mut Wish::Bytes(Target::new(&mut buffer)), for_ns);
        let count = match outcome {
            Outcome::Done(count) => count,
            _ => 0,
        };
        // SAFETY: all of it was 0 from the start.
        let bytes = buffer[..count]
            .iter()
            .map(|byte| unsafe { byte.assume_init() });
        (outcome, bytes.collect())
    }

    pub fn send(&self, bytes: &[u8]) {
        let mut wish = Wish::Room {
            most: 1 << 20,
            few: 1 << 18,
        };
        assert_eq!(self.wait(&mut wish, LIMIT_NS), Outcome::Done(0));
        let now_ns = self.now_ns();
        (self.shared)
            .write(now_ns, true, |core| core.write(bytes))
            .unwrap();
    }

    pub fn send_all(&self, bytes: &[u8], piece_bytes: usize) {
        for piece in bytes.chunks(piece_bytes) {
            self.send(piece);
        }
    }

    /// Receive so many bytes by calls of many sizes.
    pub fn receive_all(&self, length: usize) -> Vec<u8> {
        let mut received = Vec::new();
        let mut draws = 1_u64;
        while received.len() < length {
            draws = draws.wrapping_mul(6_364_136_223_846_793_005) + 1;
            let size = [1, 1000, 20_000, 300_000, 2_000_000][(draws >> 33) as usize % 5];
            let (outcome, bytes) = self.receive(size, LIMIT_NS);
            assert!(matches!(outcome, Outcome::Done(1..)), "{outcome:?}");
            received.extend(bytes);
        }
        received
    }
}

pub fn pattern(length: usize, seed: u32) -> Vec<u8> {
    (0..length as u32)
        .map(|at| (at.wrapping_mul(2_654_435_761 + seed) >> 13) as u8)
        .collect()
}
