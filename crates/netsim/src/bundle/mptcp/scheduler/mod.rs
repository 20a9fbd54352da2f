//! Which subflow of an MPTCP connection carries the next piece of data.

mod blest;
mod ecf;
mod linux;
mod min_rtt;
mod round_robin;

use std::fmt;

pub use blest::Blest;
pub use ecf::Ecf;
pub use linux::LeastLinger;
pub use min_rtt::MinRtt;
pub use round_robin::RoundRobin;

use crate::time::Nanos;

/// A subflow, as a scheduler sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SubflowView {
    /// Which one.
    pub index: usize,
    /// Smoothed round-trip time; 0 until measured.
    pub srtt: Nanos,
    /// Mean deviation of the round-trip time.
    pub rtt_variation: Nanos,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Bytes estimated to be under way.
    pub in_flight: u64,
    /// Bytes that its window has room for.
    pub room: u64,
    /// Bytes of a segment.
    pub segment: u64,
}

impl SubflowView {
    /// Whether a whole segment may leave now.
    pub fn has_room(&self) -> bool {
        self.room >= self.segment
    }
}

/// What a scheduler chooses by.
#[derive(Debug)]
pub struct View<'a> {
    /// The subflows that can be used, with room or without; none of them has just had a timeout.
    pub subflows: &'a [SubflowView],
    /// Bytes that no subflow has been given.
    pub unsent: u64,
    /// Bytes that the connection's receive window has room for.
    pub window_room: u64,
}

impl View<'_> {
    /// The subflow of least round-trip time, with room or without.
    pub fn fastest(&self) -> Option<&SubflowView> {
        self.subflows.iter().min_by_key(|flow| flow.srtt)
    }

    /// The subflow of least round-trip time among those with room.
    pub fn fastest_with_room(&self) -> Option<&SubflowView> {
        let with_room = self.subflows.iter().filter(|flow| flow.has_room());
        with_room.min_by_key(|flow| flow.srtt)
    }
}

/// Chooses the subflow of each segment. One object belongs to one direction of a connection.
pub trait Scheduler: fmt::Debug + Send {
    /// The index of the subflow that carries the next segment; none: it waits until something changes.
    fn choose(&mut self, view: &View<'_>) -> Option<usize>;

    /// Whether every subflow carries all data, as far as its window goes.
    fn is_redundant(&self) -> bool {
        false
    }

    /// A segment was held back by the receive window.
    fn on_blocked(&mut self) {}
}

/// All data on every subflow: each sends what it has not sent and the receiver does not have.
#[derive(Debug, Clone)]
pub struct Redundant;

impl Scheduler for Redundant {
    fn choose(&mut self, view: &View<'_>) -> Option<usize> {
        view.fastest_with_room().map(|flow| flow.index)
    }

    fn is_redundant(&self) -> bool {
        true
    }
}

/// The names of all schedulers.
pub const NAMES: [&str; 6] = ["minrtt", "roundrobin", "blest", "ecf", "redundant", "linux"];

/// The scheduler of a name.
pub fn by_name(name: &str) -> Option<Box<dyn Scheduler>> {
    Some(match name {
        "minrtt" => Box::new(MinRtt),
        "roundrobin" => Box::<RoundRobin>::default(),
        "blest" => Box::<Blest>::default(),
        "ecf" => Box::<Ecf>::default(),
        "linux" => Box::new(LeastLinger),
        "redundant" => Box::new(Redundant),
        _ => return None,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::time::MILLISECOND;

    /// A subflow of segments of 1000 bytes: round-trip time in ms, window and what is under way in segments.
    pub fn flow(index: usize, srtt_ms: u64, cwnd: u64, in_flight: u64) -> SubflowView {
        SubflowView {
            index,
            srtt: srtt_ms * MILLISECOND,
            rtt_variation: 0,
            cwnd: cwnd * 1000,
            in_flight: in_flight * 1000,
            room: cwnd.saturating_sub(in_flight) * 1000,
            segment: 1000,
        }
    }

    /// What a scheduler chooses with this many segments unsent and of receive window left.
    pub fn choice(
        scheduler: &mut dyn Scheduler,
        subflows: &[SubflowView],
        [unsent, window]: [u64; 2],
    ) -> Option<usize> {
        scheduler.choose(&View {
            subflows,
            unsent: unsent * 1000,
            window_room: window * 1000,
        })
    }

    #[test]
    fn every_name_is_a_scheduler_that_uses_room_where_it_is() {
        for name in NAMES {
            let mut scheduler = by_name(name).expect("a scheduler");
            let flows = [flow(0, 10, 10, 10), flow(1, 12, 10, 3)];
            assert_eq!(
                choice(&mut *scheduler, &flows, [1000, 1000]),
                Some(1),
                "{name}"
            );
            let full = [flow(0, 10, 10, 10), flow(1, 12, 10, 10)];
            assert_eq!(choice(&mut *scheduler, &full, [1000, 1000]), None, "{name}");
        }
        assert!(by_name("best").is_none());
    }
}
