//! Methods against reordering as the MPTCP model of ns-3 has them (Chihani and Collange 2011, as published by its authors at
//! github.com/dzlab/mptcp-ns3; read for what it does). They share little but their names with the RFCs'.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use super::super::congestion::Window;
use super::super::recovery::response::{SpuriousResponse, Undo};
use super::super::recovery::{AckEvent, Episode};
use super::super::scoreboard::{Scoreboard, Transmission};
use super::super::segment::Segment;
use crate::random::{unit, Bernoulli, SeedableRng, SplitMix64};
use crate::time::{Nanos, MILLISECOND};

/// D-SACK: a needless retransmission leads back, by slow start, to the largest window before the recent reductions.
///
/// Which retransmission was needless the connection tells: the blocks are in its numbers.
#[derive(Debug, Clone, Default)]
pub struct Ns3DSack {
    saved: u64,
    going_back: bool,
}

impl Ns3DSack {
    fn remember(&mut self, window: &Window) {
        self.saved = self.saved.max(window.cwnd);
        self.going_back = false;
    }
}

impl SpuriousResponse for Ns3DSack {
    fn on_reduction(&mut self, _: Nanos, window: &Window, _: &Scoreboard, _: bool) {
        self.remember(window);
    }

    fn on_needless(&mut self, window: &Window) -> Option<Undo> {
        self.going_back = true;
        Some(Undo {
            window: Window {
                cwnd: 0,
                ssthresh: self.saved,
                ..*window
            },
            resume: false,
        })
    }

    fn on_ack(&mut self, event: &AckEvent, _: &Segment, _: &Episode) -> Option<Undo> {
        let arrived = event.window.cwnd >= self.saved;
        if self.going_back && event.ack > event.before && arrived {
            *self = Self::default();
        }
        None
    }
}

/// Eifel: a duplicate of a segment that was sent again, raised by one that left before, brings the window before the last
/// reduction back; it does not count.
#[derive(Debug, Clone, Default)]
pub struct Ns3Eifel {
    saved: Option<Window>,
    /// Number of the first unacknowledged segment, and when it was first sent again, in milliseconds.
    resent: Option<(u64, Nanos)>,
}

impl SpuriousResponse for Ns3Eifel {
    fn on_reduction(&mut self, _: Nanos, window: &Window, _: &Scoreboard, _: bool) {
        self.saved = Some(*window);
    }

    fn on_resent(&mut self, now: Nanos, sent: &Transmission) {
        if !self.resent.is_some_and(|(start, _)| start == sent.start) {
            self.resent = Some((sent.start, now / MILLISECOND * MILLISECOND));
        }
    }

    fn excuses_duplicate(&mut self, event: &AckEvent, segment: &Segment) -> Option<Undo> {
        let (start, resent_at) = self.resent?;
        let (_, echo) = segment.timestamps?;
        (start == event.ack && echo < resent_at).then_some(Undo {
            window: self.saved?,
            resume: false,
        })
    }
}

/// The largest share of ACKs after which F-RTO ignores a window of them.
const FRTO_IGNORED_MAX: f64 = 0.061;

/// F-RTO: duplicates are ignored, but for opening the window once a timeout has been answered, of whichever subflow; and to have
/// timeouts to judge, now and then a window's worth of ACKs is ignored.
///
/// The model takes the share of ACKs that begin such a blackout from the clock of the computer, evenly between nothing and 6.1 % over some
/// minutes. A run is shorter than that: here the share is drawn once for each subflow.
#[derive(Debug, Clone)]
pub struct Ns3FRto {
    random: SplitMix64,
    /// That an ACK begins a blackout.
    blackout: Bernoulli,
    /// ACKs ignored of the present blackout.
    ignored: Option<u64>,
    /// Whether this subflow has had a timeout.
    timed_out: bool,
    step: FRtoStep,
}

/// Where the F-RTO of a connection is: one variable for all its subflows.
#[derive(Debug, Clone, Default)]
pub struct FRtoStep(Arc<AtomicBool>);

impl FRtoStep {
    fn set_answered(&self, answered: bool) {
        self.0.store(answered, Ordering::Relaxed);
    }

    /// Whether the last timeout has been answered: what the model calls step 4.
    fn is_answered(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Ns3FRto {
    /// Draw from `seed`; `step` is shared with the other subflows.
    pub fn new(seed: u64, step: FRtoStep) -> Self {
        let mut random = SplitMix64::seed_from_u64(seed);
        Self {
            blackout: Bernoulli::new(FRTO_IGNORED_MAX * unit(&mut random)),
            random,
            ignored: None,
            timed_out: false,
            step,
        }
    }

    /// An ACK has come on this subflow.
    fn answer(&self) {
        if self.timed_out {
            self.step.set_answered(true);
        }
    }
}

impl SpuriousResponse for Ns3FRto {
    fn ignores_ack(&mut self, window: &Window) -> bool {
        let Some(ignored) = &mut self.ignored else {
            let begins = self.blackout.happens(&mut self.random);
            self.ignored = begins.then_some(0);
            return false;
        };
        *ignored += 1;
        let within = *ignored * window.segment() < window.cwnd;
        if !within {
            self.ignored = None;
        }
        within
    }

    fn on_reduction(&mut self, _: Nanos, _: &Window, _: &Scoreboard, by_timer: bool) {
        if by_timer {
            self.timed_out = true;
            self.step.set_answered(false);
        }
    }

    fn excuses_duplicate(&mut self, _: &AckEvent, _: &Segment) -> Option<Undo> {
        self.answer();
        None
    }

    fn opens_on_duplicates(&self) -> bool {
        self.step.is_answered()
    }

    fn on_ack(&mut self, _: &AckEvent, _: &Segment, _: &Episode) -> Option<Undo> {
        self.answer();
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::scoreboard::ScoreboardRules;
    use super::*;

    const RULES: ScoreboardRules = ScoreboardRules {
        threshold: None,
        keep_resent: false,
        tracks_deliveries: false,
        samples_rate: None,
        times_past_resent: true,
    };

    fn window(cwnd: u64) -> Window {
        Window {
            cwnd,
            ssthresh: 2000,
            mss: 1000,
        }
    }

    #[test]
    fn frto_ignores_a_window_of_acks_after_the_one_that_begins_it() {
        let mut frto = Ns3FRto {
            blackout: Bernoulli::new(1.0),
            ..Ns3FRto::new(1, FRtoStep::default())
        };
        let ignored = |frto: &mut Ns3FRto, cwnd| frto.ignores_ack(&window(cwnd));
        assert!(!ignored(&mut frto, 5400));
        for _ in 0..5 {
            assert!(ignored(&mut frto, 5400));
        }
        assert!(!ignored(&mut frto, 5400));
        // A timeout halves the window: the next ACK counts.
        assert!(!ignored(&mut frto, 5400));
        assert!(ignored(&mut frto, 5400));
        assert!(!ignored(&mut frto, 2000));
    }

    #[test]
    fn frto_without_blackouts_takes_every_ack() {
        let mut frto = Ns3FRto {
            blackout: Bernoulli::new(0.0),
            ..Ns3FRto::new(1, FRtoStep::default())
        };
        assert!((0..1000).all(|_| !frto.ignores_ack(&window(5000))));
        assert!(!frto.opens_on_duplicates());
    }

    #[test]
    fn frto_opens_the_windows_of_all_subflows_once_a_timeout_is_answered() {
        let step = FRtoStep::default();
        let [mut one, mut other] = [1, 2].map(|seed| Ns3FRto::new(seed, step.clone()));
        // An ACK on a subflow that has had no timeout answers none.
        other.answer();
        assert!(!one.opens_on_duplicates());
        one.on_reduction(0, &window(4000), &Scoreboard::new(RULES), true);
        other.answer();
        assert!(!other.opens_on_duplicates());
        one.answer();
        assert!(one.opens_on_duplicates() && other.opens_on_duplicates());
        // The next timeout, of either, closes them until it is answered.
        other.on_reduction(0, &window(4000), &Scoreboard::new(RULES), true);
        assert!(!one.opens_on_duplicates());
    }

    #[test]
    fn dsack_goes_back_to_the_largest_window_of_late_by_slow_start() {
        let mut dsack = Ns3DSack::default();
        dsack.remember(&window(9000));
        dsack.remember(&window(4500));
        let undo = dsack.on_needless(&window(2250)).expect("it goes back");
        assert_eq!((undo.window.cwnd, undo.window.ssthresh), (0, 9000));
        assert!(dsack.going_back && !undo.resume);
        // A reduction on the way ends it; the largest window stays.
        dsack.remember(&window(3000));
        assert!(!dsack.going_back);
        assert_eq!(dsack.saved, 9000);
    }
}
