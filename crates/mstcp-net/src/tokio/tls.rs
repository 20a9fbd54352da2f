//! TLS around each stream of a connection: handshakes, by rustls.

use std::io;
use std::sync::Arc;

use ::tokio::net::TcpStream;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::wire::Wire;

/// TLS of the streams that [`super::connect`] opens.
#[derive(Debug, Clone)]
pub struct ClientTls {
    /// Which certificates are trusted, and the client's own if it has one.
    pub config: Arc<ClientConfig>,
    /// For whom the server's certificate must be.
    pub server_name: ServerName<'static>,
}

impl ClientTls {
    pub(super) async fn connect(&self, socket: TcpStream) -> io::Result<Wire> {
        let connector = TlsConnector::from(Arc::clone(&self.config));
        let tls = connector.connect(self.server_name.clone(), socket).await?;
        Ok(Wire::Tls(Box::new(tls.into())))
    }
}

/// Shake hands with who connected.
pub(super) async fn accept(config: &Arc<ServerConfig>, socket: TcpStream) -> io::Result<Wire> {
    let tls = TlsAcceptor::from(Arc::clone(config)).accept(socket).await?;
    Ok(Wire::Tls(Box::new(tls.into())))
}
