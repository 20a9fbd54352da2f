//! BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00). Names and sections are the draft's.

use super::super::delivery_rate::{RateSample, SampleRule};
use super::{Acked, CongestionControl, Delivery, Window};
use crate::random::{RngCore, SeedableRng, SplitMix64};
use crate::time::{Nanos, MILLISECOND, SECOND};

/// 4.2.2: 2 / ln(2), the least gain that doubles the rate each round.
const HIGH_GAIN: f64 = 2.885;
/// 4.3.4.2: the gains of a cycle, a round trip each.
pub(in crate::tcp) const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// 4.1.1.2: rounds that the greatest bandwidth is remembered.
const BTLBW_FILTER_ROUNDS: u64 = 10;
/// 4.1.2.2: how long the least round-trip time is.
pub(in crate::tcp) const RTPROP_FILTER: Nanos = 10 * SECOND;
/// 4.3.5: how long the window is small to see it again.
pub(in crate::tcp) const PROBE_RTT_TIME: Nanos = 200 * MILLISECOND;
/// 4.2.3.2, in segments.
const MIN_PIPE_SEGMENTS: u64 = 4;
/// 4.3.2.2: growth below this, for this many rounds, tells that the pipe is full.
pub(in crate::tcp) const FULL_PIPE_GROWTH: f64 = 1.25;
pub(in crate::tcp) const FULL_PIPE_ROUNDS: u32 = 3;

/// What BBR is doing (4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Doubles its rate each round until the bandwidth stops growing.
    Startup,
    /// Empties the queue that this has made.
    Drain,
    /// Cycles about the bandwidth that it has seen.
    ProbeBw,
    /// Sends little, to see the round-trip time of an empty path.
    ProbeRtt,
}

/// The greatest of the past rounds, by three best ones as Kathleen Nichols' filter has them.
#[derive(Debug, Clone, Copy, Default)]
struct MaxFilter {
    best: [(u64, f64); 3],
}

impl MaxFilter {
    fn get(&self) -> f64 {
        self.best[0].1
    }

    fn update(&mut self, round: u64, value: f64) {
        let new = (round, value);
        if value >= self.best[0].1 || round - self.best[2].0 > BTLBW_FILTER_ROUNDS {
            self.best = [new; 3];
            return;
        }
        if value >= self.best[1].1 {
            self.best[1] = new;
            self.best[2] = new;
        } else if value >= self.best[2].1 {
            self.best[2] = new;
        }
        while round - self.best[0].0 > BTLBW_FILTER_ROUNDS {
            self.best = [self.best[1], self.best[2], new];
        }
    }
}

/// BBR's window and rate: as much as a model of bandwidth and round-trip time says the path holds.
#[derive(Debug)]
pub struct Bbr {
    state: State,
    rng: SplitMix64,
    initial_window: u64,
    btlbw: MaxFilter,
    rtprop: Option<Nanos>,
    rtprop_stamp: Nanos,
    pacing_gain: f64,
    cwnd_gain: f64,
    /// Bytes a nanosecond; none before the first sample.
    pacing_rate: Option<f64>,
    round_count: u64,
    next_round_delivered: u64,
    round_start: bool,
    filled_pipe: bool,
    full_bw: f64,
    full_bw_count: u32,
    cycle_index: usize,
    cycle_stamp: Nanos,
    probe_rtt_done: Option<Nanos>,
    probe_rtt_round_done: bool,
    prior_cwnd: u64,
    prior_inflight: u64,
    recovering: bool,
    packet_conservation: bool,
    conservation_until: u64,
}

impl Bbr {
    /// 4.3.1: begin in Startup. The seed decides where in the cycle probing begins.
    pub fn new(seed: u64) -> Self {
        Self {
            state: State::Startup,
            rng: SplitMix64::seed_from_u64(seed),
            initial_window: 0,
            btlbw: MaxFilter::default(),
            rtprop: None,
            rtprop_stamp: 0,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            pacing_rate: None,
            round_count: 0,
            next_round_delivered: 0,
            round_start: false,
            filled_pipe: false,
            full_bw: 0.0,
            full_bw_count: 0,
            cycle_index: 0,
            cycle_stamp: 0,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            prior_cwnd: 0,
            prior_inflight: 0,
            recovering: false,
            packet_conservation: false,
            conservation_until: 0,
        }
    }

    /// What it is doing.
    pub fn state(&self) -> State {
        self.state
    }

    /// The factor of the bandwidth that it sends with.
    pub fn pacing_gain(&self) -> f64 {
        self.pacing_gain
    }

    /// 4.1.1.3: rounds of the connection.
    fn update_round(&mut self, delivered: u64, sample: &RateSample) {
        self.round_start = sample.prior_delivered >= self.next_round_delivered;
        if self.round_start {
            self.next_round_delivered = delivered;
            self.round_count += 1;
        }
    }

    /// 4.1.1.5, BBRUpdateBtlBw.
    fn update_btlbw(&mut self, delivery: &Delivery) {
        self.round_start = false;
        let Some(sample) = &delivery.sample else {
            return;
        };
        self.update_round(delivery.total, sample);
        let rate = sample.delivered as f64 / sample.interval as f64;
        if rate >= self.btlbw.get() || !sample.app_limited {
            self.btlbw.update(self.round_count, rate);
        }
    }

    /// 4.3.2.2, BBRCheckFullPipe.
    fn check_full_pipe(&mut self, delivery: &Delivery) {
        let limited = delivery.sample.map_or(true, |sample| sample.app_limited);
        if self.filled_pipe || !self.round_start || limited {
            return;
        }
        if self.btlbw.get() >= self.full_bw * FULL_PIPE_GROWTH {
            self.full_bw = self.btlbw.get();
            self.full_bw_count = 0;
            return;
        }
        self.full_bw_count += 1;
        self.filled_pipe = self.full_bw_count >= FULL_PIPE_ROUNDS;
    }

    /// 4.3.2.1 and 4.3.3: from Startup through Drain.
    fn check_drain(&mut self, delivery: &Delivery, window: &Window) {
        if self.state == State::Startup && self.filled_pipe {
            self.state = State::Drain;
            self.pacing_gain = 1.0 / HIGH_GAIN;
            self.cwnd_gain = HIGH_GAIN;
        }
        if self.state == State::Drain && delivery.pipe <= self.inflight(1.0, window) {
            self.enter_probe_bw(delivery.now);
        }
    }

    /// 4.3.4.3, BBREnterProbeBW: anywhere in the cycle but where the queue is drained.
    fn enter_probe_bw(&mut self, now: Nanos) {
        self.state = State::ProbeBw;
        self.cwnd_gain = 2.0;
        self.cycle_index = CYCLE.len() - 1 - (self.rng.next_u64() % 7) as usize;
        self.advance_cycle(now);
    }

    fn advance_cycle(&mut self, now: Nanos) {
        self.cycle_stamp = now;
        self.cycle_index = (self.cycle_index + 1) % CYCLE.len();
        self.pacing_gain = CYCLE[self.cycle_index];
    }

    /// 4.3.4.3, BBRIsNextCyclePhase.
    fn check_cycle(&mut self, delivery: &Delivery, window: &Window) {
        if self.state != State::ProbeBw {
            return;
        }
        let full_length = delivery.now - self.cycle_stamp > self.rtprop.unwrap_or(0);
        let next = if self.pacing_gain > 1.0 {
            let reached = self.prior_inflight >= self.inflight(self.pacing_gain, window);
            full_length && (delivery.lost > 0 || reached)
        } else if self.pacing_gain < 1.0 {
            full_length || self.prior_inflight <= self.inflight(1.0, window)
        } else {
            full_length
        };
        if next {
            self.advance_cycle(delivery.now);
        }
    }

    /// 4.1.2.3, BBRUpdateRTprop, and 4.3.5, BBRCheckProbeRTT.
    fn update_rtprop(&mut self, delivery: &Delivery, window: &mut Window) {
        let expired = delivery.now > self.rtprop_stamp + RTPROP_FILTER;
        if let Some(rtt) = delivery.rtt {
            if expired || self.rtprop.map_or(true, |least| rtt <= least) {
                self.rtprop = Some(rtt);
                self.rtprop_stamp = delivery.now;
            }
        }
        if self.state != State::ProbeRtt && expired && self.rtprop.is_some() {
            self.state = State::ProbeRtt;
            self.pacing_gain = 1.0;
            self.cwnd_gain = 1.0;
            self.save_cwnd(window);
            self.probe_rtt_done = None;
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(delivery, window);
        }
    }

    /// 4.3.5, BBRHandleProbeRTT.
    fn handle_probe_rtt(&mut self, delivery: &Delivery, window: &mut Window) {
        match self.probe_rtt_done {
            None if delivery.pipe <= MIN_PIPE_SEGMENTS * window.segment() => {
                self.probe_rtt_done = Some(delivery.now + PROBE_RTT_TIME);
                self.probe_rtt_round_done = false;
                self.next_round_delivered = delivery.total;
            }
            None => {}
            Some(done) => {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done && delivery.now > done {
                    self.rtprop_stamp = delivery.now;
                    self.restore_cwnd(window);
                    if self.filled_pipe {
                        self.enter_probe_bw(delivery.now);
                    } else {
                        self.state = State::Startup;
                        self.pacing_gain = HIGH_GAIN;
                        self.cwnd_gain = HIGH_GAIN;
                    }
                }
            }
        }
    }

    /// 4.2.3.2, BBRInflight: bytes under way at a gain.
    fn inflight(&self, gain: f64, window: &Window) -> u64 {
        let Some(rtprop) = self.rtprop else {
            return self.initial_window;
        };
        let bdp = self.btlbw.get() * rtprop as f64;
        (gain * bdp) as u64 + 3 * self.send_quantum(window)
    }

    /// 4.2.2, BBRSetSendQuantum.
    fn send_quantum(&self, window: &Window) -> u64 {
        // Bytes a nanosecond: 1.2 and 24 Mbit/s.
        match self.pacing_rate.unwrap_or(0.0) {
            rate if rate < 0.000_15 => window.segment(),
            rate if rate < 0.003 => 2 * window.segment(),
            rate => ((rate * MILLISECOND as f64) as u64).min(65_536),
        }
    }

    /// 4.2.1, BBRSetPacingRate.
    fn set_pacing_rate(&mut self) {
        let rate = self.pacing_gain * self.btlbw.get();
        if rate > 0.0 && (self.filled_pipe || self.pacing_rate.map_or(true, |old| rate > old)) {
            self.pacing_rate = Some(rate);
        }
    }

    /// 4.2.3.4, BBRModulateCwndForRecovery.
    fn modulate_for_recovery(&mut self, delivery: &Delivery, window: &mut Window) {
        if delivery.lost > 0 {
            window.cwnd = window
                .cwnd
                .saturating_sub(delivery.lost)
                .max(window.segment());
        }
        if self.packet_conservation {
            window.cwnd = window.cwnd.max(delivery.pipe + delivery.bytes);
        }
    }

    /// 4.2.3.6, BBRSetCwnd.
    fn set_cwnd(&mut self, delivery: &Delivery, window: &mut Window) {
        let target = self.inflight(self.cwnd_gain, window);
        let least = MIN_PIPE_SEGMENTS * window.segment();
        self.modulate_for_recovery(delivery, window);
        if !self.packet_conservation {
            if self.filled_pipe {
                window.cwnd = (window.cwnd + delivery.bytes).min(target);
            } else if window.cwnd < target || delivery.total < self.initial_window {
                window.cwnd += delivery.bytes;
            }
            window.cwnd = window.cwnd.max(least);
        }
        if self.state == State::ProbeRtt {
            window.cwnd = window.cwnd.min(least);
        }
    }

    /// 4.2.3.4: the first round of a recovery keeps as much under way as is delivered; its end brings the window back.
    fn follow_recovery(&mut self, delivery: &Delivery, window: &mut Window) {
        if delivery.recovering && !self.recovering {
            self.save_cwnd(window);
            window.cwnd = delivery.pipe + delivery.bytes.max(window.segment());
            self.packet_conservation = true;
            self.conservation_until = delivery.total;
        } else if !delivery.recovering && self.recovering {
            self.packet_conservation = false;
            self.restore_cwnd(window);
        }
        self.recovering = delivery.recovering;
        let round = delivery
            .sample
            .is_some_and(|sample| sample.prior_delivered >= self.conservation_until);
        self.packet_conservation &= !round;
    }

    /// 4.2.3.3, BBRSaveCwnd: the window that was good.
    fn save_cwnd(&mut self, window: &Window) {
        self.prior_cwnd = if self.recovering || self.state == State::ProbeRtt {
            self.prior_cwnd.max(window.cwnd)
        } else {
            window.cwnd
        };
    }

    fn restore_cwnd(&self, window: &mut Window) {
        window.cwnd = window.cwnd.max(self.prior_cwnd);
    }
}

impl CongestionControl for Bbr {
    fn samples(&self) -> Option<SampleRule> {
        Some(SampleRule::Draft)
    }

    /// 4.1.3 and 4.2: the model first, then what follows from it.
    fn on_delivery(&mut self, window: &mut Window, delivery: &Delivery) {
        if self.initial_window == 0 {
            self.initial_window = window.cwnd;
            self.rtprop_stamp = delivery.now;
        }
        self.prior_inflight = delivery.pipe + delivery.bytes;
        self.update_btlbw(delivery);
        self.check_cycle(delivery, window);
        self.check_full_pipe(delivery);
        self.check_drain(delivery, window);
        self.update_rtprop(delivery, window);
        self.set_pacing_rate();
        self.follow_recovery(delivery, window);
        self.set_cwnd(delivery, window);
    }

    fn on_ack(&mut self, _: &mut Window, _: &Acked) {}

    fn on_loss(&mut self, _: Nanos, _: &mut Window, _: u64) {}

    fn on_reduction(&mut self, _: &mut Window, _: u64) {}

    /// 4.2.3.4: one segment after a timeout; the window before it comes back with the recovery's end.
    fn on_timeout(&mut self, window: &mut Window) {
        self.save_cwnd(window);
        self.recovering = true;
        window.cwnd = window.segment();
    }

    /// 4.2.1: the rate of the model; at first the initial window in a round trip, or in a millisecond, with the high gain.
    fn pacing_rate(&self, window: &Window, srtt: Option<Nanos>) -> Option<f64> {
        let first = || {
            let round_trip = srtt.filter(|&srtt| srtt > 0).unwrap_or(MILLISECOND);
            HIGH_GAIN * window.cwnd as f64 / round_trip as f64
        };
        Some(self.pacing_rate.unwrap_or_else(first))
    }
}
