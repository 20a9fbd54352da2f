//! A stream's socket while its hellos are exchanged: plain, or inside TLS.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use mstcp_proto::hello::{self, PREFIX_BYTES};
use mstcp_proto::records::RecordKeys;
use rustix::io::Errno;

use crate::error::Error;
use crate::layers::{Layer, Unsent};
use crate::records::RecordLayer;
use crate::sys;

/// What one read of a hello takes at most; the bytes behind it are the first frames.
const READ_BYTES: usize = 1 << 14;

/// The socket, what is between it and the stream's bytes, and what waits on both ways.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) socket: Arc<OwnedFd>,
    layer: Option<Layer>,
    unsent: Unsent,
    /// Came and was not used yet.
    pub(crate) received: Vec<u8>,
}

impl Wire {
    pub(crate) fn new(socket: OwnedFd, layer: Option<Layer>) -> Self {
        Self {
            layer,
            ..Self::again(Arc::new(socket))
        }
    }

    /// Of a socket about which nothing is known any more.
    pub(crate) fn again(socket: Arc<OwnedFd>) -> Self {
        Self {
            socket,
            layer: None,
            unsent: Unsent::default(),
            received: Vec::new(),
        }
    }

    fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Have bytes be sent by [`Wire::flush`].
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.layer {
            Some(layer) => Ok(layer.write(bytes)?),
            None => {
                self.unsent.bytes.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Send what waits; true if nothing waits any more.
    pub(crate) fn flush(&mut self) -> Result<bool, Errno> {
        let descriptor = self.descriptor();
        match &mut self.layer {
            Some(layer) => layer.flush(descriptor),
            None => self.unsent.flush(descriptor),
        }
    }

    /// Whether something waits for room in the socket.
    pub(crate) fn has_unsent(&self) -> bool {
        let layer = self.layer.as_ref().map_or(0, Layer::unsent_bytes);
        layer + self.unsent.len() > 0
    }

    /// Read once; false: nothing is there now.
    ///
    /// # Errors
    /// The stream broke, ended, or is not what the layer expects.
    pub(crate) fn read(&mut self) -> io::Result<bool> {
        let descriptor = self.descriptor();
        let result = match &mut self.layer {
            Some(layer) => layer.read_told(descriptor, &mut self.received),
            None => {
                let mut memory = [0; READ_BYTES];
                let count = sys::receive(descriptor, &mut memory);
                count.map_err(io::Error::from).map(|count| {
                    self.received.extend_from_slice(&memory[..count]);
                    count
                })
            }
        };
        match result {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(true),
            Err(error) if is_not_now(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A whole hello with its proof, once it has come; what is behind it stays.
    pub(crate) fn take_hello(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let Some(Ok(prefix)) = self.received.get(..PREFIX_BYTES).map(TryInto::try_into) else {
            return Ok(None);
        };
        let length = PREFIX_BYTES + hello::rest_bytes(prefix)?;
        Ok(self.take(length))
    }

    /// This many bytes, once they have come.
    pub(crate) fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        if self.received.len() < length {
            return None;
        }
        let rest = self.received.split_off(length);
        Some(std::mem::replace(&mut self.received, rest))
    }

    /// Have the stream's bytes be in records from now on, both ways, those that came behind the hello included.
    pub(crate) fn begin_records(
        &mut self,
        keys: &RecordKeys,
        is_client: bool,
    ) -> Result<(), Error> {
        let mut records = match is_client {
            true => RecordLayer::of_client(keys),
            false => RecordLayer::of_server(keys),
        };
        // What was said before goes first, as it is.
        records.unsent = std::mem::take(&mut self.unsent);
        let came = std::mem::take(&mut self.received);
        records.take(&came, &mut self.received)?;
        self.layer = Some(Layer::Records(records));
        Ok(())
    }

    /// The socket, what is between it and frames, and the first bytes of frames.
    pub(crate) fn into_parts(self) -> (Arc<OwnedFd>, Option<Layer>, Vec<u8>) {
        (self.socket, self.layer, self.received)
    }
}

pub(crate) fn is_not_now(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
