//! The system calls that are made for each frame.

use std::io::{Error, IoSlice};
use std::os::fd::RawFd;

/// The most pieces that one call sends.
pub const MAX_PIECES: usize = 64;

fn counted(result: isize) -> Result<usize, i32> {
    usize::try_from(result).map_err(|_| Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

/// Send pieces on a connected socket without waiting; the error is an errno.
pub fn send(socket: RawFd, pieces: &[IoSlice<'_>]) -> Result<usize, i32> {
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

/// Receive into `buffer` without waiting; 0 bytes are the end of the stream, the error is an errno.
pub fn receive(socket: RawFd, buffer: &mut [u8]) -> Result<usize, i32> {
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

/// How many bytes of a socket TCP has not sent yet; 0 where the system does not say.
pub fn unsent_bytes(socket: RawFd) -> usize {
    #[cfg(target_os = "linux")]
    {
        // linux/sockios.h; the libc crate does not name it.
        const SIOCOUTQNSD: libc::c_ulong = 0x894B;
        let mut count: libc::c_int = 0;
        // SAFETY: the request writes one int.
        let result = unsafe { libc::ioctl(socket, SIOCOUTQNSD as _, &mut count) };
        if result == 0 {
            return usize::try_from(count).unwrap_or(0);
        }
    }
    let _ = socket;
    0
}
