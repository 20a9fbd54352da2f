"""`--workload KIND:KEY=VALUE,...`: a workload on the command line, as `bulk:size=20MB`."""

from __future__ import annotations

import re
from typing import Any

from experiments.errors import OverrideError
from experiments.workloads.base import WORKLOADS

_QUANTITY = re.compile(r"(\d+(?:\.\d*)?(?:e\d+)?)\s*(|[kMG]i?B|B|ms|s)", re.IGNORECASE)
_UNITS = {
    "": 1, "b": 1, "s": 1, "ms": 1e-3,
    "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2**10, "mib": 2**20, "gib": 2**30,
}  # fmt: skip
_SUFFIXES = ("", "_bytes", "_s")


def parse_workload(text: str) -> dict[str, Any]:
    """Return a workload's table; that its values fit is checked by the schema.

    Keys may leave their unit out (`size`, `on`), values may have one (`20MB`, `64KiB`, `200ms`). Keys of
    `sizes` follow a dot: `requests:per_s=20,sizes.kind=web-search,sizes.scale=0.01`.

    Raises:
        OverrideError: an unknown kind or key, or text that is no assignment.
    """
    kind, _, rest = text.partition(":")
    if kind not in WORKLOADS:
        raise OverrideError(
            "", "workload", f"there is no workload {kind!r}; known are {', '.join(WORKLOADS)}"
        )
    table: dict[str, Any] = {"kind": kind}
    for assignment in filter(None, rest.split(",")):
        key, equals, value = (part.strip() for part in assignment.partition("="))
        if not equals or not key or not value:
            raise OverrideError("", "workload", f"write {assignment!r} as KEY=VALUE, as in bulk:size=20MB")
        outer, _, inner = key.partition(".")
        name = _field(kind, outer)
        if not inner:
            table[name] = _value(value)
        elif isinstance(table.setdefault(name, {}), dict):
            table[name][inner] = _value(value)
        else:
            raise OverrideError("", "workload", f"{outer} is a value already, so it has no key {inner!r}")
    return table


def _field(kind: str, key: str) -> str:
    fields = [name for name in WORKLOADS[kind].model.model_fields if name != "kind"]
    full_name = next((key + suffix for suffix in _SUFFIXES if key + suffix in fields), None)
    if full_name is None:
        known = f"known are {', '.join(fields)}" if fields else "it has none"
        raise OverrideError("", "workload", f"{kind} has no key {key!r}; {known}")
    return full_name


def _value(text: str) -> float | str:
    quantity = _QUANTITY.fullmatch(text)
    if not quantity:
        return text
    number = float(quantity[1]) * _UNITS[quantity[2].lower()]
    return int(number) if number.is_integer() else number
