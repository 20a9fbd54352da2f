"""`--set KEY=VALUE`: any value of a scenario or of its network, checked against the schema.

Keys are dotted paths into the scenario (`tcp.sack`, `cases.1.flows.2.requested_bps`). `flows.NAME…`,
`allocation` and `demands` stand for those of every case that is run, `workload…` for that of every flow of
them; `links.…` and `nodes.…` belong to the network and are handed to `topologies`. Values are TOML; a word
that is not TOML is taken as a string.
"""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from experiments.errors import OverrideError, ScenarioError
from experiments.model.scenario import Scenario, parse
from experiments.model.settings import DEFAULT, OWN
from topologies import toml

NETWORK_ROOTS = ("links", "nodes")
FIXED = ("format", "name", "description", "network", "protocols")
"""What names the scenario itself or has an option of its own."""
TABLES = ("workload", "sizes", "demands")
"""Tables that can be set as a whole; the keys of the first two depend on their `kind`."""
_WORD = re.compile(r"(?=.*[A-Za-z])\w[\w.:/+-]*")
"""With a letter, as 802.11b has; what is none of TOML's values is a typo without one."""
_OWN_METHOD = re.compile(OWN)
"""A method of one's own may go without quotation marks, as a word may."""


@dataclass
class Overrides:
    """Overrides, parsed: those of the scenario and those of the network, by dotted key."""

    scenario: dict[str, Any] = field(default_factory=dict)
    network: dict[str, Any] = field(default_factory=dict)

    def recorded(self) -> dict[str, Any]:
        """Return all of them as the results document records them."""
        return {**self.network, **self.scenario}


def parse_assignments(assignments: Iterable[str]) -> Overrides:
    """Parse `KEY=VALUE` texts; the last one of a key wins (OverrideError: one is none, or has no value)."""
    overrides = Overrides()
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        key = key.strip()
        if not equals or not key:
            raise OverrideError("", key or assignment, "write it as KEY=VALUE, for example tcp.sack=true")
        target = overrides.network if key.split(".")[0] in NETWORK_ROOTS else overrides.scenario
        target[key] = _parse_value(key, text.strip())
    return overrides


def _parse_value(key: str, text: str) -> Any:
    try:
        parsed = toml.loads(f"value = {text}")
    except toml.TOMLDecodeError:
        if _WORD.fullmatch(text) or _OWN_METHOD.fullmatch(text):
            return text
        raise OverrideError("", key, f'{text!r} is not a TOML value (true, 5e6, "text", [1, 2])') from None
    if set(parsed) != {"value"}:
        raise OverrideError("", key, f"{text!r} is more than one TOML value")
    return parsed["value"]


def apply(scenario: Scenario, values: Mapping[str, Any], cases: Sequence[str]) -> Scenario:
    """Return the scenario with dotted keys and values applied to it, `flows.…` and `allocation` to the cases.

    Raises:
        OverrideError: a key that does not exist (with the nearest ones) or a value that does not fit.
    """
    data = copy.deepcopy(scenario.model_dump(mode="json"))
    places: dict[str, str] = {}
    # A change of kind empties its table, so it comes before the table's other keys.
    for key, value in sorted(values.items(), key=lambda item: not item[0].endswith(".kind")):
        for path in _expand(scenario, key, cases):
            _assign(data, path, value)
            places[".".join(path)] = key
    try:
        return parse(data, scenario.name)
    except ScenarioError as error:
        key = _responsible(places, error.place)
        inner = "" if error.place in (key, "") else f" ({error.place})"
        raise OverrideError("", key, f"{error.reason}{inner}") from None


def _responsible(places: Mapping[str, str], place: str) -> str:
    """Return the key of the override that made `place` wrong; all of them where that cannot be told."""
    for path, key in places.items():
        if f"{place}.".startswith(f"{path}.") or f"{path}.".startswith(f"{place}."):
            return key
    return ", ".join(dict.fromkeys(places.values()))


def _expand(scenario: Scenario, key: str, cases: Sequence[str]) -> list[list[str]]:
    """Return the paths in the scenario that a key stands for."""
    known = set(_keys(scenario))
    parts = key.split(".")
    candidates = [parts]
    if parts[0] in ("flows", "allocation", "demands"):
        candidates = [["cases", case, *parts] for case in cases]
    elif parts[0] == "workload":
        candidates = [
            ["cases", case, "flows", flow, *parts] for case in cases for flow in scenario.case(case).flows
        ]
    matches = [
        path
        for path in candidates
        if ".".join(path) in known or _is_rate_of_protocol(path, known) or _is_in_table(path, known)
    ]
    if not matches or parts[0] in FIXED:
        raise OverrideError("", key, f"there is no such key; {_nearest(key, scenario, cases)}")
    return matches


def _is_rate_of_protocol(path: Sequence[str], known: set[str]) -> bool:
    return path[-2:-1] == ["requested_bps"] and ".".join(path[:-1]) in known


def _is_in_table(path: Sequence[str], known: set[str]) -> bool:
    if path[-1] in TABLES and any(name.startswith(".".join([*path, ""])) for name in known):
        return True
    # Which keys a workload has depends on its kind, so the schema has to judge.
    return "workload" in path and ".".join([*path[: path.index("workload") + 1], "kind"]) in known


def _nearest(key: str, scenario: Scenario, cases: Sequence[str]) -> str:
    known = [name for name in _keys(scenario) if name.split(".")[0] not in FIXED]
    short = {name.removeprefix(f"cases.{case}.") for case in cases for name in known}
    offered = sorted(name for name in short if not name.endswith(".description"))
    near = difflib.get_close_matches(key, offered, n=3, cutoff=0.5)
    if near:
        return f"the nearest are {', '.join(near)}"
    return f"known are {', '.join(sorted({name.split('.')[0] for name in offered} | set(NETWORK_ROOTS)))}"


def _keys(value: object, prefix: str = "") -> Iterator[str]:
    """Yield the dotted keys under a model: its fields, and the entries of its tables."""
    if isinstance(value, BaseModel):
        items: Iterable[tuple[str, object]] = (
            (name, getattr(value, name)) for name in type(value).model_fields
        )
    elif isinstance(value, dict):
        items = value.items()
    else:
        return
    for name, inner in items:
        if not isinstance(inner, BaseModel):
            yield prefix + name
        yield from _keys(inner, f"{prefix}{name}.")


def _assign(data: dict[str, Any], path: Sequence[str], value: Any) -> None:
    target: Any = data
    for part in path[:-1]:
        inner = target.setdefault(part, {})
        if not isinstance(inner, dict):  # requested_bps = 9e6, of which one protocol's is set
            inner = target[part] = {DEFAULT: inner}
        target = inner
    if path[-1] == "kind" and target.get("kind") != value:
        target.clear()
    target[path[-1]] = value
