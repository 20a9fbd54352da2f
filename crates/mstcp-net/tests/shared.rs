//! Connections that threads drive: bytes arrive in order whichever thread polls, waits end, and the loop hears of all that is rare.

mod common;

use std::convert::Infallible;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use common::Net;
use mstcp_net::inbox::ReadTarget;
use mstcp_net::shared::{Clock, LoopWaker, SharedDriver, ThreadUse, WaitFor, WaitOutcome};
use mstcp_net::{
    Action, ClientConfig, Error, Event, Loss, ServerConfig, SocketId, StreamId, StreamSocket,
    TransportConfig,
};

const SECOND_NS: u64 = 1_000_000_000;
const LIMIT_NS: u64 = 60 * SECOND_NS;

struct End {
    shared: Arc<SharedDriver>,
    loop_waker: Arc<LoopWaker>,
    clock: Clock,
    start_ns: u64,
    began: Instant,
    sockets: Vec<(SocketId, StreamSocket)>,
}

/// The server's and the client's end of a connection; of streams without rates.
fn pair(streams: usize) -> [End; 2] {
    let transport = TransportConfig {
        send_buffer_bytes: 32 << 20,
        reorder_buffer_bytes: 1 << 20,
        ..TransportConfig::default()
    };
    let client = ClientConfig {
        transport: transport.clone(),
        ..ClientConfig::default()
    };
    let server = ServerConfig {
        transport,
        ..ServerConfig::default()
    };
    let mut net = Net::opened(streams, client, server);
    let (start_ns, server) = (net.now_ns, net.servers.remove(0));
    [server, net.client].map(|end| {
        let sockets = end
            .watched
            .iter()
            .map(|(id, (socket, _))| (*id, socket.clone()));
        let end_of_test = End {
            sockets: sockets.collect(),
            shared: Arc::new(SharedDriver::new(end.driver)),
            loop_waker: Arc::new(LoopWaker::new().unwrap()),
            clock: Clock::new(start_ns),
            start_ns,
            began: Instant::now(),
        };
        let loop_waker = Arc::clone(&end_of_test.loop_waker);
        end_of_test.shared.hand_over(loop_waker, 7);
        end_of_test
    })
}

impl End {
    /// Do as the loop does, until told to stop: act on what threads come upon, and carry on what they leave.
    fn loop_until(&self, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            let now_ns = self.now_ns();
            let mut locked = self.shared.lock();
            locked.claim();
            while locked.poll_action().is_some() {}
            if locked.look(now_ns, SECOND_NS / 500) == ThreadUse::Idle {
                locked.hold(true);
                for (socket, _) in &self.sockets {
                    locked.readable(now_ns, *socket);
                    locked.writable(now_ns, *socket);
                }
            }
            drop(locked);
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn now_ns(&self) -> u64 {
        self.start_ns + self.began.elapsed().as_nanos() as u64
    }

    fn wait(&self, wait_for: &mut WaitFor<'_>, for_ns: u64) -> WaitOutcome {
        let until_ns = Some(self.now_ns() + for_ns);
        (self.shared)
            .wait(wait_for, &self.clock, until_ns, || Ok::<(), Infallible>(()))
            .unwrap()
    }

    fn receive(&self, size: usize, for_ns: u64) -> (WaitOutcome, Vec<u8>) {
        let mut buffer = vec![MaybeUninit::new(0_u8); size];
        let outcome = self.wait(&mut WaitFor::Bytes(ReadTarget::new(&mut buffer)), for_ns);
        let count = match outcome {
            WaitOutcome::Done(count) => count,
            _ => 0,
        };
        // SAFETY: all of it was 0 from the start.
        let bytes = buffer[..count]
            .iter()
            .map(|byte| unsafe { byte.assume_init() });
        (outcome, bytes.collect())
    }

    fn send(&self, bytes: &[u8]) {
        let mut wait_for = WaitFor::Room {
            most: 1 << 20,
            few: 1 << 18,
        };
        assert_eq!(self.wait(&mut wait_for, LIMIT_NS), WaitOutcome::Done(0));
        let now_ns = self.now_ns();
        (self.shared)
            .write(now_ns, true, |core| core.write(bytes))
            .unwrap();
    }

    fn send_all(&self, bytes: &[u8], piece_bytes: usize) {
        for piece in bytes.chunks(piece_bytes) {
            self.send(piece);
        }
    }

    /// Receive this many bytes by calls of many sizes.
    fn receive_all(&self, length: usize) -> Vec<u8> {
        let mut received = Vec::new();
        let mut draws = 1_u64;
        while received.len() < length {
            draws = draws.wrapping_mul(6_364_136_223_846_793_005) + 1;
            let size = [1, 1000, 20_000, 300_000, 2_000_000][(draws >> 33) as usize % 5];
            let (outcome, bytes) = self.receive(size, LIMIT_NS);
            assert!(matches!(outcome, WaitOutcome::Done(1..)), "{outcome:?}");
            received.extend(bytes);
        }
        received
    }
}

fn pattern(length: usize, seed: u32) -> Vec<u8> {
    (0..length as u32)
        .map(|at| (at.wrapping_mul(2_654_435_761 + seed) >> 13) as u8)
        .collect()
}

#[test]
fn two_threads_a_side_carry_both_directions_at_once() {
    for (streams, piece_bytes) in [(1, 1 << 16), (2, 1 << 20), (3, 777)] {
        let [near, far] = pair(streams);
        let length = 8 << 20;
        let (there, back) = (pattern(length, 1), pattern(length, 2));
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for end in [&near, &far] {
                scope.spawn(|| end.loop_until(&is_over));
            }
            scope.spawn(|| near.send_all(&there, piece_bytes));
            scope.spawn(|| far.send_all(&back, piece_bytes));
            let returned = scope.spawn(|| near.receive_all(length));
            assert!(far.receive_all(length) == there);
            assert!(returned.join().unwrap() == back);
            is_over.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn a_wait_ends_in_time_and_when_it_is_dismissed() {
    let [near, far] = pair(2);
    assert_eq!(near.receive(10, SECOND_NS / 20).0, WaitOutcome::TimedOut);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| near.receive(10, LIMIT_NS).0);
        near.shared.dismiss(true, false);
        assert_eq!(waiting.join().unwrap(), WaitOutcome::Dismissed);
    });
    // The other direction goes on.
    near.send(b"still");
    assert_eq!(far.receive(10, LIMIT_NS).1, b"still");
}

#[test]
fn a_follower_leads_when_the_leader_leaves() {
    let [near, far] = pair(2);
    thread::scope(|scope| {
        // It leads first, and times out while the reader follows.
        let writer = scope.spawn(|| {
            let mut wait_for = WaitFor::Room { most: 0, few: 0 };
            near.shared.lock().core().write(&[0; 1 << 23]).unwrap();
            near.wait(&mut wait_for, SECOND_NS / 10)
        });
        let reader = scope.spawn(|| near.receive(10, LIMIT_NS).1);
        assert_eq!(writer.join().unwrap(), WaitOutcome::TimedOut);
        far.send(b"for the follower");
        assert_eq!(reader.join().unwrap(), b"for the fo");
    });
}

#[test]
fn the_loop_has_an_idle_connection_back_and_is_told_when_a_long_wait_ends() {
    let [near, far] = pair(1);
    assert!(!near.shared.lock().is_out());
    near.send(b"x");
    assert_eq!(near.loop_waker.take(), [7]);
    let requests = near.shared.take_requests();
    assert!(requests.stand_by && !requests.attend && !requests.watch);
    assert!(near.shared.lock().is_out());
    let now_ns = near.now_ns();
    assert_eq!(near.shared.lock().look(now_ns, LIMIT_NS), ThreadUse::Recent);
    assert_eq!(
        near.shared.lock().look(now_ns + LIMIT_NS, SECOND_NS),
        ThreadUse::Idle
    );
    assert!(!near.shared.lock().is_out());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| near.receive(10, LIMIT_NS).1);
        while near.shared.lock().look(near.now_ns(), SECOND_NS) != ThreadUse::Waiting {
            thread::sleep(Duration::from_millis(1));
        }
        near.loop_waker.take();
        near.shared.take_requests();
        far.send(b"y");
        assert_eq!(waiting.join().unwrap(), b"y");
        assert!(near.shared.take_requests().watch);
    });
}

#[test]
fn what_threads_come_upon_is_the_loops_and_waits_go_on_after() {
    let [near, far] = pair(2);
    rustix::net::shutdown(&far.sockets[1].1, rustix::net::Shutdown::Both).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| near.receive(10, LIMIT_NS).1);
        while !near.shared.take_requests().attend {
            thread::sleep(Duration::from_millis(1));
        }
        let actions = std::iter::from_fn(|| near.shared.lock().poll_action());
        let is_loss = |action: &Action| {
            let lost = Event::StreamLost {
                stream: StreamId::from_index(1),
                reopens: false,
                loss: Loss::Ended,
            };
            matches!(action, Action::Event(event) if *event == lost)
        };
        assert!(actions.collect::<Vec<_>>().iter().any(is_loss));
        assert!(!near.shared.lock().core().alive().contains(1));
        for end in [&near, &far] {
            scope.spawn(|| end.loop_until(&is_over));
        }
        far.send(b"goes on");
        assert_eq!(waiting.join().unwrap(), b"goes on");
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn the_end_of_the_sockets_ends_all_waits() {
    let [near, far] = pair(2);
    far.send(b"last");
    assert_eq!(near.receive(2, LIMIT_NS).1, b"la");
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut wait_for = WaitFor::Room { most: 0, few: 0 };
            near.shared.lock().core().write(&[0; 1 << 23]).unwrap();
            near.wait(&mut wait_for, LIMIT_NS)
        });
        let now_ns = near.now_ns();
        near.shared.lock().give_up(now_ns, Error::Closed);
        assert_eq!(writer.join().unwrap(), WaitOutcome::Over);
    });
    assert_eq!(near.receive(10, LIMIT_NS).1, b"st");
    assert_eq!(near.receive(10, LIMIT_NS).0, WaitOutcome::Over);
}

#[test]
fn an_attempt_never_waits_and_leaves_the_rest_to_the_loop() {
    let [near, far] = pair(2);
    let mut buffer = [MaybeUninit::uninit(); 10];
    let attempt = |buffer: &mut [MaybeUninit<u8>]| {
        let mut wait_for = WaitFor::Bytes(ReadTarget::new(buffer));
        near.shared.attempt(&mut wait_for, near.now_ns()).unwrap()
    };
    assert_eq!(attempt(&mut buffer), WaitOutcome::TimedOut);
    assert!(!near.shared.lock().is_out());
    far.send(b"by the loop");
    while near.shared.lock().ready_bytes() == 0 {
        for stream in 0..2 {
            let now_ns = near.now_ns();
            near.shared.lock().readable(now_ns, near.sockets[stream].0);
        }
    }
    assert_eq!(attempt(&mut buffer), WaitOutcome::Done(10));
    assert!(near.shared.take_requests().attend);
    assert!(!near.shared.lock().is_out());
}
