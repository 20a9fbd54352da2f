//! Memory for waiting frames: chunks that frames of one direction share, recycled when all their frames have left.
//!
//! A frame costs its own length and no allocation of its own. Each direction fills a chunk of its own (its
//! [`Tail`]), so that a slow direction does not hold on to the memory of a fast one.

/// Bytes in a chunk, and so the longest frame.
pub const CHUNK_BYTES: usize = 64 * 1024;
/// Empty chunks kept for the next burst; more are given back to the system.
const SPARE_CHUNKS: usize = 64;

/// A frame stored in an [`Arena`]; hand it back to [`Arena::free`] once.
#[derive(Debug)]
pub struct Frame {
    chunk: u32,
    offset: u32,
    length: u32,
}

impl Frame {
    /// The frame's length in bytes.
    pub fn size_bytes(&self) -> u32 {
        self.length
    }
}

/// The chunk that a direction is filling.
#[derive(Debug, Default)]
pub struct Tail(Option<u32>);

#[derive(Debug)]
struct Chunk {
    bytes: Box<[u8]>,
    used: usize,
    live_frames: u32,
    is_tail: bool,
}

/// Storage for the frames of all directions.
#[derive(Debug, Default)]
pub struct Arena {
    chunks: Vec<Chunk>,
    /// Empty chunks that still have their memory.
    spare: Vec<u32>,
    /// Places in `chunks` whose memory was given back.
    vacant: Vec<u32>,
}

impl Arena {
    /// Reserves `length` bytes behind the frames of `tail`; the bytes are to be overwritten.
    ///
    /// # Panics
    /// If `length` is above [`CHUNK_BYTES`].
    pub fn allocate(&mut self, tail: &mut Tail, length: usize) -> (Frame, &mut [u8]) {
        assert!(
            length <= CHUNK_BYTES,
            "a frame of {length} bytes is longer than a chunk"
        );
        let id = match tail.0 {
            Some(id) if self.chunks[id as usize].used + length <= CHUNK_BYTES => id,
            _ => {
                self.close(tail);
                let id = self.open_chunk();
                tail.0 = Some(id);
                id
            }
        };
        let chunk = &mut self.chunks[id as usize];
        let offset = chunk.used;
        chunk.used += length;
        chunk.live_frames += 1;
        let frame = Frame {
            chunk: id,
            offset: offset as u32,
            length: length as u32,
        };
        (frame, &mut chunk.bytes[offset..offset + length])
    }

    /// The bytes of a stored frame.
    pub fn bytes(&self, frame: &Frame) -> &[u8] {
        let start = frame.offset as usize;
        &self.chunks[frame.chunk as usize].bytes[start..start + frame.length as usize]
    }

    /// Gives a frame's memory back.
    pub fn free(&mut self, frame: Frame) {
        let chunk = &mut self.chunks[frame.chunk as usize];
        chunk.live_frames -= 1;
        if chunk.live_frames == 0 {
            if chunk.is_tail {
                chunk.used = 0;
            } else {
                self.retire(frame.chunk);
            }
        }
    }

    /// Ends the use of a tail, when its chunk is full or its direction goes.
    pub fn close(&mut self, tail: &mut Tail) {
        if let Some(id) = tail.0.take() {
            let chunk = &mut self.chunks[id as usize];
            chunk.is_tail = false;
            if chunk.live_frames == 0 {
                self.retire(id);
            }
        }
    }

    /// Bytes of memory that the arena holds now.
    pub fn held_bytes(&self) -> usize {
        (self.chunks.len() - self.vacant.len()) * CHUNK_BYTES
    }

    fn open_chunk(&mut self) -> u32 {
        let id = match self.spare.pop().or_else(|| self.vacant.pop()) {
            Some(id) => id,
            None => {
                let bytes = Box::default();
                self.chunks.push(Chunk {
                    bytes,
                    used: 0,
                    live_frames: 0,
                    is_tail: true,
                });
                (self.chunks.len() - 1) as u32
            }
        };
        let chunk = &mut self.chunks[id as usize];
        if chunk.bytes.is_empty() {
            chunk.bytes = vec![0; CHUNK_BYTES].into_boxed_slice();
        }
        chunk.used = 0;
        chunk.is_tail = true;
        id
    }

    fn retire(&mut self, id: u32) {
        if self.spare.len() < SPARE_CHUNKS {
            self.spare.push(id);
        } else {
            self.chunks[id as usize].bytes = Box::default();
            self.vacant.push(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// The obviously right model: a queue of vectors.
        #[test]
        fn keeps_what_was_stored(steps in prop::collection::vec((any::<bool>(), 0usize..2, 1usize..20_000), 1..400)) {
            let mut arena = Arena::default();
            let mut tails = [Tail::default(), Tail::default()];
            let mut model: [VecDeque<(Frame, Vec<u8>)>; 2] = Default::default();
            for (number, (store, direction, length)) in steps.into_iter().enumerate() {
                if store {
                    let (frame, room) = arena.allocate(&mut tails[direction], length);
                    let content: Vec<u8> = (0..length).map(|i| (i + number) as u8).collect();
                    room.copy_from_slice(&content);
                    model[direction].push_back((frame, content));
                } else if let Some((frame, content)) = model[direction].pop_front() {
                    prop_assert_eq!(arena.bytes(&frame), &content[..]);
                    arena.free(frame);
                }
            }
            for (frame, content) in model.into_iter().flatten() {
                prop_assert_eq!(arena.bytes(&frame), &content[..]);
                arena.free(frame);
            }
            tails.iter_mut().for_each(|tail| arena.close(tail));
            prop_assert!(arena.held_bytes() <= SPARE_CHUNKS * CHUNK_BYTES);
        }
    }

    #[test]
    fn shrinks_after_a_burst() {
        let (mut arena, mut tail) = (Arena::default(), Tail::default());
        let frames: Vec<Frame> = (0..100_000)
            .map(|_| arena.allocate(&mut tail, 1500).0)
            .collect();
        assert!(arena.held_bytes() > 100_000 * 1500);
        frames.into_iter().for_each(|frame| arena.free(frame));
        assert!(arena.held_bytes() <= (SPARE_CHUNKS + 1) * CHUNK_BYTES);
    }
}
