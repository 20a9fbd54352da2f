//! One end of a wire: a packet socket whose frames arrive in a ring of memory shared with the kernel.
//!
//! The ring (PACKET_RX_RING, TPACKET_V2) costs no system call per frame, and the kernel stamps each frame as it
//! arrives, so that the time until this process looks adds nothing to the delay of the link.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

use link_emulator::checksum::ChecksumRequest;

use crate::interface::Interface;
use crate::sys;

/// Frames that may arrive between two looks.
const RING_FRAMES: usize = 1024;
/// A multiple of every frame size and of the page size.
const BLOCK_BYTES: usize = 64 * 1024;
/// What the kernel puts before a frame (76 bytes now), and a VLAN tag, with room to spare.
const FRAME_OVERHEAD_BYTES: usize = 128;
/// Ethernet header and one VLAN tag: a frame may be longer than the MTU by this.
pub const LINK_HEADER_BYTES: usize = 18;

/// `struct virtio_net_hdr` of the kernel.
#[repr(C)]
#[derive(Clone, Copy)]
struct VirtioNetHeader {
    flags: u8,
    gso_type: u8,
    header_bytes: u16,
    gso_bytes: u16,
    checksum_start: u16,
    checksum_offset: u16,
}

const VIRTIO_NEEDS_CHECKSUM: u8 = 1;

/// A frame in the ring.
#[derive(Debug)]
pub struct Received<'a> {
    /// The frame without its VLAN tag. Shorter than what was sent if `is_oversize`.
    pub bytes: &'a [u8],
    /// The tag that the kernel took off: protocol and control information.
    pub vlan: Option<[u16; 2]>,
    /// The checksum that the sender left to its network card.
    pub checksum: Option<ChecksumRequest>,
    /// When it arrived, as [`sys::realtime_ns`] tells the time.
    pub stamp_realtime_ns: u64,
    /// No frame that a wire carries: longer than the MTU, or several segments in one (offload).
    pub is_oversize: bool,
}

/// One end of a wire.
#[derive(Debug)]
pub struct Port {
    socket: OwnedFd,
    ring: Ring,
    next: usize,
    pub interface: Interface,
    /// Frames that are no frames of a wire (see [`Received::is_oversize`]).
    pub oversize: u64,
    /// Frames that found the ring full.
    overruns: u64,
}

impl Port {
    /// Starts to receive the frames that come in on an interface.
    pub fn open(interface: Interface) -> io::Result<Self> {
        // Protocol 0: nothing is received before the socket is bound to its interface.
        // SAFETY: no pointers.
        let socket = sys::own(unsafe {
            libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0)
        })?;
        let packet =
            |option, value: libc::c_int| sys::set_option(&socket, libc::SOL_PACKET, option, value);
        packet(
            libc::PACKET_VERSION,
            libc::tpacket_versions::TPACKET_V2 as libc::c_int,
        )?;
        packet(libc::PACKET_VNET_HDR, 1)?;
        packet(libc::PACKET_IGNORE_OUTGOING, 1)?;
        let ring = Ring::new(&socket, interface.mtu + LINK_HEADER_BYTES)?;
        let membership = libc::packet_mreq {
            mr_ifindex: interface.index,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        sys::set_option(
            &socket,
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            membership,
        )?;
        bind(&socket, interface.index)?;
        Ok(Self {
            socket,
            ring,
            next: 0,
            interface,
            oversize: 0,
            overruns: 0,
        })
    }

    /// Passes up to `limit` frames to `take`; returns how many there were.
    pub fn drain(&mut self, limit: usize, mut take: impl FnMut(&Received<'_>)) -> usize {
        for count in 0..limit {
            let Some(slot) = self.ring.slot(self.next) else {
                return count;
            };
            let frame = slot.frame(self.interface.mtu + LINK_HEADER_BYTES);
            self.oversize += u64::from(frame.is_oversize);
            take(&frame);
            slot.release();
            self.next = (self.next + 1) % self.ring.frames;
        }
        limit
    }

    /// Frames that were not received since the port was opened: the ring was full, or they were oversize.
    pub fn dropped_receive(&mut self) -> u64 {
        // Reading resets the kernel's counters.
        // SAFETY: the statistics are plain integers.
        let statistics: io::Result<libc::tpacket_stats> =
            unsafe { sys::get_option(&self.socket, libc::SOL_PACKET, libc::PACKET_STATISTICS) };
        self.overruns += statistics.map_or(0, |statistics| u64::from(statistics.tp_drops));
        self.overruns + self.oversize
    }
}

impl AsRawFd for Port {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

fn bind(socket: &OwnedFd, index: i32) -> io::Result<()> {
    // SAFETY: all zeroes is a valid address; the pointer and the length describe it.
    let result = unsafe {
        let mut address: libc::sockaddr_ll = zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        libc::bind(
            socket.as_raw_fd(),
            std::ptr::addr_of!(address).cast(),
            length,
        )
    };
    sys::check(result).map(drop)
}

/// The shared memory of a packet socket.
#[derive(Debug)]
struct Ring {
    memory: *mut u8,
    frames: usize,
    frame_bytes: usize,
}

// SAFETY: the memory belongs to the ring alone on this side, and the kernel's side knows no threads of ours.
unsafe impl Send for Ring {}

impl Ring {
    fn new(socket: &OwnedFd, longest_bytes: usize) -> io::Result<Self> {
        let frame_bytes = (longest_bytes + FRAME_OVERHEAD_BYTES)
            .next_power_of_two()
            .min(BLOCK_BYTES);
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: (RING_FRAMES * frame_bytes / BLOCK_BYTES) as u32,
            tp_frame_size: frame_bytes as u32,
            tp_frame_nr: RING_FRAMES as u32,
        };
        sys::set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, request)?;
        // SAFETY: a new mapping, whose length is that of the ring.
        let memory = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let length = RING_FRAMES * frame_bytes;
            libc::mmap(
                std::ptr::null_mut(),
                length,
                access,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            memory: memory.cast(),
            frames: RING_FRAMES,
            frame_bytes,
        })
    }

    /// The frame at a position, if the kernel has handed it over.
    fn slot(&self, position: usize) -> Option<Slot<'_>> {
        // SAFETY: the position is below `frames` (see `Port::drain`); a frame starts with its header, whose first
        // member is the status word, and frames are aligned to 16 bytes.
        let slot = unsafe {
            let start = self.memory.add(position * self.frame_bytes);
            Slot {
                start,
                status: &*start.cast::<AtomicU32>(),
                frame_bytes: self.frame_bytes,
            }
        };
        let status = slot.status.load(Ordering::Acquire);
        (status & libc::TP_STATUS_USER != 0).then_some(slot)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`, which nothing refers to any more.
        unsafe { libc::munmap(self.memory.cast(), self.frames * self.frame_bytes) };
    }
}

/// A frame that the kernel has handed over, until it is released.
struct Slot<'a> {
    start: *const u8,
    status: &'a AtomicU32,
    frame_bytes: usize,
}

impl Slot<'_> {
    fn frame(&self, longest_bytes: usize) -> Received<'_> {
        // SAFETY: the kernel has written a header at the start of the frame and does not touch it until `release`.
        let header = unsafe { &*self.start.cast::<libc::tpacket2_hdr>() };
        let offset = usize::from(header.tp_mac);
        let stored = (header.tp_snaplen as usize).min(self.frame_bytes.saturating_sub(offset));
        // SAFETY: the kernel stores `tp_snaplen` bytes at `tp_mac`, within the frame, and the virtio header before.
        let (bytes, virtio) = unsafe {
            let data = self.start.add(offset);
            let virtio = data
                .sub(size_of::<VirtioNetHeader>())
                .cast::<VirtioNetHeader>();
            (
                std::slice::from_raw_parts(data, stored),
                virtio.read_unaligned(),
            )
        };
        let has_tag = header.tp_status & libc::TP_STATUS_VLAN_VALID != 0;
        let tag_bytes = if has_tag { 4 } else { 0 };
        let protocol = match header.tp_status & libc::TP_STATUS_VLAN_TPID_VALID {
            0 => libc::ETH_P_8021Q as u16,
            _ => header.tp_vlan_tpid,
        };
        Received {
            bytes,
            vlan: has_tag.then_some([protocol, header.tp_vlan_tci]),
            checksum: (virtio.flags & VIRTIO_NEEDS_CHECKSUM != 0).then_some(ChecksumRequest {
                start: usize::from(virtio.checksum_start),
                offset: usize::from(virtio.checksum_offset),
            }),
            stamp_realtime_ns: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
            is_oversize: virtio.gso_type != 0
                || stored < header.tp_len as usize
                || stored + tag_bytes > longest_bytes
                || stored < 14,
        }
    }

    fn release(self) {
        self.status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }
}
