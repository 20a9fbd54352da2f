//! A station: the frames that wait at it, and its contention for the medium (IEEE 802.11-2020, 10.3).

use std::collections::VecDeque;

use super::fq_codel::FqCodel;
use crate::random::{below, SplitMix64};
use crate::time::Nanos;

/// A packet as a station holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Which packet.
    pub packet: u32,
    /// Its next step.
    pub cursor: u32,
    /// Its size on wired links.
    pub packet_bytes: u32,
    /// Its size on the air.
    pub bytes: u32,
    /// Which of the medium's pairs carries it.
    pub pair: u32,
    /// When it came.
    pub queued: Nanos,
    /// Whether it, or its RTS, has been sent.
    pub tried: bool,
    /// Whether it has arrived, its acknowledgement has not.
    pub arrived: bool,
}

/// A frame that a station is receiving.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reception {
    /// The station that sends it.
    pub from: usize,
    /// Its signal-to-noise ratio.
    pub snr: f64,
    /// Another frame has come in between.
    pub spoiled: bool,
}

/// A station's state.
#[derive(Debug)]
pub struct Station {
    /// What waits; the first is the one being sent.
    pub queue: VecDeque<Frame>,
    /// What holds packets while the queue has no room.
    pub discipline: Option<FqCodel<Frame>>,
    /// What it is receiving.
    pub receiving: Option<Reception>,
    /// How often a frame was sent in vain since one was acknowledged or given up: a count of the station, which outlives a frame that has
    /// waited too long.
    pub attempts: u32,
    /// The same of frames that RTS and CTS had announced.
    pub long_attempts: u32,
    /// It sends until then.
    pub sending_until: Nanos,
    /// It has sent and the outcome is open.
    pub engaged: bool,
    /// When it senses the medium as busy: from, until.
    pub busy: [Nanos; 2],
    /// Others' frames that overlap its own are on the air until then: what it senses once it has sent.
    pub overlapped_until: Nanos,
    window: u32,
    window_range: [u32; 2],
    backoff_slots: u32,
    /// The time from which idle slots count.
    counts_from: Nanos,
    /// The time at which the first frame came, if it found the queue empty.
    ready: Nanos,
    slot: Nanos,
}

impl Station {
    /// An idle station.
    pub fn new(window_range: [u32; 2], slot: Nanos, discipline: Option<FqCodel<Frame>>) -> Self {
        Self {
            queue: VecDeque::new(),
            discipline,
            receiving: None,
            attempts: 0,
            long_attempts: 0,
            sending_until: 0,
            engaged: false,
            busy: [0; 2],
            overlapped_until: 0,
            window: window_range[0],
            window_range,
            backoff_slots: 0,
            counts_from: 0,
            ready: 0,
            slot,
        }
    }

    /// Take a frame in. A station that finds the medium idle and has no slots left to wait for may send at once.
    pub fn enqueue(&mut self, now: Nanos, frame: Frame, rng: &mut SplitMix64) {
        if self.queue.is_empty() {
            self.ready = now;
            let is_busy = self.busy[0] <= now && now < self.busy[1];
            if is_busy && !self.engaged && self.slots_left(now) == 0 {
                self.draw_backoff(rng);
            }
        }
        self.queue.push_back(frame);
    }

    /// When it sends if nothing happens before; none if it has nothing to send.
    pub fn access(&self) -> Option<Nanos> {
        if self.engaged || self.queue.is_empty() {
            return None;
        }
        let slots = Nanos::from(self.backoff_slots) * self.slot;
        Some((self.counts_from + slots).max(self.ready))
    }

    /// The medium becomes busy at `now`, for this station until `until`; it counts again from `counts_from` on.
    pub fn defer(&mut self, now: Nanos, until: Nanos, counts_from: Nanos) {
        self.backoff_slots = self.slots_left(now);
        self.busy = [now, until];
        self.counts_from = counts_from;
    }

    /// The medium turns out to be busy until then, and slots count from `counts_from` on.
    pub fn extend(&mut self, busy: [Nanos; 2], counts_from: Nanos) {
        self.busy = busy;
        self.counts_from = counts_from;
    }

    /// An exchange of its own has ended: contend again, with a window that is doubled after a failure.
    pub fn contend(&mut self, widen: bool, counts_from: Nanos, rng: &mut SplitMix64) {
        let [least, most] = self.window_range;
        self.window = if widen {
            (2 * self.window + 1).min(most)
        } else {
            least
        };
        self.engaged = false;
        self.counts_from = counts_from;
        self.draw_backoff(rng);
    }

    fn draw_backoff(&mut self, rng: &mut SplitMix64) {
        self.backoff_slots = below(rng, u64::from(self.window) + 1) as u32;
    }

    fn slots_left(&self, now: Nanos) -> u32 {
        let passed = now.saturating_sub(self.counts_from) / self.slot;
        self.backoff_slots
            .saturating_sub(passed.min(Nanos::from(u32::MAX)) as u32)
    }
}
