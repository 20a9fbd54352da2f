//! How much may be on its way on a stream: what it brings to the peer within TCP's round trip and a little more.
//!
//! TCP's own window ends at its peer, and that may be a relay that takes megabytes at once and passes them on slowly. What waits
//! there can't be given to another stream, and all that is sent later on the stream waits behind it. The reports tell how long
//! frames take to the peer itself.

use super::Sender;
use crate::receiver::ack_bytes;

/// What a stream may carry before anything is reported: more than TCP itself sends in the first two round trips (RFC 6928), so that
/// its socket always has a full segment.
const INITIAL_BYTES: u64 = 3 << 14;
const MIN_BYTES: u64 = 1 << 12;
const MAX_BYTES: u64 = super::MAX_UNACKNOWLEDGED_BYTES;
/// The newest frame that is reported has taken no longer than TCP's round trip and this, in nanoseconds: an ACK of a lone frame
/// may wait for 50 ms.
const HEADROOM_NS: u64 = 100_000_000;
/// A stream whose oldest frame is late by so much more takes no new one, in nanoseconds.
const LATE_NS: u64 = 60_000_000;
/// What was sent waits on its path if nothing is reported for one and a quarter round trips and this, in nanoseconds.
const MIN_WAIT_NS: u64 = 2_000_000;
/// A frame is at most this part of what may be on its way.
const FRAMES: u64 = 8;

/// Bytes in flight on one stream, and their limit. Times are in nanoseconds.
#[derive(Debug)]
pub(super) struct FlightLimit {
    /// Application bytes that were sent and are not reported, and how many these may be.
    bytes: u64,
    limit_bytes: u64,
    /// It was at least half as full as it may be since the last report: one that grows only when it is full holds the stream up.
    was_used: bool,
    /// The bytes reported since the last look, and when the newest of them were sent.
    reported: Option<(u64, u64)>,
    /// The least time that a frame took from being sent to being reported.
    least_age_ns: u64,
    /// When the limit was lowered last; none if never.
    lowered_ns: Option<u64>,
}

impl Default for FlightLimit {
    fn default() -> Self {
        Self {
            bytes: 0,
            limit_bytes: INITIAL_BYTES,
            was_used: false,
            reported: None,
            least_age_ns: u64::MAX,
            lowered_ns: None,
        }
    }
}

impl FlightLimit {
    /// Limit of the only stream left: low at first, so that the peer's report of what it lacks decides what follows.
    pub(super) fn of_last_resort() -> Self {
        Self {
            limit_bytes: MIN_BYTES,
            ..Self::default()
        }
    }

    /// Note that a frame is on its way.
    pub(super) fn on_sent(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        self.was_used |= self.bytes >= self.limit_bytes / 2;
    }

    /// Note that frames were reported, the newest of which was sent then. When is known at the next look.
    pub(super) fn on_reported(&mut self, bytes: u64, sent_ns: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
        let before = self.reported.map_or(0, |(bytes, _)| bytes);
        self.reported = Some((before + bytes, sent_ns));
    }

    /// How long a frame takes at least, from being sent to being reported.
    fn least_ns(&self, round_trip_ns: u64) -> u64 {
        match self.least_age_ns {
            u64::MAX => round_trip_ns,
            age_ns => round_trip_ns.max(age_ns),
        }
    }

    /// How long it should take at most.
    fn target_ns(&self, round_trip_ns: u64) -> u64 {
        self.least_ns(round_trip_ns) + HEADROOM_NS
    }

    /// Take what was reported into account. `round_trip_ns` is TCP's.
    ///
    /// The limit triples in a round trip while reports are prompt, so that TCP's slow start is never held up, and doubles once it
    /// has been lowered; it grows ever more slowly as reports come later,
    /// and falls in proportion once a round trip when they are late (as in FAST TCP: Wei et al., IEEE/ACM ToN 14(6), 2006). A late
    /// report of much at once speaks of a host that was held up and not of a queue, which brings little at a time.
    fn look(&mut self, now_ns: u64, round_trip_ns: u64) {
        let Some((bytes, sent_ns)) = self.reported.take() else {
            return;
        };
        let age_ns = now_ns.saturating_sub(sent_ns);
        self.least_age_ns = self.least_age_ns.min(age_ns);
        let target_ns = self.target_ns(round_trip_ns);
        let lateness = age_ns as f64 / target_ns as f64;
        let is_burst = bytes >= self.limit_bytes / 2;
        if lateness <= 1.0 || is_burst {
            if std::mem::take(&mut self.was_used) {
                let waited_ns = age_ns.saturating_sub(self.least_ns(round_trip_ns));
                let most = if self.lowered_ns.is_none() { 2.0 } else { 1.0 };
                let gain = most * (1.0 - waited_ns as f64 / HEADROOM_NS as f64);
                let gain = gain.max(if is_burst { 0.5 } else { 0.0 });
                self.limit_bytes += (bytes as f64 * gain) as u64;
            }
        } else if self.lowered_ns.map_or(true, |at_ns| sent_ns >= at_ns) {
            self.lowered_ns = Some(now_ns);
            self.limit_bytes = (self.limit_bytes as f64 / lateness.min(2.0)) as u64;
        }
        self.limit_bytes = self.limit_bytes.clamp(MIN_BYTES, MAX_BYTES);
    }

    /// The most that the path carries, in bit/s, where nothing was reported since `silent_ns`: the peer reports `report_bytes` at once.
    /// This tells before TCP's smoothed round trip does that what was sent waits on the path.
    fn most_bps(&self, silent_ns: u64, round_trip_ns: u64, report_bytes: u64) -> f64 {
        if self.bytes < report_bytes || silent_ns <= round_trip_ns + round_trip_ns / 4 + MIN_WAIT_NS
        {
            return f64::INFINITY;
        }
        report_bytes as f64 * 8e9 / (silent_ns - round_trip_ns) as f64
    }

    /// Whether as much is on its way as may be, beside the bytes that TCP's peer has not acknowledged: TCP's own window bounds those.
    fn is_full(&self, tcp_bytes: u64) -> bool {
        self.bytes.saturating_sub(tcp_bytes) >= self.limit_bytes
    }

    /// Whether the oldest frame that is not reported should have been, where it was sent at `oldest_ns`.
    fn is_late(&self, now_ns: u64, round_trip_ns: u64, oldest_ns: u64) -> bool {
        now_ns.saturating_sub(oldest_ns) > self.target_ns(round_trip_ns) + LATE_NS
    }

    /// The rate at which the stream brings things to the peer, in bit/s; none while it was never found to be the limit.
    fn rate_bps(&self, round_trip_ns: u64) -> Option<f64> {
        self.lowered_ns?;
        let seconds = self.target_ns(round_trip_ns) as f64 * 1e-9;
        Some(self.limit_bytes as f64 * 8.0 / seconds)
    }
}

impl Sender {
    /// Find the streams that may be given no more, from what was reported of them.
    pub(super) fn look_at_flights(&mut self, now_ns: u64) {
        if self.trusting || (self.flights_ns == now_ns && !self.has_reports) {
            return;
        }
        self.flights_ns = now_ns;
        self.has_reports = false;
        for slot in self.alive.iter() {
            let way_ns = self.way_ns(slot);
            self.streams[slot].flight.look(now_ns, way_ns);
            self.note_flight(slot);
            self.note_silence(now_ns, slot);
        }
    }

    /// Have a measured stream count for no more than its silence allows.
    fn note_silence(&mut self, now_ns: u64, slot: usize) {
        let (stream, view) = (&self.streams[slot], &mut self.views[slot]);
        if view.is_measured {
            let silent_ns = now_ns.saturating_sub(stream.progress_ns);
            let (round_trip_ns, report_bytes) =
                (2 * view.least_delay_ns, ack_bytes(self.acknowledged));
            let most_bps = (stream.flight).most_bps(silent_ns, round_trip_ns, report_bytes);
            if most_bps < view.weight {
                view.weight = most_bps;
                view.is_growing = false;
                let path_bytes = most_bps / 8e9 * round_trip_ns as f64;
                view.queue_bytes = view.queue_bytes.max(view.flight_bytes - path_bytes);
            }
        }
    }

    /// Note whether a stream may be given more.
    pub(super) fn note_flight(&mut self, slot: usize) {
        let stream = &self.streams[slot];
        let oldest_ns = stream.in_flight.front().map(|frame| frame.left_ns);
        let (way_ns, view) = (self.way_ns(slot), &self.views[slot]);
        let is_late =
            oldest_ns.is_some_and(|at_ns| (stream.flight).is_late(self.flights_ns, way_ns, at_ns));
        let is_full = is_late || stream.flight.is_full(view.flight_bytes as u64);
        self.late.set(slot, is_late);
        self.full.set(slot, is_full);
    }

    /// How long a frame takes and its acknowledgement by TCP, in nanoseconds; where TCP's window is the limit the end of a frame
    /// may wait for it for a round trip.
    fn way_ns(&self, slot: usize) -> u64 {
        let view = &self.views[slot];
        let round_trips = if view.is_measured { 2 } else { 1 };
        round_trips * 2 * view.delay_ns
    }

    /// The largest frame that a stream should be given, in bytes.
    pub(super) fn most_of_flight(&self, slot: usize) -> usize {
        match self.trusting {
            true => usize::MAX,
            false => (self.streams[slot].flight.limit_bytes / FRAMES) as usize,
        }
    }

    /// What a stream was found to carry to the peer itself, in bit/s; none while that is no less than what TCP carries.
    pub(super) fn carried_bps(&self, slot: usize) -> Option<f64> {
        self.streams[slot].flight.rate_bps(self.way_ns(slot))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::super::MeasuredPath;
    use super::{FlightLimit, Sender, LATE_NS};
    use crate::scheduler::Earliest;

    const MS: u64 = 1_000_000;
    const FRAME_BYTES: usize = 1400;

    /// Send all that is allowed through a relay that takes everything and brings `rate_bytes` a millisecond to the peer; returns
    /// how much waits there after `until_ms`, and what the peer got.
    fn run(flight: &mut FlightLimit, rate_bytes: u64, until_ms: u64) -> (u64, u64) {
        let (mut queue, mut queued_bytes, mut brought_bytes) = (VecDeque::new(), 0, 0);
        let mut credit_bytes = 0;
        for now_ms in 0..until_ms {
            let now_ns = now_ms * MS;
            let oldest = |queue: &VecDeque<u64>| queue.front().copied();
            let late = |flight: &FlightLimit, oldest_ns| flight.is_late(now_ns, 2 * MS, oldest_ns);
            while !flight.is_full(0) && !oldest(&queue).is_some_and(|at_ns| late(flight, at_ns)) {
                flight.on_sent(FRAME_BYTES);
                queue.push_back(now_ns);
                queued_bytes += FRAME_BYTES as u64;
            }
            credit_bytes += rate_bytes;
            let (mut reported_bytes, mut newest_ns) = (0, 0);
            while credit_bytes >= FRAME_BYTES as u64 && !queue.is_empty() {
                credit_bytes -= FRAME_BYTES as u64;
                newest_ns = queue.pop_front().unwrap_or(0);
                reported_bytes += FRAME_BYTES as u64;
            }
            if reported_bytes > 0 {
                flight.on_reported(reported_bytes, newest_ns);
                flight.look(now_ns + 1, 2 * MS);
                queued_bytes -= reported_bytes;
                brought_bytes += reported_bytes;
            }
        }
        (queued_bytes, brought_bytes)
    }

    #[test]
    fn what_waits_in_a_relay_is_bounded_in_time_and_the_path_is_busy() {
        for rate_bytes in [200, 4_000, 40_000] {
            let mut flight = FlightLimit::default();
            let (waiting, brought) = run(&mut flight, rate_bytes, 5_000);
            assert!(
                waiting <= 220 * rate_bytes + 4 * FRAME_BYTES as u64,
                "{rate_bytes}: {waiting}"
            );
            assert!(brought >= 4_900 * rate_bytes, "{rate_bytes}: {brought}");
        }
    }

    #[test]
    fn a_fast_path_is_not_held_back() {
        let mut flight = FlightLimit::default();
        let (_, brought) = run(&mut flight, 10_000_000, 500);
        assert!(brought >= 350 * 10_000_000, "{brought}");
        assert_eq!(flight.rate_bps(2 * MS), None);
    }

    /// 10 Mbit/s that are reported every 50 ms, as an ACK may wait for so long, and at first more often.
    #[test]
    fn a_stream_at_its_rate_is_never_full() {
        let (mut flight, mut report_ms) = (FlightLimit::default(), 20);
        for now_ms in 1..2_000 {
            flight.on_sent(1250);
            assert!(!flight.is_full(0), "{now_ms} ms");
            if now_ms == report_ms {
                let on_way_bytes = 12 * 1250;
                flight.on_reported(flight.bytes - on_way_bytes, (now_ms - 12) * MS);
                flight.look(now_ms * MS, 12 * MS);
                report_ms += (now_ms / 4).clamp(10, 50);
            }
        }
    }

    #[test]
    fn a_long_round_trip_doubles_what_may_be_on_its_way() {
        let (mut flight, mut now_ns) = (FlightLimit::default(), 0);
        let limit_bytes = flight.limit_bytes;
        for _ in 0..4 {
            let sent_bytes = flight.limit_bytes;
            flight.on_sent(sent_bytes as usize);
            // In parts, as they come.
            for _ in 0..8 {
                flight.on_reported(sent_bytes / 8, now_ns);
                flight.look(now_ns + 420 * MS, 400 * MS);
                flight.was_used = true;
            }
            now_ns += 420 * MS;
        }
        assert!(flight.limit_bytes >= 8 * limit_bytes);
    }

    #[test]
    fn what_tcp_itself_has_fills_no_flight() {
        let mut flight = FlightLimit::default();
        flight.on_sent(1 << 20);
        let tcp_bytes = (1 << 20) - flight.limit_bytes;
        assert!(flight.is_full(tcp_bytes) && !flight.is_full(tcp_bytes + 1));
    }

    #[test]
    fn a_stream_whose_frames_are_late_takes_no_more() {
        let mut flight = FlightLimit::default();
        flight.on_sent(1);
        let late_ns = flight.target_ns(MS) + LATE_NS;
        assert!(!flight.is_late(late_ns, MS, 0));
        assert!(flight.is_late(late_ns + 1, MS, 0));
    }

    #[test]
    fn what_waits_in_the_host_is_not_late_for_that() {
        let mut sender = Sender::new(1, FRAME_BYTES, 1 << 20, Some(Box::new(Earliest)));
        sender
            .on_measured(0, &MeasuredPath::empty(1e6, MS))
            .unwrap();
        sender.on_unsent(0, 0, 10_000).unwrap(); // 80 ms
        sender.write(&[0; FRAME_BYTES]).unwrap();
        let (stream, size) = sender.poll_frame(0).unwrap();
        sender.on_sent(stream, size).unwrap();
        for (now_ms, late) in [(244, false), (245, true)] {
            sender.look_at_flights(now_ms * MS);
            assert_eq!(sender.late().contains(0), late, "{now_ms} ms");
        }
    }

    #[test]
    fn one_that_carries_little_keeps_its_limit() {
        let mut flight = FlightLimit::default();
        let limit_bytes = flight.limit_bytes;
        for now_ms in 0..100 {
            flight.on_sent(100);
            flight.on_reported(100, now_ms * MS);
            flight.look((now_ms + 1) * MS, MS);
        }
        assert_eq!(flight.limit_bytes, limit_bytes);
    }
}
