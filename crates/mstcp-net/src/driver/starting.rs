//! How a driver starts: as a client, or as a server's with the stream that opened the connection.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use mstcp_proto::frame::MAX_PAYLOAD_BYTES;
use mstcp_proto::{Connection, StreamSet};

use super::dialler::Dialler;
use super::{Driver, NewStream, Side, SocketId, StreamId};
use crate::config::{ClientConfig, ServerConfig, StreamSpec};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::handshake_socket::StreamParts;
use crate::incoming::{JoinedStream, PlainPermit, Registration};
use crate::sys;

impl Driver {
    /// Open a connection to one of the addresses, by whichever of the streams' sources answers first; the others join.
    ///
    /// # Errors
    /// [`Error::Config`]: the configuration makes no sense, or a source has no address of the destination's family.
    pub fn connect(
        now_ns: u64,
        config: Arc<ClientConfig>,
        destinations: Vec<SocketAddr>,
        streams: &[StreamSpec],
    ) -> Result<Self, Error> {
        let streams = streams.iter().map(|spec| (*spec, None)).collect();
        Self::connect_over(now_ns, config, destinations, streams)
    }

    /// As [`Driver::connect`], over sockets that are bound or connected already where such are given.
    ///
    /// # Errors
    /// As above.
    pub fn connect_over(
        now_ns: u64,
        config: Arc<ClientConfig>,
        destinations: Vec<SocketAddr>,
        streams: Vec<(StreamSpec, Option<OwnedFd>)>,
    ) -> Result<Self, Error> {
        config.check()?;
        let core = config.core()?;
        let send_buffer_bytes = config.transport.send_buffer_bytes;
        let dialler = Dialler::new(config, destinations, streams)?;
        let side = Side::Client(Box::new(dialler));
        let mut driver = Self::new(Endpoint::new(core), side, 1, send_buffer_bytes);
        driver.due(now_ns);
        Ok(driver)
    }

    /// Go on with a connection that a client has opened.
    pub(crate) fn accepted(
        now_ns: u64,
        config: &ServerConfig,
        registration: Registration,
        first: JoinedStream,
        is_confirmed: bool,
        is_open_to_all: bool,
    ) -> Result<Self, Error> {
        let payload_bytes = first.hello.frame_payload_bytes as usize;
        let mut core = config.transport.core(payload_bytes)?;
        if !is_confirmed {
            core.expect_confirm(0, first.confirm)?;
        }
        if is_open_to_all {
            core.take_unconfirmed();
        }
        if !config.announced.is_empty() {
            core.announce(config.announced.clone());
        }
        let side = Side::Server(Box::new(registration));
        let send_buffer_bytes = config.transport.send_buffer_bytes;
        let mut driver = Self::new(Endpoint::new(core), side, payload_bytes, send_buffer_bytes);
        driver.endpoint.receive_early(&first.hello.early_data);
        driver.open_first(now_ns, NewStream::accepted(0, 0, first));
        driver.due(now_ns);
        Ok(driver)
    }

    /// Go on with a stream of plain TCP.
    pub(crate) fn accepted_plain(
        now_ns: u64,
        config: &ServerConfig,
        place: PlainPermit,
        parts: StreamParts,
        is_decided: bool,
    ) -> Result<Self, Error> {
        let most = sys::segment_bytes(parts.socket.as_raw_fd()).min(MAX_PAYLOAD_BYTES);
        let payload_bytes = config.plain_payload_bytes.unwrap_or(most).min(most);
        let send_buffer_bytes = config.transport.send_buffer_bytes;
        let core = Connection::plain(payload_bytes, 2 * send_buffer_bytes, is_decided)?;
        let side = Side::Plain(Some(place));
        let mut driver = Self::new(Endpoint::new(core), side, payload_bytes, send_buffer_bytes);
        driver.open_first(
            now_ns,
            NewStream {
                stream: StreamId::from_index(0),
                spec: StreamSpec::default(),
                socket: SocketId(0),
                parts,
                greets: false,
                route: None,
            },
        );
        driver.settle(now_ns);
        Ok(driver)
    }

    pub(super) fn new(
        endpoint: Endpoint,
        side: Side,
        frame_payload_bytes: usize,
        send_buffer_bytes: usize,
    ) -> Self {
        crate::memory::keep_freed_memory();
        let send_buffer_bytes = send_buffer_bytes.max(1);
        Self {
            endpoint,
            side,
            frame_payload_bytes,
            send_buffer_bytes,
            most_queued_bytes: usize::MAX,
            few_queued_bytes: send_buffer_bytes / 2,
            slots: Vec::new(),
            last_socket: 0,
            streams_joined: 1,
            watched: Vec::new(),
            are_sockets_new: false,
            readable: StreamSet::default(),
            stands_by: false,
            starts_later: false,
            holds: false,
            reads_ahead: false,
            sent_bytes: 0,
            blocked: StreamSet::default(),
            actions: VecDeque::new(),
            is_open: false,
            is_paused: false,
            awaits_empty: false,
            has_told_bytes: false,
            has_ended_writing: false,
            is_closed: false,
            lingering: None,
            over: None,
        }
    }
}
