"""Reads what rules and groups do, as `encoding` writes it (ONF TS-012, sections 7.2.4 and 7.2.5)."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

from controller.model.labels import LABEL_BITS
from controller.model.rules import (
    Action,
    Drop,
    GotoTable,
    Output,
    RestoreLabel,
    ToController,
    ToGroup,
    ToTables,
    Untag,
)
from controller.openflow.decoding import Malformed, parts
from controller.openflow.encoding import (
    CONTROLLER_PORT,
    MAC_BITS,
    METADATA,
    NICIRA,
    REG_LOAD,
    REG_MOVE,
    RESUBMIT,
    TAG_PRESENT,
)

_GOTO, _APPLY, _METER = 1, 4, 6
_OUTPUT, _PUSH, _POP, _GROUP, _SET_FIELD, _EXPERIMENTER = 0, 17, 18, 22, 25, 0xFFFF
_NUMBERED = {_OUTPUT: "output", _GROUP: "group"}
_CONSTANT = {(_PUSH, b"\x81\0\0\0"): "push", (_POP, bytes(4)): "pop"}
# By the heads with which switches name them, of Nicira's class or OpenFlow's.
_FIELDS = {
    0x0002: "in_port",
    0x0206: "eth_dst",
    0x0406: "eth_src",
    0x8000_0606: "eth_dst",
    0x8000_0806: "eth_src",
    0x8000_0C02: "tag",
    METADATA: "metadata",
}
_CHANGED = {"eth_src": "source_mac", "eth_dst": "destination_mac"}


@lru_cache(maxsize=1 << 14)
def read_instructions(instructions: bytes) -> tuple[Action | None, int | None]:
    """Read what a rule does, and its meter; None where this controller would not do it, or there is none.

    Raises:
        Malformed: a part of them is too short or too long.
    """
    found = _typed(instructions)
    by_kind = dict(found)
    if len(by_kind) < len(found):
        return None, None
    meter = by_kind.pop(_METER, None)
    is_metered = meter is not None and bool(by_kind)  # one alone would pass packets on to nowhere
    action = _action(by_kind) if is_metered or meter is None else None
    return action, None if meter is None else int.from_bytes(meter[:4], "big")


def _action(by_kind: dict[int, bytes]) -> Action | None:
    kinds = sorted(by_kind)
    if not kinds:
        return Drop()
    if kinds == [_GOTO]:
        return GotoTable(by_kind[_GOTO][0])
    if _APPLY not in by_kind:
        return None
    steps = by_kind[_APPLY][4:]
    if kinds == [_GOTO, _APPLY]:
        return _on_the_way(steps, by_kind[_GOTO][0])
    match _steps(steps):
        case [("pop",), ("load", "metadata", 63, 1), ("resubmit", table)]:
            return Untag(table)
    sent = read_output(steps)
    action = ToController() if sent == Output(CONTROLLER_PORT) else sent
    return action if kinds == [_APPLY] else None


def _on_the_way(actions: bytes, table: int) -> RestoreLabel | ToTables | None:
    """Read what is done before the next table."""
    match _steps(actions):
        case [("move", "eth_src", 0, "eth_dst", 0, 48), ("set", "eth_src", mac), ("load", "in_port", _, 0)]:
            return RestoreLabel(mac, table)
        case [("resubmit", also)]:
            return ToTables(also, table)
    return None


@lru_cache(maxsize=1 << 14)
def read_output(actions: bytes) -> Output | ToGroup | None:
    """Read where a packet is sent, and what is changed in it before; None where this controller would not."""
    changes: dict[str, Any] = {}
    match _steps(actions):
        case [*earlier, ("push",), ("set_tag", tag), ("output", _) as last]:
            changes["tag"] = tag
        case [*earlier, last]:
            pass
        case _:
            return None
    return _sent(last, changes) if _read_changes(earlier, changes) else None


def _read_changes(steps: list[tuple[Any, ...]], changes: dict[str, Any]) -> bool:
    """Read what is changed in a packet; returns whether this controller would change it so."""
    for step in steps:
        match step:
            case ("set", field, mac):
                changes[_CHANGED[field]] = mac
            case ("move", "eth_dst", 0, "eth_src", 0, bits) if bits == MAC_BITS:
                changes["saves_label"] = True
            case ("move", "eth_dst", 0, "eth_dst", shift, bits) if bits == LABEL_BITS - shift:
                changes["shift"] = shift
            case ("load", "in_port", _, 0):
                changes["may_return"] = True
            case ("load", "eth_dst", low_bits, 0) if low_bits + 1 == changes.get("shift"):
                pass
            case _:
                return False
    return True


def _sent(step: tuple[Any, ...], changes: dict[str, Any]) -> Output | ToGroup | None:
    match step:
        case ("output", port):
            return Output(port, **changes)
        case ("group", number) if not {"saves_label", "may_return"} & changes.keys():
            return ToGroup(number, **changes)
    return None


def _steps(actions: bytes) -> list[tuple[Any, ...]]:
    """Read actions one by one; one that this controller does not use is empty."""
    return [_step(kind, body) for kind, body in _typed(actions)]


def _step(kind: int, body: bytes) -> tuple[Any, ...]:
    try:
        if kind in _NUMBERED:
            return _NUMBERED[kind], *struct.unpack_from("!I", body)
        if kind == _SET_FIELD:
            return _set(body)
        if kind != _EXPERIMENTER:
            constant = _CONSTANT.get((kind, body))
            return () if constant is None else (constant,)
        vendor, subtype = struct.unpack_from("!IH", body)
        if (vendor, subtype) == (NICIRA, REG_MOVE):
            bits, source_bit, target_bit, source, target = struct.unpack_from("!HHHII", body, 6)
            return "move", _FIELDS.get(source), source_bit, _FIELDS.get(target), target_bit, bits
        if (vendor, subtype) == (NICIRA, REG_LOAD):
            place, target, value = struct.unpack_from("!HIQ", body, 6)
            return "load", _FIELDS.get(target), place, value
        if (vendor, subtype) == (NICIRA, RESUBMIT):
            return "resubmit", body[8]
    except struct.error as error:
        raise Malformed(f"an action of type {kind}: {error}") from None
    return ()


def _set(body: bytes) -> tuple[Any, ...]:
    name = _FIELDS.get(int.from_bytes(body[:4], "big"))
    if name == "tag":
        return "set_tag", int.from_bytes(body[4:6], "big") ^ TAG_PRESENT
    return ("set", name, body[4:10].hex(":")) if name in _CHANGED else ()


def _typed(whole: bytes) -> list[tuple[int, bytes]]:
    """Read parts that begin with a type and a length: the type, and what follows both."""
    return [
        (int.from_bytes(whole[start : start + 2], "big"), whole[start + 4 : end])
        for start, end in parts(whole, 0, len(whole), 2, 8)
    ]
