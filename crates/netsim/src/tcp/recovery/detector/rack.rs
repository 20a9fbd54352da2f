//! RACK: loss by time, within a window for reordering (RFC 8985, 6).

use super::super::super::config::Config;
use super::super::super::receiver::OFF;
use super::super::super::rtt::last_tick;
use super::super::super::scoreboard::{Delivered, Scoreboard, SegmentFate};
use super::super::super::segment::Segment;
use super::super::{AckEvent, Episode, Phase};
use super::LossDetector;
use crate::time::{Nanos, SECOND};

/// Recoveries after which the window for reordering is as small as at first (6.2 step 4: 16).
const PERSIST_RECOVERIES: u32 = 16;
/// For how long a round trip may count as the least (Linux's `tcp_min_rtt_wlen`).
const MIN_RTT_WINDOW: Nanos = 300 * SECOND;

/// A segment is lost if one that left later was delivered, and a round trip with a window for reordering is over.
#[derive(Debug, Clone)]
pub struct Rack {
    threshold: u64,
    /// RACK.xmit_ts and RACK.end_seq: the latest transmission that was delivered.
    latest: Option<(Nanos, u64)>,
    rtt: Nanos,
    /// The least round trip of what was sent once, and when it was measured.
    min_rtt: Nanos,
    min_rtt_at: Nanos,
    reordering_seen: bool,
    reo_wnd_mult: u64,
    reo_wnd_persist: u32,
    /// RACK.dsack_round: a further report widens the window only from here on.
    dsack_round: Option<u64>,
    was_recovering: bool,
    reo_wnd: Nanos,
    due: Nanos,
}

impl Rack {
    /// Nothing is known of the path.
    pub fn new(config: &Config) -> Self {
        Self {
            threshold: u64::from(config.duplicate_threshold),
            latest: None,
            rtt: 0,
            min_rtt: OFF,
            min_rtt_at: 0,
            reordering_seen: false,
            reo_wnd_mult: 1,
            reo_wnd_persist: PERSIST_RECOVERIES,
            dsack_round: None,
            was_recovering: false,
            reo_wnd: 0,
            due: OFF,
        }
    }

    /// 6.2 steps 1 to 3: the latest delivery, its round trip, and whether what was never sent again came out of order.
    fn update(&mut self, event: &AckEvent, segment: &Segment, board: &mut Scoreboard) {
        let deliveries = board.take_deliveries();
        if let Some(once) = deliveries.latest[0] {
            self.note_rtt(event.now, event.now - once.sent_at);
        }
        self.reordering_seen |= deliveries.reordered;
        for delivered in deliveries.latest.into_iter().flatten() {
            let Delivered {
                sent_at,
                end,
                again,
            } = delivered;
            let rtt = event.now - sent_at;
            // An ACK of the original, not of the copy.
            let echoes_earlier = |(_, echo)| echo < last_tick(sent_at);
            let stale = segment.timestamps.is_some_and(echoes_earlier) || rtt < self.min_rtt;
            if again && stale {
                continue;
            }
            self.rtt = rtt;
            self.latest = self.latest.max(Some((sent_at, end)));
        }
    }

    /// 6.2 step 1.
    fn note_rtt(&mut self, now: Nanos, rtt: Nanos) {
        if rtt <= self.min_rtt || now - self.min_rtt_at > MIN_RTT_WINDOW {
            (self.min_rtt, self.min_rtt_at) = (rtt, now);
        }
    }

    /// 6.2 step 4.
    fn update_window(
        &mut self,
        event: &AckEvent,
        segment: &Segment,
        episode: &Episode,
        board: &Scoreboard,
    ) {
        if self.dsack_round.is_some_and(|round| event.ack >= round) {
            self.dsack_round = None;
        }
        let recovering = matches!(episode.phase, Phase::Recovery | Phase::Loss);
        // As in Linux: where nothing was ever reordered, what arrived twice tells of a probe or a timeout too early, not of the window.
        let reported = self.reordering_seen && segment.duplicate().is_some();
        if reported && self.dsack_round.is_none() {
            self.dsack_round = Some(board.end());
            self.reo_wnd_mult += 1;
            self.reo_wnd_persist = PERSIST_RECOVERIES;
        } else if self.was_recovering && !recovering {
            self.reo_wnd_persist -= 1;
            if self.reo_wnd_persist == 0 {
                self.reo_wnd_persist = PERSIST_RECOVERIES;
                self.reo_wnd_mult = 1;
            }
        }
        self.was_recovering = recovering;
        let enough = board.sacked_segments() >= self.threshold;
        self.reo_wnd = if !self.reordering_seen && (recovering || enough) || self.min_rtt == OFF {
            0
        } else {
            (self.reo_wnd_mult * self.min_rtt / 4).min(event.srtt.unwrap_or(OFF))
        };
    }

    /// 6.2 step 5: mark what is lost; the timer for what may yet come.
    fn detect(&mut self, now: Nanos, board: &mut Scoreboard) -> bool {
        self.due = OFF;
        let Some(latest) = self.latest else {
            return false;
        };
        let patience = self.rtt + self.reo_wnd;
        let mut due = 0;
        let lost = board.judge(|sent_at, end, again| {
            if (sent_at, end) >= latest {
                // First transmissions come in the order of their times.
                return if again {
                    SegmentFate::Keep
                } else {
                    SegmentFate::Stop
                };
            }
            if sent_at + patience <= now {
                return SegmentFate::Lost;
            }
            due = due.max(sent_at + patience);
            SegmentFate::Keep
        });
        if due > 0 {
            self.due = due;
        }
        lost
    }
}

impl LossDetector for Rack {
    fn on_ack(
        &mut self,
        event: &AckEvent,
        segment: &Segment,
        episode: &Episode,
        board: &mut Scoreboard,
    ) -> bool {
        self.update(event, segment, board);
        self.update_window(event, segment, episode, board);
        self.detect(event.now, board)
    }

    fn on_timeout(&mut self) {
        self.due = OFF;
    }

    /// 6.3: what left less than a round trip and the window ago may yet come.
    fn expired_before(&self, now: Nanos) -> Nanos {
        now.saturating_sub(self.rtt + self.reo_wnd)
    }

    fn looks_at_acks(&self) -> bool {
        true
    }

    fn timer(&self) -> Nanos {
        self.due
    }

    fn on_timer(&mut self, now: Nanos, _: &Episode, board: &mut Scoreboard) -> bool {
        self.detect(now, board)
    }
}
