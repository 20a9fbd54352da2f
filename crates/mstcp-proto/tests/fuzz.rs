//! The fuzz targets on any toolchain: seeds that make sense, changed at random, for a bounded number of inputs.
//!
//! `MSTCP_FUZZ_INPUTS` says how many inputs for each target. `make fuzz` runs the same targets by libFuzzer, which sees
//! what they reach.

#[path = "../fuzz/src/lib.rs"]
mod targets;

use mstcp_proto::frame::{encode_control, encode_data};
use mstcp_proto::hello::Hello;
use mstcp_proto::Control;
use mstcp_proto::SplitMix64;

const LONGEST: usize = 4096;

fn seeds() -> Vec<Vec<u8>> {
    let hello = Hello {
        connection_id: *b"0123456789abcdef",
        stream_id: 1,
        stream_count: 2,
        frame_payload_bytes: 528,
        version: 3,
        least_version: 3,
        nonce: [7; 32],
        refusal: 3,
        priority: 1,
        records: 1,
        ..Hello::default()
    };
    let mut frames = vec![0, 15, 0, 9];
    encode_data(&mut frames, 0, &[5; 16], 16);
    encode_data(&mut frames, 32, &[6; 7], 16);
    encode_data(&mut frames, 16, &[7; 40], 16);
    for control in [
        Control::Fin { total_bytes: 56 },
        Control::Ack {
            received: 0,
            limit: 1 << 20,
            streams: vec![(0, 1), (1, 2)],
        },
        Control::Close {
            code: 1,
            reason: "why".into(),
        },
        Control::Ping(3),
        Control::Pong(3),
        Control::Last,
        Control::Confirm([3; 32]),
        Control::Seen(vec![(0, 1)]),
        Control::Gone(1),
        Control::Status { id: 0, priority: 1 },
        Control::Addresses {
            number: 1,
            addresses: vec!["192.0.2.1:9".parse().unwrap(), "[::1]:9".parse().unwrap()],
        },
    ] {
        encode_control(&mut frames, &control);
    }
    let counting = (0..200).collect();
    vec![
        Vec::new(),
        hello.encode(),
        hello.encode_body(),
        frames,
        counting,
    ]
}

fn change(input: &mut Vec<u8>, rng: &mut SplitMix64, others: &[Vec<u8>]) {
    let mut below = |bound: usize| (rng.next_u64() % bound.max(1) as u64) as usize;
    let at = below(input.len() + 1);
    match below(7) {
        0 if at < input.len() => input[at] = below(256) as u8,
        1 if at < input.len() => input[at] ^= 1 << below(8),
        2 => input.truncate(at),
        3 => {
            let other = &others[below(others.len())];
            let from = below(other.len() + 1);
            input.splice(at..at, other[from..].iter().copied());
        }
        4 => {
            let length = below(32);
            input.splice(at..at, (0..length).map(|_| below(256) as u8));
        }
        5 if at < input.len() => {
            let end = (at + 1 + below(16)).min(input.len());
            let piece = input[at..end].to_vec();
            input.splice(at..at, piece);
        }
        _ if at < input.len() => {
            let value = [0, 1, 0x7f, 0x80, 0xff][below(5)];
            let end = (at + 1 + below(8)).min(input.len());
            input[at..end].fill(value);
        }
        _ => {}
    }
    input.truncate(LONGEST);
}

#[test]
fn no_input_makes_a_target_panic() {
    let inputs = std::env::var("MSTCP_FUZZ_INPUTS").map_or(4000, |text| text.parse().unwrap());
    for (number, (name, target)) in targets::TARGETS.into_iter().enumerate() {
        let mut rng = SplitMix64::new(number as u64);
        let mut pool = seeds();
        for count in 0..inputs {
            let mut input = pool[(rng.next_u64() % pool.len() as u64) as usize].clone();
            for _ in 0..1 + rng.next_u64() % 8 {
                change(&mut input, &mut rng, &pool);
            }
            let shown = input.clone();
            if std::panic::catch_unwind(|| target(&input)).is_err() {
                panic!("target {name}, input {count}: {shown:02x?}");
            }
            // Some of what was changed is changed further.
            if rng.next_u64() % 16 == 0 && pool.len() < 512 {
                pool.push(shown);
            }
        }
    }
}

/// libFuzzer found it: the first end gives a stream up on its own, and others are opened after.
#[test]
fn a_stream_that_one_end_gives_up_is_lost_at_the_other() {
    targets::pair(&[
        223, 56, 171, 24, 48, 41, 24, 0, 0, 171, 223, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0,
        58, 0, 39, 37, 1, 223, 0, 0, 0, 0, 0, 0, 58, 0, 39, 37, 1, 223, 0, 0, 0, 0, 121, 0, 0, 126,
        48, 24, 227, 24, 24, 24, 223, 0, 0, 225, 162, 101, 101, 117, 101, 63, 0, 0, 0, 121, 0, 115,
        24, 0, 232, 227, 5, 42, 24,
    ]);
}
