//! The hello codec. That it equals protobuf's is tested from Python, where protobuf is.

use mstcp_core::hello::{body_bytes, Hello, MAGIC, PREFIX_BYTES};
use mstcp_core::RemoteError;
use proptest::prelude::*;

fn example() -> Hello {
    Hello {
        connection_id: *b"0123456789abcdef",
        stream_id: 1,
        stream_count: 2,
        frame_payload_bytes: 528,
        key: vec![7; 32],
        proof: vec![9; 32],
        refusal: 3,
    }
}

proptest! {
    #[test]
    fn decodes_what_it_encodes(
        connection_id: [u8; 16],
        stream_count in 1u32..=64,
        stream_id: u32,
        frame_payload_bytes in 1u32..=65535,
        key in prop::sample::select(vec![vec![], vec![1; 32]]),
        proof in prop::sample::select(vec![vec![], vec![2; 32]]),
        refusal: u32,
    ) {
        let hello = Hello { connection_id, stream_id, stream_count, frame_payload_bytes, key, proof, refusal };
        let encoded = hello.encode();
        let prefix: &[u8; PREFIX_BYTES] = encoded[..PREFIX_BYTES].try_into().unwrap();
        prop_assert_eq!(body_bytes(prefix).unwrap(), encoded.len() - PREFIX_BYTES);
        prop_assert_eq!(Hello::decode_body(&encoded[PREFIX_BYTES..]).unwrap(), hello);
    }

    #[test]
    fn arbitrary_bytes_never_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Hello::decode_body(&body);
    }

    #[test]
    fn a_damaged_hello_never_panics(at in 0usize..70, byte: u8) {
        let mut body = example().encode_body();
        if let Some(place) = body.get_mut(at) {
            *place = byte;
        }
        let _ = Hello::decode_body(&body);
        let _ = Hello::decode_body(&body[..at.min(body.len())]);
    }
}

#[test]
fn a_length_beyond_the_bound_is_refused_before_anything_is_stored() {
    let mut prefix = [0; PREFIX_BYTES];
    prefix[..8].copy_from_slice(&MAGIC);
    prefix[8..].copy_from_slice(&257u32.to_be_bytes());
    assert_eq!(body_bytes(&prefix), Err(RemoteError::HelloTooLong(257)));
    prefix[0] = b'G';
    assert_eq!(body_bytes(&prefix), Err(RemoteError::BadMagic));
}

#[test]
fn impossible_values_are_refused() {
    let wrong = [
        Hello {
            stream_count: 0,
            ..example()
        },
        Hello {
            stream_count: 65,
            ..example()
        },
        Hello {
            frame_payload_bytes: 0,
            ..example()
        },
        Hello {
            frame_payload_bytes: 65536,
            ..example()
        },
        Hello {
            proof: vec![0; 31],
            ..example()
        },
        Hello {
            key: vec![0; 33],
            ..example()
        },
    ];
    for hello in wrong {
        let result = Hello::decode_body(&hello.encode_body());
        assert!(
            matches!(result, Err(RemoteError::BadHello(_))),
            "{hello:?}: {result:?}"
        );
    }
    let mut body = example().encode_body();
    assert_eq!(body[..2], [0x08, 2]);
    body[1] = 1;
    assert_eq!(
        Hello::decode_body(&body),
        Err(RemoteError::UnsupportedVersion {
            least: 2,
            highest: 1
        })
    );
}

#[test]
fn unknown_fields_are_skipped() {
    let mut body = example().encode_body();
    body.extend([0x78, 5]); // 15: varint
    body.extend([0x7a, 2, 0, 0]); // 15: bytes
    body.extend([0x7d, 0, 0, 0, 0]); // 15: fixed32
    assert_eq!(Hello::decode_body(&body).unwrap(), example());
}
