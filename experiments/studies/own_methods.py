"""The networks on which methods of one kind are compared, own ones beside those built in."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import netsim_native as sim

from experiments.engines.sim.methods import is_own, load
from experiments.errors import ScenarioError
from experiments.model import settings

MEGA = 1e-6


def _flow(protocol: str, **further: Any) -> list[dict[str, Any]]:
    ends = {"name": "1", "src": "S", "dst": "D"}
    return [{**ends, "protocol": protocol, "traffic": {"kind": "bulk"}, **further}]


TWO_PATHS = [{"path": ["S", "A", "D"]}, {"path": ["S", "B", "D"]}]
MPTCP: dict[str, Any] = {
    "format": 1,
    "tcp": {"profile": "linux", "mss_bytes": 1400, "congestion_control": "reno"},
    "links": [
        {"ends": ["S", "A"], "rate_bps": 20e6, "delay_us": 5000, "queue_packets": 50, "loss": 0.0005},
        {"ends": ["A", "D"], "rate_bps": 1e9, "delay_us": 10},
        {"ends": ["S", "B"], "rate_bps": 10e6, "delay_us": 30000, "queue_packets": 50, "loss": 0.0005},
        {"ends": ["B", "D"], "rate_bps": 1e9, "delay_us": 10},
    ],
    "flows": _flow(
        "mptcp",
        paths=TWO_PATHS,
        mptcp={"receive_buffer_bytes": 400_000, "congestion_control": "uncoupled"},
    ),
}
"""Two paths of unlike rate and delay, and a receive window that the slow one can block."""
SPLIT: dict[str, Any] = {
    "format": 1,
    "tcp": {"profile": "rfc", "mss_bytes": 1400, "rto_min_s": 0.2, "receive_buffer_bytes": 1_000_000},
    "links": [
        *MPTCP["links"][:2],
        {**MPTCP["links"][2], "rate_bps": 20e6, "delay_us": 9000},
        MPTCP["links"][3],
    ],
    "flows": _flow("tcp", paths=TWO_PATHS, ack_path="reverse"),
}
"""One TCP whose packets take one of two paths each: a quarter of them overtakes others, few are lost."""
SINGLE: dict[str, Any] = {
    "format": 1,
    "tcp": {"profile": "linux", "mss_bytes": 1400},
    "links": [{"ends": ["S", "D"], "rate_bps": 20e6, "delay_us": 20000, "queue_packets": 60, "loss": 0.0005}],
    "flows": _flow("tcp"),
}
"""One TCP over one link that loses a packet now and then."""


@dataclass(frozen=True)
class MethodKind:
    """What is compared: in which description, by which key of (MP)TCP's settings, and those built in."""

    base: Mapping[str, Any]
    key: str
    built_in: tuple[str, ...]


KINDS = {
    "schedulers": MethodKind(MPTCP, "scheduler", settings.SCHEDULERS),
    "coupled": MethodKind(MPTCP, "congestion_control", settings.COUPLED_CONTROLS),
    "congestion": MethodKind(SINGLE, "congestion_control", settings.CONGESTION_CONTROLS),
    "reordering": MethodKind(SPLIT, "reordering", settings.RESPONSES),
}
FIGURES: Mapping[str, Callable[[Mapping[str, Any]], float]] = {
    "goodput_mbps": lambda flow: flow["goodput_bps"] * MEGA,
    "delay_mean_ms": lambda flow: (flow["delay_s"] or {"mean": 0.0})["mean"] * 1e3,
    "out_of_order_pct": lambda flow: (flow["out_of_order_ratio"] or 0.0) * 100,
    "buffer_max_kb": lambda flow: (flow["reorder_buffer_max_bytes"] or 0) * 1e-3,
    "retransmits": lambda flow: sum(stream["retransmits"] for stream in flow["streams"]),
    "spurious": lambda flow: sum(stream["spurious_retransmits"] for stream in flow["streams"]),
}


def check(name: str, description: dict[str, Any]) -> None:
    """Raise ScenarioError, with the place, where the simulator does not take a description."""
    try:
        sim.check(json.dumps(description), load)
    except sim.InvalidDescription as error:
        place, reason = error.args
        if is_own(name):
            # The place is where this command put the name, and the exception's type is that of `load`.
            sentence = re.sub(r"^(ImportError|TypeError): ", "", reason.removeprefix(f"{name}: "))
            raise ScenarioError("--own", name, sentence) from None
        raise ScenarioError(name, place, reason) from None


def describe(kind: MethodKind, name: str, duration_s: float, seed: int) -> dict[str, Any]:
    """Return the simulator's description of a run with one method."""
    description = copy.deepcopy(dict(kind.base))
    description |= {"seed": seed, "duration_s": duration_s, "warm_up_s": 1.0}
    description["flows"][0].get("mptcp", description["tcp"])[kind.key] = name
    return description
