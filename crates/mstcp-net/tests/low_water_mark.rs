//! What a reader waits for, by the kernel's own account.

use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use mstcp_net::low_water_mark::LowWaterMark;

const MUCH: usize = 1 << 20;
const REST: usize = 1 << 19;
const BEGIN_NS: u64 = 1_000_000_000;
const LATER_NS: u64 = BEGIN_NS + 20_000_000;

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let writer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    writer.set_nodelay(true).unwrap();
    (writer, listener.accept().unwrap().0)
}

/// Whether a socket becomes readable within this many milliseconds.
fn is_readable(socket: &TcpStream, milliseconds: i32) -> bool {
    let mut entry = libc::pollfd {
        fd: socket.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry, which is ours.
    unsafe { libc::poll(&mut entry, 1, milliseconds) == 1 }
}

#[test]
fn a_reader_is_woken_for_much_of_a_frame() {
    let (mut writer, reader) = pair();
    let mut awaiting = LowWaterMark::default();
    awaiting.on_read(reader.as_raw_fd(), MUCH, REST);
    writer.write_all(&[0; 1000]).unwrap();
    assert!(!is_readable(&reader, 50));
    writer.write_all(&vec![0; REST]).unwrap();
    assert!(is_readable(&reader, 10_000));
}

#[test]
fn what_has_come_is_read_where_no_more_comes() {
    let (mut writer, reader) = pair();
    let mut awaiting = LowWaterMark::default();
    awaiting.on_read(reader.as_raw_fd(), MUCH, REST);
    assert_eq!(awaiting.due_ns(), None);
    awaiting.check(reader.as_raw_fd(), BEGIN_NS);
    assert_eq!(awaiting.due_ns(), Some(LATER_NS));
    writer.write_all(&[0; 1000]).unwrap();
    assert!(!is_readable(&reader, 50));
    awaiting.check(reader.as_raw_fd(), LATER_NS);
    assert_eq!(awaiting.due_ns(), None);
    assert!(is_readable(&reader, 10_000));
}

#[test]
fn a_slow_path_brings_its_bytes_as_they_come() {
    let (mut writer, reader) = pair();
    let mut awaiting = LowWaterMark::default();
    awaiting.on_read(reader.as_raw_fd(), MUCH, REST);
    awaiting.on_read(reader.as_raw_fd(), 1000, REST);
    writer.write_all(&[0]).unwrap();
    assert!(is_readable(&reader, 10_000));
}

#[test]
fn the_end_of_a_stream_waits_for_nothing() {
    let (writer, reader) = pair();
    LowWaterMark::default().on_read(reader.as_raw_fd(), MUCH, REST);
    writer.shutdown(Shutdown::Write).unwrap();
    assert!(is_readable(&reader, 10_000));
}
