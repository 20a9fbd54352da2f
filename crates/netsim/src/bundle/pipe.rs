//! What a stream of MSTCP carries: TCP here counts bytes and carries none.

use std::collections::VecDeque;
use std::ops::Range;

/// What is not of the pattern, headers as a rule, is kept in parts of this many bytes.
const OWN_BYTES: usize = 16;

/// Bytes of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ByteRun {
    /// Where they are in the pattern that applications write.
    Pattern(Range<usize>),
    /// The bytes, and which of them are left.
    Own([u8; OWN_BYTES], Range<u8>),
}

impl ByteRun {
    fn len(&self) -> usize {
        match self {
            Self::Pattern(range) => range.len(),
            Self::Own(_, range) => range.len(),
        }
    }

    /// Take the first `count` bytes, fewer than there are.
    fn split(&mut self, count: usize) -> Self {
        let mut first = self.clone();
        match (self, &mut first) {
            (Self::Pattern(rest), Self::Pattern(taken)) => {
                rest.start += count;
                taken.end = rest.start;
            }
            (Self::Own(_, rest), Self::Own(_, taken)) => {
                rest.start += count as u8;
                taken.end = rest.start;
            }
            _ => unreachable!("a run and its copy are of one kind"),
        }
        first
    }
}

/// What one side has written to a stream and the other has not read. What lies in the pattern, nearly all, is not copied.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    runs: VecDeque<ByteRun>,
}

impl Pipe {
    /// Append bytes, which are a part of the pattern or lie elsewhere.
    pub fn push(&mut self, piece: &[u8], pattern: &[u8]) {
        let start = (piece.as_ptr() as usize).wrapping_sub(pattern.as_ptr() as usize);
        if start < pattern.len() {
            self.runs
                .push_back(ByteRun::Pattern(start..start + piece.len()));
            return;
        }
        for part in piece.chunks(OWN_BYTES) {
            let mut bytes = [0; OWN_BYTES];
            bytes[..part.len()].copy_from_slice(part);
            self.runs
                .push_back(ByteRun::Own(bytes, 0..part.len() as u8));
        }
    }

    /// Take bytes from the front that lie together, `most` at most, and say how many are left of `most`.
    pub fn pop(&mut self, most: usize) -> Option<(ByteRun, usize)> {
        let first = self.runs.front_mut().filter(|_| most > 0)?;
        let length = first.len();
        if length > most {
            return Some((first.split(most), 0));
        }
        Some((self.runs.pop_front()?, most - length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Write pieces of several kinds and lengths, read by other lengths, and compare.
    #[test]
    fn what_is_read_is_what_was_written() {
        let pattern: Vec<u8> = (0..200).collect();
        let own: Vec<u8> = (200..=255).collect();
        let pieces = [
            &pattern[3..50],
            &own[..8],
            &pattern[50..199],
            &own[..],
            &own[..0],
            &own[7..20],
        ];
        let mut pipe = Pipe::default();
        pieces.iter().for_each(|piece| pipe.push(piece, &pattern));
        let (mut read, mut lengths) = (Vec::new(), [1, 30, 7, 0, 64].iter().cycle());
        while read.len() < pieces.concat().len() {
            let mut left = *lengths.next().unwrap();
            while let Some((run, rest)) = pipe.pop(left) {
                left = rest;
                match run {
                    ByteRun::Pattern(range) => read.extend_from_slice(&pattern[range]),
                    ByteRun::Own(bytes, range) => {
                        read.extend_from_slice(&bytes[range.start.into()..range.end.into()]);
                    }
                }
            }
        }
        assert_eq!(read, pieces.concat());
        assert_eq!(pipe.pop(1), None);
    }
}
