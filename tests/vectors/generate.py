"""Test vectors of the MSTCP protocol, made from docs/protocol.md alone: nothing of the project is imported.

    python -m tests.vectors.generate            print them
    python -m tests.vectors.generate --check    compare with vectors.json
    python -m tests.vectors.generate --write    renew vectors.json

Bytes are in hexadecimal. `handshakes` are the hellos, answers and CONFIRM frames of a connection's streams,
whole, with their proofs; `frames` are bytes of a stream after its hello and what they say; the bytes of
`bad_hellos` and `bad_frames` are refused with the given code.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import struct
import sys
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("vectors.json")
MAGIC = b"\x93MSTCP\r\n"
VERSION = 3
ID = bytes(range(0xA0, 0xB0))
CLIENT_NONCE, SERVER_NONCE = bytes(range(32)), bytes(range(0x80, 0xA0))
NO_PROOF = bytes(32)
PROTOCOL_ERROR, UNSUPPORTED_VERSION = 1, 2


# --- hello --------------------------------------------------------------------------------------------------
def varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, value: int | bytes) -> bytes:
    """Return a protobuf field; default values are left out."""
    if not value:
        return b""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(fields: dict[int, int | bytes], extra: bytes = b"") -> bytes:
    """Return magic, length and message: what proofs are made of. `extra` are fields of later versions."""
    body = b"".join(field(number, fields[number]) for number in sorted(fields)) + extra
    return MAGIC + struct.pack(">I", len(body)) + body


def proof(key: bytes, *parts: bytes) -> bytes:
    return hmac.digest(key, b"".join(parts), hashlib.sha256)


def handshake(
    secret: bytes,
    stream: int,
    first: tuple[bytes, bytes] | None = None,
    early: bytes = b"",
    priority: int = 0,
    later: bytes = b"",
    highest: int = VERSION,
    records: int = 0,
) -> tuple[dict[str, Any], tuple[bytes, bytes]]:
    """Return what client and server say on a stream, and its hello and answer without their proofs.

    `first` are those of stream 0. The nonces differ from stream to stream in their first byte.
    """
    nonces = [bytes([nonce[0] ^ stream & 0xFF]) + nonce[1:] for nonce in (CLIENT_NONCE, SERVER_NONCE)]
    both: dict[int, int | bytes] = {2: ID, 3: stream, 4: 2, 5: 1428}
    asked: dict[int, int | bytes] = {**both, 1: highest, 6: nonces[0], 7: early, 8: VERSION}
    asked |= {10: priority, 11: records}
    hello = message(asked, later)
    answer = message({**both, 1: VERSION, 6: nonces[1], 8: VERSION, 11: records})
    key = proof(secret, b"mstcp 3 connection", *(first or (hello, answer)))
    hello_key = key if first else proof(secret, b"mstcp 3 first")
    said = {
        "secret": secret.hex(),
        "connection_id": ID.hex(),
        "stream_id": stream,
        "stream_count": 2,
        "frame_payload_bytes": 1428,
        "early_data": early.hex(),
        "priority": priority,
        "client_nonce": nonces[0].hex(),
        "server_nonce": nonces[1].hex(),
        "is_canonical": not later and highest == VERSION,
        "hello": (hello + proof(hello_key, b"hello", hello)).hex(),
        "answer": (answer + proof(key, b"answer", hello, answer)).hex(),
        "confirm": control(7, proof(key, b"confirm", hello, answer)).hex(),
        "records": records,
    }
    if records:
        for side in ("client", "server"):
            record_key = proof(key, f"{side} records".encode(), hello, answer)
            said[f"{side}_records"] = record_stream(record_key).hex()
    return said, (hello, answer)


RECORDS = [b"one", bytes(range(256)), b"three"]
"""What the records of each direction carry, one after the other."""


def record_stream(key: bytes) -> bytes:
    """Return the first records of a direction."""
    made = b""
    for number, data in enumerate(RECORDS):
        length = struct.pack(">I", len(data))
        made += length + data + proof(key, struct.pack(">Q", number), length, data)[:16]
    return made


def handshakes() -> list[dict[str, Any]]:
    """Connections, each a list of its streams, stream 0 first."""
    made = []
    cases: list[tuple[str, bytes, tuple[int, ...], dict[str, Any]]] = [
        ("no secret", b"", (1,), {}),
        ("a secret, and the highest stream id", b"between us", (1, 0xFFFF_FFFF), {}),
        ("early data", b"between us", (), {"early": b"first flight"}),
        ("a backup stream", b"", (), {"priority": 1}),
        ("records", b"between us", (1,), {"records": 1}),
        (
            "a client of later versions, with a field not known yet",
            b"between us",
            (1,),
            {"highest": 7, "later": field(100, b"what is this?") + field(101, 5)},
        ),
    ]
    for name, secret, joins, first in cases:
        said, proved = handshake(secret, 0, **first)
        same = {"records": first.get("records", 0)}
        others = [handshake(secret, stream, proved, **same)[0] for stream in joins]
        made.append({"name": name, "streams": [said, *others]})
    return made


def refusals() -> list[dict[str, Any]]:
    """Answers that let nobody in, each with its CLOSE."""
    made = []
    for code, reason in [
        (3, "a stream wants to join a connection that is not here"),
        (4, "a first hello came again"),
        (5, "the connection has 64 streams"),
    ]:
        fields: dict[int, int | bytes] = {
            1: VERSION,
            2: ID,
            3: 7,
            4: 2,
            5: 1428,
            6: SERVER_NONCE,
            8: VERSION,
            9: code + 1,
        }
        body = message(fields) + NO_PROOF + control(4, struct.pack(">H", code) + reason.encode())
        made.append({"name": f"refused, code {code}", "code": code, "reason": reason, "bytes": body.hex()})
    return made


def bad_hellos() -> list[dict[str, Any]]:
    good: dict[int, int | bytes] = {1: VERSION, 2: ID, 3: 1, 4: 2, 5: 1428, 6: CLIENT_NONCE, 8: VERSION}
    wrong = [
        ("another magic", b"\x93MSTCP\n\n" + message(good)[8:], PROTOCOL_ERROR),
        ("16,385 bytes announced", MAGIC + struct.pack(">I", 16_385) + bytes(16_385), PROTOCOL_ERROR),
        ("4 GiB announced", MAGIC + b"\xff\xff\xff\xff", PROTOCOL_ERROR),
        ("version 2", message({**good, 1: 2, 8: 2}), UNSUPPORTED_VERSION),
        ("versions 4 to 5", message({**good, 1: 5, 8: 4}), UNSUPPORTED_VERSION),
        ("no version", message({**good, 1: 0, 8: 0}), UNSUPPORTED_VERSION),
        (
            "versions 4 to 5, whose other fields are not those of version 3",
            message({1: 5, 2: 7, 6: 1, 8: 4}, field(5, b"bytes")),
            UNSUPPORTED_VERSION,
        ),
        ("versions 5 down to 4", message({**good, 1: 4, 8: 5}), UNSUPPORTED_VERSION),
        ("an id of 15 bytes", message({**good, 2: ID[1:]}), PROTOCOL_ERROR),
        ("no streams", message({**good, 4: 0}), PROTOCOL_ERROR),
        ("65 streams", message({**good, 4: 65}), PROTOCOL_ERROR),
        ("no frame payload", message({**good, 5: 0}), PROTOCOL_ERROR),
        ("a frame payload of 65,536", message({**good, 5: 65_536}), PROTOCOL_ERROR),
        ("a nonce of 31 bytes", message({**good, 6: CLIENT_NONCE[1:]}), PROTOCOL_ERROR),
        ("no nonce", message({**good, 6: b""}), PROTOCOL_ERROR),
        ("early data on a stream that joins", message({**good, 7: b"x"}), PROTOCOL_ERROR),
        ("15,361 bytes of early data", message({**good, 3: 0, 7: bytes(15_361)}), PROTOCOL_ERROR),
        ("a priority of 256", message({**good, 10: 256}), PROTOCOL_ERROR),
        ("records of 2", message({**good, 11: 2}), PROTOCOL_ERROR),
        ("cut short", MAGIC + struct.pack(">I", 3) + b"\x08\x03\x12", PROTOCOL_ERROR),
        ("the version as bytes", MAGIC + struct.pack(">I", 3) + b"\x0a\x01\x03", PROTOCOL_ERROR),
        ("a nonce that is a number", message({**good, 6: 1}), PROTOCOL_ERROR),
        ("a number without end", MAGIC + struct.pack(">I", 12) + b"\x08" + b"\xff" * 11, PROTOCOL_ERROR),
        ("a number of 65 bits", message(good, b"\x60" + b"\xff" * 9 + b"\x02"), PROTOCOL_ERROR),
        ("field 0", message(good, b"\x00\x01"), PROTOCOL_ERROR),
        ("a group", message(good, b"\x63\x64"), PROTOCOL_ERROR),
    ]
    return [{"name": name, "code": code, "bytes": (data + NO_PROOF).hex()} for name, data, code in wrong]


# --- frames -------------------------------------------------------------------------------------------------
def full(offset: int, data: bytes) -> bytes:
    return struct.pack(">Q", offset) + data


def short(offset: int, data: bytes, length: int | None = None) -> bytes:
    return struct.pack(">QH", 1 << 62 | offset, len(data) if length is None else length) + data


def long(offset: int, data: bytes, length: int | None = None) -> bytes:
    return struct.pack(">QI", 3 << 62 | offset, len(data) if length is None else length) + data


def control(kind: int, body: bytes, length: int | None = None) -> bytes:
    word = 2 << 62 | kind << 56 | (len(body) if length is None else length)
    return struct.pack(">Q", word) + body


def frames() -> list[dict[str, Any]]:
    eight = b"8 bytes."
    ack = struct.pack(">QQ", 1000, 262_144 + 1000)
    top = (1 << 62) - 9
    made: list[tuple[str, bytes, list[list[Any]]]] = [
        ("full-size data", full(0, eight), [["data", 0, eight.hex()]]),
        ("full-size data at the end of all offsets", full(top, eight), [["data", top, eight.hex()]]),
        ("short data", short(8, b"abc"), [["data", 8, b"abc".hex()]]),
        ("long data", long(11, b"abcd"), [["data", 11, b"abcd".hex()]]),
        ("FIN", control(1, struct.pack(">Q", 1 << 40)), [["fin", 1 << 40]]),
        ("ACK without streams", control(2, ack), [["ack", 1000, 263_144, []]]),
        (
            "ACK of two streams",
            control(2, ack + struct.pack(">IQIQ", 0, 7, 0xFFFF_FFFF, 1 << 33)),
            [["ack", 1000, 263_144, [[0, 7], [0xFFFF_FFFF, 1 << 33]]]],
        ),
        ("LAST", control(3, b""), [["last"]]),
        ("CLOSE", control(4, b"\0\1gone wrong"), [["close", 1, "gone wrong"]]),
        ("CLOSE without words", control(4, b"\0\0"), [["close", 0, ""]]),
        (
            "CLOSE with 256 bytes of words",
            control(4, b"\0\6" + "ü".encode() * 128),
            [["close", 6, "ü" * 128]],
        ),
        ("PING", control(5, bytes(range(8))), [["ping", 0x0001020304050607]]),
        ("PONG", control(6, b"\xff" * 8), [["pong", 0xFFFF_FFFF_FFFF_FFFF]]),
        ("CONFIRM", control(7, bytes(range(32))), [["confirm", bytes(range(32)).hex()]]),
        ("SEEN", control(8, struct.pack(">IQ", 3, 9)), [["seen", [[3, 9]]]]),
        ("SEEN of nothing", control(8, b""), [["seen", []]]),
        ("GONE", control(9, struct.pack(">I", 5)), [["gone", 5]]),
        ("STATUS", control(10, struct.pack(">II", 5, 255)), [["status", 5, 255]]),
        (
            "ADDRESSES",
            control(11, struct.pack(">I10x2s4sH16sH", 7, b"\xff\xff", bytes([192, 0, 2, 1]), 9000, ID, 80)),
            [["addresses", 7, ["192.0.2.1:9000", "[a0a1:a2a3:a4a5:a6a7:a8a9:aaab:acad:aeaf]:80"]]],
        ),
        ("ADDRESSES, none any more", control(11, struct.pack(">I", 8)), [["addresses", 8, []]]),
        ("a type of later versions is skipped", control(63, bytes(1024)), [["unknown"]]),
        (
            "several in a row",
            short(0, b"x") + control(3, b"") + full(1, eight),
            [["data", 0, b"x".hex()], ["last"], ["data", 1, eight.hex()]],
        ),
        ("the beginning of a frame counts", full(16, b"half"), [["data", 16, b"half".hex()]]),
    ]
    return [
        {"name": name, "frame_payload_bytes": 8, "bytes": data.hex(), "frames": said}
        for name, data, said in made
    ]


def bad_frames() -> list[dict[str, Any]]:
    """Refused in themselves; the code is that of the CLOSE."""
    wrong = [
        ("short data of nothing", short(0, b"")),
        ("long data of nothing", long(0, b"")),
        ("long data of 1 MiB and a byte", long(0, b"", (1 << 20) + 1)),
        ("long data of 4 GiB", long(0, b"", 0xFFFF_FFFF)),
        ("offset and length are 2^62", full((1 << 62) - 8, bytes(8))),
        ("a control body of 1,025 bytes", control(5, b"", 1025)),
        ("bit 16 of a control word", struct.pack(">Q", 2 << 62 | 3 << 56 | 1 << 16)),
        ("bit 55 of a control word", struct.pack(">Q", 2 << 62 | 3 << 56 | 1 << 55)),
        ("FIN of 7 bytes", control(1, bytes(7))),
        ("FIN of 2^62", control(1, struct.pack(">Q", 1 << 62))),
        ("FIN of 2^64 - 1", control(1, b"\xff" * 8)),
        ("ACK of 15 bytes", control(2, bytes(15))),
        ("ACK with a part of a stream", control(2, bytes(16 + 11))),
        ("ACK of 65 streams", control(2, bytes(16 + 12 * 65))),
        ("LAST with a body", control(3, b"x")),
        ("CLOSE without a code", control(4, b"\0")),
        ("CLOSE with 257 bytes of words", control(4, b"\0\0" + b"x" * 257)),
        ("PING of 9 bytes", control(5, bytes(9))),
        ("PONG of nothing", control(6, b"")),
        ("CONFIRM of 31 bytes", control(7, bytes(31))),
        ("SEEN of 11 bytes", control(8, bytes(11))),
        ("SEEN of 65 streams", control(8, bytes(12 * 65))),
        ("GONE of 5 bytes", control(9, bytes(5))),
        ("STATUS of 4 bytes", control(10, bytes(4))),
        ("ADDRESSES with a part of one", control(11, bytes(4 + 17))),
        ("ADDRESSES with 17 of them", control(11, bytes(4 + 17 * 18))),
        ("STATUS of priority 256", control(10, struct.pack(">II", 5, 256))),
    ]
    return [
        {"name": name, "frame_payload_bytes": 8, "code": PROTOCOL_ERROR, "bytes": data.hex()}
        for name, data in wrong
    ]


def bad_conversations() -> list[dict[str, Any]]:
    """Well-formed frames on stream 0 that no peer may send to a side that sent nothing but an ACK."""
    wrong = [
        ("data beyond the window", short(262_144, b"x")),
        ("data that ends beyond the window", short(262_143, b"xy")),
        ("data beyond the FIN", control(1, struct.pack(">Q", 4)) + short(4, b"x")),
        ("a FIN before data that came", short(4, b"x") + control(1, struct.pack(">Q", 4))),
        ("two FINs that differ", control(1, struct.pack(">Q", 4)) + control(1, struct.pack(">Q", 5))),
        ("an ACK of bytes that were not sent", control(2, struct.pack(">QQ", 1, 0))),
        ("an ACK of frames that were not sent", control(2, struct.pack(">QQIQ", 0, 0, 0, 1))),
        ("a SEEN of ACKs that were not sent", control(8, struct.pack(">IQ", 0, 1 << 32))),
        ("a CONFIRM that nobody awaits", control(7, bytes(32))),
        ("data after LAST", control(3, b"") + short(0, b"x")),
    ]
    return [
        {"name": name, "frame_payload_bytes": 8, "code": PROTOCOL_ERROR, "bytes": data.hex()}
        for name, data in wrong
    ]


def vectors() -> dict[str, Any]:
    """Return all vectors."""
    return {
        "protocol": VERSION,
        "handshakes": handshakes(),
        "records": [data.hex() for data in RECORDS],
        "refusals": refusals(),
        "version_refusal": (message({1: VERSION, 8: VERSION, 9: UNSUPPORTED_VERSION + 1}) + NO_PROOF).hex(),
        "bad_hellos": bad_hellos(),
        "frames": frames(),
        "bad_frames": bad_frames(),
        "bad_conversations": bad_conversations(),
    }


def main() -> int:
    """Print, check or write the vectors."""
    parser = argparse.ArgumentParser(description="Test vectors of the MSTCP protocol.")
    parser.add_argument("--check", action="store_true", help="compare with vectors.json")
    parser.add_argument("--write", action="store_true", help="renew vectors.json")
    arguments = parser.parse_args()
    text = json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n"
    if arguments.write:
        PATH.write_text(text)
    elif arguments.check:
        if PATH.read_text() != text:
            sys.stderr.write("vectors.json is not what this script makes: run it with --write\n")
            return 1
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
