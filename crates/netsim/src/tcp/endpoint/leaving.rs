//! Segments that leave.

use super::super::rtt::last_tick;
use super::super::scoreboard::Transmission;
use super::super::segment::{MptcpKind, Segment, SynOptions};
use super::{Endpoint, State};
use crate::time::Nanos;

impl Endpoint {
    /// The next segment to send at `now`, or none for the present.
    pub fn poll_transmit(&mut self, now: Nanos) -> Option<Segment> {
        if std::mem::take(&mut self.reset_due) {
            let reset = Segment {
                rst: true,
                sequence: self.sender.next(),
                ..Segment::default()
            };
            return Some(self.finish(reset));
        }
        if std::mem::take(&mut self.syn_due) {
            return Some(self.syn(now));
        }
        match self.state {
            State::Closed | State::Listen | State::SynSent | State::SynReceived => None,
            _ => self.poll_synchronised(now),
        }
    }

    pub(super) fn poll_synchronised(&mut self, now: Nanos) -> Option<Segment> {
        let (due, alone) = self.receiver.ack_due();
        let ack_first = due && (alone || self.acks.separate) && !self.sender.is_forced();
        if !ack_first {
            if let Some(transmission) = self.sender.poll(now) {
                return Some(self.data(now, transmission));
            }
            self.sender.settle(now);
        }
        due.then(|| self.pure_ack(now))
    }

    pub(super) fn syn(&mut self, now: Nanos) -> Segment {
        let timeout = self.config.rto.initial << self.syn_retries.min(16);
        self.syn_timer = now + timeout.min(self.config.rto.max);
        let answer = self.state == State::SynReceived;
        let (sack, timestamps, scaling) = if answer {
            (self.sack, self.timestamps, self.scaling)
        } else {
            self.offers()
        };
        let segment = Segment {
            syn: true,
            acknowledgement: answer.then(|| self.receiver.next()),
            window_bytes: self.receiver.advertise(true),
            options: SynOptions {
                mss_bytes: self.config.mss_bytes,
                window_scale: scaling.then(|| self.receiver.wanted_shift()),
                sack_permitted: sack,
            },
            timestamps: timestamps.then(|| self.stamp(now)),
            retransmission: self.syn_retries > 0,
            ..Segment::default()
        };
        if answer {
            self.receiver.on_ack_sent(true);
        }
        self.finish(segment)
    }

    pub(super) fn offers(&self) -> (bool, bool, bool) {
        (
            self.config.sack,
            self.config.timestamps,
            self.config.window_scaling,
        )
    }

    pub(super) fn stamp(&self, now: Nanos) -> (Nanos, Nanos) {
        (last_tick(now), self.receiver.echo())
    }

    pub(super) fn data(&mut self, now: Nanos, transmission: Transmission) -> Segment {
        let mut segment = self.acknowledging(now, MptcpKind::Mapping);
        segment.sequence = transmission.start;
        segment.payload_bytes = transmission.payload_bytes;
        segment.fin = transmission.fin;
        segment.retransmission = transmission.again;
        segment.push = self.sender.unsent() == 0;
        self.receiver.on_ack_sent(false);
        self.receiver.on_data_sent(now);
        if transmission.payload_bytes > 0 {
            self.statistics.data_segments_sent += 1;
            self.statistics.retransmits += u64::from(transmission.again);
        }
        if transmission.fin {
            self.follow_fins(now);
        }
        self.finish(segment)
    }

    pub(super) fn pure_ack(&mut self, now: Nanos) -> Segment {
        let mut segment = self.acknowledging(now, MptcpKind::DataAck);
        segment.sequence = self.sender.next();
        if let Some(ack) = self.receiver.next_held_ack() {
            ack.put_into(&mut segment);
        }
        self.receiver.on_ack_sent(true);
        self.statistics.pure_acks_sent += 1;
        self.finish(segment)
    }

    /// What every segment of a synchronised connection carries; `option`: what MPTCP will add if the connection is a subflow.
    pub(super) fn acknowledging(&mut self, now: Nanos, option: MptcpKind) -> Segment {
        // RFC 9293, 3.1: at most 40 bytes of options. RFC 2018, 3: 4 bytes of SACK with its padding, and 8 for each block.
        let timestamps = if self.timestamps { 12 } else { 0 };
        let option = if self.subflow { option.bytes() } else { 0 };
        let most = (36_u32.saturating_sub(timestamps + option) / 8) as usize;
        let sack = if self.sack {
            self.receiver.sack_blocks(most)
        } else {
            Default::default()
        };
        Segment {
            acknowledgement: Some(self.receiver.next()),
            window_bytes: self.receiver.advertise(false),
            sack,
            timestamps: self.timestamps.then(|| self.stamp(now)),
            ..Segment::default()
        }
    }

    pub(super) fn finish(&mut self, mut segment: Segment) -> Segment {
        self.order.stamp(&mut segment);
        segment
    }
}
