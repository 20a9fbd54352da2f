//! The core against the test vectors (tests/vectors), which are made from docs/protocol.md alone.

use mstcp_proto::frame::{encode_control, encode_data, Parsed, Parser};
use mstcp_proto::handshake::{confirm_frame, Admission, ClientHandshake, NotAdmitted};
use mstcp_proto::hello::{encode_version_refusal, rest_bytes, split, Hello, PREFIX_BYTES, VERSION};
use mstcp_proto::{code, Control, Error, RecordReader, RecordWriter, RemoteError};
use serde_json::{json, Value};

use super::{config, connection};

fn vectors() -> Value {
    serde_json::from_str(include_str!("vectors.json")).unwrap()
}

fn list(kind: &str) -> Vec<Value> {
    vectors()[kind].as_array().unwrap().clone()
}

fn bytes(hexadecimal: &Value) -> Vec<u8> {
    let text = hexadecimal.as_str().unwrap();
    let places = (0..text.len()).step_by(2);
    places
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn payload(vector: &Value) -> usize {
    vector["frame_payload_bytes"].as_u64().unwrap() as usize
}

/// A hello's fields, its bytes without the proof, and what follows it.
fn read_hello(data: &[u8]) -> Result<(Hello, &[u8], &[u8]), RemoteError> {
    let end = PREFIX_BYTES + rest_bytes(data[..PREFIX_BYTES].try_into().unwrap())?;
    let (opening, rest) = data.split_at(end.min(data.len()));
    let (proved, body, _) = split(opening)?;
    Ok((Hello::decode_body(body)?, proved, rest))
}

fn array<const SIZE: usize>(hexadecimal: &Value) -> [u8; SIZE] {
    bytes(hexadecimal).try_into().unwrap()
}

/// A direction's records are made and taken.
fn check_records(key: [u8; 32], wire: &Value) {
    let wire = bytes(wire);
    let pieces = list("records");
    let (mut writer, mut written) = (RecordWriter::new(key), Vec::new());
    pieces
        .iter()
        .for_each(|piece| writer.write(&bytes(piece), &mut written));
    assert_eq!(hex(&written), hex(&wire));
    let mut read = Vec::new();
    RecordReader::new(key).read(&wire, &mut read).unwrap();
    assert_eq!(read, pieces.iter().flat_map(bytes).collect::<Vec<_>>());
}

/// What both sides say on a connection's streams is what client and server make of the same nonces.
#[test]
fn handshakes_are_made_and_taken() {
    for vector in list("handshakes") {
        let streams = vector["streams"].as_array().unwrap();
        let secret = bytes(&streams[0]["secret"]);
        let mut admission = Admission::new(&secret, 10);
        let number = |stream: &Value, name: &str| stream[name].as_u64().unwrap() as u32;
        let mut client = ClientHandshake::new(
            &secret,
            array(&streams[0]["connection_id"]),
            number(&streams[0], "stream_count"),
            number(&streams[0], "frame_payload_bytes"),
        );
        if number(&streams[0], "records") == 1 {
            client = client.with_records();
        }
        for stream in streams {
            let hello = bytes(&stream["hello"]);
            let (said, proved, rest) = read_hello(&hello).unwrap();
            if said.version > VERSION {
                // Nobody in the path can turn the version down.
                let mut cut = hello.clone();
                cut[PREFIX_BYTES + 1] = VERSION as u8;
                let refused = admission.admit(0, &cut, [0; 32], |_| Some(1)).unwrap_err();
                assert!(matches!(
                    refused,
                    NotAdmitted::Refused {
                        code: code::NOT_AUTHORISED,
                        ..
                    }
                ));
            }
            assert_eq!(
                (json!(said.stream_id), rest.len()),
                (stream["stream_id"].clone(), 0)
            );
            assert_eq!(json!(hex(&said.early_data)), stream["early_data"]);
            let admitted = admission
                .admit(0, &hello, array(&stream["server_nonce"]), |_| Some(1))
                .unwrap();
            assert_eq!(json!(hex(&admitted.answer)), stream["answer"], "{vector}");
            assert_eq!(
                json!(hex(&confirm_frame(&admitted.confirm))),
                stream["confirm"]
            );
            if let Some(keys) = admitted.record_keys {
                check_records(keys.client, &stream["client_records"]);
                check_records(keys.server, &stream["server_records"]);
            }
            if streams[0]["is_canonical"] == json!(true) && stream["stream_id"].as_u64() < Some(2) {
                let greeting = client
                    .greet(
                        array(&stream["client_nonce"]),
                        number(stream, "priority"),
                        &bytes(&stream["early_data"]),
                    )
                    .unwrap();
                assert_eq!(hex(&greeting.bytes), hex(&hello));
                assert_eq!(hex(&said.encode()), hex(proved));
                let confirm = client.on_answer(&greeting, &admitted.answer).unwrap();
                assert_eq!(json!(hex(&confirm)), stream["confirm"]);
            }
        }
    }
}

#[test]
fn refusals_are_read() {
    for vector in list("refusals") {
        let data = bytes(&vector["bytes"]);
        let (hello, _, rest) = read_hello(&data).unwrap();
        assert_eq!(json!(hello.refusal - 1), vector["code"]);
        let close = json!([["close", vector["code"], vector["reason"]]]);
        assert_eq!(read(8, rest).unwrap(), close);
    }
    assert_eq!(
        json!(hex(&encode_version_refusal())),
        vectors()["version_refusal"]
    );
}

#[test]
fn bad_hellos_are_refused() {
    for vector in list("bad_hellos") {
        let data = bytes(&vector["bytes"]);
        let error = read_hello(&data).expect_err(vector["name"].as_str().unwrap());
        let is_version = matches!(error, RemoteError::UnsupportedVersion { .. });
        assert_eq!(is_version, vector["code"] == 2, "{vector}");
    }
}

/// What frames say, as the vectors have it, and the bytes that say the same.
fn read(payload: usize, data: &[u8]) -> Result<Value, RemoteError> {
    let mut parser = Parser::new(payload);
    let (mut said, mut at) = (Vec::new(), 0);
    while let (consumed, Some(frame)) = parser.next(&data[at..])? {
        at += consumed;
        said.push(match frame {
            Parsed::Data {
                offset, payload, ..
            } => json!(["data", offset, hex(payload)]),
            Parsed::Control(None) => json!(["unknown"]),
            Parsed::Control(Some(control)) => match control {
                Control::Fin { total_bytes } => json!(["fin", total_bytes]),
                Control::Ack {
                    received,
                    limit,
                    streams,
                } => json!(["ack", received, limit, streams]),
                Control::Last => json!(["last"]),
                Control::Close { code, reason } => json!(["close", code, reason]),
                Control::Ping(token) => json!(["ping", token]),
                Control::Pong(token) => json!(["pong", token]),
                Control::Confirm(proof) => json!(["confirm", hex(&proof)]),
                Control::Seen(streams) => json!(["seen", streams]),
                Control::Gone(id) => json!(["gone", id]),
                Control::Status { id, priority } => json!(["status", id, priority]),
                Control::Addresses { number, addresses } => {
                    let addresses = addresses.iter().map(ToString::to_string);
                    json!(["addresses", number, addresses.collect::<Vec<_>>()])
                }
            },
        });
    }
    Ok(Value::Array(said))
}

fn write(payload: usize, data: &[u8]) -> Vec<u8> {
    let (mut parser, mut out, mut at) = (Parser::new(payload), Vec::new(), 0);
    while let (consumed, Some(frame)) = parser.next(&data[at..]).unwrap() {
        at += consumed;
        match frame {
            Parsed::Data {
                offset,
                payload: bytes,
                ..
            } => encode_data(&mut out, offset, bytes, payload),
            Parsed::Control(control) => encode_control(&mut out, &control.unwrap()),
        }
    }
    out
}

#[test]
fn frames_are_read_and_written() {
    for vector in list("frames") {
        let data = bytes(&vector["bytes"]);
        assert_eq!(
            read(payload(&vector), &data).unwrap(),
            vector["frames"],
            "{vector}"
        );
        let name = vector["name"].as_str().unwrap();
        // Data of 3 or 4 bytes goes out as short, an unknown type never, and half a frame is not whole.
        if !["long data", "the beginning of a frame counts"].contains(&name)
            && vector["frames"][0][0] != "unknown"
        {
            assert_eq!(hex(&write(payload(&vector), &data)), hex(&data), "{name}");
        }
    }
}

#[test]
fn bad_frames_are_refused() {
    for vector in list("bad_frames") {
        let result = read(payload(&vector), &bytes(&vector["bytes"]));
        assert!(result.is_err(), "{vector}");
    }
}

#[test]
fn frames_that_do_not_fit_end_the_connection() {
    for vector in list("bad_conversations") {
        let data = bytes(&vector["bytes"]);
        read(payload(&vector), &data).expect("well-formed");
        let mut connection = connection("weighted", config(1, payload(&vector)));
        let result = connection.on_received(0, &data, &mut Vec::new());
        assert!(matches!(result, Err(Error::Remote(_))), "{vector}");
    }
}
