//! Internet checksums (RFC 1071) that a sender left for its network card to finish.

/// Where a frame wants its checksum: the two numbers of the virtio network header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChecksumRequest {
    /// First byte that the sum covers, counted from the start of the frame.
    pub start: usize,
    /// Where the sum goes, counted from `start`; holds the sum of the pseudo header until then.
    pub offset: usize,
}

/// Finishes the checksum in place; false (and nothing changed) if the request points outside the frame.
pub fn complete(frame: &mut [u8], request: ChecksumRequest) -> bool {
    let Some(covered) = frame.get_mut(request.start..) else {
        return false;
    };
    if request.offset + 2 > covered.len() {
        return false;
    }
    let sum = match !fold(covered) {
        // Zero means "no checksum" in UDP; its complement is the same number.
        0 => u16::MAX,
        sum => sum,
    };
    covered[request.offset..request.offset + 2].copy_from_slice(&sum.to_be_bytes());
    true
}

fn fold(bytes: &[u8]) -> u16 {
    let pairs = bytes.chunks_exact(2);
    let last = pairs
        .remainder()
        .first()
        .map_or(0, |&byte| u64::from(byte) << 8);
    let mut sum = last
        + pairs
            .map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]])))
            .sum::<u64>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn agrees_with_the_example_of_rfc_1071() {
        assert_eq!(
            fold(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]),
            0xddf2
        );
    }

    proptest! {
        #[test]
        fn a_completed_frame_sums_to_zero(
            mut frame in prop::collection::vec(any::<u8>(), 60..200), start in 0usize..40, word in 0usize..8,
        ) {
            // A checksum field lies on an even offset of what it covers, and starts from the pseudo header's sum.
            let request = ChecksumRequest { start, offset: 2 * word };
            let field = start + request.offset;
            frame[field..field + 2].copy_from_slice(&[0, 0]);
            prop_assert!(complete(&mut frame, request));
            prop_assert!(matches!(fold(&frame[start..]), 0 | 0xffff));
        }

        #[test]
        fn requests_outside_the_frame_change_nothing(start in 0usize..300, offset in 0usize..300) {
            let mut frame = [7u8; 64];
            let inside = start + offset + 2 <= frame.len();
            prop_assert_eq!(complete(&mut frame, ChecksumRequest { start, offset }), inside);
            prop_assert!(inside || frame == [7u8; 64]);
        }
    }
}
