//! A path, and what is wrong with it.

/// What TCP finds between a host and a relay on it.
const LOOPBACK_BPS: f64 = 1e9;

/// What happens to the bytes of one direction of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// They arrive.
    Works,
    /// Packets are dropped, and TCP tries again after ever longer times.
    Dropped,
    /// A relay acknowledges them and keeps them until the path is repaired.
    Held,
    /// A relay acknowledges them and throws them away; its streams are reset when the path is repaired.
    Swallowed,
}

/// What is done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// All its streams are reset; new ones work.
    Reset,
    /// Packets are dropped in both directions.
    Blackhole,
    /// A relay keeps what goes in this direction (0: from the client).
    StopOneWay(usize),
    /// A relay throws away what goes in both directions.
    Swallow,
    /// The receiving side of this direction sees the end of TCP.
    HalfClose(usize),
    /// It carries a twentieth of its rate.
    Slow,
    /// It works again.
    Repair,
}

/// A path between client and server.
#[derive(Debug, Clone)]
pub struct Path {
    /// Bits in a second, each direction.
    pub rate_bps: f64,
    /// One way, in nanoseconds.
    pub delay_ns: u64,
    /// A relay ends TCP near the sender, and keeps this many bytes at most; 0: there is none.
    pub relay_bytes: usize,
    /// By direction: from the client, from the server.
    pub health: [Health; 2],
    /// Whether it is slowed down.
    pub is_slow: bool,
    /// Whether a fault has ended its streams, and none has been opened since.
    pub is_cut: bool,
}

impl Path {
    /// A path that works.
    pub fn new(rate_bps: f64, delay_ns: u64) -> Self {
        Self {
            rate_bps,
            delay_ns,
            relay_bytes: 0,
            health: [Health::Works; 2],
            is_slow: false,
            is_cut: false,
        }
    }

    /// The same path with a relay.
    pub fn with_relay(self, relay_bytes: usize) -> Self {
        Self {
            relay_bytes,
            ..self
        }
    }

    /// The delay that a sender's TCP sees, in nanoseconds.
    pub fn visible_delay_ns(&self) -> u64 {
        match self.relay_bytes {
            0 => self.delay_ns,
            _ => 0,
        }
    }

    /// Bits in a second that a sender's TCP sees.
    pub fn visible_rate_bps(&self) -> f64 {
        match self.relay_bytes {
            0 => self.current_rate_bps(),
            _ => LOOPBACK_BPS,
        }
    }

    /// Whether bytes arrive in a direction.
    pub fn works(&self, direction: usize) -> bool {
        self.health[direction] == Health::Works
    }

    /// Whether bytes arrive in a direction on a stream that may still be there, or on a new one, which takes both directions.
    pub fn carries(&self, direction: usize) -> bool {
        self.works(direction) && (!self.is_cut || self.works(1 - direction))
    }

    /// Bits in a second that it carries now.
    pub fn current_rate_bps(&self) -> f64 {
        match self.is_slow {
            true => self.rate_bps / 20.0,
            false => self.rate_bps,
        }
    }

    /// How long this many bytes take to leave, in nanoseconds.
    pub fn sending_ns(&self, bytes: usize) -> u64 {
        (bytes as f64 * 8e9 / self.current_rate_bps()) as u64
    }
}
