//! The C interface of MSTCP; `include/mstcp.h` is made from this file, and says what applies to all of it.

#![allow(non_camel_case_types)] // as C names types

mod connection;
mod engine;
mod error;
mod readiness;

use std::ffi::{c_char, c_int};
use std::net::SocketAddr;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use mstcp_tokio::{ClientConfig, Interfaces, Listener, ServerConfig, StreamSpec};

pub use connection::mstcp_connection;
use engine::wait;
use error::{guard, CError};

/// From where a stream goes, and how it is used. All zeros: from wherever the system likes, as fast as TCP allows.
#[repr(C)]
pub struct mstcp_stream_spec {
    /// Source address as "IP:PORT", port 0 for any ("192.0.2.1:0", "[2001:db8::1]:0"); NULL: the system chooses.
    pub source: *const c_char,
    /// Destination address as "IP:PORT"; NULL: that of the connection.
    pub remote: *const c_char,
    /// Goodput at which it is paced, in bit/s; 0: as TCP's congestion control allows.
    pub rate_bps: f64,
    /// The streams of the lowest value that work carry everything, others are their backup.
    pub priority: u8,
}

impl mstcp_stream_spec {
    /// # Safety
    /// The addresses are NULL or strings.
    unsafe fn read(&self) -> Result<StreamSpec, CError> {
        let mut spec = StreamSpec::default().priority(self.priority);
        spec.source = optional(self.source)?;
        spec.remote = optional(self.remote)?;
        match self.rate_bps {
            0.0 => Ok(spec),
            rate_bps => Ok(spec.rate_bps(rate_bps)),
        }
    }
}

/// # Safety
/// The text is NULL or a string.
unsafe fn optional(text: *const c_char) -> Result<Option<SocketAddr>, CError> {
    match text.is_null() {
        true => Ok(None),
        false => address(text).map(Some),
    }
}

/// # Safety
/// The text is NULL or a string.
unsafe fn address(text: *const c_char) -> Result<SocketAddr, CError> {
    let text = error::text(text)?;
    let wrong = "an address is IP:PORT or [IPv6]:PORT, not";
    (text.parse()).map_err(|_| CError::invalid(format_args!("{wrong} '{text}'")))
}

/// # Safety
/// There are this many strings.
unsafe fn addresses(texts: *const *const c_char, count: usize) -> Result<Vec<SocketAddr>, CError> {
    error::slice(texts, count)
        .iter()
        .map(|text| address(*text))
        .collect()
}

/// How a client's connection is to be. All zeros: without a secret, over the streams that are named.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mstcp_client_config {
    /// What both sides know, or NULL.
    pub secret: *const u8,
    /// Its length in bytes.
    pub secret_length: usize,
    /// To how many of the addresses that the server announces a further stream goes.
    pub most_announced: usize,
    /// Not 0: a stream from each address of this host, followed as they come and go; then no streams are named.
    pub follows_interfaces: u8,
}

impl mstcp_client_config {
    /// # Safety
    /// The secret is NULL or has this many bytes.
    unsafe fn read(&self) -> ClientConfig {
        ClientConfig {
            secret: error::slice(self.secret, self.secret_length).to_vec(),
            most_announced: self.most_announced,
            interfaces: (self.follows_interfaces != 0).then(Interfaces::default),
            ..ClientConfig::default()
        }
    }
}

/// How a server's connections are to be. All zeros: without a secret.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mstcp_server_config {
    /// What both sides know, or NULL.
    pub secret: *const u8,
    /// Its length in bytes.
    pub secret_length: usize,
    /// Further addresses that lead to this server, each "IP:PORT", for clients that want streams there; see mstcp_announce().
    pub announced: *const *const c_char,
    /// How many there are.
    pub announced_count: usize,
}

impl mstcp_server_config {
    /// # Safety
    /// Pointers are NULL or what they are said to be.
    unsafe fn read(&self) -> Result<ServerConfig, CError> {
        Ok(ServerConfig {
            secret: error::slice(self.secret, self.secret_length).to_vec(),
            announced: addresses(self.announced, self.announced_count)?,
            ..ServerConfig::default()
        })
    }
}

/// Open a connection over `stream_count` streams, and wait until the first of them is open; the others join by themselves, and a
/// stream that is lost is opened again.
///
/// `host` is a name or an address. `streams` may be NULL: then each stream has whatever source the system chooses. `config` may be NULL.
/// Returns NULL on failure.
///
/// # Safety
/// Pointers are NULL or what they are said to be.
#[no_mangle]
pub unsafe extern "C" fn mstcp_connect(
    host: *const c_char,
    port: u16,
    streams: *const mstcp_stream_spec,
    stream_count: usize,
    config: *const mstcp_client_config,
) -> *mut mstcp_connection {
    guard(ptr::null_mut(), || {
        let host = error::text(host)?;
        let specs = match streams.is_null() {
            true => vec![StreamSpec::default(); stream_count],
            false => error::slice(streams, stream_count)
                .iter()
                .map(|spec| spec.read())
                .collect::<Result<_, _>>()?,
        };
        let config = config.as_ref().map(|config| config.read());
        let config = config.unwrap_or_default();
        let opening = mstcp_tokio::connect((host, port), &specs, config);
        let connection = wait(opening)??;
        Ok(mstcp_connection::new(connection))
    })
}

/// What accepts connections.
pub struct mstcp_listener(Mutex<Listener>);

/// Listen for connections; port 0 is any, see mstcp_listener_port(). `config` may be NULL. Returns NULL on failure.
///
/// # Safety
/// Pointers are NULL or what they are said to be.
#[no_mangle]
pub unsafe extern "C" fn mstcp_listen(
    host: *const c_char,
    port: u16,
    config: *const mstcp_server_config,
) -> *mut mstcp_listener {
    guard(ptr::null_mut(), || {
        let host = error::text(host)?;
        let config = config.as_ref().map(|config| config.read()).transpose()?;
        let config = config.unwrap_or_default();
        let listener = wait(Listener::bind((host, port), config))??;
        Ok(Box::into_raw(Box::new(mstcp_listener(Mutex::new(
            listener,
        )))))
    })
}

/// The port that it listens on; -1 on failure.
///
/// # Safety
/// The listener is one that was not closed.
#[no_mangle]
pub unsafe extern "C" fn mstcp_listener_port(listener: *const mstcp_listener) -> c_int {
    guard(-1, || {
        let listener = error::object(listener)?.0.lock();
        let listener = listener.unwrap_or_else(PoisonError::into_inner);
        Ok(listener.local_addr().port().into())
    })
}

/// Wait for the next connection. Returns NULL on failure.
///
/// # Safety
/// The listener is one that was not closed.
#[no_mangle]
pub unsafe extern "C" fn mstcp_accept(listener: *const mstcp_listener) -> *mut mstcp_connection {
    guard(ptr::null_mut(), || {
        let listener = error::object(listener)?.0.lock();
        let mut listener = listener.unwrap_or_else(PoisonError::into_inner);
        let connection = wait(listener.accept())??;
        Ok(mstcp_connection::new(connection))
    })
}

/// Stop listening, and free the listener; connections that were accepted go on. NULL is allowed.
///
/// # Safety
/// The listener is NULL or one that was not closed, and no other call on it is under way.
#[no_mangle]
pub unsafe extern "C" fn mstcp_listener_close(listener: *mut mstcp_listener) {
    if !listener.is_null() {
        drop(Box::from_raw(listener));
    }
}

/// Why the last call of this thread that failed did, as a sentence; valid until the next one that fails.
#[no_mangle]
pub extern "C" fn mstcp_last_error() -> *const c_char {
    error::last_text()
}

/// Why the last call of this thread that failed did, as a number of errno.h.
#[no_mangle]
pub extern "C" fn mstcp_last_errno() -> c_int {
    error::last_number()
}
