//! The two system calls whose buffers are the core's.

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
