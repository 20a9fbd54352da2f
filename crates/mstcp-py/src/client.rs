//! How a client's connection is to be opened, as Python says it.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use mstcp_net::{ClientConfig, Interfaces, SocketOptions, StreamSpec, TransportConfig};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::cipher;
use crate::receive_memory::budget;

/// A socket address as Python's `socket` has it.
pub(crate) struct Address(pub(crate) SocketAddr);

impl<'py> FromPyObject<'py> for Address {
    fn extract_bound(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let host: String = object.get_item(0)?.extract()?;
        let port: u16 = object.get_item(1)?.extract()?;
        let ip: IpAddr = (host.split('%').next().unwrap_or_default())
            .parse()
            .map_err(|_| PyValueError::new_err(format!("{host:?} is no IP address")))?;
        Ok(Self(match ip {
            IpAddr::V6(ip) if object.len()? == 4 => {
                let flow_label = object.get_item(2)?.extract()?;
                let scope = object.get_item(3)?.extract()?;
                SocketAddrV6::new(ip, port, flow_label, scope).into()
            }
            ip => SocketAddr::new(ip, port),
        }))
    }
}

/// A stream to be opened (`mstcp.stream_requests.AskedStream`).
#[derive(FromPyObject)]
pub(crate) struct AskedStream {
    source: Option<Address>,
    remote: Option<Address>,
    rate_bps: Option<f64>,
    priority: u8,
    descriptor: Option<i32>,
}

impl AskedStream {
    pub(crate) fn take(self) -> (StreamSpec, Option<OwnedFd>) {
        let mut spec = StreamSpec::default().priority(self.priority);
        spec.source = self.source.map(|source| source.0);
        spec.remote = self.remote.map(|remote| remote.0);
        spec.rate_bps = self.rate_bps;
        // SAFETY: Python has detached it.
        let socket = self
            .descriptor
            .map(|number| unsafe { OwnedFd::from_raw_fd(number) });
        (spec, socket)
    }
}

/// How a client's connection is to be (`mstcp.open.connect.Options`).
#[derive(FromPyObject)]
pub(crate) struct Options {
    secret: Vec<u8>,
    authenticate_frames: bool,
    segment_bytes: usize,
    is_plain: bool,
    opens_early: bool,
    early_data: Vec<u8>,
    congestion_control: Option<String>,
    receive_buffer_bytes: Option<usize>,
    connect_timeout_s: f64,
    handshake_timeout_s: f64,
    reconnect_timeout_s: f64,
    scheduler: String,
    seed: Option<u64>,
    send_queue_bytes: usize,
    reorder_buffer_bytes: usize,
    interfaces: Option<(usize, Vec<(String, AskedStream)>)>,
    most_announced: usize,
}

impl Options {
    pub(crate) fn config(self, cipher: Option<Py<PyAny>>) -> ClientConfig {
        let transport = TransportConfig {
            reorder_buffer_bytes: self.reorder_buffer_bytes,
            send_buffer_bytes: self.send_queue_bytes / 2,
            scheduler: self.scheduler,
            reconnect_timeout: Duration::from_secs_f64(self.reconnect_timeout_s),
            connect_timeout: Duration::from_secs_f64(self.connect_timeout_s),
            handshake_timeout: Duration::from_secs_f64(self.handshake_timeout_s),
            seed: self.seed,
            receive_budget: Some(Arc::clone(budget())),
            ..TransportConfig::default()
        };
        ClientConfig {
            secret: self.secret,
            authenticate_frames: self.authenticate_frames,
            segment_bytes: self.segment_bytes,
            is_plain: self.is_plain,
            opens_early: self.opens_early,
            early_data: self.early_data,
            interfaces: self.interfaces.map(|(most_streams, specs)| {
                let specs = specs.into_iter().map(|(name, spec)| (name, spec.take().0));
                Interfaces {
                    most_streams,
                    specs: specs.collect(),
                }
            }),
            most_announced: self.most_announced,
            socket: SocketOptions {
                congestion_control: self.congestion_control,
                receive_buffer_bytes: self.receive_buffer_bytes,
            },
            ciphers: cipher.map(cipher::ciphers),
            transport,
            ..ClientConfig::default()
        }
    }
}
