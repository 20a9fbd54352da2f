//! Streams whose bytes are authenticated without TLS: records between the core and a socket.

use mstcp_proto::RemoteError;
use mstcp_proto::{RecordKeys, RecordReader, RecordWriter};

use crate::layers::Unsent;

/// The records of one stream, in both directions; see [`mstcp_proto::RecordWriter`].
#[derive(Debug)]
pub struct RecordLayer {
    writer: RecordWriter,
    reader: RecordReader,
    pub(crate) unsent: Unsent,
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
            unsent: Unsent::default(),
        }
    }

    /// Make records of `bytes`.
    pub fn write(&mut self, bytes: &[u8]) {
        self.writer.write(bytes, &mut self.unsent.bytes);
    }

    /// Take bytes that the peer sent; append what whole records carry to `out`.
    ///
    /// # Errors
    /// Something came that the peer did not send: the stream must not be used any more.
    pub fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), RemoteError> {
        self.reader.read(bytes, out)
    }
}
