//! Network interfaces by name and number.

use std::ffi::CString;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::sys;

/// A network interface of this namespace.
#[derive(Clone, Debug)]
pub struct Interface {
    pub name: String,
    pub index: i32,
    /// Largest payload of a frame in bytes.
    pub mtu: usize,
}

/// What an interface is doing now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Up,
    Down,
    Gone,
}

/// Looks interfaces up; holds the socket that such questions need.
#[derive(Debug)]
pub struct Interfaces {
    socket: OwnedFd,
}

impl Interfaces {
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers.
        sys::own(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })
            .map(|socket| Self { socket })
    }

    /// Finds an interface by name.
    pub fn find(&self, name: &str) -> io::Result<Interface> {
        let mut request = request(name)?;
        self.ioctl(libc::SIOCGIFINDEX, &mut request)?;
        // SAFETY: the kernel has just filled this member in.
        let index = unsafe { request.ifr_ifru.ifru_ifindex };
        self.ioctl(libc::SIOCGIFMTU, &mut request)?;
        // SAFETY: as above.
        let mtu = unsafe { request.ifr_ifru.ifru_mtu };
        Ok(Interface {
            name: name.to_owned(),
            index,
            mtu: mtu as usize,
        })
    }

    /// Makes an interface a wire's end: up, and with a kernel that says nothing of its own on it (no ARP, no IPv6).
    pub fn prepare(&self, interface: &Interface) -> io::Result<()> {
        // A kernel without IPv6 has no such file, and then nothing needs silencing.
        let _ = std::fs::write(
            format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", interface.name),
            "1",
        );
        let mut request = request(&interface.name)?;
        self.ioctl(libc::SIOCGIFFLAGS, &mut request)?;
        // SAFETY: the kernel has just filled this member in.
        unsafe { request.ifr_ifru.ifru_flags |= (libc::IFF_UP | libc::IFF_NOARP) as libc::c_short };
        self.ioctl(libc::SIOCSIFFLAGS, &mut request)
    }

    /// What an interface, found earlier, is doing now.
    pub fn state(&self, interface: &Interface) -> State {
        // By number first: a new interface may have taken the name.
        // SAFETY: all zeroes is a valid request.
        let mut request: libc::ifreq = unsafe { zeroed() };
        request.ifr_ifru.ifru_ifindex = interface.index;
        if self.ioctl(libc::SIOCGIFNAME, &mut request).is_err()
            || self.ioctl(libc::SIOCGIFFLAGS, &mut request).is_err()
        {
            return State::Gone;
        }
        // SAFETY: the kernel has just filled this member in.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        if i32::from(flags) & libc::IFF_UP == 0 {
            State::Down
        } else {
            State::Up
        }
    }

    fn ioctl(&self, number: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
        // SAFETY: all requests used here take a pointer to an ifreq.
        sys::check(unsafe { libc::ioctl(self.socket.as_raw_fd(), number, request) }).map(drop)
    }
}

fn request(name: &str) -> io::Result<libc::ifreq> {
    let no_such_device = || io::Error::from_raw_os_error(libc::ENODEV);
    let text = CString::new(name).map_err(|_| no_such_device())?;
    // SAFETY: all zeroes is a valid request.
    let mut request: libc::ifreq = unsafe { zeroed() };
    let bytes = text.as_bytes_with_nul();
    if bytes.len() > request.ifr_name.len() {
        return Err(no_such_device());
    }
    for (target, &byte) in request.ifr_name.iter_mut().zip(bytes) {
        *target = byte as libc::c_char;
    }
    Ok(request)
}
