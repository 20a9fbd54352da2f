//! Weighted Vegas (Xu, Cao, Fu, "Delay-based Congestion Control for Multipath TCP", ICNP 2012).

use std::sync::Arc;

use super::super::super::delivery_rate::SampleRule;
use super::super::{Acked, CongestionControl, Delivery, Window};
use super::{lock, seconds, segments, table, Table};
use crate::time::Nanos;

/// Segments that all subflows together keep queued (section IV: total_alpha).
const TOTAL_ALPHA: f64 = 10.0;
/// The least that one keeps queued.
const MIN_ALPHA: f64 = 2.0;
/// Queued segments beyond which slow start ends (gamma of Vegas).
const GAMMA: f64 = 1.0;

/// The window of one subflow, which keeps as many segments queued as its share of the connection's rate allows.
#[derive(Debug)]
pub struct WVegas {
    table: Table,
    own: usize,
    base_rtt: Option<Nanos>,
    /// The present round: sum of its samples, their number, and when it ends.
    sum: Nanos,
    samples: u64,
    until: Nanos,
    /// The least queueing delay since the last loss or drain.
    least_queue: f64,
}

impl WVegas {
    /// The controls of `count` subflows.
    pub fn couple(count: usize) -> Vec<Box<dyn CongestionControl>> {
        let table = table(count);
        let member = |own| Self {
            table: Arc::clone(&table),
            own,
            base_rtt: None,
            sum: 0,
            samples: 0,
            until: 0,
            least_queue: f64::MAX,
        };
        (0..count)
            .map(|own| Box::new(member(own)) as Box<dyn CongestionControl>)
            .collect()
    }

    /// Once a round trip (section IV, algorithm 1).
    fn adjust(&mut self, window: &mut Window, base: f64, rtt: f64) {
        let share = {
            let mut flows = lock(&self.table);
            flows[self.own].window = segments(window);
            flows[self.own].rtt = rtt;
            let counted = flows.iter().filter(|flow| flow.rtt > 0.0);
            let total: f64 = counted.map(|flow| flow.rate()).sum();
            flows[self.own].rate() / total
        };
        let queued = segments(window) * (rtt - base) / rtt;
        let segment = window.segment();
        if window.in_slow_start() {
            if queued > GAMMA {
                window.cwnd -= (window.cwnd as f64 * (rtt - base) / rtt) as u64;
                window.cwnd = window.cwnd.max(2 * segment);
                window.ssthresh = window.cwnd;
            }
            return;
        }
        let alpha = (share * TOTAL_ALPHA).max(MIN_ALPHA);
        if queued > alpha {
            window.cwnd = window.cwnd.saturating_sub(segment).max(2 * segment);
        } else if queued < alpha {
            window.cwnd += segment;
        }
        let delay = rtt - base;
        self.least_queue = self.least_queue.min(delay);
        // Section IV-C: a queue of twice the least is drained, so that the base is seen again.
        if delay > 2.0 * self.least_queue && self.least_queue > 0.0 {
            let kept = window.cwnd as f64 * base / (2.0 * rtt);
            window.cwnd = (window.cwnd / 2).max(kept as u64).max(2 * segment);
            self.least_queue = f64::MAX;
        }
        window.ssthresh = window.ssthresh.min(window.cwnd);
    }
}

impl CongestionControl for WVegas {
    fn samples(&self) -> Option<SampleRule> {
        Some(SampleRule::Draft)
    }

    fn on_delivery(&mut self, _window: &mut Window, delivery: &Delivery) {
        if let Some(rtt) = delivery.rtt {
            self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
            self.sum += rtt;
            self.samples += 1;
        }
    }

    fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
        if window.in_slow_start() {
            window.cwnd += acked.bytes.min(window.segment());
        }
        if acked.now < self.until || self.samples == 0 {
            return;
        }
        let rtt = self.sum / self.samples;
        self.until = acked.now + rtt;
        (self.sum, self.samples) = (0, 0);
        if let Some(base) = self.base_rtt {
            self.adjust(window, seconds(base), seconds(rtt));
        }
    }

    fn on_loss(&mut self, _now: Nanos, window: &mut Window, flight: u64) {
        self.least_queue = f64::MAX;
        window.ssthresh = (flight / 2).max(2 * window.segment());
    }
}
