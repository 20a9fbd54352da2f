//! Congestion controls that couple the subflows of an MPTCP connection.
//!
//! Each subflow has a [`CoupledControl`] of its own; what they know of each other is one table that they share. A rule says by how much
//! the window grows with an acknowledged segment and shrinks with a loss; slow start and timeouts are those of the profile's Reno,
//! since RFC 6356, 3 changes congestion avoidance alone. Windows are in segments here and times in seconds, as in the papers.

mod balia;
mod fully_coupled;
mod lia;
mod olia;
mod wvegas;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use balia::Balia;
pub use fully_coupled::FullyCoupled;
pub use lia::{Lia, Ns3Lia};
pub use olia::Olia;
pub use wvegas::WVegas;

use super::super::config::RenoGrowth;
use super::super::delivery_rate::SampleRule;
use super::{Acked, CongestionControl, Delivery, Window};
use crate::time::{Nanos, SECOND};

/// A subflow, as the others see it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SubflowState {
    /// Congestion window in segments.
    pub window: f64,
    /// The window smoothed over ACKs, where the rule goes by it ([`CouplingRule::goes_by_smoothed_windows`]).
    pub smoothed_window: f64,
    /// Smoothed round-trip time in seconds; 0 until measured: then it does not count.
    pub rtt: f64,
    /// Segments delivered since the last loss, also while it is recovered from, and between the two before it.
    pub between_losses: [f64; 2],
}

impl SubflowState {
    /// Segments a second.
    pub fn rate(&self) -> f64 {
        self.window / self.rtt
    }

    fn smooth(&mut self) {
        self.smoothed_window = if self.smoothed_window < 1.0 {
            self.window
        } else {
            0.875 * self.smoothed_window + 0.125 * self.window
        };
    }
}

/// How a coupled control grows and shrinks the window in congestion avoidance.
pub trait CouplingRule: std::fmt::Debug + Send {
    /// Segments by which the window of `flows[own]` grows when one segment is acknowledged; `flows` are those with a round-trip time.
    fn increase(&self, flows: &[SubflowState], own: usize) -> f64;

    /// What is left of the window of `flows[own]` after a loss, in segments; half of it as with Reno.
    fn decrease(&self, flows: &[SubflowState], own: usize) -> f64 {
        flows[own].window / 2.0
    }

    /// Whether [`SubflowState::smoothed_window`] counts.
    fn goes_by_smoothed_windows(&self) -> bool {
        false
    }

    /// Whether [`SubflowState::between_losses`] counts.
    fn goes_by_losses(&self) -> bool {
        false
    }
}

type Table = Arc<Mutex<Vec<SubflowState>>>;

fn lock(table: &Table) -> MutexGuard<'_, Vec<SubflowState>> {
    // A simulation runs in one thread: nobody leaves the table half written.
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The congestion control of one subflow.
#[derive(Debug)]
pub struct CoupledControl<R> {
    rule: R,
    table: Table,
    own: usize,
    /// What counts of an ACK.
    growth: RenoGrowth,
    /// Growth below one byte; negative where a rule shrinks.
    remainder: f64,
}

/// The controls of `count` subflows that a rule couples, which count as a Reno of `growth` does.
pub fn couple<R: CouplingRule + Clone + 'static>(
    rule: R,
    growth: RenoGrowth,
    count: usize,
) -> Vec<Box<dyn CongestionControl>> {
    let table = table(count);
    let member = |own| CoupledControl {
        rule: rule.clone(),
        table: Arc::clone(&table),
        own,
        growth,
        remainder: 0.0,
    };
    (0..count)
        .map(|own| Box::new(member(own)) as Box<dyn CongestionControl>)
        .collect()
}

fn table(count: usize) -> Table {
    let flow = SubflowState {
        window: 0.0,
        smoothed_window: 0.0,
        rtt: 0.0,
        between_losses: [0.0; 2],
    };
    Arc::new(Mutex::new(vec![flow; count]))
}

/// The flows with a round-trip time and a window, and where `own` is among them.
fn counted(flows: &[SubflowState], own: usize) -> (Vec<SubflowState>, usize) {
    let counts = |flow: &SubflowState| flow.rtt > 0.0 && flow.window > 0.0;
    let place = flows[..own].iter().filter(|flow| counts(flow)).count();
    (
        flows.iter().copied().filter(|flow| counts(flow)).collect(),
        place,
    )
}

fn segments(window: &Window) -> f64 {
    window.cwnd as f64 / f64::from(window.mss)
}

fn seconds(time: Nanos) -> f64 {
    time as f64 / SECOND as f64
}

impl<R: CouplingRule> CoupledControl<R> {
    /// Grow in slow start: as all that is acknowledged where the profile's Reno does, else a segment at most.
    fn open(&self, window: &mut Window, bytes: u64) {
        match self.growth {
            RenoGrowth::Segments => window.cwnd = (window.cwnd + bytes).min(window.ssthresh),
            RenoGrowth::Bytes | RenoGrowth::Acks => window.cwnd += bytes.min(window.segment()),
        }
    }

    /// What congestion avoidance counts of an ACK: what it acknowledges, or a segment whatever it does where Reno goes by ACKs.
    fn counted_bytes(&self, window: &Window, acked: &Acked) -> f64 {
        match self.growth {
            RenoGrowth::Acks => f64::from(window.mss),
            RenoGrowth::Segments | RenoGrowth::Bytes => acked.bytes as f64,
        }
    }

    /// Note a loss, and give what the rule leaves of `flight` bytes.
    fn left_after_loss(&mut self, window: &Window, flight: u64) -> u64 {
        let mut flows = lock(&self.table);
        self.remainder = 0.0;
        let own = &mut flows[self.own];
        own.between_losses = [0.0, own.between_losses[0]];
        own.window = flight as f64 / f64::from(window.mss);
        let left = if own.rtt > 0.0 && own.window > 0.0 {
            let (counted, place) = counted(&flows, self.own);
            self.rule.decrease(&counted, place)
        } else {
            own.window / 2.0
        };
        (left * f64::from(window.mss)) as u64
    }
}

impl<R: CouplingRule> CongestionControl for CoupledControl<R> {
    fn samples(&self) -> Option<SampleRule> {
        self.rule.goes_by_losses().then_some(SampleRule::Draft)
    }

    fn on_delivery(&mut self, window: &mut Window, delivery: &Delivery) {
        lock(&self.table)[self.own].between_losses[0] +=
            delivery.bytes as f64 / f64::from(window.mss);
    }

    fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
        let mut flows = lock(&self.table);
        let own = &mut flows[self.own];
        if let Some(srtt) = acked.srtt {
            own.rtt = seconds(srtt);
        }
        if window.in_slow_start() {
            self.open(window, acked.bytes);
        } else if own.rtt > 0.0 {
            own.window = segments(window);
            if self.rule.goes_by_smoothed_windows() {
                own.smooth();
            }
            let (counted, place) = counted(&flows, self.own);
            let growth = self.rule.increase(&counted, place) * self.counted_bytes(window, acked);
            self.remainder += growth;
            let whole = self.remainder.trunc();
            self.remainder -= whole;
            let least = window.segment() as f64;
            window.cwnd = (window.cwnd as f64 + whole).max(least) as u64;
        }
        flows[self.own].window = segments(window);
    }

    fn on_loss(&mut self, _now: Nanos, window: &mut Window, flight: u64) {
        // From the bytes in flight: neither an unused window nor lost data that is still out counts.
        let left = self.left_after_loss(window, flight.min(window.cwnd));
        window.ssthresh = left.max(2 * window.segment());
        lock(&self.table)[self.own].window = segments(window);
    }

    fn on_loss_at_once(&mut self, _now: Nanos, window: &mut Window) {
        let left = self.left_after_loss(window, window.cwnd);
        window.cwnd = left.max(window.segment());
        window.ssthresh = 2 * window.segment();
        lock(&self.table)[self.own].window = segments(window);
    }

    fn on_reduction(&mut self, window: &mut Window, cwnd: u64) {
        window.cwnd = cwnd;
        lock(&self.table)[self.own].window = segments(window);
    }

    fn on_timeout(&mut self, window: &mut Window) {
        window.cwnd = window.segment();
        lock(&self.table)[self.own].window = 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(window: f64, rtt: f64) -> SubflowState {
        SubflowState {
            window,
            smoothed_window: window,
            rtt,
            between_losses: [0.0; 2],
        }
    }

    /// Drive two coupled windows over links that lose with probability `loss`, by expectation: growth on all but the lost ones.
    fn equilibrium<R: CouplingRule>(rule: &R, loss: [f64; 2], rtt: [f64; 2]) -> [f64; 2] {
        let mut flows = vec![flow(10.0, rtt[0]), flow(10.0, rtt[1])];
        for _ in 0..2_000_000 {
            let change: Vec<f64> = (0..2)
                .map(|own| {
                    let acks = flows[own].rate() * 1e-3;
                    let grown = rule.increase(&flows, own) * (1.0 - loss[own]);
                    let left = rule.decrease(&flows, own).max(1.0);
                    acks * (grown - loss[own] * (flows[own].window - left))
                })
                .collect();
            for (flow, change) in flows.iter_mut().zip(change) {
                flow.window = (flow.window + change).max(1.0);
            }
        }
        [flows[0].window, flows[1].window]
    }

    /// The window of Reno at loss `p` by the same fluid: 1/w a segment against w/2.
    fn reno(p: f64) -> f64 {
        (2.0 * (1.0 - p) / p).sqrt()
    }

    #[test]
    fn on_one_path_every_rule_is_reno() {
        let flows = [flow(20.0, 0.1)];
        let rules: [&dyn CouplingRule; 3] = [&Lia, &Balia, &FullyCoupled];
        for rule in rules {
            let growth = rule.increase(&flows, 0);
            assert!((growth - 0.05).abs() < 1e-9, "{rule:?}: {growth}");
            assert!((rule.decrease(&flows, 0) - 10.0).abs() < 1e-9);
        }
        assert!((Olia.increase(&flows, 0) - 0.05).abs() < 1e-9);
    }

    #[test]
    fn lia_takes_in_all_what_a_tcp_would_on_its_best_path() {
        // RFC 6356, 2: goal 1. Like paths share one Reno's rate.
        let [a, b] = equilibrium(&Lia, [0.001, 0.001], [0.1, 0.1]);
        assert!(((a + b) / reno(0.001) - 1.0).abs() < 0.02, "{a} {b}");
        let [a, b] = equilibrium(&Lia, [0.001, 0.004], [0.1, 0.1]);
        assert!(((a + b) / reno(0.001) - 1.0).abs() < 0.02, "{a} {b}");
        assert!(a > 2.0 * b);
    }

    #[test]
    fn balia_balances_like_paths() {
        let [a, b] = equilibrium(&Balia, [0.001, 0.001], [0.1, 0.1]);
        assert!((a / b - 1.0).abs() < 0.01, "{a} {b}");
        assert!(((a + b) / reno(0.001) - 1.0).abs() < 0.02, "{a} {b}");
    }

    #[test]
    fn olia_moves_from_the_large_window_to_the_best_path() {
        // The best path by its losses has the smaller window: it gains what the other loses.
        let mut flows = [flow(30.0, 0.1), flow(10.0, 0.1)];
        flows[0].between_losses = [100.0, 100.0];
        flows[1].between_losses = [900.0, 100.0];
        let kelly = |own: usize| flows[own].window / 0.01 / (400.0f64 * 400.0);
        assert!((Olia.increase(&flows, 1) - kelly(1) - 0.5 / 10.0).abs() < 1e-9);
        assert!((Olia.increase(&flows, 0) - kelly(0) + 0.5 / 30.0).abs() < 1e-9);
    }

    #[test]
    fn an_ack_counts_once_where_reno_goes_by_acks() {
        let grown = |growth| {
            let mut control = couple(FullyCoupled, growth, 1).remove(0);
            let mut window = Window {
                cwnd: 10_000,
                ssthresh: 2000,
                mss: 1000,
            };
            let acked = Acked {
                now: 0,
                segments: 5,
                bytes: 5000,
                flight: 10_000,
                srtt: Some(SECOND),
                delay: None,
            };
            control.on_ack(&mut window, &acked);
            window.cwnd - 10_000
        };
        assert_eq!(grown(RenoGrowth::Segments), 500);
        assert_eq!(grown(RenoGrowth::Acks), 100);
    }

    #[test]
    fn the_models_lia_goes_by_smoothed_windows() {
        let mut flows = [flow(8.0, 0.1), flow(8.0, 0.1)];
        let even = Ns3Lia.increase(&flows, 0);
        assert!((even - Lia.increase(&flows, 0)).abs() < 1e-9);
        // The other window has just been halved from 8 to 4; its smoothed one has not yet followed.
        flows[1].window = 4.0;
        assert!((Ns3Lia.increase(&flows, 0) - 0.5 / 12.0).abs() < 1e-9);
        flows[1].smooth();
        assert_eq!(flows[1].smoothed_window, 7.5);
    }

    #[test]
    fn what_is_delivered_in_a_recovery_counts_between_losses() {
        let table = table(1);
        let mut member = CoupledControl {
            rule: Olia,
            table: Arc::clone(&table),
            own: 0,
            growth: RenoGrowth::Segments,
            remainder: 0.0,
        };
        let mut window = Window {
            cwnd: 20_000,
            ssthresh: 10_000,
            mss: 1000,
        };
        let delivery = |recovering| Delivery {
            now: 0,
            bytes: 3000,
            rtt: None,
            srtt: None,
            pipe: 0,
            prior_pipe: 0,
            lost: 0,
            total: 0,
            sample: None,
            recovering,
        };
        assert!(member.samples().is_some());
        member.on_delivery(&mut window, &delivery(false));
        member.on_loss(0, &mut window, 10_000);
        member.on_delivery(&mut window, &delivery(true));
        member.on_delivery(&mut window, &delivery(false));
        assert_eq!(lock(&table)[0].between_losses, [6.0, 3.0]);
    }
}
