"""`mstcp-controller check`: everything that can be found wrong with a configuration before it is used."""

from __future__ import annotations

import topologies
from controller.configuration.schema import Configuration
from controller.configuration.tls import server_context
from controller.errors import ConfigError


def check(configuration: Configuration, file: str) -> str:
    """Return a sentence that says what a configuration is; the files that it names are read.

    Raises:
        ConfigError: a setting cannot be used.
        TopologyError: the topology cannot be loaded.
    """
    unprotected = configuration.unprotected()
    if unprotected is not None:
        raise ConfigError(f"{file}, listen", unprotected)
    network = topologies.load(configuration.topology, variant=configuration.variant)
    check_links(configuration, network, f"{file}, ")
    for name in ("tls", "openflow_tls"):
        files = getattr(configuration.listen, name)
        if files is not None:
            server_context(f"{file}, listen.{name}", files)
    counts = f"{len(network.switches)} switches, {len(network.links)} links and {len(network.hosts)} hosts"
    return f"{file} is right: {network.name} with {counts}; tokens: {len(configuration.tokens)}"


def check_links(configuration: Configuration, network: topologies.model.Network, prefix: str = "") -> None:
    """Raise ConfigError for the first link that the topology does not have."""
    known = {link.name for link in network.links} | {"-".join(link.ends[::-1]) for link in network.links}
    for name in configuration.links:
        if name not in known:
            raise ConfigError(f"{prefix}links.{name}", "the topology has no such link.")
