//! What two TCP endpoints exchange.

use crate::time::Nanos;

/// The most SACK blocks that a segment carries (RFC 2018: three beside timestamps, four without).
pub const MAX_SACK_BLOCKS: usize = 4;

/// Places of MPTCP's numbers among the SACK blocks.
const DATA_ACK: usize = MAX_SACK_BLOCKS - 1;
const DATA_SEQUENCE: usize = MAX_SACK_BLOCKS - 2;

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
///
/// The last two places hold the numbers of MPTCP's option where there is one: TCP has 40 bytes for all options, so what is taken here
/// could not hold SACK blocks on the wire either.
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

    /// Put a number of MPTCP's option into one of the last places.
    fn put(&mut self, place: usize, number: u64) {
        debug_assert!(self.len() <= place, "no room for SACK blocks and this");
        self.blocks[place] = ((number >> 32) as u32, number as u32);
    }

    fn number(&self, place: usize) -> u64 {
        let (high, low) = self.blocks[place];
        u64::from(high) << 32 | u64::from(low)
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

/// Which option of MPTCP a segment carries (RFC 8684, 3); sizes are padded to 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MptcpKind {
    /// None: it is plain TCP.
    #[default]
    None,
    /// MP_CAPABLE on a SYN (3.1): version and flags.
    Capable,
    /// MP_CAPABLE on the answer to it: the server's key.
    CapableAnswer,
    /// MP_JOIN on a SYN (3.2): token and random number.
    Join,
    /// MP_JOIN on the answer to it: truncated HMAC and random number.
    JoinAnswer,
    /// A data sequence signal with a data ACK alone (3.3).
    DataAck,
    /// A data sequence signal with a mapping and a data ACK, 64-bit numbers, no checksum.
    Mapping,
    /// What ns-3's MPTCP model sends in place of a data ACK: nothing, since its ACKs are of the connection.
    Ns3Ack,
    /// What it sends in place of a mapping.
    Ns3Mapping,
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
    /// The PSH flag: the sender has no more for the present.
    pub push: bool,
    /// SACK blocks, the newest first.
    pub sack: SackBlocks,
    /// The timestamp option: TSval and TSecr.
    pub timestamps: Option<(Nanos, Nanos)>,
    /// What the SYN offers.
    pub options: SynOptions,
    /// The option of MPTCP.
    pub mptcp: MptcpKind,
    /// Whether this data has been sent before (for statistics; not on the wire).
    pub retransmission: bool,
    /// TCP-DOOR: the count of segments that this one's sender has sent, retransmissions too; 0: not carried.
    pub packet_number: u32,
    /// TCP-DOOR: what this acknowledges, or something before it, has arrived out of order.
    pub out_of_order: bool,
}

impl Segment {
    /// The sequence number after the segment: data, SYN and FIN count.
    pub fn end(&self) -> u64 {
        self.sequence + u64::from(self.payload_bytes) + u64::from(self.syn) + u64::from(self.fin)
    }

    /// Bytes of all options as ns-3's MPTCP model counts them: a word of four bytes for five. A mapping has 15, timestamps 17, a report
    /// of what waits 33.
    pub fn ns3_option_bytes(&self) -> u32 {
        let mapping: u32 = if self.mptcp == MptcpKind::Ns3Mapping {
            15
        } else {
            0
        };
        let timestamps = if self.timestamps.is_some() { 17 } else { 0 };
        let report = if self.sack.is_empty() { 0 } else { 33 };
        5 * (mapping + timestamps + report).div_ceil(4)
    }

    /// Whether options are those of ns-3's MPTCP model.
    pub fn is_of_ns3(&self) -> bool {
        matches!(self.mptcp, MptcpKind::Ns3Ack | MptcpKind::Ns3Mapping)
    }

    /// Carry a data ACK: the next byte of the connection that is expected.
    pub fn set_data_ack(&mut self, number: u64, ns3: bool) {
        self.mptcp = if ns3 {
            MptcpKind::Ns3Ack
        } else {
            MptcpKind::DataAck
        };
        self.sack.put(DATA_ACK, number);
    }

    /// Carry a mapping beside the data ACK: the data sequence number of the first byte of data.
    pub fn set_mapping(&mut self, number: u64) {
        self.mptcp = if self.is_of_ns3() {
            MptcpKind::Ns3Mapping
        } else {
            MptcpKind::Mapping
        };
        self.sack.put(DATA_SEQUENCE, number);
    }

    /// The data ACK, if there is one.
    pub fn data_ack(&self) -> Option<u64> {
        (matches!(self.mptcp, MptcpKind::DataAck | MptcpKind::Mapping) || self.is_of_ns3())
            .then(|| self.sack.number(DATA_ACK))
    }

    /// The data sequence number of the first byte of data, if there is a mapping.
    pub fn mapping(&self) -> Option<u64> {
        matches!(self.mptcp, MptcpKind::Mapping | MptcpKind::Ns3Mapping)
            .then(|| self.sack.number(DATA_SEQUENCE))
    }

    /// The data that has arrived twice, if the first block tells of such (RFC 2883, 4): it lies below the acknowledgement, or within
    /// the second block.
    pub fn duplicate(&self) -> Option<(u64, u64)> {
        let mut blocks = self.sack_blocks();
        let first = blocks.next()?;
        let below = first.0 < self.acknowledgement?;
        let within = |second: (u64, u64)| second.0 <= first.0 && first.1 <= second.1;
        (below || blocks.next().is_some_and(within)).then_some(first)
    }

    /// The SACK blocks (start, end exclusive), the newest first.
    pub fn sack_blocks(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.sack.iter(self.acknowledgement.unwrap_or(0))
    }
}
