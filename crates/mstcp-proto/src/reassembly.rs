//! Bytes in any order to bytes in order.

use std::collections::BTreeMap;

use crate::slice::Slice;

/// What a waiting piece costs beside its bytes.
pub const PIECE_OVERHEAD_BYTES: usize = 64;
/// Pieces smaller than this are copied when they must wait, so that they do not hold a large chunk, and those that
/// touch each other become one up to this size.
pub const SHARED_PIECE_BYTES: usize = 1 << 14;
/// A copied piece that is the last has room for a few more of its size, up to this: its stream is likely to go on.
const FIRST_ROOM_BYTES: usize = 1 << 12;
/// A piece is joined to the one that follows it only if that one is this small: joining copies it.
const JOINED_PIECE_BYTES: usize = 512;

/// The reorder buffer of a connection: holds the pieces that are ahead of the next byte.
#[derive(Debug, Default)]
pub struct Reassembly {
    next_offset: u64,
    /// By offset of the first byte; no two overlap.
    waiting: BTreeMap<u64, Slice>,
    waiting_bytes: usize,
    max_waiting_bytes: usize,
    duplicate_bytes: u64,
}

impl Reassembly {
    /// Take a piece; append to `out` what is now in order. Bytes that came before are dropped, and small pieces that must
    /// wait are copied.
    pub fn insert(&mut self, offset: u64, piece: Slice, out: &mut Vec<Slice>) {
        let end = offset + piece.len() as u64;
        // Nearly always: the next bytes, and nothing waits before their end.
        let free = match self.waiting.first_key_value() {
            Some((first, _)) => *first >= end,
            None => true,
        };
        if offset == self.next_offset && free {
            self.next_offset = end;
            out.push(piece);
        } else if offset > self.next_offset && offset >= self.last_end() {
            self.note_waiting(piece.len());
            let room = piece.len().max(FIRST_ROOM_BYTES.min(4 * piece.len()));
            let kept = piece.kept_with_room(SHARED_PIECE_BYTES, room);
            self.waiting.insert(offset, kept);
            return;
        } else {
            self.fill(offset, end, &piece);
        }
        self.release(out);
    }

    /// How many bytes are missing before the first piece that waits.
    pub fn gap_bytes(&self) -> usize {
        let first = self.waiting.first_key_value();
        first.map_or(usize::MAX, |(first, _)| (first - self.next_offset) as usize)
    }

    /// Count the next bytes, [`Reassembly::gap_bytes`] at most, as delivered: they are where they belong. Append to `out`
    /// what is now in order.
    pub fn advance(&mut self, bytes: usize, out: &mut Vec<Slice>) {
        debug_assert!(bytes <= self.gap_bytes());
        self.next_offset += bytes as u64;
        self.release(out);
    }

    /// Append to `out` the pieces that are next.
    fn release(&mut self, out: &mut Vec<Slice>) {
        while let Some(entry) = self.waiting.first_entry() {
            if *entry.key() != self.next_offset {
                break;
            }
            let piece = entry.remove();
            self.waiting_bytes -= piece.len();
            self.next_offset += piece.len() as u64;
            out.push(piece);
        }
    }

    /// Join bytes to the last piece that waits, if they follow it and it stays small; false: nothing was done.
    pub fn extend_last(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let Some(mut last) = self.waiting.last_entry() else {
            return false;
        };
        let touches = last.key() + last.get().len() as u64 == offset;
        if !touches || last.get().len() + bytes.len() > SHARED_PIECE_BYTES {
            return false;
        }
        last.get_mut().append(bytes);
        self.note_waiting(bytes.len());
        true
    }

    /// Note that this many bytes more wait.
    fn note_waiting(&mut self, bytes: usize) {
        self.waiting_bytes += bytes;
        self.max_waiting_bytes = self.max_waiting_bytes.max(self.waiting_bytes);
    }

    /// Put what is missing of a piece between those that wait.
    fn fill(&mut self, offset: u64, end: u64, piece: &Slice) {
        let mut at = offset.max(self.next_offset);
        if let Some((start, before)) = self.waiting.range(..=at).next_back() {
            at = at.max(start + before.len() as u64);
        }
        let mut added = 0;
        while at < end {
            let following = self.waiting.range(at..).next();
            let (gap_end, resume) = match following {
                Some((start, after)) if *start < end => (*start, start + after.len() as u64),
                _ => (end, end),
            };
            if gap_end > at {
                let part = piece.part((at - offset) as usize..(gap_end - offset) as usize);
                added += part.len();
                self.hold(at, part);
            }
            at = resume;
        }
        self.duplicate_bytes += (piece.len() - added) as u64;
        self.waiting_bytes += added;
        // A piece that closes the gap does not wait.
        if offset > self.next_offset {
            self.max_waiting_bytes = self.max_waiting_bytes.max(self.waiting_bytes);
        }
    }

    /// Keep a piece that fills a gap, or part of one. Small neighbours become one: frames of a few bytes must not cost
    /// many times their size.
    fn hold(&mut self, start: u64, piece: Slice) {
        let end = start + piece.len() as u64;
        let mut joined = piece;
        if let Some(after) = self.waiting.get(&end) {
            if after.len() <= JOINED_PIECE_BYTES && joined.len() <= JOINED_PIECE_BYTES {
                joined.append(after);
                self.waiting.remove(&end);
            }
        }
        if let Some((before_start, before)) = self.waiting.range_mut(..start).next_back() {
            let touches = before_start + before.len() as u64 == start;
            if touches && before.len() + joined.len() <= SHARED_PIECE_BYTES {
                before.append(&joined);
                return;
            }
        }
        // What comes next leaves at once.
        if start != self.next_offset {
            joined = joined.kept(SHARED_PIECE_BYTES);
        }
        self.waiting.insert(start, joined);
    }

    /// Offset of the byte that comes next: how many have been delivered.
    pub fn next_offset(&self) -> u64 {
        self.next_offset
    }

    /// The end of the last piece that has come.
    pub fn last_end(&self) -> u64 {
        self.waiting
            .last_key_value()
            .map_or(self.next_offset, |(start, piece)| {
                start + piece.len() as u64
            })
    }

    /// How many pieces wait.
    pub fn pieces(&self) -> usize {
        self.waiting.len()
    }

    /// Application bytes that wait.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// The most application bytes that ever waited.
    pub fn max_waiting_bytes(&self) -> usize {
        self.max_waiting_bytes
    }

    /// Bytes that came more than once.
    pub fn duplicate_bytes(&self) -> u64 {
        self.duplicate_bytes
    }
}
