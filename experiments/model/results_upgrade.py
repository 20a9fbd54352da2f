"""Documents of format 1 as those of format 2: `scenario` of a run became `case`, evidence got one shape."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

NEWEST = 2
_OLD_EVIDENCE = "protocol_evidence"
_CONNECTION = ("source_ip", "source_port", "congestion_control", "options", "rtt_s")


def document(data: dict[str, Any]) -> dict[str, Any]:
    """Return a document of the newest format; ValueError if its format is none that this version reads."""
    form = data.get("format", NEWEST)
    if form not in (1, NEWEST):
        raise ValueError(f"it has format {form}; this version of mstcp-lab reads formats 1 and {NEWEST}")
    if form == NEWEST:
        return data
    environment = data.get("environment")
    if isinstance(environment, dict) and isinstance(environment.get("why"), list):
        why = [re.sub(r"^scenario (?=\S+ with )", "case ", str(reason)) for reason in environment["why"]]
        data = {**data, "environment": {**environment, "why": why}}
    return {**data, "format": NEWEST}


def named_case(data: dict[str, Any]) -> dict[str, Any]:
    """Return a part whose `scenario` is called `case`."""
    if "scenario" not in data:
        return data
    rest = {key: value for key, value in data.items() if key != "scenario"}
    return {"case": data["scenario"], **rest}


def run(data: dict[str, Any]) -> dict[str, Any]:
    """Return a run as format 2 has it."""
    data = named_case(data)
    if _OLD_EVIDENCE not in data:
        return data
    rest = {key: value for key, value in data.items() if key != _OLD_EVIDENCE}
    return {**rest, "evidence": evidence(data[_OLD_EVIDENCE])}


def evidence(old: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's evidence in the shape of format 2; what has no place there is kept as it is."""
    left = dict(old)
    flows: dict[str, dict[str, Any]] = {}

    def each(key: str, part: Any) -> None:
        taken = left.pop(key, None)
        if not isinstance(taken, Mapping):
            if taken is not None:
                left[key] = taken
            return
        for name, value in taken.items():
            flows.setdefault(name, {}).update(part(value))

    each("taken", _taken)
    each("split", _split)
    each("sockets", lambda sockets: {"connections": [_connection(state) for state in sockets]})
    each("tcp", lambda streams: {"connections": [_connection(stream) for stream in streams]})
    each("mptcp", lambda counters: {"counters": _numbers(counters)})
    for name in left.pop("unverified", ()):
        flows.setdefault(name, {})["is_verified"] = False
    left.pop("paths", None)  # those of the flows' allocation
    return {
        "flows": flows,
        "hosts": left.pop("kernel_counters", {}),
        "network": left.pop("packets", {}),
        "further": left,
    }


def _taken(paths: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    counted = [(path["path"], path["packets"]) for path in paths]
    total = sum(packets for _, packets in counted)
    return {
        "paths": [
            {"path": path, "packets": packets, "realised": packets / total if total else None}
            for path, packets in counted
        ]
    }


def _split(old: Any) -> dict[str, Any]:
    if isinstance(old, list):
        keys = ("path", "source_port", "asked", "realised", "packets")
        return {"paths": [{key: entry[key] for key in keys if key in entry} for entry in old]}
    forwarded, splitter = old.get("forwarded_packets") or [], old.get("splitter") or {}
    columns = (old["paths"], old["asked"], old.get("realised") or [], splitter.get("packets", []))
    return {
        "paths": [
            {
                "path": path,
                "asked": asked,
                "realised": realised,
                "packets": forwarded_packets if packets is None else packets,
                "forwarded_packets": forwarded_packets,
            }
            for path, asked, realised, packets, forwarded_packets in zip_longest(*columns, forwarded)
        ],
        "split_by": old.get("by"),
        "splitter": " ".join(filter(None, (splitter.get("interface"), splitter.get("mode")))) or None,
        "ack_path": old.get("ack_path"),
        "ack_rule": old.get("acks"),
    }


def _connection(old: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: old[key] for key in _CONNECTION if key in old}
    return {**own, "counters": _numbers({key: old[key] for key in old if key not in own})}


def _numbers(old: Mapping[str, Any]) -> dict[str, float]:
    return {key: value for key, value in old.items() if isinstance(value, int | float)}
