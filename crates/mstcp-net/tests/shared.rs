//! Connections that threads drive: bytes arrive in order whichever thread polls, waits end, and the loop hears of all that is rare.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use mstcp_net::inbox::Target;
use mstcp_net::shared::{Outcome, Use, Wish};
use mstcp_net::OwnMemory;

#[allow(dead_code)]
mod lent;

use lent::{pair, pattern, LIMIT_NS, SECOND_NS};

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
    assert_eq!(near.receive(10, SECOND_NS / 20).0, Outcome::TimedOut);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| near.receive(10, LIMIT_NS).0);
        near.shared.dismiss(true, false);
        assert_eq!(waiting.join().unwrap(), Outcome::Dismissed);
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
            let mut wish = Wish::Room { most: 0, few: 0 };
            near.shared.lock().core.write(&[0; 1 << 23]).unwrap();
            near.wait(&mut wish, SECOND_NS / 10)
        });
        let reader = scope.spawn(|| near.receive(10, LIMIT_NS).1);
        assert_eq!(writer.join().unwrap(), Outcome::TimedOut);
        far.send(b"for the follower");
        assert_eq!(reader.join().unwrap(), b"for the fo");
    });
}

#[test]
fn the_loop_has_an_idle_connection_back_and_is_told_when_a_long_wait_ends() {
    let [near, far] = pair(1);
    assert!(!near.shared.lock().is_out());
    near.send(b"x");
    assert_eq!(near.bell.take(), [7]);
    let requests = near.shared.take_requests();
    assert!(requests.stand_by && !requests.attend && !requests.watch);
    assert!(near.shared.lock().is_out());
    let now_ns = near.now_ns();
    assert_eq!(near.shared.lock().look(now_ns, LIMIT_NS), Use::Recent);
    assert_eq!(
        near.shared.lock().look(now_ns + LIMIT_NS, SECOND_NS),
        Use::Idle
    );
    assert!(!near.shared.lock().is_out());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| near.receive(10, LIMIT_NS).1);
        while near.shared.lock().look(near.now_ns(), SECOND_NS) != Use::Waiting {
            thread::sleep(Duration::from_millis(1));
        }
        near.bell.take();
        near.shared.take_requests();
        far.send(b"y");
        assert_eq!(waiting.join().unwrap(), b"y");
        assert!(near.shared.take_requests().watch);
    });
}

#[test]
fn what_threads_come_upon_is_the_loops_and_waits_go_on_after() {
    let [near, mut far] = pair(2);
    far.shared.lock().on_stream_end(1).unwrap();
    far.streams.remove(1);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| near.receive(10, LIMIT_NS).1);
        while !near.shared.take_requests().attend {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(near.shared.lock().core.alive().contains(1));
        for end in [&near, &far] {
            scope.spawn(|| end.loop_until(&is_over));
        }
        far.send(b"goes on");
        assert_eq!(waiting.join().unwrap(), b"goes on");
        assert!(!near.shared.lock().core.alive().contains(1));
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
            let mut wish = Wish::Room { most: 0, few: 0 };
            near.shared.lock().core.write(&[0; 1 << 23]).unwrap();
            near.wait(&mut wish, LIMIT_NS)
        });
        near.shared.lock().finish();
        assert_eq!(writer.join().unwrap(), Outcome::Over);
    });
    assert_eq!(near.receive(10, LIMIT_NS).1, b"st");
    assert_eq!(near.receive(10, LIMIT_NS).0, Outcome::Over);
}

#[test]
fn an_attempt_never_waits_and_leaves_the_rest_to_the_loop() {
    let [near, far] = pair(2);
    let mut buffer = [MaybeUninit::uninit(); 10];
    let attempt = |buffer: &mut [MaybeUninit<u8>]| {
        let mut wish = Wish::Bytes(Target::new(buffer));
        near.shared.attempt(&mut wish, near.now_ns()).unwrap()
    };
    assert_eq!(attempt(&mut buffer), Outcome::TimedOut);
    assert!(!near.shared.lock().is_out());
    far.send(b"by the loop");
    while near.shared.lock().ready_bytes() == 0 {
        for stream in 0..2 {
            let mut locked = near.shared.lock();
            let _ = locked.read(&mut OwnMemory, stream).unwrap();
        }
    }
    assert_eq!(attempt(&mut buffer), Outcome::Done(10));
    assert!(near.shared.take_requests().attend);
    assert!(!near.shared.lock().is_out());
}
