//! TCP-DOOR: detection of out-of-order and response (Wang and Zhang, "Improving TCP Performance over Mobile Ad-Hoc Networks with
//! Out-of-Order Detection and Response", MobiHoc 2002).

use super::super::super::congestion::Window;
use super::super::super::scoreboard::Scoreboard;
use super::{SpuriousResponse, Undo};
use crate::time::Nanos;

/// Once segments arrive out of order, what looks like congestion is a change of routes: for a time T1 the window stays as it is
/// (section 3.3.1), and a reduction of the past T2 is taken back (section 3.3.2).
///
/// The paper leaves T1 and T2 open; both are the retransmission timeout here, within which a late segment can still come.
#[derive(Debug, Clone, Default)]
pub struct TcpDoor {
    hold_until: Nanos,
    /// When the window was last reduced, and what it was before.
    reduced: Option<(Nanos, Window)>,
}

impl SpuriousResponse for TcpDoor {
    fn on_reduction(&mut self, now: Nanos, window: &Window, _: &Scoreboard, _: bool) {
        self.reduced = Some((now, *window));
    }

    fn on_out_of_order(&mut self, now: Nanos, rto: Nanos) -> Option<Undo> {
        self.hold_until = now + rto;
        let (at, window) = self.reduced.take()?;
        (now - at <= rto).then_some(Undo {
            window,
            resume: true,
        })
    }

    fn holds_window(&self, now: Nanos) -> bool {
        now < self.hold_until
    }
}
