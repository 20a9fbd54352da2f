//! What an ACK does: window, scoreboard, samples, recovery.

use super::super::config::{BackoffEnd, RttSampling};
use super::super::congestion::Delivery;
use super::super::receiver::OFF;
use super::super::recovery::{AckEvent, AckVerdict, Phase};
use super::super::rtt::last_tick;
use super::super::scoreboard::Advance;
use super::super::segment::Segment;
use super::super::statistics::Statistics;
use super::Sender;
use crate::time::Nanos;

impl Sender {
    /// Take the window of a segment (RFC 9293, 3.10.7.4).
    pub fn on_window(&mut self, sequence: u64, ack: u64, window: u64) {
        let newer = self.window_sequence < sequence
            || (self.window_sequence == sequence && self.window_ack <= ack);
        if newer && !self.outside_window {
            self.events.window_opened |= ack + window > self.window_ack + self.peer_window;
            self.window_sequence = sequence;
            self.window_ack = ack;
            self.peer_window = window;
        }
    }

    /// Take the acknowledgement of a segment; false if it acknowledges what was never sent.
    pub fn on_ack(
        &mut self,
        now: Nanos,
        segment: &Segment,
        ack: u64,
        statistics: &mut Statistics,
    ) -> bool {
        let before = self.board.start();
        if ack > self.board.end().max(self.probed) {
            return false;
        }
        if self.recovery.ignores_ack(&self.window) {
            return true;
        }
        if ack < before {
            return true;
        }
        let old_window = self.peer_window;
        self.on_window(segment.sequence, ack, segment.window_bytes);
        let tells_nothing = ack == before && self.board.is_empty();
        if tells_nothing && !self.measured && self.recovery.is_told_nothing(segment) {
            // As nearly all segments to a side that only receives.
            self.watch_window(now);
            return true;
        }
        let [prior_pipe, prior_lost] = [self.board.pipe(), self.board.lost_bytes()];
        let sacked = if self.recovery.sack() {
            self.board.sack(&segment.sack, ack, now)
        } else {
            0
        };
        let advance = self.board.advance(ack, now);
        if advance.head_was_booked {
            self.recovery.correct_head(&mut self.board);
        }
        let rtt = self.sample(now, segment, &advance);
        let duplicate =
            self.recovery
                .is_duplicate(segment, &self.board, before, [sacked, old_window]);
        statistics.duplicate_acks += u64::from(duplicate);
        statistics.bytes_acknowledged = self.board.start().min(self.written) - 1;
        let event = AckEvent {
            duplicate,
            advance,
            delivered: sacked + advance.delivered,
            rtt,
            ..self.event(now, [before, ack])
        };
        if self.measured && !self.as_ns3 {
            self.tell_delivery(&event, prior_pipe);
        }
        let (recovery, mut parts) = self.split();
        let verdict = recovery.on_ack(&event, segment, &mut parts);
        statistics.fast_retransmits += u64::from(verdict.entered);
        statistics.undone_reductions += u64::from(verdict.undone);
        if self.as_ns3 {
            self.tell_ns3_delivery(&event, &verdict, prior_pipe, prior_lost);
        }
        self.follow(&verdict);
        if ack > before {
            self.events.acknowledged_bytes += ack - before;
            self.on_progress(now, verdict.restart_timer);
            self.arm_probe(now);
        }
        self.watch_window(now);
        true
    }

    fn follow(&mut self, verdict: &AckVerdict) {
        self.events.lost |= verdict.entered;
        self.events.window_opened |= verdict.opened;
        self.forced |= verdict.retransmit;
        if verdict.back_off {
            self.rtt.back_off();
        }
    }

    /// A duplicate for the first unacknowledged segment, which another subflow's ACK has told of (D-SACK of ns-3's MPTCP).
    pub fn on_charged_duplicate(&mut self, now: Nanos, statistics: &mut Statistics) {
        if self.board.is_empty() {
            return;
        }
        let edge = self.board.start();
        let event = AckEvent {
            duplicate: true,
            ..self.event(now, [edge, edge])
        };
        let (recovery, mut parts) = self.split();
        let verdict = recovery.on_ack(&event, &Segment::default(), &mut parts);
        statistics.duplicate_acks += 1;
        statistics.fast_retransmits += u64::from(verdict.entered);
        self.follow(&verdict);
    }

    /// What was sent again on this subflow had arrived, as the connection has seen.
    pub fn on_needless_retransmission(&mut self, statistics: &mut Statistics) {
        let (recovery, mut parts) = self.split();
        statistics.undone_reductions += u64::from(recovery.on_needless(&mut parts));
    }

    /// The bare facts of an ACK that moves the left edge from `before` to `ack`.
    fn event(&self, now: Nanos, [before, ack]: [u64; 2]) -> AckEvent {
        AckEvent {
            now,
            before,
            ack,
            duplicate: false,
            advance: Advance::default(),
            delivered: 0,
            pipe: self.board.pipe(),
            srtt: self.rtt.srtt(),
            rtt: None,
            window: self.window,
            window_limited: self.is_window_limited(),
            flight: self.board.outstanding(),
            unsent: self.unsent() > 0,
        }
    }

    /// Segments have arrived in another order than they left, here or at the peer.
    pub fn on_out_of_order(&mut self, now: Nanos, statistics: &mut Statistics) {
        let rto = self.rtt.rto();
        let (recovery, mut parts) = self.split();
        let undone = recovery.on_out_of_order(now, rto, &mut parts);
        statistics.undone_reductions += u64::from(undone);
    }

    /// Tell the congestion control what an ACK has delivered.
    pub(super) fn tell_delivery(&mut self, event: &AckEvent, prior_pipe: u64) {
        self.least_rtt = match (self.least_rtt, event.rtt) {
            (Some(least), Some(rtt)) => Some(least.min(rtt)),
            (least, rtt) => least.or(rtt),
        };
        let lost_ever = self.board.lost_ever();
        let lost = lost_ever - std::mem::replace(&mut self.lost_before, lost_ever);
        self.tell(event, [prior_pipe, event.pipe, lost]);
    }

    /// The same after the recovery has acted. What it sends again at once is not yet counted, but what it has marked is.
    fn tell_ns3_delivery(
        &mut self,
        event: &AckEvent,
        verdict: &AckVerdict,
        prior_pipe: u64,
        prior_lost: u64,
    ) {
        self.least_rtt = match (self.least_rtt, event.srtt) {
            (Some(least), Some(srtt)) => Some(least.min(srtt)),
            (least, srtt) => least.or(srtt),
        };
        let pipe = if verdict.retransmit {
            self.board.pipe()
        } else {
            event.pipe
        };
        let lost = self.board.lost_bytes().abs_diff(prior_lost);
        self.tell(event, [prior_pipe, pipe, lost]);
    }

    fn tell(&mut self, event: &AckEvent, [prior_pipe, pipe, lost]: [u64; 3]) {
        let least_rtt = self.least_rtt;
        let sampler = self.board.sampler();
        let (sample, total) = sampler.map_or((None, 0), |sampler| {
            (sampler.sample(least_rtt), sampler.delivered())
        });
        let delivery = Delivery {
            now: event.now,
            bytes: event.delivered,
            rtt: event.rtt,
            srtt: event.srtt,
            pipe,
            prior_pipe,
            lost,
            total,
            sample,
            recovering: matches!(self.recovery.phase(), Phase::Recovery | Phase::Loss),
        };
        self.congestion.on_delivery(&mut self.window, &delivery);
    }

    /// Restart or stop the retransmission timer (RFC 6298, 5.2 and 5.3).
    pub(super) fn on_progress(&mut self, now: Nanos, restart: bool) {
        self.timeouts_in_row = 0;
        if self.board.is_empty() {
            self.retransmit_at = OFF;
            self.forced = false;
        }
        if restart {
            if self.backoff_end == BackoffEnd::Progress {
                self.rtt.end_backoff();
            }
            if !self.board.is_empty() {
                self.retransmit_at = now + self.rtt.rto();
            }
        }
    }

    /// RFC 6298, 3 (Karn) and RFC 7323, 4: the sample that an ACK gives.
    pub(super) fn sample(
        &mut self,
        now: Nanos,
        segment: &Segment,
        advance: &Advance,
    ) -> Option<Nanos> {
        let (sent_at, ambiguous) = advance.timed?;
        if !ambiguous {
            self.nearest = Some(
                self.nearest
                    .map_or(now - sent_at, |rtt| rtt.min(now - sent_at)),
            );
        }
        let rtt = match segment.timestamps {
            _ if self.sampling == RttSampling::Departures => (!ambiguous).then(|| now - sent_at),
            Some(_) if ambiguous && self.sampling == RttSampling::FirstSentOnly => None,
            Some((_, echo)) if self.timestamps => Some(echoed(now, echo)),
            _ if !ambiguous => Some(now - sent_at),
            _ => None,
        }?;
        self.rtt.sample(rtt);
        Some(rtt)
    }

    /// Take the sample of the handshake.
    pub fn sample_echo(&mut self, now: Nanos, echo: Nanos) {
        let rtt = echoed(now, echo);
        self.rtt.sample(rtt);
    }
}

/// A sample by the peer's echo of our clock; at least a microsecond.
fn echoed(now: Nanos, echo: Nanos) -> Nanos {
    last_tick(now).saturating_sub(echo).max(1_000)
}
