//! Streams inside TLS: rustls between the core and a socket.

use rustix::io::Errno;
use std::io::{self, Read, Write};

use rustls::Connection;

use crate::layers::Unsent;

/// Record header, content type and tag of TLS 1.3.
pub(crate) const OVERHEAD_BYTES: usize = 5 + 1 + 16;

/// The TLS of one stream after its handshake. Each stream of a connection has its own.
#[derive(Debug)]
pub struct TlsLayer {
    tls: Connection,
    pub(crate) unsent: Unsent,
    /// What the peer sent behind what the handshake's reader took.
    pub(crate) early: Vec<u8>,
}

impl TlsLayer {
    /// Go on after a handshake.
    ///
    /// # Errors
    /// What came behind the handshake is not what the peer sent.
    pub fn new(tls: impl Into<Connection>) -> io::Result<Self> {
        let mut layer = Self {
            tls: tls.into(),
            unsent: Unsent::default(),
            early: Vec::new(),
        };
        // The core bounds what waits, by `unsent`.
        layer.tls.set_buffer_limit(None);
        let mut early = Vec::new();
        layer.drain(&mut early)?;
        layer.early = early;
        Ok(layer)
    }

    /// Whether the handshake is done.
    pub(crate) fn is_open(&self) -> bool {
        !self.tls.is_handshaking()
    }

    /// Encrypt bytes of the core. The error is an errno.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        let written = self.tls.writer().write_all(bytes);
        written.map_err(|_| Errno::PROTO)?;
        self.collect();
        Ok(())
    }

    /// Say that nothing more comes (close_notify).
    pub(crate) fn end(&mut self) {
        self.tls.send_close_notify();
        self.collect();
    }

    /// Decrypt what a socket brought, none of it if TCP has ended; true if the peer has ended TLS.
    pub(crate) fn take(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> io::Result<bool> {
        let mut has_ended = self.drain(out)?;
        while !bytes.is_empty() && !has_ended {
            self.tls.read_tls(&mut bytes)?;
            has_ended = self.drain(out)?;
        }
        Ok(has_ended)
    }

    /// Take what is decrypted; true if the peer has ended TLS.
    fn drain(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let state = self.tls.process_new_packets().map_err(io::Error::other);
        // An alert, or the answer to a change of keys.
        self.collect();
        let state = state?;
        let mut rest = state.plaintext_bytes_to_read() as u64;
        while rest > 0 {
            rest -= (&mut self.tls.reader()).take(rest).read_to_end(out)? as u64;
        }
        Ok(state.peer_has_closed())
    }

    fn collect(&mut self) {
        while self.tls.wants_write() {
            // Memory takes everything.
            let _ = self.tls.write_tls(&mut self.unsent.bytes);
        }
    }
}
