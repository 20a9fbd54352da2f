//! The receiving half of an MPTCP connection: order at the connection's level.

use std::collections::{BTreeMap, VecDeque};

use crate::tcp::receiver::insert_range;

/// What has arrived of one direction's data, over all subflows.
#[derive(Debug, Default)]
pub struct DataReceiver {
    /// The next byte expected: the data ACK.
    next: u64,
    /// Where the application reads on.
    read: u64,
    /// Arrived beyond `next`: disjoint, ascending, never adjacent.
    ahead: VecDeque<(u64, u64)>,
    ahead_bytes: u64,
    /// By subflow: what it has brought that is not in order for the connection, begins of its data to ends.
    held: Vec<BTreeMap<u64, u64>>,
    /// Packets with new data.
    pub packets: u64,
    /// Those of them that had to wait for others.
    pub out_of_order_packets: u64,
    /// The most bytes that ever waited.
    pub ahead_max_bytes: u64,
    /// Packets with nothing new.
    pub duplicate_packets: u64,
}

impl DataReceiver {
    /// Nothing has arrived.
    pub fn new(subflows: usize) -> Self {
        Self {
            held: vec![BTreeMap::new(); subflows],
            ..Self::default()
        }
    }

    /// The next byte expected.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Bytes that wait for others.
    pub fn ahead_bytes(&self) -> u64 {
        self.ahead_bytes
    }

    /// Read all that is in order: how many bytes.
    pub fn read(&mut self) -> u64 {
        let bytes = self.next - self.read;
        self.read = self.next;
        bytes
    }

    /// Take a packet of a subflow: `sequence` is its number there, `start..end` its data. Whether data that comes after it was here
    /// before it.
    pub fn on_packet(&mut self, subflow: usize, sequence: u64, start: u64, end: u64) -> bool {
        let late = self.ahead.back().is_some_and(|&(_, last)| end <= last);
        if !self.store(start.max(self.next), end) {
            self.duplicate_packets += 1;
            return false;
        }
        self.packets += 1;
        if end > self.next {
            self.out_of_order_packets += 1;
            self.ahead_max_bytes = self.ahead_max_bytes.max(self.ahead_bytes);
            self.held[subflow].insert(sequence, end);
        }
        late
    }

    /// Where the data of a subflow begins that is not in order for the connection, in the subflow's numbers; [`u64::MAX`] if all is.
    pub fn held_from(&mut self, subflow: usize) -> u64 {
        let held = &mut self.held[subflow];
        while let Some((&sequence, &end)) = held.first_key_value() {
            if end > self.next {
                return sequence;
            }
            held.remove(&sequence);
        }
        u64::MAX
    }

    fn store(&mut self, start: u64, end: u64) -> bool {
        if start >= end {
            return false;
        }
        if start == self.next {
            self.next = end;
            while let Some(&(first, last)) = self.ahead.front() {
                if first > self.next {
                    break;
                }
                self.next = self.next.max(last);
                self.ahead_bytes -= last - first;
                self.ahead.pop_front();
            }
            return true;
        }
        let new_bytes = insert_range(&mut self.ahead, start, end);
        self.ahead_bytes += new_bytes.unwrap_or(0);
        new_bytes.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_restored_over_subflows() {
        let mut receiver = DataReceiver::new(2);
        receiver.on_packet(0, 1, 0, 100);
        receiver.on_packet(1, 1, 200, 300);
        receiver.on_packet(1, 101, 400, 500);
        assert_eq!((receiver.next(), receiver.ahead_bytes()), (100, 200));
        assert_eq!(
            (receiver.held_from(0), receiver.held_from(1)),
            (u64::MAX, 1)
        );
        receiver.on_packet(0, 101, 100, 200);
        assert_eq!((receiver.next(), receiver.read()), (300, 300));
        assert_eq!(receiver.held_from(1), 101);
        receiver.on_packet(0, 201, 300, 400);
        assert_eq!((receiver.next(), receiver.ahead_bytes()), (500, 0));
        assert_eq!(receiver.held_from(1), u64::MAX);
        receiver.on_packet(0, 201, 300, 400);
        assert_eq!((receiver.packets, receiver.duplicate_packets), (5, 1));
        assert_eq!(
            (receiver.out_of_order_packets, receiver.ahead_max_bytes),
            (2, 200)
        );
    }
}
