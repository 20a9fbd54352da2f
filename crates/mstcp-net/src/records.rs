//! Streams whose bytes are authenticated without TLS: records between the core and a socket.

use mstcp_core::records::{RecordKeys, RecordReader, RecordWriter};
use mstcp_core::RemoteError;

use crate::inbox::Count;
use crate::{memory, sys};

/// The records of one stream, in both directions; see [`mstcp_core::records`].
#[derive(Debug)]
pub struct RecordLayer {
    writer: RecordWriter,
    reader: RecordReader,
    /// Records, of which the socket has taken the first `taken` bytes.
    unsent: Vec<u8>,
    taken: usize,
}

impl RecordLayer {
    /// The layer of the side that opened the stream.
    pub fn of_client(keys: &RecordKeys) -> Self {
        Self::new(keys.client, keys.server)
    }

    /// The layer of the side that answered.
    pub fn of_server(keys: &RecordKeys) -> Self {
        Self::new(keys.server, keys.client)
    }

    fn new(own: [u8; 32], peers: [u8; 32]) -> Self {
        Self {
            writer: RecordWriter::new(own),
            reader: RecordReader::new(peers),
            unsent: Vec::new(),
            taken: 0,
        }
    }

    /// Make records of `bytes`, to be sent by [`RecordLayer::flush`] or taken by [`RecordLayer::take_unsent`].
    pub fn write(&mut self, bytes: &[u8]) {
        self.writer.write(bytes, &mut self.unsent);
    }

    /// Take what [`RecordLayer::write`] made, for who sends it another way.
    pub fn take_unsent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.unsent)
    }

    /// Bytes that the socket has not taken.
    pub fn unsent_bytes(&self) -> usize {
        self.unsent.len() - self.taken
    }

    /// Send what waits; true if nothing waits any more. The error is an errno.
    pub fn flush(&mut self, descriptor: i32) -> Result<bool, i32> {
        while self.unsent_bytes() > 0 {
            let rest = std::io::IoSlice::new(&self.unsent[self.taken..]);
            match sys::send(descriptor, &[rest]) {
                Ok(count) => self.taken += count,
                Err(libc::EAGAIN | libc::EINTR) => return Ok(false),
                Err(errno) => return Err(errno),
            }
        }
        self.unsent.clear();
        self.taken = 0;
        Ok(true)
    }

    /// Take bytes that the peer sent; append what whole records carry to `out`.
    ///
    /// # Errors
    /// Something came that the peer did not send: the stream must not be used any more.
    pub fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), RemoteError> {
        self.reader.read(bytes, out)
    }

    /// Read the socket once; append what whole records carry to `out`. What the peer did not send is EPROTO.
    pub(crate) fn read(&mut self, descriptor: i32, out: &mut Vec<u8>) -> Count {
        let mut chunk = memory::take_chunk();
        let result = match std::sync::Arc::get_mut(&mut chunk) {
            Some(buffer) => sys::receive(descriptor, buffer),
            None => Err(libc::EAGAIN),
        };
        let result = result.and_then(|count| {
            let taken = self.take(&chunk[..count], out);
            taken.map_or(Err(libc::EPROTO), |()| Ok(count))
        });
        memory::give_chunk_back(chunk);
        result
    }
}
