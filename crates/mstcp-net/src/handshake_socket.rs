//! A stream's socket while its hellos are exchanged: plain, or inside TLS.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use mstcp_proto::hello::{self, PREFIX_BYTES};
use mstcp_proto::RecordKeys;
use rustix::io::Errno;

use crate::error::Error;
use crate::layers::{Layer, Unsent};
use crate::records::RecordLayer;
use crate::socket::StreamSocket;
use crate::sys;

/// What one read of a hello takes at most; the bytes behind it are the first frames.
const READ_BYTES: usize = 1 << 14;

/// The socket, what is between it and the stream's bytes, and what waits on both ways.
#[derive(Debug)]
pub(crate) struct HandshakeSocket {
    pub(crate) socket: Arc<OwnedFd>,
    layer: Option<Layer>,
    unsent: Unsent,
    /// Came and was not used yet.
    pub(crate) received: Vec<u8>,
    /// The peer has ended the stream, and `received` is all.
    has_ended: bool,
}

/// A stream as its hellos leave it.
#[derive(Debug)]
pub(crate) struct StreamParts {
    pub(crate) socket: StreamSocket,
    pub(crate) layer: Option<Layer>,
    /// The first bytes behind the hellos.
    pub(crate) behind: Vec<u8>,
    /// The peer has ended it; its socket may not tell that again.
    pub(crate) has_ended: bool,
}

impl HandshakeSocket {
    pub(crate) fn new(socket: OwnedFd, layer: Option<Layer>) -> Self {
        Self {
            layer,
            ..Self::again(Arc::new(socket))
        }
    }

    /// Start over with a socket, without layer or bytes.
    pub(crate) fn again(socket: Arc<OwnedFd>) -> Self {
        Self {
            socket,
            layer: None,
            unsent: Unsent::default(),
            received: Vec::new(),
            has_ended: false,
        }
    }

    fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Have bytes be sent by [`HandshakeSocket::flush`].
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

    /// Have something between the socket and the stream's bytes from now on.
    pub(crate) fn set_layer(&mut self, layer: Layer) {
        self.layer = Some(layer);
    }

    /// What that adds to each frame.
    pub(crate) fn overhead_bytes(&self) -> usize {
        self.layer.as_ref().map_or(0, Layer::overhead_bytes)
    }

    /// Whether something is between the socket and the stream's bytes.
    pub(crate) fn has_layer(&self) -> bool {
        self.layer.is_some()
    }

    /// Whether bytes of the stream can be read, or TLS's handshake is still to be done.
    pub(crate) fn is_open(&self) -> bool {
        self.layer.as_ref().map_or(true, Layer::is_open)
    }

    /// Whether the peer has ended the stream.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Read once; false: nothing is there now. The end comes after all that was before it.
    ///
    /// # Errors
    /// The stream broke, ended, or is not what the layer expects.
    pub(crate) fn read(&mut self) -> io::Result<bool> {
        if self.has_ended {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let descriptor = self.descriptor();
        let before = self.received.len();
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
            Ok(count) => {
                self.has_ended = count == 0;
                Ok(true)
            }
            Err(error) if is_not_now(&error) => Ok(false),
            Err(_) if self.received.len() > before => {
                // What was sound before it counts.
                self.has_ended = true;
                Ok(true)
            }
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

    /// Say that nothing more comes, once all is sent.
    pub(crate) fn end(&mut self) {
        if let Some(layer) = &mut self.layer {
            layer.end();
        }
        // What cannot be said is not.
        let _ = self.flush();
        sys::shut(self.descriptor());
    }

    pub(crate) fn into_parts(self) -> StreamParts {
        StreamParts {
            socket: self.socket.into(),
            layer: self.layer,
            behind: self.received,
            has_ended: self.has_ended,
        }
    }
}

pub(crate) fn is_not_now(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
