//! What is known of the streams' paths: reported by the shell, measured, or estimated since.

use super::Sender;
use crate::error::LocalError;
use crate::scheduler::{StreamSet, StreamView};

/// At most this much of what a stream sent beyond its rate is assumed to wait on its path, in seconds of the rate.
const MAX_UNSEEN_S: f64 = 1.0;

/// What a stream is given leaves the host this much later at most, in nanoseconds: a rate that was measured may be old.
const MAX_HOST_WAIT_NS: f64 = 100e6;

/// What TCP knows of the path of a stream.
#[derive(Debug, Clone, Copy, Default)]
pub struct MeasuredPath {
    /// What it recently delivered, or could by its window where the application did not give it enough; in bit/s.
    pub rate_bps: f64,
    /// Half of the smoothed round-trip time in nanoseconds, queues included.
    pub delay_ns: u64,
    /// Half of the least round-trip time that was seen.
    pub least_delay_ns: u64,
    /// What was sent, is not acknowledged, and is more than the path holds: it waits in a queue.
    pub queue_bytes: f64,
    /// Bytes that were sent and that the peer's kernel has not acknowledged.
    pub flight_bytes: f64,
    /// TCP is in slow start, and nothing waits in a queue: what it delivers doubles in each round trip.
    pub is_growing: bool,
}

impl MeasuredPath {
    /// A path on which nothing is.
    pub fn empty(rate_bps: f64, delay_ns: u64) -> Self {
        Self {
            rate_bps,
            delay_ns,
            least_delay_ns: delay_ns,
            ..Self::default()
        }
    }
}

impl Sender {
    pub fn on_measured(&mut self, stream: usize, path: &MeasuredPath) -> Result<(), LocalError> {
        if !(path.rate_bps.is_finite() && path.rate_bps > 0.0) {
            return Err(LocalError::BadWeights);
        }
        let view = self.view_mut(stream)?;
        if view.weight > 0.0 {
            view.weight = path.rate_bps;
        }
        view.delay_ns = path.delay_ns;
        view.least_delay_ns = path.least_delay_ns;
        view.queue_bytes = path.queue_bytes;
        view.flight_bytes = path.flight_bytes;
        view.is_measured = true;
        view.is_growing = path.is_growing;
        Ok(())
    }

    pub fn set_delay(&mut self, stream: usize, delay_ns: u64) -> Result<(), LocalError> {
        let view = self.view_mut(stream)?;
        view.delay_ns = delay_ns;
        view.least_delay_ns = delay_ns;
        Ok(())
    }

    pub fn on_unsent(
        &mut self,
        now_ns: u64,
        stream: usize,
        unsent_bytes: usize,
    ) -> Result<(), LocalError> {
        self.drain_backlogs(now_ns);
        let view = (self.views.get_mut(stream)).ok_or(LocalError::NoSuchStream(stream))?;
        let unsent = unsent_bytes as f64;
        // A stream may leave the host faster than its path has room for it; the rest waits on the way, unseen.
        let unseen = match view.is_measured {
            true => 0.0,
            false => view.weight / 8.0 * MAX_UNSEEN_S,
        };
        view.backlog_bytes = view.backlog_bytes.clamp(unsent, unsent + unseen);
        if view.is_measured {
            let carrier = &mut self.streams[stream];
            carrier.note_unsent(now_ns, unsent_bytes);
            let unacknowledged_bytes = unsent + view.flight_bytes;
            let opens_ns = carrier.window_opens_ns(unacknowledged_bytes, view.delay_ns);
            view.held_s = opens_ns.saturating_sub(now_ns) as f64 * 1e-9;
        }
        Ok(())
    }

    /// How long what a stream is given now waits in its socket, in nanoseconds; 0 where nobody measured what it carries.
    pub(super) fn host_wait_ns(&self, slot: usize) -> u64 {
        let view = &self.views[slot];
        if !view.is_measured || view.weight <= 0.0 {
            return 0;
        }
        (view.backlog_bytes * 8e9 / view.weight).min(MAX_HOST_WAIT_NS) as u64
    }

    /// The one-way delay of a stream's path in nanoseconds, as far as it is known.
    pub(crate) fn delay_ns(&self, slot: usize) -> u64 {
        self.views[slot].delay_ns
    }

    /// The stream of a set, which is not empty, whose path has the least delay.
    pub(crate) fn quickest(&self, set: StreamSet) -> usize {
        set.iter()
            .min_by_key(|&slot| self.delay_ns(slot))
            .unwrap_or(0)
    }

    fn view_mut(&mut self, stream: usize) -> Result<&mut StreamView, LocalError> {
        self.views
            .get_mut(stream)
            .ok_or(LocalError::NoSuchStream(stream))
    }

    pub(super) fn drain_backlogs(&mut self, now_ns: u64) {
        let elapsed_s = now_ns.saturating_sub(self.views_ns) as f64 * 1e-9;
        self.views_ns = self.views_ns.max(now_ns);
        for view in &mut self.views {
            let left = view.backlog_bytes - view.weight / 8.0 * elapsed_s;
            view.backlog_bytes = left.max(0.0);
            view.queue_bytes = (view.queue_bytes + left.min(0.0)).max(0.0);
            view.held_s = (view.held_s - elapsed_s).max(0.0);
        }
        if std::mem::take(&mut self.was_empty) && self.is_idle() {
            self.busy_since = self.next_offset;
        }
    }

    /// Whether all that the streams took has left the host, as far as it was reported or estimated.
    fn is_idle(&self) -> bool {
        (self.alive.iter()).all(|slot| self.views[slot].backlog_bytes <= 0.0)
    }
}
