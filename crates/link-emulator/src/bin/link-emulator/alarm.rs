//! Waking up on time: sleeping somewhat short, and spinning through the rest.
//!
//! A sleeping thread comes back late, by 20 to 60 microseconds on a virtual machine whose core has gone idle. The
//! alarm learns how late is usual and goes to sleep for that much less. The time it spins is bounded as a share of the
//! whole; when that is used up, as it is under heavy load, it just sleeps.

use crate::sys;

/// Most that a sleep is shortened by, and so the longest spin, in nanoseconds.
const MAX_LEAD_NS: u64 = 50_000;
/// A deadline nearer than this is waited for awake in any case: going to sleep costs more.
const MIN_SLEEP_NS: u64 = 3_000;
/// One part in this many of the time may be spent spinning.
const SPIN_SHARE: u64 = 50;
/// Spinning time that can be saved up, in nanoseconds.
const MAX_CREDIT_NS: u64 = 1_000_000;
/// How fast the usual oversleep is learnt, in nanoseconds per sleep.
const LEARNING_STEP_NS: u64 = 2_000;

/// See the module's description.
#[derive(Debug, Default)]
pub struct Alarm {
    /// The median of how much later than asked for a sleep ended.
    oversleep_ns: u64,
    credit_ns: u64,
    credited_at_ns: u64,
}

impl Alarm {
    /// Waits until `deadline_ns`. `sleep` sleeps until a given time; if it returns sooner, so does this.
    pub fn wait(&mut self, deadline_ns: u64, sleep: impl FnOnce(u64)) {
        let now_ns = sys::monotonic_ns();
        let earned_ns = now_ns.saturating_sub(self.credited_at_ns) / SPIN_SHARE;
        self.credit_ns = (self.credit_ns + earned_ns).min(MAX_CREDIT_NS);
        self.credited_at_ns = now_ns;
        let lead_ns = self.oversleep_ns.min(self.credit_ns);
        let alarm_ns = deadline_ns.saturating_sub(lead_ns);
        if alarm_ns > now_ns + MIN_SLEEP_NS {
            sleep(alarm_ns);
            let woke_ns = sys::monotonic_ns();
            if woke_ns < alarm_ns {
                return;
            }
            self.learn(woke_ns - alarm_ns);
        }
        self.spin_until(deadline_ns);
    }

    fn learn(&mut self, oversleep_ns: u64) {
        self.oversleep_ns = if oversleep_ns > self.oversleep_ns {
            (self.oversleep_ns + LEARNING_STEP_NS).min(MAX_LEAD_NS)
        } else {
            self.oversleep_ns.saturating_sub(LEARNING_STEP_NS)
        };
    }

    fn spin_until(&mut self, deadline_ns: u64) {
        let start_ns = sys::monotonic_ns();
        let mut now_ns = start_ns;
        while now_ns < deadline_ns {
            std::hint::spin_loop();
            now_ns = sys::monotonic_ns();
        }
        self.credit_ns = self.credit_ns.saturating_sub(now_ns - start_ns);
    }
}
