//! Plain TCP through the endpoint: the same bytes by each reader, each direction's end, and the error of one that broke.

use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

use mstcp_net::inbox::ReadTarget;
use mstcp_net::{Endpoint, Errno, OwnMemory};
use mstcp_proto::Connection;
use mstcp_proto::SplitMix64;

const PAYLOAD_BYTES: usize = 1448;
const LIMIT: Duration = Duration::from_secs(30);

/// An endpoint with its socket, and the peer's.
struct Ends {
    endpoint: Endpoint,
    socket: TcpStream,
    peer: TcpStream,
}

fn ends() -> Ends {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (peer, _) = listener.accept().unwrap();
    peer.set_read_timeout(Some(LIMIT)).unwrap();
    socket.set_nonblocking(true).unwrap();
    let core = Connection::plain(PAYLOAD_BYTES, 1 << 20, true).unwrap();
    let mut endpoint = Endpoint::new(core);
    endpoint
        .attach(0, socket.as_raw_fd(), None, PAYLOAD_BYTES, 0)
        .unwrap();
    Ends {
        endpoint,
        socket,
        peer,
    }
}

/// Wait until a socket has something to be read.
fn wait(socket: &TcpStream) {
    socket.set_nonblocking(false).unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    let _ = socket.peek(&mut [0]);
    socket.set_nonblocking(true).unwrap();
}

#[test]
fn bytes_come_as_they_were_sent_in_place_and_in_blocks() {
    for seed in 0..20 {
        let mut rng = SplitMix64::new(seed);
        let mut below = |bound: usize| (rng.next_u64() % bound as u64) as usize;
        let Ends {
            mut endpoint,
            socket,
            mut peer,
        } = ends();
        let data: Vec<u8> = (0..200_000 + below(200_000))
            .map(|at| ((at * 31) >> 3) as u8)
            .collect();
        let sent = data.clone();
        let sender = std::thread::spawn(move || {
            peer.write_all(&sent).unwrap();
            peer.shutdown(Shutdown::Write).unwrap();
            peer
        });
        let (mut received, mut is_ended) = (Vec::new(), false);
        while !is_ended {
            wait(&socket);
            let mut buffer = vec![MaybeUninit::uninit(); 1 + below(100_000)];
            let mut target = ReadTarget::new(&mut buffer);
            let count = match endpoint.next_in_place(0, target.room()) {
                0 => endpoint.read(&mut OwnMemory, 0).unwrap(),
                _ => endpoint.read_in_place(0, &mut target).unwrap().1,
            };
            is_ended = count == Ok(0);
            endpoint.take_into(&mut target);
            let filled = target.filled();
            // SAFETY: this many are filled.
            received.extend((buffer[..filled].iter()).map(|byte| unsafe { byte.assume_init() }));
        }
        assert!(endpoint.on_stream_end(0).unwrap());
        received.extend(endpoint.take().iter().flat_map(|slice| slice.to_vec()));
        assert!(received == data && endpoint.is_ended());
        // The other direction is open still.
        endpoint.core.write(b"pong").unwrap();
        endpoint.core.end();
        let sent = endpoint.transmit(0).unwrap();
        assert!(sent.ended.contains(0) && sent.bytes == 4 && endpoint.core.is_finished());
        socket.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        sender.join().unwrap().read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"pong");
    }
}

/// Close a socket so that the peer sees a reset.
fn reset(socket: TcpStream) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    // SAFETY: the option takes this struct.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            std::ptr::addr_of!(linger).cast(),
            std::mem::size_of_val(&linger) as u32,
        )
    };
    assert_eq!(result, 0);
}

/// Wait until a socket's connection has broken; `wait` would be told the error in the endpoint's place.
fn wait_broken(socket: &TcpStream) {
    let mut poll = libc::pollfd {
        fd: socket.as_raw_fd(),
        events: 0,
        revents: 0,
    };
    // SAFETY: one entry is passed.
    assert_eq!(unsafe { libc::poll(&mut poll, 1, 30_000) }, 1);
}

#[test]
fn one_that_broke_says_so_to_who_sends_though_too_much_is_unsent() {
    for has_ended in [false, true] {
        let Ends {
            mut endpoint,
            socket,
            peer,
        } = ends();
        let descriptor = socket.as_raw_fd();
        endpoint
            .attach(0, descriptor, Some(1e5), PAYLOAD_BYTES, 0)
            .unwrap();
        endpoint.core.write(&[7; 1 << 20]).unwrap();
        assert!(endpoint.transmit(0).unwrap().blocked.contains(0));
        if has_ended {
            peer.shutdown(Shutdown::Write).unwrap();
            wait(&socket);
            assert_eq!(endpoint.read(&mut OwnMemory, 0).unwrap(), Ok(0));
        }
        reset(peer);
        wait_broken(&socket);
        endpoint.core.on_writable(0).unwrap();
        let (stream, errno) = endpoint.transmit(1).unwrap().failed.unwrap();
        assert!(stream == 0 && [Errno::CONNRESET, Errno::PIPE].contains(&errno));
    }
}

#[test]
fn one_that_broke_says_so_to_all_that_read_it() {
    let Ends {
        mut endpoint,
        socket,
        peer,
    } = ends();
    reset(peer);
    wait_broken(&socket);
    for _ in 0..3 {
        let result = endpoint.read(&mut OwnMemory, 0).unwrap();
        assert_eq!(result, Err(Errno::CONNRESET));
        assert!(endpoint.next_in_place(0, 1 << 20) == 0 && !endpoint.is_ended());
    }
}

#[test]
fn a_stream_is_not_read_while_much_waits_for_the_application() {
    let Ends { mut endpoint, .. } = ends();
    assert!(endpoint.core.readable().contains(0));
    endpoint.receive(0, &[0; 1 << 20]).unwrap();
    assert!(!endpoint.core.readable().contains(0));
    while !endpoint.take().is_empty() {
        endpoint.reclaim();
    }
    assert!(endpoint.core.readable().contains(0));
}
