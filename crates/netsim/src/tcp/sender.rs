//! The sending side: what may be sent when, and the timers that watch over it.

use std::collections::VecDeque;

use super::config::{BackoffEnd, Config, Detection, Sampling};
use super::congestion::{CongestionControl, Delivery, Window};
use super::events::{Events, PathState};
use super::pacing::Pacer;
use super::receiver::OFF;
use super::recovery::{AckEvent, LossRecovery, Parts, Phase, SpuriousResponse};
use super::rtt::RttEstimator;
use super::scoreboard::{Rules, Scoreboard, Transmission};
use super::segment::Segment;
use super::statistics::Statistics;
use crate::time::Nanos;

/// One direction of a connection, as seen by who sends.
#[derive(Debug)]
pub struct Sender {
    buffer_bytes: u64,
    nagle: bool,
    timestamps: bool,
    tick: Nanos,
    backoff_end: BackoffEnd,
    sampling: Sampling,
    data_retries: u32,
    persist_first: Option<Nanos>,
    /// The sequence number after the last byte written.
    written: u64,
    closing: bool,
    fin_sent: bool,
    board: Scoreboard,
    recovery: LossRecovery,
    window: Window,
    congestion: Box<dyn CongestionControl>,
    /// Whether the congestion control looks at deliveries.
    measured: bool,
    least_rtt: Option<Nanos>,
    lost_before: u64,
    rtt: RttEstimator,
    pacer: Pacer,
    /// The peer's window and the segment that told it (SND.WND, SND.WL1, SND.WL2 of RFC 9293).
    peer_window: u64,
    window_sequence: u64,
    window_ack: u64,
    /// A retransmission that does not wait for the window.
    forced: bool,
    /// A retransmission that does not wait for the window is a tail loss probe.
    tail_probe: bool,
    /// A probe of the closed window is due.
    probe: bool,
    /// The number after the last probe's byte.
    probed: u64,
    retransmit_at: Nanos,
    persist_at: Nanos,
    persist_wait: Nanos,
    timeouts_in_row: u32,
    /// Whether the congestion window was what held data back last.
    window_limited: bool,
    /// Whether pacing holds data back.
    paced: bool,
    /// Whether somebody else watches the peer's window.
    outside_window: bool,
    /// Where segments must end: what is mapped differently does not share one.
    ends: VecDeque<u64>,
    events: Events,
}

impl Sender {
    /// Nothing sent, nothing written.
    pub fn new(config: &Config, congestion: Box<dyn CongestionControl>) -> Self {
        let mss = config.mss_bytes;
        Self {
            buffer_bytes: u64::from(config.send_buffer_bytes),
            nagle: config.nagle,
            timestamps: config.timestamps,
            tick: config.timestamp_tick,
            backoff_end: config.backoff_end,
            sampling: config.sampling,
            data_retries: config.data_retries,
            persist_first: config.persist_timeout,
            written: 1,
            closing: false,
            fin_sent: false,
            // ns-3 leaves segments that were sent again and then SACKed in the pipe; RFC 6675 takes them out.
            board: Scoreboard::new(Rules {
                threshold: match config.detection {
                    Detection::DuplicateAcks | Detection::Ns3 => Some(config.duplicate_threshold),
                    Detection::Rack
                    | Detection::Delay
                    | Detection::TimerOnly
                    | Detection::Ns3Mptcp => None,
                },
                keep_resent: config.detection == Detection::Ns3,
                tracks_deliveries: config.detection == Detection::Rack,
                samples_rate: congestion.looks_at_deliveries(),
            }),
            recovery: LossRecovery::new(config),
            window: Window {
                cwnd: u64::from(config.initial_window_segments) * u64::from(mss),
                ssthresh: config.initial_ssthresh_bytes,
                mss,
            },
            measured: congestion.looks_at_deliveries(),
            least_rtt: None,
            lost_before: 0,
            congestion,
            rtt: RttEstimator::new(config.rto),
            pacer: Pacer::new(config.pacing),
            peer_window: 0,
            window_sequence: 0,
            window_ack: 0,
            forced: false,
            tail_probe: false,
            probe: false,
            probed: 0,
            retransmit_at: OFF,
            persist_at: OFF,
            persist_wait: 0,
            timeouts_in_row: 0,
            window_limited: false,
            paced: false,
            outside_window: false,
            ends: VecDeque::new(),
            events: Events::default(),
        }
    }

    /// Take reductions back by a response of one's own.
    pub fn respond_by(&mut self, response: Box<dyn SpuriousResponse>) {
        self.recovery.respond_by(response);
    }

    /// Leave the peer's window to the writer: all that is written may be sent as far as the congestion window goes.
    pub fn ignore_peer_window(&mut self) {
        self.outside_window = true;
        self.peer_window = u64::MAX / 2;
    }

    /// Take bytes into the buffer that share no segment with those after them.
    pub fn write_apart(&mut self, bytes: u64) -> u64 {
        let taken = self.write(bytes);
        self.ends.push_back(self.written);
        taken
    }

    /// Bytes that the congestion window has room for beyond all that waits to be sent, first time or again.
    pub fn room(&self) -> u64 {
        let waiting = self.unsent() + self.board.pending_bytes();
        let room = self.window.cwnd.min(self.peer_window);
        room.saturating_sub(self.board.pipe() + waiting)
    }

    /// The state of this path, for a scheduler.
    pub fn path(&self) -> PathState {
        PathState {
            srtt: self.rtt.srtt().unwrap_or(0),
            rtt_variation: self.rtt.variation(),
            cwnd_bytes: self.window.cwnd,
            pipe_bytes: self.board.pipe(),
            room_bytes: self.room(),
            segment_bytes: self.window.segment(),
        }
    }

    /// The oldest sequence number that is not acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.board.start()
    }

    /// Let the congestion control shrink the window because this path holds the others back.
    pub fn penalise(&mut self) {
        self.congestion.on_penalty(&mut self.window);
    }

    /// What has happened since the last time.
    pub fn take_events(&mut self) -> Events {
        std::mem::take(&mut self.events)
    }

    /// Settle what the handshake agreed on.
    pub fn agree(&mut self, mss: u32, sack: bool, timestamps: bool) {
        self.congestion.on_mss(&mut self.window, mss);
        self.recovery.agree(sack);
        self.timestamps = timestamps;
    }

    /// The RTT and timeout estimator.
    pub fn rtt(&mut self) -> &mut RttEstimator {
        &mut self.rtt
    }

    /// Bytes that a write takes now.
    pub fn free(&self) -> u64 {
        self.buffer_bytes.saturating_sub(self.unacknowledged())
    }

    /// Bytes written and not acknowledged, sent or not.
    pub fn unacknowledged(&self) -> u64 {
        self.written.saturating_sub(self.board.start().max(1))
    }

    /// Take bytes into the buffer; give how many.
    pub fn write(&mut self, bytes: u64) -> u64 {
        if self.closing {
            return 0;
        }
        let taken = bytes.min(self.free());
        self.written += taken;
        taken
    }

    /// No more will be written: a FIN follows the data.
    pub fn close(&mut self) {
        self.closing = true;
    }

    /// Whether the FIN has been sent, and whether it has been acknowledged.
    pub fn fin_state(&self) -> (bool, bool) {
        (self.fin_sent, self.fin_sent && self.board.is_empty())
    }

    /// The sequence number of the next new byte.
    pub fn next(&self) -> u64 {
        self.board.end()
    }

    /// Bytes written and not sent.
    pub fn unsent(&self) -> u64 {
        self.written.saturating_sub(self.board.end())
    }

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
        if ack < before {
            return true;
        }
        let old_window = self.peer_window;
        self.on_window(segment.sequence, ack, segment.window_bytes);
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
            now,
            before,
            ack,
            duplicate,
            advance,
            delivered: sacked + advance.delivered,
            pipe: self.board.pipe(),
            srtt: self.rtt.srtt(),
            rtt,
            window_segments: self.window.segments(),
            window_limited: self.window_limited,
            flight: self.board.outstanding(),
            unsent: self.unsent() > 0,
        };
        if self.measured {
            self.tell_delivery(&event);
        }
        let mut parts = Parts {
            board: &mut self.board,
            window: &mut self.window,
            congestion: &mut *self.congestion,
        };
        let verdict = self.recovery.on_ack(&event, segment, &mut parts);
        statistics.fast_retransmits += u64::from(verdict.entered);
        statistics.undone_reductions += u64::from(verdict.undone);
        self.events.lost |= verdict.entered;
        self.forced |= verdict.retransmit;
        if ack > before {
            self.events.acknowledged_bytes += ack - before;
            self.on_progress(now, verdict.restart_timer);
        }
        self.arm_probe(now);
        self.watch_window(now);
        true
    }

    /// Segments have arrived in another order than they left, here or at the peer.
    pub fn on_out_of_order(&mut self, now: Nanos, statistics: &mut Statistics) {
        let rto = self.rtt.rto();
        let mut parts = Parts {
            board: &mut self.board,
            window: &mut self.window,
            congestion: &mut *self.congestion,
        };
        let undone = self.recovery.on_out_of_order(now, rto, &mut parts);
        statistics.undone_reductions += u64::from(undone);
    }

    /// Tell the congestion control what an ACK has delivered.
    fn tell_delivery(&mut self, event: &AckEvent) {
        self.least_rtt = match (self.least_rtt, event.rtt) {
            (Some(least), Some(rtt)) => Some(least.min(rtt)),
            (least, rtt) => least.or(rtt),
        };
        let least_rtt = self.least_rtt;
        let lost_ever = self.board.lost_ever();
        let sampler = self.board.sampler();
        let (sample, total) = sampler.map_or((None, 0), |sampler| {
            (sampler.sample(least_rtt), sampler.delivered())
        });
        let delivery = Delivery {
            now: event.now,
            bytes: event.delivered,
            rtt: event.rtt,
            pipe: event.pipe,
            lost: lost_ever - std::mem::replace(&mut self.lost_before, lost_ever),
            total,
            sample,
            recovering: matches!(self.recovery.phase(), Phase::Recovery | Phase::Loss),
        };
        self.congestion.on_delivery(&mut self.window, &delivery);
    }

    fn arm_probe(&mut self, now: Nanos) {
        if self.recovery.probes() {
            let srtt = self.rtt.srtt();
            self.recovery
                .arm_probe(now, srtt, self.retransmit_at, &self.board);
        }
    }

    /// Restart or stop the retransmission timer (RFC 6298, 5.2 and 5.3).
    fn on_progress(&mut self, now: Nanos, restart: bool) {
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
    fn sample(
        &mut self,
        now: Nanos,
        segment: &Segment,
        advance: &super::scoreboard::Advance,
    ) -> Option<Nanos> {
        let (sent_at, ambiguous) = advance.timed?;
        let rtt = match segment.timestamps {
            Some(_) if ambiguous && self.sampling == Sampling::FirstSentOnly => None,
            Some((_, echo)) if self.timestamps => Some(self.echoed(now, echo)),
            _ if !ambiguous => Some(now - sent_at),
            _ => None,
        }?;
        self.rtt.sample(rtt);
        Some(rtt)
    }

    /// A sample by the peer's echo of our clock; at least a microsecond.
    fn echoed(&self, now: Nanos, echo: Nanos) -> Nanos {
        let tick = now / self.tick * self.tick;
        tick.saturating_sub(echo).max(1_000)
    }

    /// Take the sample of the handshake.
    pub fn sample_echo(&mut self, now: Nanos, echo: Nanos) {
        let rtt = self.echoed(now, echo);
        self.rtt.sample(rtt);
    }

    /// RFC 9293, 3.8.6.1: watch a window that keeps data back while nothing is under way.
    fn watch_window(&mut self, now: Nanos) {
        let stuck = self.board.is_empty()
            && self.unsent() > 0
            && self.peer_window < self.unsent().min(self.window.segment());
        if !stuck {
            self.persist_at = OFF;
        } else if self.persist_at == OFF {
            self.persist_wait = self.persist_first.unwrap_or_else(|| self.rtt.rto());
            self.persist_at = now + self.persist_wait;
        }
    }

    /// The next time at which something is to be done; [`OFF`] if none.
    pub fn timer(&self) -> Nanos {
        let pacing = if self.paced { self.pacer.next() } else { OFF };
        let detection = self.recovery.timer();
        self.retransmit_at
            .min(self.persist_at)
            .min(pacing)
            .min(detection)
    }

    /// Do what is due; false if the peer has to be given up.
    pub fn on_timer(&mut self, now: Nanos, statistics: &mut Statistics) -> bool {
        if now >= self.persist_at {
            self.probe = true;
            self.persist_wait = (2 * self.persist_wait).min(60 * crate::time::SECOND);
            self.persist_at = now + self.persist_wait;
        }
        if now >= self.recovery.timer() {
            self.detect(now, statistics);
        }
        if now < self.retransmit_at {
            return true;
        }
        self.retransmit_at = OFF;
        if self.board.is_empty() {
            return true;
        }
        self.timeouts_in_row += 1;
        if self.timeouts_in_row > self.data_retries {
            return false;
        }
        statistics.timeouts += 1;
        self.events.timed_out = true;
        if !self.recovery.holds_window(now) {
            self.rtt.back_off();
        }
        self.pacer.reset();
        self.forced = false;
        let mut parts = Parts {
            board: &mut self.board,
            window: &mut self.window,
            congestion: &mut *self.congestion,
        };
        self.recovery.on_timeout(now, &mut parts);
        self.forced = self.recovery.forces_after_timeout();
        true
    }

    /// Let the loss detector act on the time.
    fn detect(&mut self, now: Nanos, statistics: &mut Statistics) {
        let srtt = self.rtt.srtt();
        let mut parts = Parts {
            board: &mut self.board,
            window: &mut self.window,
            congestion: &mut *self.congestion,
        };
        let verdict = self.recovery.on_timer(now, srtt, &mut parts);
        statistics.fast_retransmits += u64::from(verdict.entered);
        self.forced |= verdict.retransmit || verdict.probe;
        self.tail_probe = verdict.probe;
    }

    /// Whether a retransmission is due that does not wait for the window.
    pub fn is_forced(&self) -> bool {
        self.forced
    }

    /// The next segment to send, if one may leave.
    pub fn poll(&mut self, now: Nanos) -> Option<Transmission> {
        let transmission = if self.forced {
            self.forced = false;
            self.force(now)
        } else {
            self.paced = false;
            self.choose(now)?
        };
        self.fin_sent |= transmission.fin;
        self.recovery.on_sent(now, &transmission);
        self.pace(now, transmission.payload_bytes);
        if self.retransmit_at == OFF && !self.board.is_empty() {
            self.retransmit_at = now + self.rtt.rto();
        }
        if !transmission.again {
            self.arm_probe(now);
        }
        Some(transmission)
    }

    /// Set when the next segment may leave after this one.
    fn pace(&mut self, now: Nanos, bytes: u32) {
        let srtt = self.rtt.srtt();
        let set = self
            .measured
            .then(|| self.congestion.pacing_rate(&self.window, srtt));
        if let Some(rate) = set.flatten() {
            self.pacer.sent_at_rate(now, bytes, rate);
            return;
        }
        let Window { cwnd, ssthresh, .. } = self.window;
        self.pacer.sent(now, bytes, cwnd, ssthresh, srtt);
    }

    /// The fast retransmit, and the retransmission after a partial ACK: the first lost segment, else the head.
    fn force(&mut self, now: Nanos) -> Transmission {
        if std::mem::take(&mut self.tail_probe) {
            return self.probe_tail(now);
        }
        if let Some(index) = self.board.next_lost() {
            return self.board.resend(index, now);
        }
        let new = self.new_data_bytes(u64::MAX);
        if self.recovery.prefers_new_data() && new > 0 {
            return self.push_new(new, now);
        }
        self.board.resend(0, now)
    }

    /// RFC 8985, 7.3: new data if there is any, else the last segment again; the retransmission timer begins anew.
    fn probe_tail(&mut self, now: Nanos) -> Transmission {
        let new = self.new_data_bytes(u64::MAX);
        let probe = if new > 0 {
            self.push_new(new, now)
        } else {
            let last = self.board.last_unsacked().unwrap_or(0);
            self.board.resend(last, now)
        };
        self.recovery.on_probe_sent(self.board.end(), probe.again);
        self.retransmit_at = now + self.rtt.rto();
        probe
    }

    /// RFC 6675, 5 (C) and NextSeg: what is lost, then new data, then what may be lost.
    fn choose(&mut self, now: Nanos) -> Option<Transmission> {
        if std::mem::take(&mut self.probe) && self.unsent() > 0 && self.board.is_empty() {
            return Some(self.probe_window(now));
        }
        let allowed = self.peer_window.min(self.window.cwnd);
        let pipe = if self.recovery.holds_new_data() {
            self.board.outstanding()
        } else {
            self.board.pipe()
        };
        let lost = if self.recovery.may_resend() {
            self.board.next_lost()
        } else {
            None
        };
        if pipe >= allowed {
            self.window_limited = self.window.cwnd <= self.peer_window;
            return self.finish(now, lost.is_none());
        }
        let room = allowed - pipe;
        if let Some(index) = lost {
            return self.again(index, room, now);
        }
        if self.unsent() > 0 {
            return self.new_data(room, now);
        }
        if let Some(sampler) = self.board.sampler() {
            sampler.limit_by_application(pipe);
        }
        // A subflow is given no more than its window has room for: it is the limit once no further segment fits.
        self.window_limited = self.outside_window && room < self.window.segment();
        if let Some(index) = self.recovery.speculative(&self.board) {
            return self.again(index, room, now);
        }
        self.finish(now, true)
    }

    /// A bare FIN, which needs no window.
    fn finish(&mut self, now: Nanos, nothing_lost: bool) -> Option<Transmission> {
        let ready = nothing_lost && self.closing && !self.fin_sent && self.unsent() == 0;
        ready.then(|| self.board.push(0, true, now))
    }

    fn again(&mut self, index: usize, room: u64, now: Nanos) -> Option<Transmission> {
        let rest = self.written.saturating_sub(self.board.start_of(index));
        if self.is_held_back(room, rest) || self.is_paced(now) {
            return None;
        }
        Some(self.board.resend(index, now))
    }

    /// RFC 9293, 3.8.6.2.1: no small segments because of a small window.
    fn is_held_back(&mut self, room: u64, data: u64) -> bool {
        let small = room < self.window.segment() && data > room;
        self.window_limited |= small && self.window.cwnd <= self.peer_window;
        small
    }

    fn is_paced(&mut self, now: Nanos) -> bool {
        self.paced = !self.pacer.ready(now);
        self.paced
    }

    /// How much new data the next segment carries, at most `room`.
    fn new_data_bytes(&self, room: u64) -> u64 {
        let peer_room = self.peer_window.saturating_sub(self.board.outstanding());
        let end = self.ends.front().copied().unwrap_or(u64::MAX);
        self.unsent()
            .min(self.window.segment())
            .min(room)
            .min(peer_room)
            .min(end.saturating_sub(self.board.end()))
    }

    fn new_data(&mut self, room: u64, now: Nanos) -> Option<Transmission> {
        let unsent = self.unsent();
        let bytes = self.new_data_bytes(room);
        if bytes == 0 || self.is_held_back(room, unsent) {
            return None;
        }
        // RFC 896: small segments wait for the acknowledgement of what is out.
        let small = unsent < self.window.segment() && !self.closing;
        if (self.nagle && small && !self.board.is_empty()) || self.is_paced(now) {
            return None;
        }
        self.window_limited = false;
        Some(self.push_new(bytes, now))
    }

    fn push_new(&mut self, bytes: u64, now: Nanos) -> Transmission {
        let fin = self.closing && !self.fin_sent && bytes == self.unsent();
        let transmission = self.board.push(bytes as u32, fin, now);
        if self
            .ends
            .front()
            .is_some_and(|&end| end <= self.board.end())
        {
            self.ends.pop_front();
        }
        transmission
    }

    /// What the window lets through, or one byte of new data beyond it.
    fn probe_window(&mut self, now: Nanos) -> Transmission {
        let bytes = self.new_data_bytes(u64::MAX);
        if bytes > 0 {
            return self.push_new(bytes, now);
        }
        self.probed = self.board.end() + 1;
        Transmission {
            start: self.board.end(),
            payload_bytes: 1,
            fin: false,
            again: false,
        }
    }

    /// Look after the persist timer once no more can be sent.
    pub fn settle(&mut self, now: Nanos) {
        self.watch_window(now);
    }

    /// Fill in the present state.
    pub fn report(&self, statistics: &mut Statistics) {
        statistics.cwnd_bytes = self.window.cwnd;
        statistics.ssthresh_bytes = self.window.ssthresh;
        statistics.pipe_bytes = self.board.pipe();
        statistics.peer_window_bytes = self.peer_window;
        statistics.srtt = self.rtt.srtt();
        statistics.rtt_variation = self.rtt.variation();
        statistics.rto = self.rtt.rto();
        statistics.phase = self.recovery.phase();
    }

    /// Name of the congestion control.
    pub fn congestion_name(&self) -> &'static str {
        self.congestion.name()
    }

    /// Check the scoreboard against a recount, for tests.
    pub fn check(&self) {
        self.board.check();
    }
}
