//! Linux's undo (`tcp_try_undo_*`): by the echo of a timestamp that is older than the first retransmission (RFC 3522), or once all that was
//! sent again is reported to have arrived twice (RFC 3708); window and threshold go back to where they were.

use super::super::super::congestion::Window;
use super::super::super::rtt::last_tick;
use super::super::super::scoreboard::{Scoreboard, Transmission};
use super::super::super::segment::Segment;
use super::super::{AckEvent, Episode};
use super::{SpuriousResponse, Undo};
use crate::time::Nanos;

/// What was before the last reduction, until it is undone.
#[derive(Debug, Clone, Default)]
pub struct Linux {
    reduced: Option<Reduced>,
}

#[derive(Debug, Clone, Copy)]
struct Reduced {
    window: Window,
    /// When the first segment was sent again for it, by the timestamp clock (`retrans_stamp`).
    resent_at: Option<Nanos>,
    /// Segments sent again for it, less those reported to have arrived twice (`undo_retrans`).
    needed: u64,
    /// Its recovery goes on.
    under_way: bool,
}

impl SpuriousResponse for Linux {
    fn on_reduction(&mut self, _: Nanos, window: &Window, _: &Scoreboard, _: bool) {
        // A timeout in a recovery lowers what was lowered: the window before both counts.
        let before = self.reduced.filter(|reduced| reduced.under_way);
        self.reduced = Some(Reduced {
            window: before.map_or(*window, |reduced| reduced.window),
            resent_at: None,
            needed: 0,
            under_way: true,
        });
    }

    fn on_resent(&mut self, now: Nanos, _: &Transmission) {
        let reduced = self.reduced.as_mut().filter(|reduced| reduced.under_way);
        if let Some(reduced) = reduced {
            reduced.resent_at.get_or_insert(last_tick(now));
            reduced.needed += 1;
        }
    }

    fn on_ack(&mut self, event: &AckEvent, segment: &Segment, episode: &Episode) -> Option<Undo> {
        let reduced = self.reduced.as_mut()?;
        let resent_at = reduced.resent_at?;
        reduced.under_way &= event.ack < episode.recover;
        let reported = segment.duplicate().is_some();
        reduced.needed = reduced.needed.saturating_sub(u64::from(reported));
        let none_needed = reported && reduced.needed == 0 && !reduced.under_way;
        let echo = segment.timestamps.map(|(_, echo)| echo);
        let of_original = event.ack > event.before && echo.is_some_and(|echo| echo < resent_at);
        if !none_needed && !of_original {
            return None;
        }
        self.reduced.take().map(|Reduced { window, .. }| Undo {
            window,
            resume: true,
        })
    }
}
