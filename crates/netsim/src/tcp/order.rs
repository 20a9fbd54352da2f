//! TCP-DOOR's options: each segment carries a number that rises with every transmission, so that both ends see when segments arrive
//! in another order than they left (Wang and Zhang, MobiHoc 2002, section 3.2).

use super::segment::Segment;

/// What an endpoint knows of the order of segments.
#[derive(Debug, Clone, Default)]
pub struct PacketOrder {
    enabled: bool,
    sent: u32,
    highest: u32,
    /// The peer is to be told that data has arrived out of order.
    notice: bool,
}

/// What a segment tells of the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Nothing.
    InOrder,
    /// The data in it left before what has arrived already.
    LateData,
    /// The path of acknowledgements, or the peer, tells of disorder: what we send is affected.
    Reported,
}

impl PacketOrder {
    /// Number segments, if the options are in use.
    pub fn new(enabled: bool) -> Self {
        Self {
            enabled,
            ..Self::default()
        }
    }

    /// Look at a segment that arrives.
    pub fn on_arrival(&mut self, segment: &Segment) -> Arrival {
        if !self.enabled {
            return Arrival::InOrder;
        }
        let late = segment.packet_number < self.highest;
        self.highest = self.highest.max(segment.packet_number);
        match (segment.out_of_order, late, segment.payload_bytes > 0) {
            (true, _, _) | (_, true, false) => Arrival::Reported,
            (_, true, true) => Arrival::LateData,
            _ => Arrival::InOrder,
        }
    }

    /// Tell the peer with the next segment that data has arrived out of order.
    pub fn report(&mut self) {
        self.notice = self.enabled;
    }

    /// Complete a segment that leaves.
    pub fn stamp(&mut self, segment: &mut Segment) {
        if self.enabled {
            self.sent += 1;
            segment.packet_number = self.sent;
            segment.out_of_order = std::mem::take(&mut self.notice);
        }
    }
}
