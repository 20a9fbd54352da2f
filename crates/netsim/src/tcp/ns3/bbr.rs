//! BBR as ns-3 3.37 has it (`TcpBbr`), which at times carries much less than the draft's where packets are lost.
//!
//! What differs from [`Bbr`](super::super::congestion::Bbr): the round-trip time is the smoothed one; the end of a recovery sets the window to `ssthresh`,
//! which is the path's product when Drain began and without bound before; all changes of what is taken for lost shrink the window in a
//! recovery, those by which it gets less too; ACKs that come together add their bytes to the window; the initial window is not paced.
//! Counters have 32 bits and wrap. The samples are ns-3's as well ([`SampleRule::Ns3`](super::super::delivery_rate::SampleRule)).

use super::super::congestion::bbr::{
    State, CYCLE, FULL_PIPE_GROWTH, FULL_PIPE_ROUNDS, PROBE_RTT_TIME, RTPROP_FILTER,
};
use super::super::congestion::{Acked, CongestionControl, Delivery, Window};
use super::super::delivery_rate::{RateSample, SampleRule};
use crate::random::{RngCore, SeedableRng, SplitMix64};
use crate::time::{Nanos, MILLISECOND, SECOND};

const HIGH_GAIN: f64 = 2.89;
const FILTER_ROUNDS: u64 = 10;
const MIN_PIPE_SEGMENTS: u32 = 4;

/// The greatest rate of the past rounds in bit/s: the best, the second and the third best, each no older than the next.
#[derive(Debug, Clone, Copy, Default)]
struct MaxFilter {
    /// What it holds before the first rate.
    unset: u64,
    best: [(u64, u64); 3],
}

impl MaxFilter {
    fn begin(rate: u64) -> Self {
        Self {
            unset: rate,
            best: [(0, rate); 3],
        }
    }

    fn get(&self) -> u64 {
        self.best[0].1
    }

    fn is_old(&self, place: usize, round: u64, rounds: u64) -> bool {
        round - self.best[place].0 > rounds
    }

    /// Rates of 0 are never as good as others.
    fn update(&mut self, round: u64, rate: u64) {
        let new = (round, rate);
        let beats = |other: u64| rate > 0 && other > 0 && rate >= other;
        if self.get() == self.unset || beats(self.get()) || self.is_old(2, round, FILTER_ROUNDS) {
            self.best = [new; 3];
            return;
        }
        if beats(self.best[1].1) {
            (self.best[1], self.best[2]) = (new, new);
        } else if beats(self.best[2].1) {
            self.best[2] = new;
        }
        self.forget(new);
    }

    fn forget(&mut self, new: (u64, u64)) {
        let round = new.0;
        if self.is_old(0, round, FILTER_ROUNDS) {
            self.best = [self.best[1], self.best[2], new];
            if self.is_old(0, round, FILTER_ROUNDS) {
                (self.best[0], self.best[1]) = (self.best[1], self.best[2]);
            }
        } else if self.best[1].1 == self.best[0].1 && self.is_old(1, round, FILTER_ROUNDS / 4) {
            (self.best[1], self.best[2]) = (new, new);
        } else if self.best[2].1 == self.best[1].1 && self.is_old(2, round, FILTER_ROUNDS / 2) {
            self.best[2] = new;
        }
    }
}

/// What ACKs bring beyond what the bandwidth explains. The limit of an epoch counts bytes where Linux counts packets, so an epoch is a
/// few segments, and its length is in whole seconds.
#[derive(Debug, Clone, Copy, Default)]
struct AckAggregation {
    extra: [u32; 2],
    place: usize,
    rounds: u32,
    epoch_at: Nanos,
    epoch_bytes: u32,
}

impl AckAggregation {
    const ROUNDS: u32 = 5;
    const EPOCH_BYTES: u32 = 1 << 12;

    fn update(&mut self, delivery: &Delivery, round_start: bool, bps: u64, cwnd: u32) {
        let acked = delivery.bytes as u32;
        if acked == 0 {
            return;
        }
        if round_start {
            self.rounds += 1;
            if self.rounds >= Self::ROUNDS {
                self.rounds = 0;
                self.place ^= 1;
                self.extra[self.place] = 0;
            }
        }
        let seconds = delivery.now / SECOND - self.epoch_at / SECOND;
        let mut expected = (bps as f64 * seconds as f64 / 8.0) as u32;
        if self.epoch_bytes <= expected || self.epoch_bytes + acked >= Self::EPOCH_BYTES {
            self.epoch_bytes = 0;
            self.epoch_at = delivery.now;
            expected = 0;
        }
        self.epoch_bytes += acked;
        let extra = (self.epoch_bytes - expected).min(cwnd);
        self.extra[self.place] = self.extra[self.place].max(extra);
    }

    /// At most what the bandwidth carries in 100 ms.
    fn window(&self, bps: u64) -> u32 {
        self.extra[0].max(self.extra[1]).min((bps / 80) as u32)
    }
}

/// ns-3's BBR.
#[derive(Debug)]
pub struct Ns3Bbr {
    state: State,
    rng: SplitMix64,
    opened: bool,
    initial_window: u32,
    bandwidth: MaxFilter,
    rtprop: Nanos,
    rtprop_stamp: Nanos,
    rtprop_expired: bool,
    pacing_gain: f64,
    cwnd_gain: f64,
    pacing_bps: u64,
    round_count: u64,
    next_round_delivered: u64,
    round_start: bool,
    filled_pipe: bool,
    full_bps: u64,
    full_count: u32,
    cycle_index: usize,
    cycle_stamp: Nanos,
    probe_rtt_done: Option<Nanos>,
    probe_rtt_round_done: bool,
    prior_cwnd: u32,
    recovering: bool,
    packet_conservation: bool,
    /// Set by the first ProbeRTT and kept.
    was_limited: bool,
    restarted: bool,
    aggregation: AckAggregation,
}

impl Ns3Bbr {
    /// Begin in Startup. The seed decides where in the cycle probing begins.
    pub fn new(seed: u64) -> Self {
        Self {
            state: State::Startup,
            rng: SplitMix64::seed_from_u64(seed),
            opened: false,
            initial_window: 0,
            bandwidth: MaxFilter::default(),
            rtprop: 0,
            rtprop_stamp: 0,
            rtprop_expired: false,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            pacing_bps: 0,
            round_count: 0,
            next_round_delivered: 0,
            round_start: false,
            filled_pipe: false,
            full_bps: 0,
            full_count: 0,
            cycle_index: 0,
            cycle_stamp: 0,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            prior_cwnd: 0,
            recovering: false,
            packet_conservation: false,
            was_limited: false,
            restarted: false,
            aggregation: AckAggregation::default(),
        }
    }

    /// What it is doing.
    pub fn state(&self) -> State {
        self.state
    }

    /// The rate does not count, nor do rounds, before the first sample.
    fn update_bandwidth(&mut self, total: u64, sample: Option<&RateSample>) {
        let Some(sample) = sample else { return };
        self.round_start = sample.prior_delivered >= self.next_round_delivered;
        if self.round_start {
            self.next_round_delivered = total;
            self.round_count += 1;
            self.packet_conservation = false;
        }
        let bps = (sample.delivered as f64 * 8.0 * SECOND as f64 / sample.interval as f64) as u64;
        if bps >= self.bandwidth.get() || !sample.app_limited {
            self.bandwidth.update(self.round_count, bps);
        }
    }

    /// Bytes under way at a gain: three segments more, and five at the beginning of a cycle.
    fn inflight(&self, gain: f64, window: &Window) -> u32 {
        let product = self.bandwidth.get() as f64 * self.rtprop as f64 / SECOND as f64 / 8.0;
        let probing = self.state == State::ProbeBw && self.cycle_index == 0;
        let segments = if probing { 5 } else { 3 };
        (gain * product) as u32 + segments * window.mss
    }

    fn check_cycle(&mut self, delivery: &Delivery, window: &Window) {
        if self.state != State::ProbeBw {
            return;
        }
        let full_length = delivery.now - self.cycle_stamp > self.rtprop;
        let prior = delivery.prior_pipe;
        let next = if self.pacing_gain > 1.0 {
            let reached = prior >= u64::from(self.inflight(self.pacing_gain, window));
            full_length && (delivery.lost > 0 || reached)
        } else if self.pacing_gain < 1.0 {
            full_length || prior <= u64::from(self.inflight(1.0, window))
        } else {
            full_length
        };
        if next {
            self.advance_cycle(delivery.now);
        }
    }

    fn advance_cycle(&mut self, now: Nanos) {
        self.cycle_stamp = now;
        self.cycle_index = (self.cycle_index + 1) % CYCLE.len();
        self.pacing_gain = CYCLE[self.cycle_index];
    }

    fn enter_probe_bw(&mut self, now: Nanos) {
        self.state = State::ProbeBw;
        self.cwnd_gain = 2.0;
        // One of six phases: the draw from 0 to 6 is cut to a whole number.
        self.cycle_index = CYCLE.len() - 1 - (self.rng.next_u64() % 6) as usize;
        self.advance_cycle(now);
    }

    fn check_full_pipe(&mut self, sample: Option<&RateSample>) {
        let limited = sample.map_or(true, |sample| sample.app_limited);
        if self.filled_pipe || !self.round_start || limited {
            return;
        }
        if self.bandwidth.get() as f64 >= self.full_bps as f64 * FULL_PIPE_GROWTH {
            self.full_bps = self.bandwidth.get();
            self.full_count = 0;
            return;
        }
        self.full_count += 1;
        self.filled_pipe = self.full_count >= FULL_PIPE_ROUNDS;
    }

    fn check_drain(&mut self, delivery: &Delivery, window: &mut Window) {
        if self.state == State::Startup && self.filled_pipe {
            self.state = State::Drain;
            self.pacing_gain = 1.0 / HIGH_GAIN;
            self.cwnd_gain = HIGH_GAIN;
            window.ssthresh = u64::from(self.inflight(1.0, window));
        }
        if self.state == State::Drain && delivery.pipe <= u64::from(self.inflight(1.0, window)) {
            self.enter_probe_bw(delivery.now);
        }
    }

    fn update_rtprop(&mut self, delivery: &Delivery) {
        self.rtprop_expired = delivery.now > self.rtprop_stamp + RTPROP_FILTER;
        let srtt = delivery.srtt.unwrap_or(0);
        if srtt <= self.rtprop || self.rtprop_expired {
            self.rtprop = srtt;
            self.rtprop_stamp = delivery.now;
        }
    }

    fn check_probe_rtt(&mut self, delivery: &Delivery, window: &mut Window) {
        if self.state != State::ProbeRtt && self.rtprop_expired && !self.restarted {
            self.state = State::ProbeRtt;
            self.pacing_gain = 1.0;
            self.cwnd_gain = 1.0;
            self.save_cwnd(window);
            self.probe_rtt_done = None;
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(delivery, window);
        }
        self.restarted = false;
    }

    fn handle_probe_rtt(&mut self, delivery: &Delivery, window: &mut Window) {
        self.was_limited = true;
        match self.probe_rtt_done {
            None if delivery.pipe <= u64::from(least(window)) => {
                self.probe_rtt_done = Some(delivery.now + PROBE_RTT_TIME);
                self.probe_rtt_round_done = false;
                self.next_round_delivered = delivery.total;
            }
            None => {}
            Some(_) => {
                self.probe_rtt_round_done |= self.round_start;
                self.leave_probe_rtt(delivery.now, window);
            }
        }
    }

    fn leave_probe_rtt(&mut self, now: Nanos, window: &mut Window) {
        let over = self.probe_rtt_done.is_some_and(|done| now > done);
        if !(self.probe_rtt_round_done && over) {
            return;
        }
        self.rtprop_stamp = now;
        window.cwnd = window.cwnd.max(u64::from(self.prior_cwnd));
        if self.filled_pipe {
            self.enter_probe_bw(now);
        } else {
            self.state = State::Startup;
            self.pacing_gain = HIGH_GAIN;
            self.cwnd_gain = HIGH_GAIN;
        }
    }

    fn set_pacing_rate(&mut self, gain: f64) {
        let bps = (gain * self.bandwidth.get() as f64) as u64;
        if self.filled_pipe || bps > self.pacing_bps {
            self.pacing_bps = bps;
        }
    }

    fn set_cwnd(&mut self, delivery: &Delivery, window: &mut Window) {
        let mut cwnd = window.cwnd as u32;
        let acked = delivery.bytes as u32;
        if acked > 0 && !self.conserve(delivery, window.mss, &mut cwnd) {
            let bps = self.bandwidth.get();
            let aggregated = if self.filled_pipe {
                self.aggregation.window(bps)
            } else {
                0
            };
            let target = self.inflight(self.cwnd_gain, window) + aggregated;
            if self.filled_pipe {
                cwnd = cwnd.wrapping_add(acked).min(target);
            } else if cwnd < target || delivery.total < u64::from(self.initial_window) {
                cwnd = cwnd.wrapping_add(acked);
            }
            cwnd = cwnd.max(least(window));
        }
        if self.state == State::ProbeRtt {
            cwnd = cwnd.min(least(window));
        }
        window.cwnd = u64::from(cwnd);
    }

    /// In a recovery, take off what losses have changed by; whether its first round keeps as much under way as is delivered.
    fn conserve(&self, delivery: &Delivery, mss: u32, cwnd: &mut u32) -> bool {
        if !self.recovering {
            return false;
        }
        if delivery.lost > 0 {
            let left = i64::from(*cwnd as i32) - i64::from(delivery.lost as i32);
            *cwnd = left.max(i64::from(mss)) as u32;
        }
        if self.packet_conservation {
            *cwnd = (*cwnd).max((delivery.pipe + delivery.bytes) as u32);
        }
        self.packet_conservation
    }

    fn save_cwnd(&mut self, window: &Window) {
        let cwnd = window.cwnd as u32;
        self.prior_cwnd = if self.recovering || self.state == State::ProbeRtt {
            self.prior_cwnd.max(cwnd)
        } else {
            cwnd
        };
    }
}

fn least(window: &Window) -> u32 {
    MIN_PIPE_SEGMENTS * window.mss
}

impl CongestionControl for Ns3Bbr {
    fn samples(&self) -> Option<SampleRule> {
        Some(SampleRule::Ns3)
    }

    /// The handshake's round trip, in whole milliseconds, is the first measure of everything.
    fn on_open(&mut self, now: Nanos, window: &mut Window, srtt: Option<Nanos>) {
        if std::mem::replace(&mut self.opened, true) {
            return;
        }
        window.ssthresh = window.ssthresh.min(u64::from(u32::MAX));
        self.initial_window = window.cwnd as u32;
        self.prior_cwnd = self.initial_window;
        self.rtprop = srtt.unwrap_or(0);
        self.rtprop_stamp = now;
        self.aggregation.epoch_at = now;
        let milliseconds = srtt.map_or(1, |srtt| (srtt / MILLISECOND).max(1));
        let nominal = window.cwnd * 8 * 1000 / milliseconds;
        self.pacing_bps = (HIGH_GAIN * nominal as f64) as u64;
        self.bandwidth = MaxFilter::begin(nominal);
    }

    fn on_delivery(&mut self, window: &mut Window, delivery: &Delivery) {
        let sample = delivery.sample.as_ref();
        self.update_bandwidth(delivery.total, sample);
        let (bps, cwnd) = (self.bandwidth.get(), window.cwnd as u32);
        self.aggregation
            .update(delivery, self.round_start, bps, cwnd);
        self.check_cycle(delivery, window);
        self.check_full_pipe(sample);
        self.check_drain(delivery, window);
        self.update_rtprop(delivery);
        self.check_probe_rtt(delivery, window);
        self.set_pacing_rate(self.pacing_gain);
        self.set_cwnd(delivery, window);
    }

    /// Nothing is under way as data leaves: of interest once a ProbeRTT was.
    fn on_restart(&mut self, now: Nanos, window: &mut Window) {
        if !self.was_limited {
            return;
        }
        self.restarted = true;
        self.aggregation.epoch_at = now;
        self.aggregation.epoch_bytes = 0;
        match self.state {
            State::ProbeBw => self.set_pacing_rate(1.0),
            State::ProbeRtt => self.leave_probe_rtt(now, window),
            State::Startup | State::Drain => {}
        }
    }

    fn on_ack(&mut self, _: &mut Window, _: &Acked) {}

    fn on_recovery(&mut self, window: &mut Window, pipe: u64, delivered: u64) {
        self.save_cwnd(window);
        window.cwnd = pipe + delivered.max(window.segment());
        self.packet_conservation = true;
        self.recovering = true;
    }

    /// The threshold stays; the window is remembered.
    fn on_loss(&mut self, _: Nanos, window: &mut Window, _: u64) {
        self.save_cwnd(window);
    }

    /// A recovery ends, and with it what it did to the window: `cwnd` is the threshold, whatever was remembered.
    fn on_reduction(&mut self, window: &mut Window, cwnd: u64) {
        self.packet_conservation = false;
        self.recovering = false;
        window.cwnd = cwnd;
    }

    /// The window before a timeout does not come back.
    fn on_timeout(&mut self, window: &mut Window) {
        self.save_cwnd(window);
        self.round_start = true;
        self.recovering = false;
        window.cwnd = window.segment();
    }

    fn pacing_rate(&self, _: &Window, _: Option<Nanos>) -> Option<f64> {
        Some(self.pacing_bps as f64 / 8.0 / SECOND as f64)
    }
}
