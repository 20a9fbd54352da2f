//! Segments that arrive (RFC 9293, 3.10.7).

use super::super::config::RttSampling;
use super::super::order::Arrival;
use super::super::receiver::OFF;
use super::super::segment::Segment;
use super::{Endpoint, State};
use crate::time::Nanos;

impl Endpoint {
    /// Take a segment from the peer.
    pub fn on_segment(&mut self, now: Nanos, segment: &Segment) {
        if segment.rst {
            if !matches!(self.state, State::Closed | State::Listen) {
                self.end(true);
            }
            return;
        }
        match self.state {
            State::Closed => {}
            State::Listen => self.on_first_syn(now, segment),
            State::SynSent => self.on_syn_answer(now, segment),
            State::TimeWait => self.on_late_segment(now, segment),
            _ => self.on_established(now, segment),
        }
    }

    /// RFC 9293, 3.10.7.2.
    pub(super) fn on_first_syn(&mut self, now: Nanos, segment: &Segment) {
        if !segment.syn {
            self.reset_due = segment.acknowledgement.is_some();
            return;
        }
        self.agree(segment);
        self.state = State::SynReceived;
        self.syn_due = true;
        self.syn_sent_at = now;
    }

    /// RFC 9293, 3.10.7.3.
    pub(super) fn on_syn_answer(&mut self, now: Nanos, segment: &Segment) {
        if segment.acknowledgement.is_some_and(|ack| ack != 1) {
            self.reset_due = true;
            return;
        }
        if !segment.syn {
            return;
        }
        self.agree(segment);
        if segment.acknowledgement.is_none() {
            // Both opened at once (RFC 9293, 3.5 figure 7).
            self.state = State::SynReceived;
            self.syn_due = true;
            return;
        }
        self.establish(now, segment);
        self.receiver.acknowledge_now(false);
    }

    /// Settle the options that the peer's SYN and ours have in common.
    pub(super) fn agree(&mut self, segment: &Segment) {
        let options = segment.options;
        let mss = match options.mss_bytes {
            0 => self.config.mss_bytes,
            peer => self.config.mss_bytes.min(peer),
        };
        self.sack = self.config.sack && options.sack_permitted;
        self.timestamps = self.config.timestamps && segment.timestamps.is_some();
        self.scaling = self.config.window_scaling && options.window_scale.is_some();
        self.sender.agree(mss, self.sack, self.timestamps);
        self.receiver.on_syn();
        if let Some((value, _)) = segment.timestamps {
            self.receiver.note_timestamp(0, value, false);
        }
        self.sender.on_window(
            segment.sequence,
            segment.acknowledgement.unwrap_or(0),
            segment.window_bytes,
        );
    }

    pub(super) fn establish(&mut self, now: Nanos, segment: &Segment) {
        self.events.opened = true;
        self.state = State::Established;
        self.syn_timer = OFF;
        self.syn_due = false;
        if self.scaling {
            self.receiver.set_shift(self.receiver.wanted_shift());
        }
        let known_at = now + self.resolution;
        if self.syn_retries == 0 && self.sender.sampling() != RttSampling::Departures {
            match segment.timestamps {
                Some((_, echo)) if self.timestamps => self.sender.sample_echo(known_at, echo),
                _ => self.sender.rtt().sample(known_at - self.syn_sent_at),
            }
        }
        let handshake = (self.syn_retries == 0).then(|| known_at - self.syn_sent_at);
        self.sender.on_open(now, handshake);
    }

    /// RFC 9293, 3.10.7.4.
    pub(super) fn on_established(&mut self, now: Nanos, segment: &Segment) {
        if segment.syn {
            self.on_repeated_syn(now, segment);
            return;
        }
        let Some(ack) = segment.acknowledgement else {
            return;
        };
        match self.order.on_arrival(segment) {
            Arrival::InOrder => {}
            Arrival::LateData => self.order.report(),
            Arrival::Reported => self.sender.on_out_of_order(now, &mut self.statistics),
        }
        if self.state == State::SynReceived {
            if ack == 0 {
                return;
            }
            self.establish(now, segment);
        }
        if let (true, Some((value, _))) = (self.timestamps, segment.timestamps) {
            self.receiver.note_timestamp(
                segment.sequence,
                value,
                self.sender.sampling() == RttSampling::FirstSentOnly,
            );
        }
        if !self.sender.on_ack(now, segment, ack, &mut self.statistics) {
            self.receiver.acknowledge_now(false);
            return;
        }
        if segment.payload_bytes > 0 || segment.fin {
            let pause = self.sender.rtt().rto();
            self.receiver
                .on_data(now, segment, pause, &mut self.statistics);
        }
        self.follow_fins(now);
    }

    /// The peer did not get our answer to its SYN, or a SYN-ACK comes twice.
    pub(super) fn on_repeated_syn(&mut self, now: Nanos, segment: &Segment) {
        if self.state != State::SynReceived {
            self.receiver.acknowledge_now(true);
        } else if segment.acknowledgement == Some(1) {
            self.establish(now, segment);
            self.receiver.acknowledge_now(false);
        } else {
            self.syn_due = true;
        }
    }

    /// The transitions that sent, acknowledged and received FINs cause (RFC 9293, figure 5).
    pub(super) fn follow_fins(&mut self, now: Nanos) {
        let (sent, acknowledged) = self.sender.fin_state();
        let received = self.receiver.finished();
        let next = match (sent, acknowledged, received) {
            (false, _, false) => return,
            (false, _, true) => State::CloseWait,
            (true, false, false) => State::FinWait1,
            (true, true, false) => State::FinWait2,
            (true, false, true) if matches!(self.state, State::CloseWait | State::LastAck) => {
                State::LastAck
            }
            (true, false, true) => State::Closing,
            (true, true, true) if self.state == State::LastAck => return self.end(false),
            (true, true, true) => State::TimeWait,
        };
        if next == State::TimeWait && self.state != State::TimeWait {
            self.time_wait_until = now + self.config.time_wait;
        }
        self.state = next;
    }

    /// RFC 9293, 3.10.7.4, TIME-WAIT: the peer has missed our last ACK.
    pub(super) fn on_late_segment(&mut self, now: Nanos, segment: &Segment) {
        if segment.fin {
            self.receiver.acknowledge_now(true);
            self.time_wait_until = now + self.config.time_wait;
        }
    }
}
