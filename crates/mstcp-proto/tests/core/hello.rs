//! The hello codec: it is protobuf's, byte for byte, both ways.

use mstcp_proto::hello::{rest_bytes, split, Hello, MAGIC, PREFIX_BYTES, PROOF_BYTES};
use mstcp_proto::RemoteError;
use proptest::prelude::*;
use prost::Message as _;

/// `Hello` of mstcp/proto/hello.proto.
#[derive(Clone, PartialEq, prost::Message)]
struct Message {
    #[prost(uint32, tag = "1")]
    version: u32,
    #[prost(bytes = "vec", tag = "2")]
    connection_id: Vec<u8>,
    #[prost(uint32, tag = "3")]
    stream_id: u32,
    #[prost(uint32, tag = "4")]
    stream_count: u32,
    #[prost(uint32, tag = "5")]
    frame_payload_bytes: u32,
    #[prost(bytes = "vec", tag = "6")]
    nonce: Vec<u8>,
    #[prost(bytes = "vec", tag = "7")]
    early_data: Vec<u8>,
    #[prost(uint32, tag = "8")]
    least_version: u32,
    #[prost(uint32, tag = "9")]
    refusal: u32,
    #[prost(uint32, tag = "10")]
    priority: u32,
    #[prost(uint32, tag = "11")]
    records: u32,
}

impl From<&Hello> for Message {
    fn from(hello: &Hello) -> Self {
        Self {
            version: hello.version,
            connection_id: hello.connection_id.to_vec(),
            stream_id: hello.stream_id,
            stream_count: hello.stream_count,
            frame_payload_bytes: hello.frame_payload_bytes,
            nonce: hello.nonce.to_vec(),
            early_data: hello.early_data.clone(),
            least_version: hello.least_version,
            refusal: hello.refusal,
            priority: hello.priority,
            records: hello.records,
        }
    }
}

/// What is read is what protobuf reads; what protobuf cannot read is refused.
fn check_read(body: &[u8]) {
    if let Ok(hello) = Hello::decode_body(body) {
        assert_eq!(Message::decode(body), Ok(Message::from(&hello)));
    }
}

fn example() -> Hello {
    Hello {
        version: 3,
        least_version: 3,
        connection_id: *b"0123456789abcdef",
        stream_id: 1,
        stream_count: 2,
        frame_payload_bytes: 528,
        nonce: [7; 32],
        refusal: 3,
        priority: 1,
        records: 1,
        ..Hello::default()
    }
}

proptest! {
    #[test]
    fn decodes_what_it_encodes(
        connection_id: [u8; 16],
        stream_count in 1u32..=64,
        stream_id: u32,
        frame_payload_bytes in 1u32..=65535,
        nonce: [u8; 32],
        early_bytes in prop::sample::select(vec![0, 1, 15_360]),
        refusal: u32,
        version in 3u32..9,
        priority in 0u32..256,
    ) {
        let early_data = if stream_id == 0 { vec![9; early_bytes] } else { Vec::new() };
        let hello = Hello {
            version, connection_id, stream_id, stream_count, frame_payload_bytes, nonce, early_data, refusal, priority,
            ..example()
        };
        prop_assert_eq!(hello.encode_body(), Message::from(&hello).encode_to_vec());
        let mut encoded = hello.encode();
        encoded.extend([1; PROOF_BYTES]);
        let prefix: &[u8; PREFIX_BYTES] = encoded[..PREFIX_BYTES].try_into().unwrap();
        prop_assert_eq!(rest_bytes(prefix).unwrap(), encoded.len() - PREFIX_BYTES);
        let (proved, body, proof) = split(&encoded).unwrap();
        prop_assert_eq!((proved.len(), proof), (encoded.len() - PROOF_BYTES, &[1; PROOF_BYTES]));
        prop_assert_eq!(Hello::decode_body(body).unwrap(), hello);
        prop_assert!(split(&encoded[1..]).is_err() && split(&encoded[..encoded.len() - 1]).is_err());
    }

    #[test]
    fn arbitrary_bytes_are_read_as_protobuf_reads_them(body in prop::collection::vec(any::<u8>(), 0..300)) {
        check_read(&body);
    }

    #[test]
    fn a_damaged_hello_is_read_as_protobuf_reads_it(changes in prop::collection::vec((0usize..70, any::<u8>()), 1..4), end in 0usize..90) {
        let mut body = example().encode_body();
        for (at, byte) in changes {
            if let Some(place) = body.get_mut(at) {
                *place = byte;
            }
        }
        check_read(&body);
        check_read(&body[..end.min(body.len())]);
    }
}

#[test]
fn a_length_beyond_the_bound_is_refused_before_anything_is_stored() {
    let mut prefix = [0; PREFIX_BYTES];
    prefix[..8].copy_from_slice(&MAGIC);
    prefix[8..].copy_from_slice(&16_385u32.to_be_bytes());
    assert_eq!(rest_bytes(&prefix), Err(RemoteError::HelloTooLong(16_385)));
    prefix[0] = b'G';
    assert_eq!(rest_bytes(&prefix), Err(RemoteError::BadMagic));
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
            early_data: vec![0],
            ..example()
        },
        Hello {
            stream_id: 0,
            early_data: vec![0; 15_361],
            ..example()
        },
        Hello {
            priority: 256,
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
    assert_eq!(body[..2], [0x08, 3]);
    body[1] = 2;
    assert_eq!(
        Hello::decode_body(&body),
        Err(RemoteError::UnsupportedVersion {
            least: 3,
            highest: 2
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
