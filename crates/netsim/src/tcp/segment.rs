//! What two TCP endpoints exchange.

use crate::time::Nanos;

/// The most SACK blocks that a segment carries (RFC 2018: three beside timestamps, four without).
pub const MAX_SACK_BLOCKS: usize = 4;

/// What a SYN offers; without meaning on other segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SynOptions {
    /// The most bytes of data that a segment to the sender of this SYN may carry (RFC 9293, 3.7.1); 0: not said.
    pub mss_bytes: u32,
    /// The shift of the windows to come, if scaling is offered (RFC 7323, 2).
    pub window_scale: Option<u8>,
    /// Whether SACK blocks may be sent back (RFC 2018, 2).
    pub sack_permitted: bool,
}

/// SACK blocks, as distances from the acknowledgement that they go with: a segment is copied often, and this halves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [(u32, u32); MAX_SACK_BLOCKS],
    count: u8,
}

impl SackBlocks {
    /// Add a block (start, end exclusive) that lies less than 2^31 from `ack`; more than [`MAX_SACK_BLOCKS`] are not kept.
    pub fn push(&mut self, ack: u64, block: (u64, u64)) {
        if let Some(place) = self.blocks.get_mut(usize::from(self.count)) {
            let distance = |number: u64| number.wrapping_sub(ack) as u32;
            *place = (distance(block.0), distance(block.1));
            self.count += 1;
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The blocks (start, end exclusive) beside the acknowledgement `ack`.
    pub fn iter(&self, ack: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let number = move |distance: u32| ack.wrapping_add_signed(i64::from(distance as i32));
        let blocks = self.blocks[..self.len()].iter();
        blocks.map(move |&(start, end)| (number(start), number(end)))
    }
}

/// One TCP segment. Sequence numbers do not wrap: the SYN has number 0, the first byte of data number 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segment {
    /// Number of the first byte of data (or of the SYN or FIN).
    pub sequence: u64,
    /// Bytes of data.
    pub payload_bytes: u32,
    /// The next byte expected from the other side, if the ACK flag is set.
    pub acknowledgement: Option<u64>,
    /// Receive window in bytes, already scaled.
    pub window_bytes: u64,
    /// The SYN flag.
    pub syn: bool,
    /// The FIN flag.
    pub fin: bool,
    /// The RST flag.
    pub rst: bool,
    /// SACK blocks, the newest first.
    pub sack: SackBlocks,
    /// The timestamp option: TSval and TSecr.
    pub timestamps: Option<(Nanos, Nanos)>,
    /// What the SYN offers.
    pub options: SynOptions,
    /// Whether this data has been sent before (for statistics; not on the wire).
    pub retransmission: bool,
}

impl Segment {
    /// The sequence number after the segment: data, SYN and FIN count.
    pub fn end(&self) -> u64 {
        self.sequence + u64::from(self.payload_bytes) + u64::from(self.syn) + u64::from(self.fin)
    }

    /// The SACK blocks (start, end exclusive), the newest first.
    pub fn sack_blocks(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.sack.iter(self.acknowledgement.unwrap_or(0))
    }
}
