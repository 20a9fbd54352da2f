"""Checks answers that os-ken reads: some lengths and types would keep its loops from ending."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from controller.openflow.decoding import Malformed

_HEADER_BYTES, _MULTIPART_BYTES = 8, 16
SENT_BY_SWITCHES = frozenset({0, 1, 2, 3, 4, 6, 8, 10, 11, 12, 19, 21, 23, 25, 27})
"""Types of messages (`OFPT_*`)."""
_INSTRUCTIONS = frozenset({1, 2, 3, 4, 5, 6, 0xFFFF})
_FLOW_BYTES = 48  # before its match
_METER_FEATURES_BYTES = 16
_WRITE_ACTIONS, _APPLY_ACTIONS = 3, 4


def is_wanted(whole: bytes) -> bool:
    """Check an answer with statistics, and return whether they are of a kind that os-ken is to read.

    Raises:
        Malformed: a part of it is too short or too long.
    """
    try:
        (statistics,) = struct.unpack_from("!H", whole, _HEADER_BYTES)
        if statistics not in _CHECKS:
            return False
        _CHECKS[statistics](whole)
    except struct.error as error:
        raise Malformed(f"statistics: {error}") from None
    return True


def _check_flows(whole: bytes) -> None:
    for start, end in _parts(whole, _MULTIPART_BYTES, len(whole), 0, _FLOW_BYTES + 8):
        (match_bytes,) = struct.unpack_from("!H", whole, start + _FLOW_BYTES + 2)
        for place, stop in _parts(whole, start + _FLOW_BYTES + (match_bytes + 7) // 8 * 8, end, 2, 8):
            instruction = int.from_bytes(whole[place : place + 2], "big")
            if instruction not in _INSTRUCTIONS:
                raise Malformed(f"an instruction of type {instruction}")
            if instruction in (_WRITE_ACTIONS, _APPLY_ACTIONS):
                _walk(whole, place + 8, stop, 8)


def _check_groups(whole: bytes) -> None:
    for start, end in _parts(whole, _MULTIPART_BYTES, len(whole), 0, 8):
        for place, stop in _parts(whole, start + 8, end, 0, 16):
            _walk(whole, place + 16, stop, 8)


def _check_meters(whole: bytes) -> None:
    for start, end in _parts(whole, _MULTIPART_BYTES, len(whole), 0, 8):
        _walk(whole, start + 8, end, 12)


def _check_meter_features(whole: bytes) -> None:
    if len(whole) != _MULTIPART_BYTES + _METER_FEATURES_BYTES:
        raise Malformed(f"{len(whole) - _MULTIPART_BYTES} bytes of what meters can do")


_CHECKS = {
    1: _check_flows,
    7: _check_groups,
    10: _check_meters,
    11: _check_meter_features,
}
"""By what is asked for: the other statistics have loops of their own in os-ken's reader."""


def _walk(whole: bytes, start: int, end: int, least: int) -> None:
    """Check parts that begin with a type and a length."""
    for _ in _parts(whole, start, end, 2, least):
        pass


def _parts(whole: bytes, start: int, end: int, length_at: int, least: int) -> Iterator[tuple[int, int]]:
    """Yield where parts begin and end, whose length, `least` or more, stands at an offset."""
    while start < end:
        (length,) = struct.unpack_from("!H", whole, start + length_at)
        if length < least or start + length > end:
            raise Malformed(f"a part of {length} bytes where {end - start} are left")
        yield start, start + length
        start += length
