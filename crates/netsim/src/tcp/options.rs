//! TCP's options on the wire: how long they are, and their bytes.

use super::segment::{MptcpKind, Segment};

/// How a stack lays its options out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionLayout {
    /// Each option begins at a word, and SACK-permitted takes the place of the padding in front of timestamps (RFC 7323, appendix A;
    /// Linux).
    Aligned,
    /// One after the other, with the padding at the end; SYNs tell no segment size (ns-3).
    Packed,
}

/// Length of TCP-DOOR's option: kind, length, a number of two bytes, of which a bit reports disorder.
const DOOR_BYTES: u32 = 4;

const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const NOP: u8 = 1;

impl OptionLayout {
    /// Bytes of all options of a segment, whole words.
    #[inline]
    pub fn bytes(self, segment: &Segment) -> u32 {
        if segment.is_of_ns3() {
            return segment.ns3_option_bytes();
        }
        let padding = match self {
            Self::Aligned => 2,
            Self::Packed => 0,
        };
        let mut bytes = 0;
        if segment.timestamps.is_some() {
            bytes += 10 + padding;
        }
        if !segment.sack.is_empty() {
            bytes += 2 + padding + 8 * segment.sack.len() as u32;
        }
        if segment.syn {
            bytes += self.offer(segment).len() as u32;
        }
        if segment.packet_number > 0 {
            bytes += DOOR_BYTES;
        }
        bytes += segment.mptcp.bytes();
        (bytes + 3) & !3
    }

    /// The options of a segment but TCP-DOOR's and MPTCP's, padded to whole words.
    pub fn encode(self, segment: &Segment) -> Vec<u8> {
        let aligned = self == Self::Aligned;
        let mut out = Vec::new();
        if segment.syn {
            out.extend(self.offer(segment));
        }
        if let Some((value, echo)) = segment.timestamps {
            let paired = segment.syn && segment.options.sack_permitted;
            match (aligned, paired) {
                (true, true) => out.extend_from_slice(&[SACK_PERMITTED, 2]),
                (true, false) => out.extend_from_slice(&[NOP, NOP]),
                (false, _) => {}
            }
            out.extend_from_slice(&[TIMESTAMPS, 10]);
            for time in [value, echo] {
                out.extend_from_slice(&((time / 1_000_000) as u32).to_be_bytes());
            }
        }
        if !segment.sack.is_empty() {
            if aligned {
                out.extend_from_slice(&[NOP, NOP]);
            }
            out.extend_from_slice(&[SACK, 2 + 8 * segment.sack.len() as u8]);
            for edge in segment.sack_blocks().flat_map(|(start, end)| [start, end]) {
                out.extend_from_slice(&(edge as u32).to_be_bytes());
            }
        }
        out.resize(out.len().next_multiple_of(4), 0);
        out
    }

    /// What a SYN offers, but timestamps.
    fn offer(self, segment: &Segment) -> Vec<u8> {
        let (aligned, offers) = (self == Self::Aligned, &segment.options);
        let mut out = Vec::new();
        if aligned && offers.mss_bytes > 0 {
            out.extend_from_slice(&[MSS, 4]);
            out.extend_from_slice(&(offers.mss_bytes.min(65_535) as u16).to_be_bytes());
        }
        match (offers.sack_permitted, aligned) {
            (true, true) if segment.timestamps.is_none() => {
                out.extend_from_slice(&[NOP, NOP, SACK_PERMITTED, 2]);
            }
            (true, false) => out.extend_from_slice(&[SACK_PERMITTED, 2]),
            _ => {}
        }
        if let Some(shift) = offers.window_scale {
            if aligned {
                out.push(NOP);
            }
            out.extend_from_slice(&[WINDOW_SCALE, 3, shift]);
        }
        out
    }
}

impl MptcpKind {
    /// Bytes on the wire.
    pub fn bytes(self) -> u32 {
        match self {
            Self::None | Self::Ns3Ack => 0,
            Self::Capable => 4,
            Self::CapableAnswer | Self::Join | Self::DataAck => 12,
            Self::JoinAnswer => 16,
            Self::Ns3Mapping => 20,
            Self::Mapping => 28,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::segment::SynOptions;
    use super::*;

    fn syn(mss_bytes: u32, scales: bool, sack_permitted: bool, timestamps: bool) -> Segment {
        Segment {
            syn: true,
            options: SynOptions {
                mss_bytes,
                window_scale: scales.then_some(7),
                sack_permitted,
            },
            timestamps: timestamps.then_some((5_000_000, 4_000_000)),
            ..Segment::default()
        }
    }

    fn acknowledging(blocks: u64, timestamps: bool) -> Segment {
        let mut segment = Segment {
            acknowledgement: Some(1),
            timestamps: timestamps.then_some((5_000_000, 4_000_000)),
            ..Segment::default()
        };
        for block in 1..=blocks {
            segment.sack.push(1, (2_000 * block, 2_000 * block + 1_000));
        }
        segment
    }

    #[test]
    fn lengths_are_those_of_linux_and_of_ns3() {
        for (segment, aligned, packed) in [
            // Headers of 40 and 36 bytes: Linux's SYN, and ns-3's of 58 bytes behind 22 of PPP and IP.
            (syn(1460, true, true, true), 20, 16),
            (syn(1460, true, true, false), 12, 8),
            (syn(1460, true, false, true), 20, 16),
            (syn(1460, true, false, false), 8, 4),
            (syn(1460, false, false, false), 4, 0),
            (acknowledging(0, true), 12, 12),
            // 66 and 62 bytes with what is in front.
            (acknowledging(1, true), 24, 20),
            (acknowledging(3, true), 40, 36),
            (acknowledging(1, false), 12, 12),
            (acknowledging(4, false), 36, 36),
        ] {
            for (layout, expected) in [
                (OptionLayout::Aligned, aligned),
                (OptionLayout::Packed, packed),
            ] {
                assert_eq!(layout.bytes(&segment), expected, "{layout:?} {segment:?}");
                assert_eq!(layout.encode(&segment).len() as u32, expected);
            }
        }
    }

    #[test]
    fn every_option_can_be_read_back() {
        for layout in [OptionLayout::Aligned, OptionLayout::Packed] {
            let mut rest = &layout.encode(&syn(1460, true, true, true))[..];
            let mut kinds = Vec::new();
            while let [kind, after @ ..] = rest {
                let length = match kind {
                    0 => break,
                    1 => 0,
                    _ => usize::from(after[0]) - 1,
                };
                kinds.extend((*kind > 1).then_some(*kind));
                rest = &after[length..];
            }
            kinds.sort_unstable();
            let told = usize::from(layout == OptionLayout::Packed);
            assert_eq!(kinds, [2, 3, 4, 8][told..]);
        }
    }
}
