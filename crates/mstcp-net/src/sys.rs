//! The system calls of a connection's sockets; errors are errnos.

use mstcp_proto::MeasuredPath;
use rustix::io::Errno;
use std::ffi::CStr;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{OwnedFd, RawFd};

use mstcp_proto::Unanswered;

use crate::interfaces::{ip_of, HostAddress};

/// The most pieces that one call sends.
pub const MAX_PIECES: usize = 64;

/// What the last system call of this thread failed with.
pub(crate) fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

fn counted(result: isize) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| last_errno())
}

/// Send pieces on a connected socket without waiting; the error is an errno.
pub fn send(socket: RawFd, pieces: &[IoSlice<'_>]) -> Result<usize, Errno> {
    // SAFETY: all zeros is a valid msghdr; the pieces outlive the call, and IoSlice is laid out as iovec.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = pieces.as_ptr() as *mut libc::iovec;
        message.msg_iovlen = pieces.len() as _;
        counted(libc::sendmsg(
            socket,
            &message,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        ))
    }
}

/// Receive into two buffers, one after the other, without waiting; see [`receive`].
pub fn receive_both(
    socket: RawFd,
    first: &mut [MaybeUninit<u8>],
    second: &mut [u8],
) -> Result<usize, Errno> {
    let mut pieces = [
        libc::iovec {
            iov_base: first.as_mut_ptr().cast(),
            iov_len: first.len(),
        },
        libc::iovec {
            iov_base: second.as_mut_ptr().cast(),
            iov_len: second.len(),
        },
    ];
    // SAFETY: all zeros is a valid msghdr; the buffers are ours and as long as said.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = pieces.as_mut_ptr();
        message.msg_iovlen = pieces.len() as _;
        counted(libc::recvmsg(socket, &mut message, libc::MSG_DONTWAIT))
    }
}

/// Receive into `buffer` without waiting; 0 bytes are the end of the stream, the error is an errno.
pub fn receive(socket: RawFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: the buffer is ours and as long as said.
    unsafe {
        counted(libc::recv(
            socket,
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            libc::MSG_DONTWAIT,
        ))
    }
}

/// How many bytes wait in a socket to be received; 0 also where the system does not say.
pub fn waiting_bytes(socket: RawFd) -> usize {
    let mut count: libc::c_int = 0;
    // SAFETY: the request writes one int.
    let result = unsafe { libc::ioctl(socket, libc::FIONREAD as _, &mut count) };
    if result == 0 {
        usize::try_from(count).unwrap_or(0)
    } else {
        0
    }
}

/// How many bytes of a socket TCP has not sent yet; 0 where the system does not say.
pub fn unsent_bytes(socket: RawFd) -> usize {
    // linux/sockios.h; the libc crate does not name it.
    const SIOCOUTQNSD: libc::c_ulong = 0x894B;
    socket_count(socket, SIOCOUTQNSD)
}

/// How many bytes of a socket the peer's kernel has not acknowledged; 0 where the system does not say.
pub fn unacknowledged_bytes(socket: RawFd) -> usize {
    // linux/sockios.h
    const SIOCOUTQ: libc::c_ulong = 0x5411;
    socket_count(socket, SIOCOUTQ)
}

fn socket_count(socket: RawFd, request: libc::c_ulong) -> usize {
    if !cfg!(target_os = "linux") {
        return 0;
    }
    let mut count: libc::c_int = 0;
    // SAFETY: the requests write one int.
    match unsafe { libc::ioctl(socket, request as _, &mut count) } {
        0 => usize::try_from(count).unwrap_or(0),
        _ => 0,
    }
}

/// Whether a socket's connection has broken, or has ended in both directions: sending tells how.
pub fn is_over(socket: RawFd) -> bool {
    let mut entry = libc::pollfd {
        fd: socket,
        events: 0,
        revents: 0,
    };
    // SAFETY: one entry is read and written. The call does not wait.
    unsafe { libc::poll(&mut entry, 1, 0) > 0 }
}

/// A round trip of this many times the least, and this, speaks of a queue; in microseconds.
const QUEUE_RATIO: f64 = 1.25;
const QUEUE_US: f64 = 2000.0;
/// TCP that paces at this many times what it carries looks for what the path carries: twice in CUBIC's slow start, 2.9 times in
/// BBR's, and 1.25 times at most later.
const SLOW_START_PACING: f64 = 1.5;

/// Ask TCP about the path of a connected socket, and how many bytes it has not sent; none where the system does not say.
#[cfg(target_os = "linux")]
pub fn path(socket: RawFd) -> Option<(MeasuredPath, usize)> {
    // struct tcp_info of linux/tcp.h; the libc crate's ends before the delivery rate.
    const APP_LIMITED: usize = 7;
    const SEGMENT_BYTES: usize = 16;
    const UNACKNOWLEDGED_SEGMENTS: usize = 24;
    const RTT_US: usize = 68;
    const WINDOW_SEGMENTS: usize = 80;
    const NOTSENT_BYTES: usize = 144;
    const MIN_RTT_US: usize = 148;
    const PACING_RATE: usize = 104;
    const DELIVERY_RATE: usize = 160;
    let mut info = [0_u8; 168];
    if !tcp_info(socket, &mut info) {
        return None;
    }
    let word = |at: usize| info[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
    let rate = |at: usize| info[at..at + 8].try_into().map_or(0, u64::from_ne_bytes) as f64 * 8.0;
    let delivered = rate(DELIVERY_RATE);
    let rtt_us = word(RTT_US);
    if rtt_us == 0 {
        return None;
    }
    let window_bits = f64::from(word(WINDOW_SEGMENTS)) * f64::from(word(SEGMENT_BYTES)) * 8.0;
    let possible = window_bits / (f64::from(rtt_us) * 1e-6);
    let least_rtt_us = word(MIN_RTT_US).min(rtt_us);
    // Where a queue has grown the path was full, although the application gave little.
    let has_queue = f64::from(rtt_us) > QUEUE_RATIO * f64::from(least_rtt_us) + QUEUE_US;
    let is_limited = info[APP_LIMITED] & 1 == 1;
    let segment_bytes = f64::from(word(SEGMENT_BYTES));
    let flight_bytes = f64::from(word(UNACKNOWLEDGED_SEGMENTS)) * segment_bytes;
    // What was delivered a round trip ago is less than what is on its way, while the window grows.
    let flying_bps = flight_bytes * 8.0 / (f64::from(rtt_us) * 1e-6);
    let rate_bps = match (has_queue, is_limited) {
        (true, _) if delivered > 0.0 => delivered,
        (_, true) => possible.max(delivered),
        _ => flying_bps.max(delivered),
    };
    let path_bytes = rate_bps / 8.0 * f64::from(least_rtt_us) * 1e-6;
    let path = MeasuredPath {
        rate_bps,
        delay_ns: u64::from(rtt_us) * 500,
        least_delay_ns: u64::from(least_rtt_us) * 500,
        queue_bytes: (flight_bytes - path_bytes).max(0.0),
        flight_bytes,
        is_growing: !has_queue && rate(PACING_RATE) > SLOW_START_PACING * rate_bps,
    };
    Some((path, word(NOTSENT_BYTES) as usize))
}

/// What the peer's kernel has not answered.
#[cfg(target_os = "linux")]
pub fn unanswered(socket: RawFd) -> Unanswered {
    // struct tcp_info of linux/tcp.h
    const RETRANSMITS: usize = 2;
    const UNACKNOWLEDGED_SEGMENTS: usize = 24;
    let mut info = [0_u8; 28];
    if !tcp_info(socket, &mut info) || info[UNACKNOWLEDGED_SEGMENTS..] == [0; 4] {
        return Unanswered::Nothing;
    }
    match info[RETRANSMITS] {
        0 => Unanswered::Sent,
        _ => Unanswered::SentAgain,
    }
}

/// Read the first bytes of TCP_INFO; false if the kernel knows fewer, or the socket is not TCP.
#[cfg(target_os = "linux")]
fn tcp_info(socket: RawFd, info: &mut [u8]) -> bool {
    let wanted = info.len() as libc::socklen_t;
    let mut length = wanted;
    // SAFETY: the kernel writes `length` bytes at most.
    let result = unsafe {
        libc::getsockopt(
            socket,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &mut length,
        )
    };
    result == 0 && length >= wanted
}

/// The system does not say.
#[cfg(not(target_os = "linux"))]
fn tcp_info(_socket: RawFd, _info: &mut [u8]) -> bool {
    false
}

/// The system does not say.
#[cfg(not(target_os = "linux"))]
pub fn unanswered(_socket: RawFd) -> Unanswered {
    Unanswered::Nothing
}

/// As on Linux.
#[cfg(not(target_os = "linux"))]
pub fn path(_socket: RawFd) -> Option<(MeasuredPath, usize)> {
    None
}

/// Set an option of a socket to a number.
fn set_option(
    socket: RawFd,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> Result<(), Errno> {
    let place = std::ptr::addr_of!(value).cast();
    let length = std::mem::size_of_val(&value) as libc::socklen_t;
    // SAFETY: the value is as long as said.
    counted(unsafe { libc::setsockopt(socket, level, name, place, length) } as isize).map(|_| ())
}

/// Have a socket count as readable only when this many bytes wait, or its peer has ended (SO_RCVLOWAT).
pub fn set_awaited(socket: RawFd, bytes: usize) {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    // A socket that refuses wakes its reader more often.
    let _ = set_option(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes);
}

/// Have TCP acknowledge now what has come, and what comes next as it does.
pub fn acknowledge(socket: RawFd) {
    // A socket that refuses acknowledges later.
    #[cfg(target_os = "linux")]
    let _ = set_option(socket, libc::IPPROTO_TCP, libc::TCP_QUICKACK, 1);
    #[cfg(not(target_os = "linux"))]
    let _ = socket;
}

/// Set from how many unsent bytes on the kernel no longer calls the socket writable (twice as many as it waits for).
///
/// An older kernel's MPTCP refuses it: such a socket is only called writable at another time.
pub fn set_unsent_limit(socket: RawFd, bytes: usize) -> Result<(), Errno> {
    #[cfg(target_os = "linux")]
    {
        // linux/tcp.h
        const TCP_NOTSENT_LOWAT: libc::c_int = 25;
        let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        set_option(socket, libc::IPPROTO_TCP, TCP_NOTSENT_LOWAT, value)?;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (socket, bytes);
    Ok(())
}

/// The payload of a full TCP segment of a connected socket, options taken off; no bound where the system does not tell (MPTCP of
/// Linux before 6.17).
pub fn segment_bytes(socket: RawFd) -> usize {
    let mut bytes: libc::c_int = 0;
    let mut length = std::mem::size_of_val(&bytes) as libc::socklen_t;
    // SAFETY: the option is an int, written as long as said.
    let result = unsafe {
        libc::getsockopt(
            socket,
            libc::IPPROTO_TCP,
            libc::TCP_MAXSEG,
            std::ptr::addr_of_mut!(bytes).cast(),
            &mut length,
        )
    };
    match result {
        0 => bytes.max(1) as usize,
        _ => usize::MAX,
    }
}

/// No limit of the pacing rate.
pub const NO_PACING: u64 = u64::MAX;

/// Set the rate at which TCP sends at most, in bytes of TCP payload a second.
///
/// Nothing is set that is set already: kernel MPTCP refuses the option. Does nothing elsewhere than on Linux.
pub fn set_pacing_rate(socket: RawFd, bytes_per_s: u64) -> Result<(), Errno> {
    #[cfg(target_os = "linux")]
    {
        // asm-generic/socket.h; not in the libc crate for all targets.
        const SO_MAX_PACING_RATE: libc::c_int = 47;
        let mut now: u64 = 0;
        let mut length = std::mem::size_of_val(&now) as libc::socklen_t;
        // SAFETY: the option is a number of 64 bits, written and read as long as said.
        unsafe {
            let place = std::ptr::addr_of_mut!(now).cast();
            let asked = libc::getsockopt(
                socket,
                libc::SOL_SOCKET,
                SO_MAX_PACING_RATE,
                place,
                &mut length,
            );
            match counted(asked as isize) {
                // Without the option there is no limit (gVisor, qemu's emulation of Linux).
                Err(Errno::NOPROTOOPT) if bytes_per_s == NO_PACING => return Ok(()),
                answer => answer?,
            };
            // Linux before 4.20 has a number of 32 bits.
            if length == 4 && now == u64::from(u32::MAX) {
                now = NO_PACING;
            }
            if now != bytes_per_s {
                let place = std::ptr::addr_of!(bytes_per_s).cast();
                counted(
                    libc::setsockopt(socket, libc::SOL_SOCKET, SO_MAX_PACING_RATE, place, 8)
                        as isize,
                )?;
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (socket, bytes_per_s);
    Ok(())
}

/// End a socket's sending direction; a socket that is gone has none.
pub fn shut(socket: RawFd) {
    // SAFETY: no memory is passed.
    unsafe { libc::shutdown(socket, libc::SHUT_WR) };
}

/// Fill memory with random bytes of the system, 256 at most.
pub fn fill_random(bytes: &mut [u8]) {
    // SAFETY: the memory is as long as said. The call fails for more than 256 bytes alone.
    let result = unsafe { libc::getentropy(bytes.as_mut_ptr().cast(), bytes.len()) };
    assert_eq!(result, 0, "the system has no random bytes");
}

/// Random bytes of the system.
pub(crate) fn random<const SIZE: usize>() -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    fill_random(&mut bytes);
    bytes
}

/// Have what a socket sends leave by an interface. Does nothing elsewhere than on Linux.
pub(crate) fn bind_to_interface(socket: RawFd, index: u32) -> Result<(), Errno> {
    #[cfg(target_os = "linux")]
    {
        // asm-generic/socket.h; not in the libc crate for all targets.
        const SO_BINDTOIFINDEX: libc::c_int = 62;
        set_option(
            socket,
            libc::SOL_SOCKET,
            SO_BINDTOIFINDEX,
            index as libc::c_int,
        )?;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (socket, index);
    Ok(())
}

/// The addresses of this host's interfaces that are up.
pub(crate) fn host_addresses() -> io::Result<Vec<HostAddress>> {
    let mut addresses = Vec::new();
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the list is read until its end, and freed once.
    unsafe {
        if libc::getifaddrs(&mut first) != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut next = first;
        while let Some(entry) = next.as_ref() {
            next = entry.ifa_next;
            let is_up = entry.ifa_flags & libc::IFF_UP as libc::c_uint != 0;
            if entry.ifa_addr.is_null() || !is_up {
                continue;
            }
            if let Some(ip) = ip_of(entry.ifa_addr) {
                let name = CStr::from_ptr(entry.ifa_name);
                addresses.push(HostAddress {
                    ip,
                    name: name.to_string_lossy().into_owned(),
                    index: libc::if_nametoindex(entry.ifa_name),
                });
            }
        }
        libc::freeifaddrs(first);
    }
    Ok(addresses)
}

/// A descriptor from which something can be read whenever addresses of this host have come or gone.
///
/// # Errors
/// The system does not tell of them.
pub fn address_changes() -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    {
        use rustix::net::{self, netlink, AddressFamily, SocketFlags, SocketType};
        // rtnetlink(7)
        const RTMGRP_IPV4_IFADDR: u32 = 0x10;
        const RTMGRP_IPV6_IFADDR: u32 = 0x100;
        // NETLINK_ROUTE is the family's protocol 0.
        let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
        let socket = net::socket_with(family, SocketType::RAW, flags, None)?;
        let groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
        net::bind(&socket, &netlink::SocketAddrNetlink::new(0, groups))?;
        Ok(socket)
    }
    #[cfg(not(target_os = "linux"))]
    Err(io::ErrorKind::Unsupported.into())
}
