//! `connect`, `getpeername` and connecting sends of a program that `mstcp run` started (LD_PRELOAD).
//!
//! Before a TCP socket is connected, `mstcp run` is asked over a Unix socket (`MSTCP_RUN`) whether the destination goes
//! over MSTCP. If so the socket is bound to loopback, its port is told, and the socket is connected to the port that was
//! answered. Nothing is sent in band, so blocking, non-blocking and polled connects work as ever. If `mstcp run` cannot be
//! asked, the program gets ECONNREFUSED: it never goes past MSTCP unnoticed.
//!
//! | message | bytes |
//! |---|---|
//! | destination | family (4 or 6), 1 if connect waits, port (16 bits), address (16 bytes, IPv4 in the first 4) |
//! | answer | 0: connect as you would, 1: over MSTCP; then the proxy's port (16 bits) |
//! | bound | our port (16 bits) |
//! | answer | errno (32 bits), 0: connect now |
//!
//! Numbers are in network byte order.

use std::ffi::CStr;
use std::io::Read;
use std::mem::{size_of, zeroed};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use libc::{c_int, c_void, sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage, socklen_t};

type Connect = unsafe extern "C" fn(c_int, *const sockaddr, socklen_t) -> c_int;
type SendTo =
    unsafe extern "C" fn(c_int, *const c_void, usize, c_int, *const sockaddr, socklen_t) -> isize;
type SendMsg = unsafe extern "C" fn(c_int, *const libc::msghdr, c_int) -> isize;
type GetPeerName = unsafe extern "C" fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int;

const ANSWER_S: Duration = Duration::from_secs(30);
/// Sockets whose destination is remembered for `getpeername`; the oldest are forgotten.
const REMEMBERED: usize = 4096;

/// Where a socket goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Address {
    is_v6: bool,
    bytes: [u8; 16],
    port: u16,
}

impl Address {
    /// Read an address; none if it is not of IPv4 or IPv6.
    ///
    /// # Safety
    /// `address` points to `length` readable bytes.
    unsafe fn read(address: *const sockaddr, length: socklen_t) -> Option<Self> {
        if address.is_null() || (length as usize) < size_of::<sockaddr_in>() {
            return None;
        }
        let mut bytes = [0; 16];
        match c_int::from((*address).sa_family) {
            libc::AF_INET => {
                let v4 = address.cast::<sockaddr_in>().read_unaligned();
                bytes[..4].copy_from_slice(&v4.sin_addr.s_addr.to_ne_bytes());
                let port = u16::from_be(v4.sin_port);
                let is_v6 = false;
                Some(Self { is_v6, bytes, port })
            }
            libc::AF_INET6 if length as usize >= size_of::<sockaddr_in6>() => {
                let v6 = address.cast::<sockaddr_in6>().read_unaligned();
                let bytes = v6.sin6_addr.s6_addr;
                let port = u16::from_be(v6.sin6_port);
                let is_v6 = true;
                Some(Self { is_v6, bytes, port })
            }
            _ => None,
        }
    }

    fn loopback(is_v6: bool, port: u16) -> Self {
        let mut bytes = [0; 16];
        if is_v6 {
            bytes[15] = 1;
        } else {
            bytes[..4].copy_from_slice(&[127, 0, 0, 1]);
        }
        Self { is_v6, bytes, port }
    }

    /// As the kernel has it, and its length.
    fn raw(&self) -> (sockaddr_storage, socklen_t) {
        // SAFETY: all zeros is a valid sockaddr_storage, which is large enough and aligned for either kind.
        unsafe {
            let mut storage: sockaddr_storage = zeroed();
            let place = std::ptr::addr_of_mut!(storage);
            if self.is_v6 {
                let v6 = &mut *place.cast::<sockaddr_in6>();
                v6.sin6_family = libc::AF_INET6 as _;
                v6.sin6_port = self.port.to_be();
                v6.sin6_addr.s6_addr = self.bytes;
                return (storage, size_of::<sockaddr_in6>() as socklen_t);
            }
            let v4 = &mut *place.cast::<sockaddr_in>();
            v4.sin_family = libc::AF_INET as _;
            v4.sin_port = self.port.to_be();
            let [a, b, c, d, ..] = self.bytes;
            v4.sin_addr.s_addr = u32::from_ne_bytes([a, b, c, d]);
            (storage, size_of::<sockaddr_in>() as socklen_t)
        }
    }
}

/// Proxy's port, our port, and where the socket believes to be connected to.
static REDIRECTED: Mutex<Vec<(u16, u16, Address)>> = Mutex::new(Vec::new());

fn errno() -> c_int {
    // SAFETY: the place is this thread's.
    unsafe { *libc::__errno_location() }
}

fn set_errno(value: c_int) -> c_int {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value };
    -1
}

/// The function that would have been called without this library.
fn next(name: &CStr) -> *mut c_void {
    // SAFETY: the name ends with a zero.
    let function = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    assert!(!function.is_null(), "libc has the function");
    function
}

fn real_connect() -> Connect {
    // SAFETY: libc's connect has this type.
    unsafe { std::mem::transmute(next(c_str(b"connect\0"))) }
}

fn real_getpeername() -> GetPeerName {
    // SAFETY: libc's getpeername has this type.
    unsafe { std::mem::transmute(next(c_str(b"getpeername\0"))) }
}

fn real_sendto() -> SendTo {
    static REAL: OnceLock<SendTo> = OnceLock::new();
    // SAFETY: libc's sendto has this type.
    *REAL.get_or_init(|| unsafe { std::mem::transmute(next(c_str(b"sendto\0"))) })
}

fn real_sendmsg() -> SendMsg {
    static REAL: OnceLock<SendMsg> = OnceLock::new();
    // SAFETY: libc's sendmsg has this type.
    *REAL.get_or_init(|| unsafe { std::mem::transmute(next(c_str(b"sendmsg\0"))) })
}

fn c_str(bytes: &'static [u8]) -> &'static CStr {
    CStr::from_bytes_with_nul(bytes).expect("one zero, at the end")
}

fn is_tcp(socket: c_int) -> bool {
    let mut kind: c_int = 0;
    let mut length = size_of::<c_int>() as socklen_t;
    let place: *mut c_int = &mut kind;
    // SAFETY: the option is one int.
    let result = unsafe {
        libc::getsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_TYPE,
            place.cast(),
            &mut length,
        )
    };
    result == 0 && kind == libc::SOCK_STREAM
}

fn waits(socket: c_int) -> bool {
    // SAFETY: reads flags.
    let flags = unsafe { libc::fcntl(socket, libc::F_GETFL) };
    flags >= 0 && flags & libc::O_NONBLOCK == 0
}

/// Our address; none if the socket has none.
fn local_address(socket: c_int) -> Option<Address> {
    // SAFETY: all zeros is valid, and the place is as long as said.
    unsafe {
        let mut storage: sockaddr_storage = zeroed();
        let mut length = size_of::<sockaddr_storage>() as socklen_t;
        let place = std::ptr::addr_of_mut!(storage).cast::<sockaddr>();
        match libc::getsockname(socket, place, &mut length) {
            0 => Address::read(place, length),
            _ => None,
        }
    }
}

/// Give the socket a loopback port, unless the program has bound it; the errno if that fails.
fn bound_port(socket: c_int, is_v6: bool) -> Result<u16, c_int> {
    match local_address(socket) {
        Some(address) if address.port != 0 => return Ok(address.port),
        Some(_) => {}
        None => return Err(errno()),
    }
    let (storage, length) = Address::loopback(is_v6, 0).raw();
    // SAFETY: an address and its length.
    if unsafe { libc::bind(socket, std::ptr::addr_of!(storage).cast(), length) } != 0 {
        return Err(errno());
    }
    local_address(socket)
        .map(|address| address.port)
        .ok_or(libc::EIO)
}

/// Send all, without the signal that ends programs whose peer is gone.
fn tell(run: &UnixStream, mut bytes: &[u8]) -> Result<(), c_int> {
    while !bytes.is_empty() {
        // SAFETY: the bytes are as many as said.
        let count = unsafe {
            libc::send(
                run.as_raw_fd(),
                bytes.as_ptr().cast(),
                bytes.len(),
                libc::MSG_NOSIGNAL,
            )
        };
        match usize::try_from(count) {
            Ok(count) => bytes = &bytes[count..],
            Err(_) if errno() == libc::EINTR => {}
            Err(_) => return Err(libc::ECONNREFUSED),
        }
    }
    Ok(())
}

/// Where `mstcp run` listens; none if the program was not started by it.
fn run_path() -> Option<&'static str> {
    static PATH: OnceLock<Option<String>> = OnceLock::new();
    PATH.get_or_init(|| std::env::var("MSTCP_RUN").ok())
        .as_deref()
}

/// Ask `mstcp run`: the proxy's port, or none if the destination is not to go over MSTCP. An errno if it cannot go at all.
fn ask(path: &str, socket: c_int, to: &Address) -> Result<Option<u16>, c_int> {
    let lost = |_| libc::ECONNREFUSED;
    let mut run = UnixStream::connect(path).map_err(lost)?;
    run.set_read_timeout(Some(ANSWER_S)).map_err(lost)?;
    let mut message = vec![if to.is_v6 { 6 } else { 4 }, u8::from(waits(socket))];
    message.extend_from_slice(&to.port.to_be_bytes());
    message.extend_from_slice(&to.bytes);
    tell(&run, &message)?;
    let mut answer = [0; 3];
    run.read_exact(&mut answer).map_err(lost)?;
    let proxy_port = u16::from_be_bytes([answer[1], answer[2]]);
    if answer[0] == 0 {
        return Ok(None);
    }
    let port = bound_port(socket, to.is_v6)?;
    tell(&run, &port.to_be_bytes())?;
    let mut answer = [0; 4];
    run.read_exact(&mut answer).map_err(|_| libc::ETIMEDOUT)?;
    match i32::from_be_bytes(answer) {
        0 => Ok(Some(proxy_port)),
        number => Err(number),
    }
}

fn remember(proxy_port: u16, port: u16, to: Address) {
    let Ok(mut table) = REDIRECTED.lock() else {
        return;
    };
    table.retain(|(_, ours, _)| *ours != port);
    if table.len() >= REMEMBERED {
        table.remove(0);
    }
    table.push((proxy_port, port, to));
}

/// libc's `connect`, by way of `mstcp run` where that wants it.
///
/// # Safety
/// As libc's.
#[no_mangle]
pub unsafe extern "C" fn connect(
    socket: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> c_int {
    let real = real_connect();
    let destination = Address::read(address, length).filter(|to| to.port != 0 && is_tcp(socket));
    let (Some(to), Some(path)) = (destination, run_path()) else {
        return real(socket, address, length);
    };
    // A program may ask again how a connect goes that it began.
    let mut peer: sockaddr_storage = zeroed();
    let mut peer_length = size_of::<sockaddr_storage>() as socklen_t;
    let place = std::ptr::addr_of_mut!(peer).cast::<sockaddr>();
    if real_getpeername()(socket, place, &mut peer_length) == 0 {
        return set_errno(libc::EISCONN);
    }
    let proxy_port = match ask(path, socket, &to) {
        Ok(Some(port)) => port,
        Ok(None) => return real(socket, address, length),
        Err(number) => return set_errno(number),
    };
    if let Some(ours) = local_address(socket) {
        remember(proxy_port, ours.port, to);
    }
    let (storage, length) = Address::loopback(to.is_v6, proxy_port).raw();
    real(socket, std::ptr::addr_of!(storage).cast(), length)
}

/// libc's `sendto`; a connect that carries data (MSG_FASTOPEN) becomes a connect, and then a send.
///
/// # Safety
/// As libc's.
#[no_mangle]
pub unsafe extern "C" fn sendto(
    socket: c_int,
    data: *const c_void,
    size: usize,
    flags: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> isize {
    let real = real_sendto();
    if flags & libc::MSG_FASTOPEN == 0 || address.is_null() || run_path().is_none() {
        return real(socket, data, size, flags, address, length);
    }
    // As the kernel has it: where connecting takes its time and the program does not wait, nothing was sent.
    if connect(socket, address, length) != 0 {
        return -1;
    }
    real(
        socket,
        data,
        size,
        flags & !libc::MSG_FASTOPEN,
        std::ptr::null(),
        0,
    )
}

/// libc's `sendmsg`; see [`sendto`].
///
/// # Safety
/// As libc's.
#[no_mangle]
pub unsafe extern "C" fn sendmsg(
    socket: c_int,
    message: *const libc::msghdr,
    flags: c_int,
) -> isize {
    let real = real_sendmsg();
    if flags & libc::MSG_FASTOPEN == 0 || message.is_null() || run_path().is_none() {
        return real(socket, message, flags);
    }
    let mut plain = *message;
    if plain.msg_name.is_null() {
        return real(socket, message, flags);
    }
    if connect(socket, plain.msg_name.cast(), plain.msg_namelen) != 0 {
        return -1;
    }
    plain.msg_name = std::ptr::null_mut();
    plain.msg_namelen = 0;
    real(socket, &plain, flags & !libc::MSG_FASTOPEN)
}

/// libc's `getpeername`, which names the destination that the program asked for.
///
/// # Safety
/// As libc's.
#[no_mangle]
pub unsafe extern "C" fn getpeername(
    socket: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    let room = if length.is_null() { 0 } else { *length };
    let result = real_getpeername()(socket, address, length);
    if result != 0 {
        return result;
    }
    let peer = Address::read(address, (*length).min(room));
    let ours = local_address(socket);
    if let (Some(peer), Some(ours), Ok(table)) = (peer, ours, REDIRECTED.lock()) {
        let is_proxy = |port| peer == Address::loopback(peer.is_v6, port);
        let entry = table
            .iter()
            .find(|(proxy, port, _)| *port == ours.port && is_proxy(*proxy));
        if let Some((_, _, to)) = entry {
            let (storage, full) = to.raw();
            let count = full.min(room) as usize;
            let place = std::ptr::addr_of!(storage).cast::<u8>();
            std::ptr::copy_nonoverlapping(place, address.cast::<u8>(), count);
            *length = full;
        }
    }
    result
}
