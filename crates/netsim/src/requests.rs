//! Requests and their answers: who asks when, for how much, and how long it takes.

use std::collections::VecDeque;

use crate::metrics::Histogram;
use crate::time::Nanos;

/// Values taken one after the other, from the first again after the last.
#[derive(Debug, Clone)]
struct CyclicValues {
    values: Vec<u64>,
    taken: usize,
}

impl CyclicValues {
    fn new(values: Vec<u64>) -> Self {
        Self { values, taken: 0 }
    }

    /// The next value; none after the last.
    fn next(&mut self) -> Option<u64> {
        self.taken += 1;
        self.values.get(self.taken - 1).copied()
    }

    /// The next value; after the last they begin again.
    fn cycle(&mut self) -> u64 {
        self.taken += 1;
        self.values[(self.taken - 1) % self.values.len()]
    }
}

/// The requests of a flow: made at its destination, answered by its source in the order in which they come.
#[derive(Debug, Clone)]
pub struct Requests {
    /// Times between requests, or that users think.
    times: CyclicValues,
    /// Bytes of answers.
    sizes: CyclicValues,
    /// Those of a closed loop, who ask, wait for the whole answer, think and ask again.
    users: Option<u32>,
    request_bytes: u32,
    /// Bytes of requests that the connection has not taken yet.
    unsent: u64,
    /// Bytes of the answers to requests that have not arrived.
    answers: VecDeque<u64>,
    /// Bytes of the next request that have arrived.
    arrived: u64,
}

impl Requests {
    /// Requests of `request_bytes`. There is one size at least, and with users one time.
    pub fn new(times: Vec<Nanos>, sizes: Vec<u64>, users: Option<u32>, request_bytes: u32) -> Self {
        Self {
            times: CyclicValues::new(times),
            sizes: CyclicValues::new(sizes),
            users,
            request_bytes,
            unsent: 0,
            answers: VecDeque::new(),
            arrived: 0,
        }
    }

    /// How many requests are under way to be made at the beginning, and how long after it.
    pub fn first(&mut self) -> (u32, Nanos) {
        match self.users {
            Some(users) => (users, 0),
            None => self.times.next().map_or((0, 0), |time| (1, time)),
        }
    }

    /// The time to the next request of an open loop.
    pub fn gap(&mut self) -> Option<Nanos> {
        match self.users {
            Some(_) => None,
            None => self.times.next(),
        }
    }

    /// How long a user of a closed loop thinks.
    pub fn think(&mut self) -> Option<Nanos> {
        self.users.map(|_| self.times.cycle())
    }

    /// Make a request: the bytes of its answer.
    pub fn ask(&mut self) -> u64 {
        let size = self.sizes.cycle();
        self.unsent += u64::from(self.request_bytes);
        self.answers.push_back(size);
        size
    }

    /// Bytes of requests that wait for room.
    pub fn unsent(&self) -> u32 {
        self.unsent.min(u64::from(u32::MAX)) as u32
    }

    /// Note that the connection took bytes of requests.
    pub fn on_sent(&mut self, bytes: u32) {
        self.unsent -= u64::from(bytes);
    }

    /// Note that bytes of requests have arrived: the bytes of the answers to those that are complete.
    pub fn on_arrived(&mut self, bytes: u64) -> u64 {
        self.arrived += bytes;
        let mut answers = 0;
        while self.arrived >= u64::from(self.request_bytes) {
            self.arrived -= u64::from(self.request_bytes);
            answers += self.answers.pop_front().unwrap_or(0);
        }
        answers
    }
}

/// What is to arrive whole: files and answers, and how long each took from when it was wanted.
#[derive(Debug, Clone, Default)]
pub struct Transfers {
    /// Where each that is not whole ends in the flow's bytes, when it was wanted, and whether it counts.
    open: VecDeque<(u64, Nanos, bool)>,
    end: u64,
    /// Those that count and were wanted.
    pub started: u64,
    /// How long those took that count and are whole.
    pub times: Histogram,
}

impl Transfers {
    /// Note that the next `bytes` are wanted from now on; `counts` unless it is before the measurement.
    pub fn want(&mut self, now: Nanos, bytes: u64, counts: bool) {
        self.end += bytes;
        self.started += u64::from(counts);
        self.open.push_back((self.end, now, counts));
    }

    /// Note that all before `offset` has been read: how many have become whole.
    pub fn on_read(&mut self, now: Nanos, offset: u64) -> u32 {
        let mut whole = 0;
        while let Some(&(_, wanted, counts)) = self.open.front().filter(|open| open.0 <= offset) {
            self.open.pop_front();
            whole += 1;
            if counts {
                self.times.record(now - wanted, 1);
            }
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_follow_the_requests_that_are_complete() {
        let mut requests = Requests::new(vec![0], vec![1000], Some(2), 100);
        assert_eq!(requests.first(), (2, 0));
        assert_eq!((requests.ask(), requests.ask()), (1000, 1000));
        assert_eq!(requests.unsent(), 200);
        requests.on_sent(150);
        assert_eq!(requests.unsent(), 50);
        assert_eq!(requests.on_arrived(99), 0);
        assert_eq!(requests.on_arrived(101), 2000);
    }

    #[test]
    fn an_open_loop_ends_with_its_times() {
        let mut requests = Requests::new(vec![5, 7], vec![1, 2], None, 100);
        assert_eq!(requests.first(), (1, 5));
        assert_eq!((requests.gap(), requests.gap()), (Some(7), None));
        assert_eq!([requests.ask(), requests.ask(), requests.ask()], [1, 2, 1]);
    }

    #[test]
    fn transfers_count_from_when_they_were_wanted() {
        let mut transfers = Transfers::default();
        transfers.want(10, 100, false);
        transfers.want(20, 50, true);
        transfers.want(30, 50, true);
        assert_eq!(transfers.on_read(40, 149), 1);
        assert_eq!(transfers.on_read(60, 150), 1);
        assert_eq!((transfers.started, transfers.times.max_ns()), (2, Some(40)));
    }
}
