//! Connections whose large frames worker threads carry: bytes arrive in order whatever happens meanwhile, and no thread is left.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use mstcp_net::shared::{registry, Outcome, Wish};

#[allow(dead_code)]
mod lent;

use lent::{pair_at, pattern, End, LIMIT_NS};

/// Frames are large at this rate, in bit/s.
const FAST_BPS: f64 = 20e9;
const PIECE_BYTES: usize = 1 << 20;
const LENGTH: usize = 8 << 20;

impl End {
    /// Write in large pieces, which are not copied.
    fn send_large(&self, bytes: &[u8]) {
        for piece in bytes.chunks(PIECE_BYTES) {
            let mut wish = Wish::Room {
                most: 2 << 20,
                few: 1 << 19,
            };
            assert_eq!(self.wait(&mut wish, LIMIT_NS), Outcome::Done(0));
            let piece = Arc::new(piece.to_vec());
            (self.shared)
                .write(self.now_ns(), true, |core| core.write_shared(piece))
                .unwrap();
        }
    }

    fn start_workers(&self, count: usize) {
        let now_ns = self.now_ns();
        self.shared.lock().start_workers(count, now_ns);
    }

    fn has_workers(&self) -> bool {
        self.shared.lock().has_workers()
    }

    fn until(&self, condition: impl Fn(&Self) -> bool) {
        while !condition(self) {
            thread::sleep(Duration::from_micros(200));
        }
    }
}

fn pair_with_workers(streams: usize, workers: usize) -> [End; 2] {
    let ends = pair_at(streams, Some(FAST_BPS));
    for end in &ends {
        end.shared.allow_workers(Some(workers), true);
    }
    ends
}

/// Carry bytes there, and do something meanwhile, once workers have the near end.
fn carry(ends: &mut [End; 2], meanwhile: impl Fn(&End) + Sync) {
    let there = pattern(LENGTH, 1);
    let is_over = AtomicBool::new(false);
    let [near, far] = &*ends;
    thread::scope(|scope| {
        for end in [near, far] {
            scope.spawn(|| end.loop_until(&is_over));
        }
        scope.spawn(|| near.send_large(&there));
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(20));
            near.start_workers(3);
            far.start_workers(3);
            meanwhile(near);
        });
        assert!(far.receive_all(LENGTH) == there);
        for end in [near, far] {
            end.until(|end| !end.has_workers());
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn workers_carry_both_directions_at_once_and_end() {
    for (streams, workers) in [(2, 2), (3, 2), (2, 1)] {
        let [near, far] = pair_with_workers(streams, workers);
        let (there, back) = (pattern(LENGTH, 1), pattern(LENGTH, 2));
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for end in [&near, &far] {
                scope.spawn(|| end.loop_until(&is_over));
            }
            scope.spawn(|| near.send_large(&there));
            scope.spawn(|| far.send_large(&back));
            for end in [&near, &far] {
                end.start_workers(workers);
                assert!(end.has_workers());
            }
            let returned = scope.spawn(|| near.receive_all(LENGTH));
            assert!(far.receive_all(LENGTH) == there);
            assert!(returned.join().unwrap() == back);
            for end in [&near, &far] {
                end.until(|end| !end.has_workers());
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn a_stream_that_dies_under_workers_costs_no_byte() {
    for at_far_end in [false, true] {
        let mut ends = pair_with_workers(3, 3);
        let dying = ends[usize::from(at_far_end)].streams[1]
            .try_clone()
            .unwrap();
        carry(&mut ends, |_| {
            let _ = dying.shutdown(std::net::Shutdown::Both);
        });
        assert!(!ends[0].shared.lock().core.alive().contains(1));
    }
}

#[test]
fn workers_that_are_ended_leave_the_rest_to_others() {
    let mut ends = pair_with_workers(2, 2);
    carry(&mut ends, |near| {
        near.shared.end_workers();
        near.until(|near| !near.has_workers());
    });
}

#[test]
fn before_the_process_is_copied_all_workers_end_and_none_begins() {
    let mut ends = pair_with_workers(2, 2);
    carry(&mut ends, |near| {
        registry::close();
        assert!(!near.has_workers());
        thread::sleep(Duration::from_millis(5));
        assert!(!near.has_workers());
        registry::open();
    });
}

#[test]
fn workers_end_with_the_sockets() {
    let [near, far] = pair_with_workers(2, 2);
    let there = pattern(LENGTH, 1);
    thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let mut wish = Wish::Room {
                most: 2 << 20,
                few: 1 << 19,
            };
            for piece in there.chunks(PIECE_BYTES).cycle() {
                if near.wait(&mut wish, LIMIT_NS) == Outcome::Over {
                    break;
                }
                let piece = Arc::new(piece.to_vec());
                let _ = (near.shared).write(near.now_ns(), true, |core| core.write_shared(piece));
            }
        });
        scope.spawn(|| while far.receive(PIECE_BYTES, LIMIT_NS / 600).0 != Outcome::TimedOut {});
        near.start_workers(2);
        near.shared.lock().finish();
        sending.join().unwrap();
        near.until(|near| !near.has_workers());
    });
}

#[test]
fn small_messages_have_no_workers() {
    let [near, far] = pair_with_workers(2, 2);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for end in [&near, &far] {
            scope.spawn(|| end.loop_until(&is_over));
        }
        for _ in 0..500 {
            near.send(&[7; 1000]);
            assert!(matches!(far.receive(1000, LIMIT_NS).0, Outcome::Done(_)));
            assert!(!near.has_workers() && !far.has_workers());
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
