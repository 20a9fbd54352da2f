//! What stands between a stream's frames and its socket: nothing, records, or TLS.

use rustix::io::Errno;
use std::io::{self, IoSlice};
use std::sync::Arc;

use crate::inbox::Count;
use crate::records::RecordLayer;
#[cfg(feature = "tls")]
use crate::tls::TlsLayer;
use crate::{memory, sys};

/// Bytes for a socket, of which it has taken the first.
#[derive(Debug, Default)]
pub(crate) struct Unsent {
    pub(crate) bytes: Vec<u8>,
    taken: usize,
}

impl Unsent {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    /// Send what waits; true if nothing waits any more. The error is an errno.
    pub(crate) fn flush(&mut self, descriptor: i32) -> Result<bool, Errno> {
        while self.len() > 0 {
            match sys::send(descriptor, &[IoSlice::new(&self.bytes[self.taken..])]) {
                Ok(count) => self.taken += count,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
                Err(errno) => return Err(errno),
            }
        }
        self.bytes.clear();
        self.taken = 0;
        Ok(true)
    }
}

/// What changes the bytes of one stream, in both directions.
#[derive(Debug)]
pub enum Layer {
    /// Bytes are authenticated by the secret.
    Records(RecordLayer),
    /// Bytes are encrypted.
    #[cfg(feature = "tls")]
    Tls(Box<TlsLayer>),
}

impl Layer {
    fn unsent(&mut self) -> &mut Unsent {
        match self {
            Self::Records(records) => &mut records.unsent,
            #[cfg(feature = "tls")]
            Self::Tls(tls) => &mut tls.unsent,
        }
    }

    /// Bytes that the socket has not taken.
    pub(crate) fn unsent_bytes(&self) -> usize {
        match self {
            Self::Records(records) => records.unsent.len(),
            #[cfg(feature = "tls")]
            Self::Tls(tls) => tls.unsent.len(),
        }
    }

    /// Send what waits; true if nothing waits any more. The error is an errno.
    pub(crate) fn flush(&mut self, descriptor: i32) -> Result<bool, Errno> {
        self.unsent().flush(descriptor)
    }

    /// Take bytes of the core, to be sent by [`Layer::flush`]. The error is an errno.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        match self {
            Self::Records(records) => records.write(bytes),
            #[cfg(feature = "tls")]
            Self::Tls(tls) => tls.write(bytes)?,
        }
        Ok(())
    }

    /// Say that nothing more is written, where the layer has words for it; to be sent by [`Layer::flush`].
    pub(crate) fn end(&mut self) {
        match self {
            Self::Records(_) => {}
            #[cfg(feature = "tls")]
            Self::Tls(tls) => tls.end(),
        }
    }

    /// Take what came before the layer was in use.
    pub(crate) fn early(&mut self) -> Vec<u8> {
        match self {
            Self::Records(_) => Vec::new(),
            #[cfg(feature = "tls")]
            Self::Tls(tls) => std::mem::take(&mut tls.early),
        }
    }

    /// Read the socket once; append what it brought for the core to `out`. 0: the peer ended the stream as it should.
    /// What the peer did not send, or did not end, is EPROTO.
    pub(crate) fn read(&mut self, descriptor: i32, out: &mut Vec<u8>) -> Count {
        let told = self.read_told(descriptor, out);
        told.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::PROTO))
    }

    /// As [`Layer::read`], with the layer's own words for what is wrong.
    pub(crate) fn read_told(&mut self, descriptor: i32, out: &mut Vec<u8>) -> io::Result<usize> {
        let mut chunk = memory::take_chunk();
        let result = match Arc::get_mut(&mut chunk) {
            Some(buffer) => sys::receive(descriptor, buffer),
            None => Err(Errno::AGAIN),
        };
        let result = match result {
            Ok(count) => self.take(&chunk[..count], out),
            Err(errno) => Err(errno.into()),
        };
        memory::give_chunk_back(chunk);
        result
    }

    /// Take bytes of the socket, none of them if TCP has ended; as [`Layer::read`].
    pub(crate) fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::Records(records) => {
                records.take(bytes, out).map_err(io::Error::other)?;
                Ok(bytes.len())
            }
            #[cfg(feature = "tls")]
            Self::Tls(tls) => match tls.take(bytes, out)? {
                true => Ok(0),
                false if bytes.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
                false => Ok(bytes.len()),
            },
        }
    }
}
