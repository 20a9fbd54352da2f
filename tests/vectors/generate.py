"""Test vectors of the MSTCP protocol, made from docs/protocol.md alone: nothing of the project is imported.

    python -m tests.vectors.generate            print them
    python -m tests.vectors.generate --check    compare with vectors.json
    python -m tests.vectors.generate --write    renew vectors.json

Bytes are in hexadecimal. `hellos` are whole first messages with their proofs; `frames` are bytes of a stream
after its hello and what they say; the bytes of `bad_hellos` and `bad_frames` are refused with the given code.
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
VERSION = 2
ID = bytes(range(0xA0, 0xB0))
KEY = bytes(range(32))
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


def message(fields: dict[int, int | bytes]) -> bytes:
    body = b"".join(field(number, fields[number]) for number in sorted(fields))
    return MAGIC + struct.pack(">I", len(body)) + body


def sealed(fields: dict[int, int | bytes], secret: bytes, what: bytes) -> bytes:
    prover = hmac.digest(secret, b"mstcp 2 proof" + KEY, hashlib.sha256)
    proof = hmac.digest(prover, what + message(fields), hashlib.sha256)
    return message({**fields, 6: proof})


def hellos() -> list[dict[str, Any]]:
    made = []
    for name, secret, stream, answers in [
        ("first hello, no secret", b"", 0, False),
        ("its answer", b"", 0, True),
        ("a stream joins", b"", 1, False),
        ("its answer", b"", 1, True),
        ("first hello with a secret", b"between us", 0, False),
        ("a stream joins with a secret and the highest id", b"between us", 0xFFFF_FFFF, False),
    ]:
        fields: dict[int, int | bytes] = {1: VERSION, 2: ID, 3: stream, 4: 2, 5: 1428, 8: VERSION}
        if not stream and not answers:
            fields[7] = KEY
        made.append(
            {
                "name": name,
                "secret": secret.hex(),
                "connection_key": KEY.hex(),
                "answer": answers,
                "connection_id": ID.hex(),
                "stream_id": stream,
                "stream_count": 2,
                "frame_payload_bytes": 1428,
                "refusal": 0,
                "bytes": sealed(fields, secret, b"answer" if answers else b"hello").hex(),
            }
        )
    return made


def refusals() -> list[dict[str, Any]]:
    """Answers that let nobody in, each with its CLOSE."""
    made = []
    for code, reason in [
        (3, "a stream wants to join a connection that is not here"),
        (4, "a first hello came again"),
        (5, "the connection has 64 streams"),
    ]:
        fields: dict[int, int | bytes] = {1: VERSION, 2: ID, 3: 7, 4: 2, 5: 1428, 8: VERSION, 9: code + 1}
        body = message(fields) + control(4, struct.pack(">H", code) + reason.encode())
        made.append({"name": f"refused, code {code}", "code": code, "reason": reason, "bytes": body.hex()})
    return made


def bad_hellos() -> list[dict[str, Any]]:
    good: dict[int, int | bytes] = {1: VERSION, 2: ID, 3: 1, 4: 2, 5: 1428, 6: KEY, 8: VERSION}
    wrong = [
        ("another magic", b"\x93MSTCP\n\n" + message(good)[8:], PROTOCOL_ERROR),
        ("257 bytes announced", MAGIC + struct.pack(">I", 257) + bytes(257), PROTOCOL_ERROR),
        ("4 GiB announced", MAGIC + b"\xff\xff\xff\xff", PROTOCOL_ERROR),
        ("version 1", message({**good, 1: 1, 8: 1}), UNSUPPORTED_VERSION),
        ("versions 3 to 4", message({**good, 1: 4, 8: 3}), UNSUPPORTED_VERSION),
        ("no version", message({**good, 1: 0, 8: 0}), UNSUPPORTED_VERSION),
        ("an id of 15 bytes", message({**good, 2: ID[1:]}), PROTOCOL_ERROR),
        ("no streams", message({**good, 4: 0}), PROTOCOL_ERROR),
        ("65 streams", message({**good, 4: 65}), PROTOCOL_ERROR),
        ("no frame payload", message({**good, 5: 0}), PROTOCOL_ERROR),
        ("a frame payload of 65,536", message({**good, 5: 65_536}), PROTOCOL_ERROR),
        ("a proof of 31 bytes", message({**good, 6: KEY[1:]}), PROTOCOL_ERROR),
        ("a key of 33 bytes", message({**good, 7: KEY + b"x"}), PROTOCOL_ERROR),
        ("cut short", MAGIC + struct.pack(">I", 3) + b"\x08\x02\x12", PROTOCOL_ERROR),
        ("the version as bytes", MAGIC + struct.pack(">I", 3) + b"\x0a\x01\x02", PROTOCOL_ERROR),
        ("a number without end", MAGIC + struct.pack(">I", 12) + b"\x08" + b"\xff" * 11, PROTOCOL_ERROR),
    ]
    return [{"name": name, "code": code, "bytes": data.hex()} for name, data, code in wrong]


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
    top = (1 << 62) - 8
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
        ("offset and length pass 2^62", full((1 << 62) - 7, bytes(8))),
        ("a control body of 1,025 bytes", control(5, b"", 1025)),
        ("bit 16 of a control word", struct.pack(">Q", 2 << 62 | 3 << 56 | 1 << 16)),
        ("bit 55 of a control word", struct.pack(">Q", 2 << 62 | 3 << 56 | 1 << 55)),
        ("FIN of 7 bytes", control(1, bytes(7))),
        ("ACK of 15 bytes", control(2, bytes(15))),
        ("ACK with a part of a stream", control(2, bytes(16 + 11))),
        ("ACK of 65 streams", control(2, bytes(16 + 12 * 65))),
        ("LAST with a body", control(3, b"x")),
        ("CLOSE without a code", control(4, b"\0")),
        ("CLOSE with 257 bytes of words", control(4, b"\0\0" + b"x" * 257)),
        ("PING of 9 bytes", control(5, bytes(9))),
        ("PONG of nothing", control(6, b"")),
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
        "hellos": hellos(),
        "refusals": refusals(),
        "version_refusal": message({1: VERSION, 8: VERSION, 9: UNSUPPORTED_VERSION + 1}).hex(),
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
