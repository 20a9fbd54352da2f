//! What sockets bring, right or wrong, is what the core makes of the same bytes, however they are cut: the reading path fuzzed.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use mstcp_net::{Endpoint, OwnMemory, ReadError};
use mstcp_proto::frame::{encode_control, encode_data};
use mstcp_proto::Control;
use mstcp_proto::SplitMix64;
use mstcp_proto::{scheduler, Config, Connection};

const PAYLOAD_BYTES: usize = 1000;
/// Small enough for a socket's buffer.
const LONGEST: usize = 60_000;

fn core() -> Connection {
    let config = Config {
        stream_count: 1,
        frame_payload_bytes: PAYLOAD_BYTES,
        send_queue_bytes: 1 << 20,
        reorder_buffer_bytes: 1 << 20,
    };
    Connection::new(config, scheduler::by_name("weighted", 1).unwrap()).unwrap()
}

/// Frames of all sizes, mostly in order, with some bytes changed where the seed says so.
fn bytes(rng: &mut SplitMix64) -> Vec<u8> {
    let mut below = |bound: usize| (rng.next_u64() % bound as u64) as usize;
    let (mut bytes, mut offset) = (Vec::new(), 0);
    while bytes.len() < LONGEST / 2 && below(40) > 0 {
        let length = [below(20) + 1, PAYLOAD_BYTES, below(30_000) + 1][below(3)];
        let at = if below(5) == 0 {
            offset + below(3000)
        } else {
            offset
        };
        let payload: Vec<u8> = (at..at + length)
            .map(|place| ((place * 7) >> 2) as u8)
            .collect();
        encode_data(&mut bytes, at as u64, &payload, PAYLOAD_BYTES);
        offset = offset.max(at + length);
        if below(4) == 0 {
            encode_control(&mut bytes, &Control::Ping(offset as u64));
        }
    }
    if below(2) == 0 {
        for _ in 0..below(4) {
            let at = below(bytes.len().max(1));
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << below(8);
            }
        }
    }
    bytes.truncate(LONGEST);
    bytes
}

/// What comes out, and why it ended.
type Outcome = (Vec<u8>, Option<String>);

fn by_core(bytes: &[u8]) -> Outcome {
    let (mut core, mut out) = (core(), Vec::new());
    let error = core.on_received(0, bytes, &mut out).err();
    (out, error.map(|error| error.to_string()))
}

fn by_socket(bytes: &[u8], rng: &mut SplitMix64) -> Outcome {
    let (mut far, near) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let mut endpoint = Endpoint::new(core());
    // It is no TCP socket and can be paced by nobody; the descriptor is what counts.
    let _ = (endpoint.sockets()).attach(0, near.as_raw_fd(), None, PAYLOAD_BYTES, 8);
    let (mut out, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let count = 1 + (rng.next_u64() % rest.len().min(9000) as u64) as usize;
        far.write_all(&rest[..count]).unwrap();
        rest = &rest[count..];
        loop {
            match endpoint.read(&mut OwnMemory, 0) {
                Ok(Ok(_)) => {}
                Ok(Err(errno)) => {
                    assert_eq!(errno, mstcp_net::Errno::AGAIN);
                    break;
                }
                Err(ReadError::Protocol(error)) => {
                    take(&mut endpoint, &mut out);
                    return (out, Some(error.to_string()));
                }
                Err(ReadError::Memory(never)) => match never {},
            }
        }
        take(&mut endpoint, &mut out);
    }
    (out, None)
}

fn take(endpoint: &mut Endpoint, out: &mut Vec<u8>) {
    while endpoint.ready_bytes() > 0 {
        for slice in endpoint.take() {
            out.extend_from_slice(&slice);
        }
        endpoint.reclaim();
    }
}

#[test]
fn a_socket_brings_what_the_core_makes_of_its_bytes() {
    let inputs = std::env::var("MSTCP_FUZZ_INPUTS").map_or(300, |text| text.parse().unwrap());
    let mut refused = 0;
    for seed in 0..inputs {
        let mut rng = SplitMix64::new(seed);
        let bytes = bytes(&mut rng);
        let (expected, why) = by_core(&bytes);
        let (came, reason) = by_socket(&bytes, &mut rng);
        assert_eq!(reason, why, "seed {seed}");
        // What came before an error in the same read is not passed on; but nothing else is.
        assert!(expected.starts_with(&came), "seed {seed}");
        assert!(why.is_some() || came == expected, "seed {seed}");
        refused += u64::from(why.is_some());
    }
    assert!(refused > 0 || inputs < 100, "no input was refused");
}
