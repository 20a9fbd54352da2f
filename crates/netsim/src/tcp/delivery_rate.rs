//! Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation-00): how fast the path has carried what an ACK says is delivered.

use crate::time::Nanos;

/// What a segment remembers of the connection when it left (section 3.1.2, P).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    sent_at: Nanos,
    delivered: u64,
    delivered_at: Nanos,
    first_sent_at: Nanos,
    app_limited: bool,
}

/// A sample (section 3.1.3, rs).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered between the sending and the ACK of the segment that left last.
    pub delivered: u64,
    /// In which time.
    pub interval: Nanos,
    /// What the connection had delivered when that segment left.
    pub prior_delivered: u64,
    /// Whether the application, and not the path, set the rate.
    pub app_limited: bool,
}

/// The connection's part (section 3.1.1, C).
#[derive(Debug, Clone, Default)]
pub struct RateSampler {
    delivered: u64,
    delivered_at: Nanos,
    first_sent_at: Nanos,
    /// Samples are limited by the application until so much is delivered; 0: they are not.
    app_limited_until: u64,
    newest: Option<Stamp>,
}

impl RateSampler {
    /// Bytes delivered in all.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Section 3.2, SendPacket; `idle`: nothing is under way.
    pub fn stamp(&mut self, now: Nanos, idle: bool) -> Stamp {
        if idle {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Stamp {
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited_until > 0,
        }
    }

    /// Section 3.3, UpdateRateSample: a segment is delivered.
    pub fn on_delivered(&mut self, now: Nanos, bytes: u64, stamp: &Stamp) {
        self.delivered += bytes;
        self.delivered_at = now;
        let newer = self
            .newest
            .map_or(true, |newest| stamp.delivered > newest.delivered);
        if newer {
            self.newest = Some(*stamp);
            self.first_sent_at = stamp.sent_at;
        }
    }

    /// Section 3.3, GenerateRateSample: what an ACK has shown; none if it delivered nothing, or sooner than a round trip allows.
    pub fn sample(&mut self, least_rtt: Option<Nanos>) -> Option<RateSample> {
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let newest = self.newest.take()?;
        let send_elapsed = newest.sent_at - newest.first_sent_at;
        let ack_elapsed = self.delivered_at - newest.delivered_at;
        let interval = send_elapsed.max(ack_elapsed);
        (interval > 0 && least_rtt.map_or(true, |least| interval >= least)).then_some(RateSample {
            delivered: self.delivered - newest.delivered,
            interval,
            prior_delivered: newest.delivered,
            app_limited: newest.app_limited,
        })
    }

    /// Section 3.4: there is nothing to send although there would be room.
    pub fn limit_by_application(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }
}
