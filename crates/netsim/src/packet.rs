//! Packets in an arena: what is on its way is referred to by an index.

use crate::tcp::Segment;
use crate::time::Nanos;

/// What a packet carries, and to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A segment for this endpoint.
    Tcp {
        /// Index of the endpoint.
        endpoint: u32,
        /// The segment.
        segment: Segment,
    },
    /// A datagram of this flow.
    Datagram {
        /// Index of the flow.
        flow: u32,
        /// Bytes of data.
        payload_bytes: u32,
        /// When the application wrote it.
        written: Nanos,
    },
}

impl Content {
    /// A number for all packets of one connection and direction, and for no others.
    pub fn flow_key(&self) -> u32 {
        match self {
            Self::Tcp { endpoint, .. } => 2 * endpoint,
            Self::Datagram { flow, .. } => 2 * flow + 1,
        }
    }
}

/// A packet in two cache lines.
#[derive(Debug)]
#[repr(align(64))]
struct Slot(Content);

/// All packets that are on their way.
#[derive(Debug, Default)]
pub struct Arena {
    packets: Vec<Slot>,
    free: Vec<u32>,
}

impl Arena {
    /// Take a packet in.
    pub fn insert(&mut self, content: Content) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.packets[index as usize].0 = content;
                index
            }
            None => {
                self.packets.push(Slot(content));
                (self.packets.len() - 1) as u32
            }
        }
    }

    /// A packet on its way.
    pub fn get(&self, packet: u32) -> &Content {
        &self.packets[packet as usize].0
    }

    /// Forget a packet: it has arrived or is lost.
    pub fn remove(&mut self, packet: u32) {
        self.free.push(packet);
    }

    /// How many packets are on their way.
    pub fn len(&self) -> usize {
        self.packets.len() - self.free.len()
    }

    /// Whether no packet is on its way.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
