//! Sending batches of frames, each to an interface of its own, with one system call.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, OwnedFd};

use crate::sys;

/// Most frames in a batch.
pub const BATCH_FRAMES: usize = 32;
/// Bytes that may be on their way to the readers of all interfaces.
const SEND_BUFFER_BYTES: libc::c_int = 16 << 20;

/// A packet socket that sends on any interface, past its queueing discipline.
pub struct Transmitter {
    socket: OwnedFd,
    addresses: Box<[libc::sockaddr_ll; BATCH_FRAMES]>,
    vectors: Box<[libc::iovec; BATCH_FRAMES]>,
    messages: Box<[libc::mmsghdr; BATCH_FRAMES]>,
}

impl Transmitter {
    pub fn new() -> io::Result<Self> {
        // Protocol 0: the socket receives nothing.
        // SAFETY: no pointers.
        let socket = sys::own(unsafe {
            libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0)
        })?;
        sys::set_option(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1i32)?;
        sys::set_option(
            &socket,
            libc::SOL_SOCKET,
            libc::SO_SNDBUFFORCE,
            SEND_BUFFER_BYTES,
        )
        .or_else(|_| {
            sys::set_option(
                &socket,
                libc::SOL_SOCKET,
                libc::SO_SNDBUF,
                SEND_BUFFER_BYTES,
            )
        })?;
        // SAFETY: all three are C structures for which all zeroes is valid.
        unsafe {
            Ok(Self {
                socket,
                addresses: Box::new(zeroed()),
                vectors: Box::new(zeroed()),
                messages: Box::new(zeroed()),
            })
        }
    }

    /// Sends up to [`BATCH_FRAMES`] frames, given with the numbers of their interfaces, in order.
    ///
    /// `done` is told for each frame, by its place in the batch, whether it left.
    pub fn send<'a>(
        &mut self,
        frames: impl Iterator<Item = (i32, &'a [u8])>,
        mut done: impl FnMut(usize, bool),
    ) {
        let mut count = 0;
        for (index, bytes) in frames.take(BATCH_FRAMES) {
            self.prepare(count, index, bytes);
            count += 1;
        }
        let mut sent = 0;
        while sent < count {
            // SAFETY: the messages from `sent` to `count` point to addresses and vectors of ours and to frames that
            // the caller has borrowed to us.
            let result = unsafe {
                let first = self.messages.as_mut_ptr().add(sent);
                libc::sendmmsg(
                    self.socket.as_raw_fd(),
                    first,
                    (count - sent) as u32,
                    libc::MSG_DONTWAIT as _,
                )
            };
            if result > 0 {
                (sent..sent + result as usize).for_each(|place| done(place, true));
                sent += result as usize;
            } else if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                // The error is the first message's: its interface is down or gone, or its reader is too slow.
                done(sent, false);
                sent += 1;
            }
        }
    }

    fn prepare(&mut self, place: usize, index: i32, bytes: &[u8]) {
        let address = &mut self.addresses[place];
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = index;
        let vector = &mut self.vectors[place];
        *vector = libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        };
        let header = &mut self.messages[place].msg_hdr;
        header.msg_name = std::ptr::addr_of_mut!(*address).cast();
        header.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        header.msg_iov = vector;
        header.msg_iovlen = 1;
    }
}
