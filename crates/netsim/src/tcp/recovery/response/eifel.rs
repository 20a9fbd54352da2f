//! Eifel: detection (RFC 3522) and response (RFC 4015).

use super::super::super::config::Config;
use super::super::super::congestion::Window;
use super::super::super::rtt::last_tick;
use super::super::super::scoreboard::{Scoreboard, Transmission};
use super::super::super::segment::Segment;
use super::super::{AckEvent, Episode};
use super::{SpuriousResponse, Undo};
use crate::time::Nanos;

/// Compares the timestamp that the first ACK of new data echoes with that of the retransmission: an older one is the original's.
#[derive(Debug, Clone)]
pub struct Eifel {
    initial_window_segments: u64,
    reduced: Option<Reduced>,
}

/// What was before a reduction.
#[derive(Debug, Clone, Copy)]
struct Reduced {
    window: Window,
    /// `pipe_prev` of RFC 4015, 3.1: the larger of the flight and `ssthresh`.
    pipe_before: u64,
    /// `RetransmitTS` of RFC 3522, 3.2.
    resent_at: Option<Nanos>,
}

impl Eifel {
    /// By a configuration.
    pub fn new(config: &Config) -> Self {
        Self {
            initial_window_segments: u64::from(config.initial_window_segments),
            reduced: None,
        }
    }
}

impl SpuriousResponse for Eifel {
    fn on_reduction(&mut self, _: Nanos, window: &Window, board: &Scoreboard, _: bool) {
        self.reduced = Some(Reduced {
            window: *window,
            pipe_before: board.outstanding().max(window.ssthresh),
            resent_at: None,
        });
    }

    fn on_resent(&mut self, now: Nanos, _: &Transmission) {
        if let Some(reduced) = &mut self.reduced {
            reduced.resent_at.get_or_insert(last_tick(now));
        }
    }

    /// RFC 3522, 3.2 steps 4 and 5; RFC 4015, 3.2.
    fn on_ack(&mut self, event: &AckEvent, segment: &Segment, _: &Episode) -> Option<Undo> {
        if event.ack <= event.before || self.reduced?.resent_at.is_none() {
            return None;
        }
        let reduced = self.reduced.take()?;
        let (_, echo) = segment.timestamps?;
        if echo >= reduced.resent_at? {
            return None;
        }
        let acknowledged = event.ack - event.before;
        let burst = acknowledged.min(self.initial_window_segments * reduced.window.segment());
        Some(Undo {
            window: Window {
                cwnd: event.flight + burst,
                ssthresh: reduced.pipe_before,
                mss: reduced.window.mss,
            },
            resume: true,
        })
    }
}
