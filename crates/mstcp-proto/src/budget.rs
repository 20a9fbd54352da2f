//! What all connections of a process may promise to receive, beyond what each peer may send from the start.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// A memory limit that connections share, each by a [`Reservation`].
#[derive(Debug)]
pub struct Budget {
    limit_bytes: AtomicU64,
    promised_bytes: AtomicU64,
    shares: AtomicU64,
}

impl Budget {
    /// Let all connections together promise `limit_bytes`.
    pub const fn new(limit_bytes: u64) -> Self {
        Self {
            limit_bytes: AtomicU64::new(limit_bytes),
            promised_bytes: AtomicU64::new(0),
            shares: AtomicU64::new(0),
        }
    }

    /// Change the bound. What was promised stays promised.
    pub fn set_limit_bytes(&self, limit_bytes: u64) {
        self.limit_bytes.store(limit_bytes, Relaxed);
    }

    /// The bound.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes.load(Relaxed)
    }

    /// What is promised now, over all connections.
    pub fn promised_bytes(&self) -> u64 {
        self.promised_bytes.load(Relaxed)
    }
}

/// One connection's part of a [`Budget`], returned when it is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    promised_bytes: u64,
}

impl Reservation {
    /// A part of nothing yet.
    pub fn new(budget: Arc<Budget>) -> Self {
        budget.shares.fetch_add(1, Relaxed);
        Self {
            budget,
            promised_bytes: 0,
        }
    }

    /// How much of `wanted` this connection may promise: all of it while half of the budget is free, else no more than
    /// an equal part of the whole and what is left.
    pub fn most(&self, wanted: u64) -> u64 {
        let limit = self.budget.limit_bytes();
        let others = (self.budget.promised_bytes()).saturating_sub(self.promised_bytes);
        if others.saturating_add(wanted) <= limit / 2 {
            return wanted;
        }
        let equal = limit / self.budget.shares.load(Relaxed).max(1);
        wanted.min(equal).min(limit.saturating_sub(others))
    }

    /// Note what this connection has promised now.
    pub fn set(&mut self, promised_bytes: u64) {
        let before = std::mem::replace(&mut self.promised_bytes, promised_bytes);
        // Added before taken away, so that the sum never passes below 0.
        self.budget
            .promised_bytes
            .fetch_add(promised_bytes, Relaxed);
        self.budget.promised_bytes.fetch_sub(before, Relaxed);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.set(0);
        self.budget.shares.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, Reservation};
    use std::sync::Arc;

    #[test]
    fn the_sum_stays_within_the_bound_and_late_comers_get_a_part() {
        let budget = Arc::new(Budget::new(1000));
        let mut shares: Vec<Reservation> = (0..10)
            .map(|_| Reservation::new(Arc::clone(&budget)))
            .collect();
        let mut given = Vec::new();
        for share in &mut shares {
            let most = share.most(200);
            share.set(most);
            given.push(most);
        }
        assert_eq!(given, [200, 200, 100, 100, 100, 100, 100, 100, 0, 0]);
        assert_eq!(budget.promised_bytes(), 1000);
        // The first have used what they had: now all get the same.
        for share in &mut shares {
            share.set(0);
            let most = share.most(200);
            share.set(most);
            assert!((100..=200).contains(&most) || most == 0);
        }
        assert!(budget.promised_bytes() <= 1000);
        drop(shares);
        assert_eq!(budget.promised_bytes(), 0);
    }

    #[test]
    fn a_smaller_bound_takes_nothing_back() {
        let budget = Arc::new(Budget::new(1000));
        let mut share = Reservation::new(Arc::clone(&budget));
        share.set(share.most(400));
        budget.set_limit_bytes(100);
        assert_eq!((budget.promised_bytes(), share.most(400)), (400, 100));
    }
}
