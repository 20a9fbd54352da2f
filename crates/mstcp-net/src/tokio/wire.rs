//! A stream's socket while its hellos are said: plain, or inside TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use ::tokio::net::TcpStream;
#[cfg(feature = "tls")]
use tokio_rustls::TlsStream;

use crate::{Layer, RecordLayer};

/// What hellos are read from and written to.
pub(super) enum Wire {
    Plain(TcpStream),
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream<TcpStream>>),
}

impl Wire {
    pub(super) fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            #[cfg(feature = "tls")]
            Self::Tls(tls) => tls.get_ref().0,
        }
    }

    /// The socket, and what is between it and frames from now on.
    pub(super) fn into_parts(
        self,
        records: Option<RecordLayer>,
    ) -> io::Result<(TcpStream, Option<Layer>)> {
        match self {
            Self::Plain(socket) => Ok((socket, records.map(Layer::Records))),
            #[cfg(feature = "tls")]
            Self::Tls(tls) => {
                // Options refuse both.
                debug_assert!(records.is_none());
                let (socket, layer) = match *tls {
                    TlsStream::Client(tls) => {
                        let (socket, tls) = tls.into_inner();
                        (socket, crate::TlsLayer::new(tls)?)
                    }
                    TlsStream::Server(tls) => {
                        let (socket, tls) = tls.into_inner();
                        (socket, crate::TlsLayer::new(tls)?)
                    }
                };
                Ok((socket, Some(Layer::Tls(Box::new(layer)))))
            }
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_read(context, buffer),
            #[cfg(feature = "tls")]
            Self::Tls(tls) => Pin::new(tls).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write(context, data),
            #[cfg(feature = "tls")]
            Self::Tls(tls) => Pin::new(tls).poll_write(context, data),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_flush(context),
            #[cfg(feature = "tls")]
            Self::Tls(tls) => Pin::new(tls).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(context),
            #[cfg(feature = "tls")]
            Self::Tls(tls) => Pin::new(tls).poll_shutdown(context),
        }
    }
}
