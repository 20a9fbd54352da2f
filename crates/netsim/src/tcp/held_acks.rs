//! ACKs of a subflow that acknowledges only what is in order for its connection, in the manner of ns-3's MPTCP model (Chihani and
//! Collange 2011).

use std::collections::VecDeque;

use super::config::Ns3MptcpMethod;
use super::segment::Segment;
use crate::time::Nanos;

/// An ACK that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldAck {
    /// The next sequence number expected.
    pub number: u64,
    /// Data that it reports by a block.
    pub report: Option<(u64, u64)>,
    /// The timestamp that it echoes.
    pub echo: Option<Nanos>,
}

impl HeldAck {
    /// Make a segment this ACK.
    pub fn put_into(&self, segment: &mut Segment) {
        segment.acknowledgement = Some(self.number);
        if let Some(block) = self.report {
            segment.sack.push(self.number, block);
        }
        if let (Some(echo), Some((_, place))) = (self.echo, &mut segment.timestamps) {
            *place = echo;
        }
    }
}

/// Which ACKs are due, the oldest first.
///
/// A segment that must wait although it is the next of its subflow raises no ACK; those behind it raise duplicates, and none if they
/// were there already. What is released is acknowledged segment by segment. With D-SACK all that waits is reported at once by a
/// block of its own; with Eifel each arrival is acknowledged with its own timestamp.
#[derive(Debug, Clone)]
pub struct HeldAcks {
    method: Ns3MptcpMethod,
    segment_bytes: u64,
    due: VecDeque<HeldAck>,
}

impl HeldAcks {
    /// None is due; released data counts in segments of `segment_bytes`.
    pub fn new(method: Ns3MptcpMethod, segment_bytes: u64) -> Self {
        Self {
            method,
            segment_bytes,
            due: VecDeque::new(),
        }
    }

    /// `from..to`, which had to wait, is in order now.
    pub fn on_release(&mut self, from: u64, to: u64) {
        let mut number = from;
        while number < to {
            number = (number + self.segment_bytes).min(to);
            self.push(number, None, None);
        }
    }

    /// Data has arrived; `fresh`: for the first time; `expected`: the next number before and after it.
    pub fn on_data(&mut self, segment: &Segment, fresh: bool, expected: [u64; 2]) {
        let [before, next] = expected;
        let start = segment.sequence;
        let end = start + u64::from(segment.payload_bytes);
        let own_time = match self.method {
            Ns3MptcpMethod::Eifel => segment.timestamps.map(|(value, _)| value),
            _ => None,
        };
        let waits = end > next;
        if !waits && next > before {
            self.on_release(end, next);
        }
        let report = (waits && self.method == Ns3MptcpMethod::DSack).then_some((start, end));
        let behind_a_gap = start > before && fresh;
        if !waits || behind_a_gap || report.is_some() || own_time.is_some() {
            self.push(next, report, own_time);
        }
    }

    fn push(&mut self, number: u64, report: Option<(u64, u64)>, echo: Option<Nanos>) {
        self.due.push_back(HeldAck {
            number,
            report,
            echo,
        });
    }

    /// Whether any is due.
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// The next one.
    pub fn pop(&mut self) -> Option<HeldAck> {
        self.due.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(sequence: u64) -> Segment {
        Segment {
            sequence,
            payload_bytes: 100,
            timestamps: Some((7, 0)),
            ..Segment::default()
        }
    }

    fn numbers(acks: &mut HeldAcks) -> Vec<(u64, bool, bool)> {
        let told = |ack: HeldAck| (ack.number, ack.report.is_some(), ack.echo.is_some());
        std::iter::from_fn(|| acks.pop()).map(told).collect()
    }

    #[test]
    fn the_first_that_waits_raises_no_ack_and_those_behind_it_duplicates() {
        let mut acks = HeldAcks::new(Ns3MptcpMethod::NoPr, 100);
        acks.on_data(&data(1), true, [1, 1]);
        acks.on_data(&data(101), true, [1, 1]);
        acks.on_data(&data(101), false, [1, 1]);
        assert_eq!(numbers(&mut acks), [(1, false, false)]);
        acks.on_release(1, 201);
        assert_eq!(
            numbers(&mut acks),
            [(101, false, false), (201, false, false)]
        );
        // What had arrived is acknowledged again.
        acks.on_data(&data(1), false, [201, 201]);
        assert_eq!(numbers(&mut acks), [(201, false, false)]);
    }

    #[test]
    fn the_segment_that_fills_a_gap_is_acknowledged_after_those_that_it_releases() {
        let mut acks = HeldAcks::new(Ns3MptcpMethod::NoPr, 100);
        acks.on_data(&data(1), true, [1, 301]);
        let plain = |number| (number, false, false);
        assert_eq!(numbers(&mut acks), [plain(201), plain(301), plain(301)]);
    }

    #[test]
    fn dsack_reports_all_that_waits_and_eifel_echoes_each_arrival() {
        let mut acks = HeldAcks::new(Ns3MptcpMethod::DSack, 100);
        acks.on_data(&data(1), true, [1, 1]);
        acks.on_data(&data(1), false, [1, 1]);
        acks.on_data(&data(1), true, [1, 101]);
        assert_eq!(
            numbers(&mut acks),
            [(1, true, false), (1, true, false), (101, false, false)]
        );
        let mut acks = HeldAcks::new(Ns3MptcpMethod::Eifel, 100);
        acks.on_data(&data(1), true, [1, 1]);
        acks.on_release(1, 101);
        assert_eq!(numbers(&mut acks), [(1, false, true), (101, false, false)]);
    }
}
