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

/// How samples are taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SampleRule {
    /// As the draft says.
    #[default]
    Draft,
    /// As ns-3 3.37 does (`TcpRateLinux`): the control is told after the recovery has acted, in recovery nobody else changes its window, and
    /// the initial window is not paced.
    Ns3,
}

/// The sample of ns-3, which outlives its ACK: times and counts stay until a segment is delivered that left later, and the last rate until
/// there is another.
#[derive(Debug, Clone, Copy, Default)]
struct Ns3Sample {
    prior_delivered: u64,
    /// When the newest segment's sender had seen its last delivery; 0 makes the sample void.
    prior_at: Nanos,
    send_elapsed: Nanos,
    ack_elapsed: Nanos,
    app_limited: bool,
    /// Bytes, and in which time.
    rate: Option<(u64, Nanos)>,
}

impl Ns3Sample {
    /// Take the time of a delivered segment, if none that is as new was delivered. The ACK's time runs from the segment before.
    fn on_delivered(&mut self, now: Nanos, stamp: &Stamp) -> bool {
        let newer = self.prior_delivered == 0 || stamp.delivered > self.prior_delivered;
        if newer {
            self.ack_elapsed = now - self.prior_at;
            self.prior_delivered = stamp.delivered;
            self.prior_at = stamp.delivered_at;
            self.send_elapsed = stamp.sent_at - stamp.first_sent_at;
            self.app_limited = stamp.app_limited;
        }
        newer
    }

    fn measure(&mut self, total: u64, least_rtt: Nanos) {
        if self.prior_at == 0 {
            return;
        }
        let interval = self.send_elapsed.max(self.ack_elapsed);
        if interval == 0 || interval < least_rtt {
            self.prior_at = 0;
            return;
        }
        let delivered = total - self.prior_delivered;
        let product = |bytes: u64, time: Nanos| u128::from(bytes) * u128::from(time);
        let faster = self.rate.map_or(true, |(bytes, time)| {
            product(delivered, time) >= product(bytes, interval)
        });
        if !self.app_limited || faster {
            self.rate = Some((delivered, interval));
        }
    }

    fn sample(&self) -> Option<RateSample> {
        self.rate.map(|(delivered, interval)| RateSample {
            delivered,
            interval,
            prior_delivered: self.prior_delivered,
            app_limited: self.app_limited,
        })
    }
}

/// The connection's part (section 3.1.1, C).
#[derive(Debug, Clone, Default)]
pub struct RateSampler {
    /// ns-3's sample, where that is the rule.
    ns3: Option<Ns3Sample>,
    delivered: u64,
    delivered_at: Nanos,
    first_sent_at: Nanos,
    /// Samples are limited by the application until so much is delivered; 0: they are not.
    app_limited_until: u64,
    newest: Option<Stamp>,
}

impl RateSampler {
    /// Take samples by `rule`.
    pub fn new(rule: SampleRule) -> Self {
        Self {
            ns3: (rule == SampleRule::Ns3).then(Ns3Sample::default),
            ..Self::default()
        }
    }

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
        if let Some(sample) = &mut self.ns3 {
            if sample.on_delivered(now, stamp) {
                self.first_sent_at = stamp.sent_at;
            }
            return;
        }
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
        if let Some(sample) = &mut self.ns3 {
            sample.measure(self.delivered, least_rtt.unwrap_or(0));
            return sample.sample();
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
