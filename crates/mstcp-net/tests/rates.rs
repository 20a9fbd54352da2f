//! What sockets are told of a stream's rate, and what streams without one get.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Instant;

use mstcp_net::{Endpoint, Errno, OwnMemory};
use mstcp_proto::frame::encode_control;
use mstcp_proto::Control;
use mstcp_proto::{scheduler, Config, Connection};
use rustix::net::sockopt;

const HUGE_BPS: f64 = 1e10;
const HEADER_BYTES: usize = 8;
const FRAME_BYTES: usize = 1 << 17;

fn endpoint(streams: usize, payload_bytes: usize) -> Endpoint {
    let config = Config {
        stream_count: streams,
        frame_payload_bytes: payload_bytes,
        send_queue_bytes: 1 << 24,
        reorder_buffer_bytes: 1 << 24,
    };
    Endpoint::new(Connection::new(config, scheduler::by_name("weighted", 1).unwrap()).unwrap())
}

fn option(socket: RawFd, level: i32, name: i32) -> u64 {
    let (mut value, mut length) = (0_u64, 8);
    let place = std::ptr::addr_of_mut!(value).cast();
    // SAFETY: it is written as long as said.
    assert_eq!(
        unsafe { libc::getsockopt(socket, level, name, place, &mut length) },
        0
    );
    value
}

fn pacing(socket: RawFd) -> u64 {
    option(socket, libc::SOL_SOCKET, 47)
}

fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let far = listener.accept().unwrap().0;
    for socket in [&near, &far] {
        socket.set_nonblocking(true).unwrap();
        socket.set_nodelay(true).unwrap();
    }
    (near, far)
}

#[test]
fn a_stream_is_paced_at_its_rate_with_headers_and_slack_until_that_is_taken_back() {
    let (near, _far) = connected();
    let (socket, mut end) = (near.as_raw_fd(), endpoint(1, 528));
    end.attach(0, socket, Some(8e6), 528, HEADER_BYTES).unwrap();
    let with_headers = 536.0 / 528.0;
    assert_eq!(pacing(socket), (1e6 * with_headers * 1.01) as u64);
    let unsent = option(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT);
    assert_eq!(unsent, (1e4 * with_headers) as u64);
    end.attach(0, socket, None, 528, HEADER_BYTES).unwrap();
    assert_eq!(pacing(socket), u64::MAX);
    assert!(option(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT) > 1 << 20);
}

#[test]
fn kernel_mptcp_is_left_unpaced_without_a_rate_and_refuses_one() {
    // SAFETY: the call takes no pointers.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_MPTCP) };
    if socket < 0 {
        return; // a kernel without it
    }
    // SAFETY: it is this test's own.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let mut end = endpoint(1, 528);
    let number = socket.as_raw_fd();
    assert_eq!(end.attach(0, number, None, 528, HEADER_BYTES), Ok(()));
    assert_eq!(pacing(number), u64::MAX);
    let refused = end.attach(0, number, Some(8e6), 528, HEADER_BYTES);
    assert_eq!(refused, Err(Errno::OPNOTSUPP));
}

/// The bound can shrink under a frame that was begun: a path turns out slower than it seemed.
#[test]
fn a_frame_larger_than_what_may_wait_unsent_still_leaves() {
    const SIZE: usize = 30_000;
    let (near, mut far) = connected();
    sockopt::set_socket_send_buffer_size(&near, 4096).unwrap();
    sockopt::set_socket_recv_buffer_size(&far, 4096).unwrap();
    let (socket, mut end) = (near.as_raw_fd(), endpoint(1, 1440));
    end.attach(0, socket, Some(HUGE_BPS), 1440, HEADER_BYTES)
        .unwrap();
    end.core.write(&[0; SIZE]).unwrap();
    end.transmit(0).unwrap();
    end.attach(0, socket, Some(1e6), 1440, HEADER_BYTES)
        .unwrap();
    let (mut received, mut piece) = (0, vec![0; SIZE]);
    far.set_nonblocking(false).unwrap();
    far.set_read_timeout(Some(std::time::Duration::from_secs(30)))
        .unwrap();
    while received < SIZE {
        received += far.read(&mut piece).expect("it stands still");
        end.core.on_writable(0).unwrap();
        end.transmit(0).unwrap();
    }
    assert_eq!(end.core.queued_bytes(), 0);
}

/// Send some bytes from the first end to the second, until all is acknowledged.
fn transfer(ends: &mut [Endpoint; 2]) {
    let began = Instant::now();
    ends[0].core.write(&vec![0; 1 << 23]).unwrap();
    while ends[0].core.queued_bytes() + ends[0].core.unacknowledged_bytes() > 0 {
        for end in &mut *ends {
            for stream in 0..2 {
                while matches!(end.read(&mut OwnMemory, stream).unwrap(), Ok(1..)) {}
                end.core.on_writable(stream).unwrap();
            }
            while !end.take().is_empty() {
                end.reclaim();
            }
            let now_ns = began.elapsed().as_nanos() as u64;
            end.transmit(now_ns).unwrap();
        }
    }
}

/// How many bytes each of two streams is given when `slow` is said to carry nothing.
fn split(sockets: &[RawFd; 2], rate_bps: Option<f64>, slow: usize) -> [usize; 2] {
    let mut end = endpoint(2, 1440);
    for (stream, socket) in sockets.iter().enumerate() {
        end.attach(stream, *socket, rate_bps, 1440, HEADER_BYTES)
            .unwrap();
    }
    let weight = |stream| if stream == slow { 1.0 } else { HUGE_BPS };
    end.core.set_weights(&[weight(0), weight(1)]).unwrap();
    end.measure(0).unwrap();
    end.core.write(&vec![0; 1 << 22]).unwrap();
    let mut sizes = [0; 2];
    while let Some((stream, size)) = end.core.poll_frame(0) {
        sizes[stream] += size;
        end.on_sent(stream, size).unwrap();
        // All frames that were sent have arrived.
        let streams = end.core.counters().streams;
        let frames = (streams.iter().enumerate())
            .map(|(at, stream)| (at as u32, stream.frames_sent))
            .collect();
        let mut report = Vec::new();
        let ack = Control::Ack {
            received: 0,
            limit: 0,
            streams: frames,
        };
        encode_control(&mut report, &ack);
        end.receive(0, &report).unwrap();
    }
    sizes
}

/// TCP's figures stay as they are, since nothing is sent, and each split begins without debts between streams: the machine's
/// speed does not matter.
#[test]
fn a_stream_without_a_rate_gets_what_its_path_is_found_to_carry_and_one_with_a_rate_that() {
    for rate_bps in [None, Some(HUGE_BPS)] {
        let pairs = [connected(), connected()];
        let mut ends = [endpoint(2, 1440), endpoint(2, 1440)];
        for (stream, (near, far)) in pairs.iter().enumerate() {
            for (end, socket) in ends.iter_mut().zip([near, far]) {
                end.attach(stream, socket.as_raw_fd(), rate_bps, 1440, HEADER_BYTES)
                    .unwrap();
            }
        }
        transfer(&mut ends);
        let sockets = [0, 1].map(|at: usize| pairs[at].0.as_raw_fd());
        let shares = [0, 1].map(|slow| {
            let sizes = split(&sockets, rate_bps, slow);
            sizes[slow] as f64 / (sizes[0] + sizes[1]) as f64
        });
        let frame = FRAME_BYTES as f64 / f64::from(1 << 22);
        match rate_bps {
            // By what TCP measured they add up to all, whichever stream was said to carry nothing.
            None => assert!(
                (shares[0] + shares[1] - 1.0).abs() <= 4.0 * frame,
                "{shares:?}"
            ),
            Some(_) => assert!(shares[0].max(shares[1]) <= 2.0 * frame, "{shares:?}"),
        }
    }
}
