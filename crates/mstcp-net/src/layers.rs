//! What stands between a stream's frames and its socket: nothing, records, or TLS.

use rustix::io::Errno;
use std::any::Any;
use std::io::{self, IoSlice};
use std::sync::Arc;

use mstcp_proto::RECORD_OVERHEAD_BYTES;

use crate::inbox::ReadResult;
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

/// Changes the bytes of one stream by means of the shell's own, such as its TLS.
pub trait Cipher: Any + Send + std::fmt::Debug {
    /// Whether its handshake is done. What is written before waits for that.
    fn is_open(&self) -> bool;

    /// Append what a client says first to `out`.
    ///
    /// # Errors
    /// The stream cannot be used.
    fn begin(&mut self, out: &mut Vec<u8>) -> io::Result<()>;

    /// What it adds to each frame, known once it is open.
    fn overhead_bytes(&self) -> usize;

    /// Append what stands for `bytes` on the wire to `out`.
    ///
    /// # Errors
    /// The stream cannot be used any more.
    fn encrypt(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()>;

    /// Append to `out` what says that nothing more comes.
    fn end(&mut self, out: &mut Vec<u8>);

    /// Take bytes of the socket, none of them if TCP has ended, and append what they carry to `plain`, and what is to be sent in
    /// answer to `out`. True: the peer has ended the stream as it should.
    ///
    /// # Errors
    /// They are not what the peer sent.
    fn decrypt(&mut self, bytes: &[u8], plain: &mut Vec<u8>, out: &mut Vec<u8>)
        -> io::Result<bool>;
}

/// A cipher of the shell's, and what waits for the socket.
#[derive(Debug)]
pub struct CipherLayer {
    cipher: Box<dyn Cipher>,
    unsent: Unsent,
}

impl CipherLayer {
    /// Nothing waits.
    pub fn new(cipher: Box<dyn Cipher>) -> Self {
        let unsent = Unsent::default();
        Self { cipher, unsent }
    }

    /// The layer of the side that opens the stream, which speaks first.
    pub(crate) fn of_client(cipher: Box<dyn Cipher>) -> io::Result<Self> {
        let mut layer = Self::new(cipher);
        layer.cipher.begin(&mut layer.unsent.bytes)?;
        Ok(layer)
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
    /// Bytes are changed by the shell.
    Cipher(CipherLayer),
}

impl Layer {
    fn unsent(&mut self) -> &mut Unsent {
        match self {
            Self::Records(records) => &mut records.unsent,
            #[cfg(feature = "tls")]
            Self::Tls(tls) => &mut tls.unsent,
            Self::Cipher(layer) => &mut layer.unsent,
        }
    }

    /// Whether its handshake is done.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Records(_) => true,
            #[cfg(feature = "tls")]
            Self::Tls(tls) => tls.is_open(),
            Self::Cipher(layer) => layer.cipher.is_open(),
        }
    }

    /// What it adds to each frame.
    pub(crate) fn overhead_bytes(&self) -> usize {
        match self {
            Self::Records(_) => RECORD_OVERHEAD_BYTES,
            #[cfg(feature = "tls")]
            Self::Tls(_) => crate::tls::OVERHEAD_BYTES,
            Self::Cipher(layer) => layer.cipher.overhead_bytes(),
        }
    }

    /// The shell's cipher, if it is one.
    pub fn cipher(&self) -> Option<&dyn Any> {
        match self {
            Self::Cipher(layer) => Some(layer.cipher.as_ref()),
            _ => None,
        }
    }

    /// Bytes that the socket has not taken.
    pub(crate) fn unsent_bytes(&self) -> usize {
        match self {
            Self::Records(records) => records.unsent.len(),
            #[cfg(feature = "tls")]
            Self::Tls(tls) => tls.unsent.len(),
            Self::Cipher(layer) => layer.unsent.len(),
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
            Self::Cipher(layer) => (layer.cipher)
                .encrypt(bytes, &mut layer.unsent.bytes)
                .map_err(|_| Errno::PROTO)?,
        }
        Ok(())
    }

    /// Say that nothing more is written, where the layer has words for it; to be sent by [`Layer::flush`].
    pub(crate) fn end(&mut self) {
        match self {
            Self::Records(_) => {}
            #[cfg(feature = "tls")]
            Self::Tls(tls) => tls.end(),
            Self::Cipher(layer) => layer.cipher.end(&mut layer.unsent.bytes),
        }
    }

    /// Take what came before the layer was in use.
    pub(crate) fn early(&mut self) -> Vec<u8> {
        match self {
            Self::Records(_) => Vec::new(),
            #[cfg(feature = "tls")]
            Self::Tls(tls) => std::mem::take(&mut tls.early),
            Self::Cipher(_) => Vec::new(),
        }
    }

    /// Read the socket once; append what it brought for the core to `out`. 0: the peer ended the stream as it should.
    /// What the peer did not send, or did not end, is EPROTO.
    pub(crate) fn read(&mut self, descriptor: i32, out: &mut Vec<u8>) -> ReadResult {
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
            Self::Tls(tls) => ended(tls.take(bytes, out)?, bytes),
            Self::Cipher(CipherLayer { cipher, unsent }) => {
                ended(cipher.decrypt(bytes, out, &mut unsent.bytes)?, bytes)
            }
        }
    }
}

/// How much came of `bytes`: nothing more after the end, and TCP must not end before it.
fn ended(has_ended: bool, bytes: &[u8]) -> io::Result<usize> {
    match has_ended {
        true => Ok(0),
        false if bytes.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
        false => Ok(bytes.len()),
    }
}
