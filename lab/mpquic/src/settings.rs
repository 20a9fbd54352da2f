//! What the program is told, as the library takes it.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use noq::congestion::{Bbr3Config, ControllerFactory, CubicConfig, NewRenoConfig};
use noq::crypto::rustls::QuicClientConfig;
use noq::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use noq::rustls::crypto::{ring, verify_tls12_signature, verify_tls13_signature, CryptoProvider};
use noq::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use noq::rustls::{self, DigitallySignedStruct, SignatureScheme};
use noq::{ClientConfig, ServerConfig, TransportConfig, VarInt};

use crate::Failure;

const MAX_PATHS: u32 = 16;
const DEFAULT_WINDOW_BYTES: u32 = 1 << 20;
/// A path without an answer for this long has failed.
const PATH_IDLE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Server,
    Client,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Settings {
    pub role: Role,
    /// Where the server listens.
    pub address: SocketAddr,
    /// The client's ports, one for each path.
    pub from: Vec<u16>,
    congestion: Congestion,
    window_bytes: u32,
}

#[derive(Debug, Clone, Copy)]
enum Congestion {
    Reno,
    Cubic,
    Bbr,
}

impl Settings {
    /// What the arguments say.
    pub fn from_arguments(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let role = match arguments.next().as_deref() {
            Some("server") => Role::Server,
            Some("client") => Role::Client,
            _ => return Err("say `server ADDRESS:PORT` or `client ADDRESS:PORT`".into()),
        };
        let address = arguments.next().ok_or("the address is missing: ADDRESS:PORT")?;
        let mut settings = Self {
            role,
            address: parsed("the address", &address)?,
            from: vec![0],
            congestion: Congestion::Reno,
            window_bytes: DEFAULT_WINDOW_BYTES,
        };
        while let Some(option) = arguments.next() {
            let value = arguments.next().ok_or(format!("{option} needs a value"))?;
            match option.as_str() {
                "--from" => {
                    let ports = value.split(',').map(|port| parsed("--from", port));
                    settings.from = ports.collect::<Result<_, _>>()?;
                }
                "--window" => settings.window_bytes = parsed("--window", &value)?,
                "--congestion" => {
                    settings.congestion = match value.as_str() {
                        "reno" => Congestion::Reno,
                        "cubic" => Congestion::Cubic,
                        "bbr" => Congestion::Bbr,
                        _ => return Err(format!("--congestion {value}: it has reno, cubic and bbr")),
                    }
                }
                _ => return Err(format!("there is no option {option}")),
            }
        }
        if settings.from.len() > MAX_PATHS as usize {
            return Err(format!("--from: {MAX_PATHS} paths at the most"));
        }
        Ok(settings)
    }

    /// The settings of a client, which takes any certificate: its server is the one that was started beside it.
    pub fn client(&self) -> Result<ClientConfig, Failure> {
        let provider = Arc::new(ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth();
        let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
        config.transport_config(Arc::new(self.transport()?));
        Ok(config)
    }

    /// The settings of a server, with a certificate of its own.
    pub fn server(&self) -> Result<ServerConfig, Failure> {
        let made = rcgen::generate_simple_self_signed(["mpquic".to_owned()])?;
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let mut config = ServerConfig::with_single_cert(vec![made.cert.der().clone()], key)?;
        config.transport_config(Arc::new(self.transport()?));
        Ok(config)
    }

    fn transport(&self) -> Result<TransportConfig, Failure> {
        let mut transport = TransportConfig::default();
        let window = VarInt::from_u32(self.window_bytes);
        transport
            .max_concurrent_multipath_paths(MAX_PATHS)
            .default_path_max_idle_timeout(Some(PATH_IDLE))
            .stream_receive_window(window)
            .receive_window(window)
            .send_window(u64::from(self.window_bytes))
            .congestion_controller_factory(self.controller());
        Ok(transport)
    }

    fn controller(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        match self.congestion {
            Congestion::Reno => Arc::new(NewRenoConfig::default()),
            Congestion::Cubic => Arc::new(CubicConfig::default()),
            Congestion::Bbr => Arc::new(Bbr3Config::default()),
        }
    }
}

fn parsed<T: FromStr>(what: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{what}: {text:?} is none"))
}

/// Takes any certificate, and checks that the peer has its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
