"""`load`: one way to every network, whether built in, in a file or generated."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from topologies.check import check_network
from topologies.errors import InvalidTopology, UnknownTopology, UnknownVariant
from topologies.generators import GENERATORS, GRAMMAR, generate
from topologies.model import Network
from topologies.overrides import apply_overrides
from topologies.toml_loader import load_toml
from topologies.validation import validate

NETWORK_FOLDER = Path(__file__).parent / "networks"


def builtin_names() -> tuple[str, ...]:
    """Return the names of the built-in networks, sorted."""
    return tuple(sorted(path.stem for path in NETWORK_FOLDER.glob("*.toml")))


def load(
    spec: str | os.PathLike[str], variant: str | None = None, overrides: Mapping[str, Any] | None = None
) -> Network:
    """Return a checked network.

    Args:
        spec: a built-in name (`butterfly`), the path of a .toml, .json (a dumped `Network`) or .graphml file,
            or a generator (`ring:6`, `waxman:12:seed=1`).
        variant: a variant of a built-in network or .toml file.
        overrides: changes to single values, as `topologies.apply_overrides` takes them.

    Raises:
        TopologyError: nothing is called so, or it is not a network that can be used.
    """
    text = os.fspath(spec)
    network = _load(text, variant)
    return apply_overrides(network, overrides) if overrides else network


def _load(text: str, variant: str | None) -> Network:
    if text in builtin_names():
        return load_toml(NETWORK_FOLDER / f"{text}.toml", variant)
    suffix = Path(text).suffix.lower()
    if suffix == ".toml":
        return load_toml(Path(text), variant)
    if suffix == ".json":
        network = _load_json(Path(text))
    elif suffix == ".graphml":
        # networkx is slow to import, and nothing else here needs it.
        from topologies.graphml_loader import load_graphml

        network = load_graphml(Path(text))
    elif text.split(":")[0] in GENERATORS:
        network = generate(text)
    else:
        raise UnknownTopology(text, builtin_names(), GRAMMAR)
    if variant is not None:
        raise UnknownVariant(network.name, variant, ())
    return network


def _load_json(path: Path) -> Network:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as failure:
        raise InvalidTopology("", f"cannot be read: {failure.strerror}", str(path)) from None
    except ValueError as failure:
        raise InvalidTopology("", f"is not JSON: {failure}", str(path)) from None
    network = validate(Network, data, file=str(path))
    check_network(network, str(path))
    return network
