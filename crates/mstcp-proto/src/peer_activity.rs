//! Signs of life of the peer.
//!
//! A stream is judged only while the peer is known to live: an application that is held up for seconds is silent on all
//! streams, and so is one of ours that looks at its sockets late. What then waits in a kernel is not lost.

use crate::scheduler::StreamSet;

/// After this silence, in nanoseconds, and two round trips the peer may be held up, and no stream counts as stalled.
pub const SILENCE_NS: u64 = 300_000_000;

/// When something last arrived from the peer, in all and on each stream.
#[derive(Debug, Default)]
pub struct PeerActivity {
    /// Streams that brought something since the last look.
    fresh: StreamSet,
    heard_ns: Option<u64>,
    /// By slot.
    stream_heard_ns: Vec<u64>,
    /// Since when it has been heard without a longer silence.
    since_ns: u64,
}

impl PeerActivity {
    /// Note that a stream brought bytes. When is known at the next look.
    pub fn hear(&mut self, slot: usize) {
        self.fresh.insert(slot);
    }

    /// Bring it up to date. `round_trips_ns` is two round trips of the longest path.
    pub fn look(&mut self, now_ns: u64, round_trips_ns: u64) {
        // The hellos have just been exchanged.
        let before_ns = *self.heard_ns.get_or_insert_with(|| {
            self.since_ns = now_ns;
            now_ns
        });
        if self.fresh.is_empty() {
            return;
        }
        if now_ns.saturating_sub(before_ns) >= SILENCE_NS + round_trips_ns {
            self.since_ns = now_ns;
        }
        self.heard_ns = Some(now_ns);
        for slot in std::mem::take(&mut self.fresh).iter() {
            self.note_stream(slot, now_ns);
        }
    }

    /// Since when the peer has been known to live; none if it is silent now.
    pub fn alive_since(&self, now_ns: u64, round_trips_ns: u64) -> Option<u64> {
        let silence_ns = now_ns.saturating_sub(self.heard_ns?);
        (silence_ns < SILENCE_NS + round_trips_ns).then_some(self.since_ns)
    }

    /// When anything was heard last.
    pub fn heard_ns(&self) -> u64 {
        self.heard_ns.unwrap_or(0)
    }

    /// When a stream brought something last.
    pub fn stream_heard_ns(&self, slot: usize) -> u64 {
        self.stream_heard_ns.get(slot).copied().unwrap_or(0)
    }

    /// Note that a stream begins, or brought something.
    pub fn note_stream(&mut self, slot: usize, now_ns: u64) {
        if slot >= self.stream_heard_ns.len() {
            self.stream_heard_ns.resize(slot + 1, 0);
        }
        self.stream_heard_ns[slot] = now_ns;
    }
}
