//! Rates and paths from a controller: [`Controller::connect`] asks for a rate, opens the streams that are answered, holds the lease as
//! long as the connection lives, and follows changes.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use mstcp::control::Controller;
//!
//! let controller = Controller::new("10.0.0.1:50051,10.0.0.2:50051");
//! let (connection, flow) = controller
//!     .connect("10.0.0.2:5001".parse()?, 8.5e6, 4, mstcp::ClientConfig::default())
//!     .await?;
//! println!("{} bit/s over {} paths", flow.allocation().rate_bps, flow.allocation().streams.len());
//! # drop(connection); Ok(()) }
//! ```

mod messages;
mod session;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mstcp_net::{ClientConfig, Error, StreamId, StreamSpec};
use tokio::net::TcpSocket;
use tokio::sync::{mpsc, oneshot};

use crate::connection::Connection;
use crate::task::{now_ns, Shared};
use messages::{AllocationMessage, ClientBody, FlowChange, FlowRequest};
use session::PendingRequest;

/// Questions that wait to be sent.
const MAX_PENDING_REQUESTS: usize = 16;

/// Why a controller grants nothing, or cannot be asked.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ControlError {
    /// It refuses: the code of `mstcp/proto/control.proto`, the field, the reason.
    Refused {
        /// The code.
        code: i32,
        /// The field that is wrong, or empty.
        field: String,
        /// In the controller's words.
        reason: String,
    },
    /// It cannot be reached, or does not answer.
    Unavailable(String),
    /// The connection could not be opened over the paths that were granted.
    Connection(String),
}

impl std::fmt::Display for ControlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused { field, reason, .. } if !field.is_empty() => {
                write!(f, "the controller refuses the flow: {field}: {reason}")
            }
            Self::Refused { reason, .. } => write!(f, "the controller refuses the flow: {reason}"),
            Self::Unavailable(reason) | Self::Connection(reason) => reason.fmt(f),
        }
    }
}

impl std::error::Error for ControlError {}

impl From<Error> for ControlError {
    fn from(error: Error) -> Self {
        Self::Connection(error.to_string())
    }
}

impl From<std::io::Error> for ControlError {
    fn from(error: std::io::Error) -> Self {
        Self::Connection(error.to_string())
    }
}

/// What a controller has granted.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Allocation {
    /// The flow's id at the controller.
    pub flow_id: String,
    /// The goodput of all streams together, in bit/s.
    pub rate_bps: f64,
    /// The goodput of each stream in bit/s, by source port.
    pub streams: Vec<(u16, f64)>,
    /// How long the flow lives unless it is renewed, which happens by itself.
    pub lease: Duration,
}

impl From<AllocationMessage> for Allocation {
    fn from(message: AllocationMessage) -> Self {
        let streams = message.streams.iter();
        Self {
            flow_id: message.flow_id,
            rate_bps: message.rate_bps,
            streams: streams
                .map(|stream| (stream.source_port as u16, stream.rate_bps))
                .collect(),
            lease: Duration::try_from_secs_f64(message.lease_s).unwrap_or(Duration::from_secs(1)),
        }
    }
}

/// Where a controller is, or several are that share their state, and how to speak to it.
#[derive(Debug, Clone)]
pub struct Controller {
    addresses: Vec<String>,
    token: Option<String>,
    timeout: Duration,
}

impl Controller {
    /// A controller whose gRPC interface is at `HOST:PORT`; of several controllers, with commas between. Of those the one that
    /// leads is asked, and after it the next that does.
    pub fn new(addresses: &str) -> Self {
        Self {
            addresses: addresses
                .split(',')
                .map(|each| each.trim().to_owned())
                .collect(),
            token: None,
            timeout: Duration::from_secs(10),
        }
    }

    /// The same, known to it by a token.
    #[must_use]
    pub fn token(self, token: impl Into<String>) -> Self {
        Self {
            token: Some(token.into()),
            ..self
        }
    }

    /// The same, with so much time for each answer; 10 s.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Ask for a goodput of `rate_bps` over up to `max_streams` paths, and open the connection over those that are granted.
    ///
    /// # Errors
    /// The controller refuses or cannot be reached, or the connection cannot be opened.
    pub async fn connect(
        &self,
        destination: SocketAddr,
        rate_bps: f64,
        max_streams: usize,
        config: ClientConfig,
    ) -> Result<(Connection, Flow), ControlError> {
        let source = source_of(destination)?;
        let reserved = reserve(source, max_streams)?;
        let ports: Vec<u16> = (reserved.iter())
            .map(|socket| Ok(socket.local_addr()?.port()))
            .collect::<std::io::Result<_>>()?;
        let request = FlowRequest {
            source: source.to_string(),
            destination: destination.ip().to_string(),
            destination_port: destination.port().into(),
            source_ports: ports.iter().copied().map(u32::from).collect(),
            rate_bps,
        };
        let (requests, waiting) = mpsc::channel(MAX_PENDING_REQUESTS);
        let state = Arc::new(FlowState::default());
        tokio::spawn(session::run(self.clone(), waiting, Arc::clone(&state)));
        let flow = Flow {
            requests,
            state,
            timeout: self.timeout,
        };
        let granted = flow.ask(ClientBody::Request(request)).await?;
        let streams: Vec<StreamSpec> = (granted.streams.iter())
            .map(|(port, rate)| {
                StreamSpec::from_source(SocketAddr::new(source, *port)).rate_bps(*rate)
            })
            .collect();
        let connection = crate::connect(destination, &streams, config).await?;
        drop(reserved);
        flow.state.follow(&connection, &granted);
        Ok((connection, flow))
    }
}

/// The address from which the system would send there.
fn source_of(destination: SocketAddr) -> std::io::Result<IpAddr> {
    let any: SocketAddr = match destination {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(destination)?;
    Ok(socket.local_addr()?.ip())
}

/// Sockets that keep this many ports from others until streams have them.
fn reserve(source: IpAddr, count: usize) -> std::io::Result<Vec<TcpSocket>> {
    let reserve_one = |_| {
        let socket = match source {
            IpAddr::V4(_) => TcpSocket::new_v4()?,
            IpAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::new(source, 0))?;
        Ok(socket)
    };
    (0..count).map(reserve_one).collect()
}

/// A flow that a controller has granted to a connection. Dropping it gives the flow back; so does the connection's end.
#[derive(Debug)]
pub struct Flow {
    requests: mpsc::Sender<PendingRequest>,
    state: Arc<FlowState>,
    timeout: Duration,
}

impl Flow {
    /// What is granted now.
    pub fn allocation(&self) -> Allocation {
        let allocation = self.state.allocation();
        // There is one from the answer to the request on.
        allocation.unwrap_or_else(|| AllocationMessage::default().into())
    }

    /// Why the controller has ended the flow, if it has; the connection goes on at its last rates.
    pub fn ended(&self) -> Option<String> {
        let ended = self.state.ended.lock();
        ended.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ask for another goodput; the streams' rates follow the answer.
    ///
    /// # Errors
    /// The controller refuses or cannot be reached; all stays as it is.
    pub async fn change_rate(&self, rate_bps: f64) -> Result<Allocation, ControlError> {
        let flow_id = self.allocation().flow_id;
        let change = FlowChange { flow_id, rate_bps };
        self.ask(ClientBody::Change(change)).await
    }

    async fn ask(&self, body: ClientBody) -> Result<Allocation, ControlError> {
        let (answer, answered) = oneshot::channel();
        let gone =
            || ControlError::Unavailable("the session with the controller is over".to_owned());
        let request = PendingRequest { body, answer };
        self.requests.send(request).await.map_err(|_| gone())?;
        match tokio::time::timeout(self.timeout, answered).await {
            Ok(answer) => answer.unwrap_or_else(|_| Err(gone())),
            Err(_) => Err(ControlError::Unavailable(format!(
                "the controller did not answer within {} s",
                self.timeout.as_secs_f64()
            ))),
        }
    }
}

/// What the session and the application know of a flow.
#[derive(Default)]
pub(crate) struct FlowState {
    allocation: Mutex<Option<Allocation>>,
    ended: Mutex<Option<String>>,
    connection: Mutex<Option<PacedConnection>>,
}

impl std::fmt::Debug for FlowState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlowState").finish_non_exhaustive()
    }
}

/// The connection whose rates follow, and which of its streams has which source port.
struct PacedConnection {
    shared: Arc<Shared>,
    streams: HashMap<u16, StreamId>,
}

impl FlowState {
    fn allocation(&self) -> Option<Allocation> {
        let allocation = self.allocation.lock();
        allocation.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn follow(&self, connection: &Connection, granted: &Allocation) {
        let streams = granted.streams.iter().enumerate();
        let streams = streams.map(|(at, (port, _))| (*port, StreamId::from_index(at)));
        let followed = PacedConnection {
            shared: connection.share(),
            streams: streams.collect(),
        };
        *self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(followed);
        // It may have changed meanwhile.
        if let Some(now) = self.allocation() {
            self.pace(&now);
        }
    }

    /// Whether the connection has ended.
    fn is_over(&self) -> bool {
        let connection = self.connection.lock();
        let connection = connection.unwrap_or_else(PoisonError::into_inner);
        connection.as_ref().is_some_and(|followed| {
            followed
                .shared
                .with(|state| state.driver.result().is_some())
        })
    }

    fn change(&self, allocation: Allocation) {
        self.pace(&allocation);
        *self
            .allocation
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(allocation);
    }

    fn end(&self, reason: String) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }

    fn pace(&self, allocation: &Allocation) {
        let connection = self.connection.lock();
        let connection = connection.unwrap_or_else(PoisonError::into_inner);
        let Some(followed) = &*connection else {
            return;
        };
        let rates: Vec<_> = (allocation.streams.iter())
            .filter_map(|(port, rate)| Some((*followed.streams.get(port)?, Some(*rate))))
            .collect();
        // Rates that make no sense leave those before.
        (followed.shared).with(|state| drop(state.driver.set_rates(now_ns(), &rates)));
    }
}
