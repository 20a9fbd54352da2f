//! How connections are to be.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mstcp_proto::{scheduler, Budget, Config, Connection, MAX_ADDRESSES};

use crate::error::Error;
use crate::interfaces::Interfaces;
use crate::layers::Cipher;
use crate::sys;

/// What a stream weighs whose rate nobody gave, until it is measured; in bit/s.
pub(crate) const UNKNOWN_BPS: f64 = 1e10;

/// From where a stream goes, and how it is used.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct StreamSpec {
    /// The source address; port 0: any port. None: the system chooses both.
    pub source: Option<SocketAddr>,
    /// Where it goes; none: to the connection's destination.
    pub remote: Option<SocketAddr>,
    /// The index of the interface by which it leaves; none: as the system routes it.
    pub interface: Option<u32>,
    /// The goodput at which it is paced, in bit/s; None: as much as TCP's congestion control allows.
    pub rate_bps: Option<f64>,
    /// 0 to 255: the streams of the lowest value that work carry everything, others are their backup.
    pub priority: u8,
}

impl StreamSpec {
    /// A stream from this address; port 0: any port.
    pub fn from_source(source: SocketAddr) -> Self {
        Self {
            source: Some(source),
            ..Self::default()
        }
    }

    /// The same to an address of its own.
    #[must_use]
    pub fn remote(self, remote: SocketAddr) -> Self {
        Self {
            remote: Some(remote),
            ..self
        }
    }

    /// The same, paced at a goodput in bit/s.
    #[must_use]
    pub fn rate_bps(self, rate_bps: f64) -> Self {
        Self {
            rate_bps: Some(rate_bps),
            ..self
        }
    }

    /// The same with a priority: see [`StreamSpec::priority`].
    #[must_use]
    pub fn priority(self, priority: u8) -> Self {
        Self { priority, ..self }
    }

    pub(crate) fn weight(&self) -> f64 {
        self.rate_bps.unwrap_or(UNKNOWN_BPS)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.rate_bps {
            Some(rate) if !(rate.is_finite() && rate >= 0.0) => Err(Error::Config(format!(
                "a stream's rate is a number of bit/s that is not negative, not {rate}"
            ))),
            _ => Ok(()),
        }
    }
}

impl From<SocketAddr> for StreamSpec {
    fn from(source: SocketAddr) -> Self {
        Self::from_source(source)
    }
}

/// Signs of life that an idle connection asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// After how long a silence.
    pub idle: Duration,
    /// After this many questions that nothing answers all streams count as lost.
    pub probes: u32,
}

/// What both sides of a connection can choose.
#[derive(Debug, Clone)]
pub struct TransportConfig {
    /// What the receive window may grow to: it bounds the bytes that are ahead or not taken by the application; 256 KiB at least.
    /// 256 MiB.
    pub reorder_buffer_bytes: usize,
    /// Bytes that a writer may be ahead of the sockets: it is woken once for each half of them. 1 MiB.
    pub send_buffer_bytes: usize,
    /// The name of the rule that picks the stream of each frame: see [`mstcp_proto::scheduler`]. "weighted".
    pub scheduler: String,
    /// Signs of life; none by default.
    pub keepalive: Option<Keepalive>,
    /// How long a connection waits without a stream for one to come back. 5 s.
    pub reconnect_timeout: Duration,
    /// How long a closed connection waits while the peer takes nothing. 30 s.
    pub close_timeout: Duration,
    /// How long connecting a stream may take at first. 10 s.
    pub connect_timeout: Duration,
    /// How long TLS and the hello of a stream may each take at first. 10 s.
    pub handshake_timeout: Duration,
    /// Seed of the scheduler's draws; none: a random one.
    pub seed: Option<u64>,
    /// What several connections may promise to receive together; none: each its receive window.
    pub receive_budget: Option<Arc<Budget>>,
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            reorder_buffer_bytes: 256 << 20,
            send_buffer_bytes: 1 << 20,
            scheduler: "weighted".to_owned(),
            keepalive: None,
            reconnect_timeout: Duration::from_secs(5),
            close_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(10),
            seed: None,
            receive_budget: None,
        }
    }
}

impl TransportConfig {
    /// A core with one stream.
    pub(crate) fn core(&self, frame_payload_bytes: usize) -> Result<Connection, Error> {
        let config = Config {
            stream_count: 1,
            frame_payload_bytes,
            send_queue_bytes: 2 * self.send_buffer_bytes,
            reorder_buffer_bytes: self.reorder_buffer_bytes,
        };
        let seed = (self.seed).unwrap_or_else(|| u64::from_ne_bytes(sys::random()));
        let mut core = Connection::new(config, scheduler::by_name(&self.scheduler, seed)?)?;
        core.set_weights(&[UNKNOWN_BPS])?;
        core.set_reconnect_ns(self.reconnect_timeout.as_nanos() as u64);
        core.set_close_ns(self.close_timeout.as_nanos() as u64);
        if let Some(Keepalive { idle, probes }) = self.keepalive {
            core.set_keepalive(Some(idle.as_nanos() as u64), probes);
        }
        if let Some(budget) = &self.receive_budget {
            core.share_budget(Arc::clone(budget));
        }
        Ok(core)
    }
}

/// TLS of the streams that a client opens.
#[cfg(feature = "tls")]
#[derive(Debug, Clone)]
pub struct ClientTls {
    /// Which certificates are trusted, and the client's own if it has one.
    pub config: Arc<rustls::ClientConfig>,
    /// For whom the server's certificate must be.
    pub server_name: rustls::pki_types::ServerName<'static>,
}

/// Options of a stream's socket that are set before it connects.
#[derive(Debug, Clone, Default)]
pub struct SocketOptions {
    /// The kernel's name of the congestion control; none: the system's.
    pub congestion_control: Option<String>,
    /// SO_RCVBUF; none: the kernel's choice.
    pub receive_buffer_bytes: Option<usize>,
}

/// Makes the cipher of each stream.
#[derive(Clone)]
pub struct Ciphers(Arc<dyn Fn() -> io::Result<Box<dyn Cipher>> + Send + Sync>);

impl Ciphers {
    /// Streams are encrypted by what this makes.
    pub fn new(make: impl Fn() -> io::Result<Box<dyn Cipher>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    pub(crate) fn make(&self) -> io::Result<Box<dyn Cipher>> {
        (self.0)()
    }
}

impl std::fmt::Debug for Ciphers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ciphers").finish_non_exhaustive()
    }
}

/// How a client's connections are to be. `ClientConfig::default()` is what the Python library does.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// What both sides know beforehand, or empty.
    pub secret: Vec<u8>,
    /// Authenticate every byte by the secret, without TLS.
    pub authenticate_frames: bool,
    /// Bytes of TCP that a full-size frame fills, or the kernel's maximum segment if that is smaller. 1448.
    pub segment_bytes: usize,
    /// Be plain TCP, without hellos: the peer may be any server. For one stream.
    pub is_plain: bool,
    /// Be open once the first stream is connected: [`crate::Driver::greet`] then says the hello with the first bytes that were
    /// written, and a server that refuses it ends the connection. Without a secret and TLS.
    pub opens_early: bool,
    /// The first bytes to send, which go with the first hello: a server may get them twice.
    pub early_data: Vec<u8>,
    /// Where no streams are named: one from each address of this host, followed as they change.
    pub interfaces: Option<Interfaces>,
    /// To how many of the addresses that the server announces a further stream goes. 0.
    pub most_announced: usize,
    /// Options of the streams' sockets.
    pub socket: SocketOptions,
    /// What encrypts the streams, by other means than rustls.
    pub ciphers: Option<Ciphers>,
    /// What both sides can choose.
    pub transport: TransportConfig,
    /// TLS of each stream; none: no TLS.
    #[cfg(feature = "tls")]
    pub tls: Option<ClientTls>,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            secret: Vec::new(),
            authenticate_frames: false,
            segment_bytes: 1448,
            is_plain: false,
            opens_early: false,
            early_data: Vec::new(),
            interfaces: None,
            most_announced: 0,
            socket: SocketOptions::default(),
            ciphers: None,
            transport: TransportConfig::default(),
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

impl ClientConfig {
    /// Check that it makes sense.
    ///
    /// # Errors
    /// [`Error::Config`], or what the protocol does not allow.
    pub fn check(&self) -> Result<(), Error> {
        let has_tls = {
            #[cfg(feature = "tls")]
            {
                self.tls.is_some()
            }
            #[cfg(not(feature = "tls"))]
            false
        };
        let has_tls = has_tls || self.ciphers.is_some();
        check_authentication(self.authenticate_frames, &self.secret, has_tls)?;
        if self.opens_early && (has_tls || !self.secret.is_empty() || !self.early_data.is_empty()) {
            let problem = "opens_early takes no secret, TLS or early_data: their answer is awaited";
            return Err(Error::Config(problem.to_owned()));
        }
        if self.is_plain && self.interfaces.is_some() {
            let problem = "plain TCP has one stream: it goes from no other interfaces";
            return Err(Error::Config(problem.to_owned()));
        }
        self.core().map(drop)
    }

    /// A core with one stream, whose frames have no size yet.
    pub(crate) fn core(&self) -> Result<Connection, Error> {
        if self.is_plain {
            let queue_bytes = 2 * self.transport.send_buffer_bytes;
            return Ok(Connection::plain(1, queue_bytes, true)?);
        }
        let mut core = self.transport.core(1)?;
        core.reopen_streams();
        if !self.early_data.is_empty() {
            core.write(&self.early_data)?;
            core.skip_early(self.early_data.len());
        }
        Ok(core)
    }
}

/// Which accepted streams are plain TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainTcp {
    /// None: what is no hello is refused.
    Never,
    /// All, whatever they begin with.
    Always,
    /// Those that do not begin as a hello, or send nothing for this time.
    After(Duration),
}

/// How a server's connections are to be.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// What both sides know beforehand, or empty.
    pub secret: Vec<u8>,
    /// Let no client in that does not authenticate every byte by the secret.
    pub authenticate_frames: bool,
    /// How many connections there may be at a time. 10,000.
    pub max_connections: usize,
    /// Which streams are plain TCP. [`PlainTcp::Never`].
    pub plain: PlainTcp,
    /// Application bytes that fill a segment of plain TCP; none: the kernel's maximum.
    pub plain_payload_bytes: Option<usize>,
    /// Take what comes with a first hello before its client has answered, though that may be a recorded one.
    pub takes_early_data: bool,
    /// Further addresses that lead to this server, for clients that want streams there: see [`ClientConfig::most_announced`].
    pub announced: Vec<SocketAddr>,
    /// Hellos and TLS handshakes that are looked at in a second; others wait for their turn. 4,000.
    pub max_hellos_per_s: f64,
    /// What both sides can choose.
    pub transport: TransportConfig,
    /// The certificate of the streams' TLS; none: no TLS.
    #[cfg(feature = "tls")]
    pub tls: Option<Arc<rustls::ServerConfig>>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            secret: Vec::new(),
            authenticate_frames: false,
            max_connections: 10_000,
            plain: PlainTcp::Never,
            plain_payload_bytes: None,
            takes_early_data: false,
            announced: Vec::new(),
            max_hellos_per_s: 4_000.0,
            transport: TransportConfig::default(),
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

impl ServerConfig {
    /// Check that it makes sense.
    ///
    /// # Errors
    /// [`Error::Config`], or what the protocol does not allow.
    pub fn check(&self) -> Result<(), Error> {
        let has_tls = {
            #[cfg(feature = "tls")]
            {
                self.tls.is_some()
            }
            #[cfg(not(feature = "tls"))]
            false
        };
        check_authentication(self.authenticate_frames, &self.secret, has_tls)?;
        check_announced(&self.announced)?;
        self.transport.core(1).map(drop)
    }
}

pub(crate) fn check_announced(addresses: &[SocketAddr]) -> Result<(), Error> {
    match addresses.len() {
        0..=MAX_ADDRESSES => Ok(()),
        count => Err(Error::Config(format!(
            "a server announces {MAX_ADDRESSES} addresses at most, not {count}"
        ))),
    }
}

fn check_authentication(is_wanted: bool, secret: &[u8], has_tls: bool) -> Result<(), Error> {
    let problem = match is_wanted {
        true if secret.is_empty() => "authenticate_frames takes a secret that both sides know",
        true if has_tls => "authenticate_frames or TLS: TLS authenticates what it encrypts",
        _ => return Ok(()),
    };
    Err(Error::Config(problem.to_owned()))
}
