//! When a client opens a stream again that was lost, and how long each attempt may take.
//!
//! TCP's own retries come after ever longer times, so that a path that was dead for seconds would lie idle for seconds once
//! it is back. A fresh attempt every 0.4 s finds it at once. A path that never opened may be a slow one: each attempt
//! on it is given twice the time of the one before; one that did open is given more now and then.

/// How long an attempt may take at least, in nanoseconds, and as a multiple of what the last success took.
const ATTEMPT_NS: u64 = 400_000_000;
const TIMES_BEFORE: u64 = 3;
/// Time between the begins of two attempts, in nanoseconds: of the first ones, the longest, and the least after one that took
/// longer than that.
const FIRST_SPACE_NS: u64 = 50_000_000;
const MAX_SPACE_NS: u64 = 400_000_000;
const MOMENT_NS: u64 = 20_000_000;
/// After this many attempts one in this many may take long, in nanoseconds, also where the path was quick once.
const MANY_ATTEMPTS: u32 = 200;
const PATIENT_EVERY: u32 = 50;
const MAX_ATTEMPT_NS: u64 = 8_000_000_000;

/// The attempts to open one stream again.
#[derive(Debug, Clone, Default)]
pub struct ReconnectBackoff {
    attempts: u32,
    took_ns: u64,
}

/// One attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReconnectAttempt {
    /// How long to wait before it, in nanoseconds.
    pub delay_ns: u64,
    /// How long connecting and the hellos may take together, in nanoseconds.
    pub timeout_ns: u64,
}

impl ReconnectBackoff {
    /// Attempts for a stream that took this long to open the last time, 0 if that is not known.
    pub fn new(took_ns: u64) -> Self {
        Self {
            attempts: 0,
            took_ns,
        }
    }

    /// The next attempt, after one that failed within `failed_ns`; 0 before the first.
    pub fn attempt(&mut self, failed_ns: u64) -> ReconnectAttempt {
        let space_ns = (FIRST_SPACE_NS << self.attempts.min(8)).min(MAX_SPACE_NS);
        let is_patient = self.attempts >= MANY_ATTEMPTS && self.attempts % PATIENT_EVERY == 0;
        let timeout_ns = match self.took_ns {
            0 => ATTEMPT_NS << self.attempts.min(8),
            _ if is_patient => MAX_ATTEMPT_NS,
            took_ns => ATTEMPT_NS.max(TIMES_BEFORE * took_ns),
        };
        self.attempts = self.attempts.saturating_add(1);
        ReconnectAttempt {
            delay_ns: space_ns.saturating_sub(failed_ns).max(MOMENT_NS),
            timeout_ns: timeout_ns.min(MAX_ATTEMPT_NS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ReconnectBackoff;

    #[test]
    fn a_path_that_is_back_is_tried_within_a_second_and_a_listener_that_refuses_not_too_often() {
        let mut redial = ReconnectBackoff::new(10_000_000);
        for _ in 0..100 {
            let attempt = redial.attempt(400_000_000);
            assert!(attempt.delay_ns + attempt.timeout_ns <= 450_000_000);
        }
        assert_eq!(redial.attempt(1_000_000).delay_ns, 399_000_000);
    }

    #[test]
    fn a_path_that_never_opened_is_given_ever_more_time() {
        let mut redial = ReconnectBackoff::new(0);
        let times: Vec<u64> = (0..6)
            .map(|_| redial.attempt(0).timeout_ns / 1_000_000)
            .collect();
        assert_eq!(times, [400, 800, 1600, 3200, 6400, 8000]);
    }
}
