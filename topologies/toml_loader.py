"""Networks in TOML (format 1): nodes, links, and variants that change single values.

format = 1
name = "pair"
nodes = [{ name = "H0", kind = "host" }, { name = "S0", kind = "switch" }]
links = [{ ends = ["H0", "S0"], rate_bps = 10e6, delay_us = 1000 }]
[variants.slow.links]
H0-S0 = { rate_bps = 1e6 }
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from topologies import toml
from topologies.check import check_network
from topologies.errors import InvalidTopology, UnknownVariant
from topologies.model import Name, Network
from topologies.overrides import apply_overrides
from topologies.validation import validate


class Variant(BaseModel):
    """Changes to links and nodes, as `apply_overrides` takes them."""

    model_config = ConfigDict(extra="forbid")

    links: dict[str, dict[str, Any]] = Field(default_factory=dict)
    nodes: dict[str, dict[str, Any]] = Field(default_factory=dict)


class NetworkFile(Network):
    """A network as it stands in a file."""

    format: Literal[1]
    variants: dict[Name, Variant] = Field(default_factory=dict)


def load_toml(path: Path, variant: str | None = None) -> Network:
    """Return the network in a TOML file, in one of its variants.

    Every variant is checked, also those that are not asked for.

    Raises:
        InvalidTopology: the file cannot be read, or its content is not a network; with the place.
        UnknownVariant: the file has no such variant.
    """
    file = str(path)
    parsed = validate(NetworkFile, _read(path), file=file)
    network = Network(**{name: getattr(parsed, name) for name in Network.model_fields})
    check_network(network, file)
    variants = {
        name: apply_overrides(network, changes.model_dump(), file=file, prefix=f"variants.{name}")
        for name, changes in parsed.variants.items()
    }
    if variant is None:
        return network
    if variant not in variants:
        raise UnknownVariant(network.name, variant, variants)
    return variants[variant]


def _read(path: Path) -> dict[str, Any]:
    try:
        return toml.loads(path.read_text(encoding="utf-8"))
    except OSError as failure:
        raise InvalidTopology("", f"cannot be read: {failure.strerror}", str(path)) from None
    except UnicodeDecodeError as failure:
        raise InvalidTopology(
            "", f"is not UTF-8 text: {failure.reason} at byte {failure.start}", str(path)
        ) from None
    except toml.TOMLDecodeError as failure:
        raise InvalidTopology("", f"is not TOML: {failure}", str(path)) from None
    except RecursionError:
        raise InvalidTopology("", "is nested too deeply", str(path)) from None
