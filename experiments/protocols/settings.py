"""Which settings only some protocols read, so that one that would say nothing is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.errors import OverrideError
from experiments.protocols.base import PROTOCOLS


def check_read(given: Mapping[str, Any], wanted: Sequence[str]) -> None:
    """Refuse settings that none of the wanted protocols reads (OverrideError: with those that would)."""
    for key, value in given.items():
        readers = [name for name, spec in PROTOCOLS.items() if _reads(name, spec.reads, key, value)]
        if readers and not set(readers) & set(wanted):
            reason = f"says nothing to {_listed(wanted)}: only {_listed(readers)} would read it; leave it out"
            raise OverrideError("", key, reason)


def _reads(protocol: str, prefixes: Sequence[str], key: str, value: Any) -> bool:
    """Return whether a setting is this protocol's own, or of it and a few others."""
    parts = key.split(".")
    if parts[-2:-1] == ["requested_bps"]:
        return parts[-1] == protocol
    own = key if parts[0] != "cases" else ".".join(parts[2:])
    return any(
        own == prefix or own.startswith(f"{prefix}.") or f"{own}={value}" == prefix for prefix in prefixes
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
