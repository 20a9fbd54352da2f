"""The hosts' TCP settings: set in each network namespace, read back and recorded."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.engines.live.child import ChildFailed
from experiments.environment import read_sysctl, sysctl_path
from topologies.commands import in_namespace
from topologies.mininet_builder import Emulation

RECORDED = tuple(
    f"net.ipv4.tcp_{name}"
    for name in (
        "autocorking",
        "congestion_control",
        "dsack",
        "early_retrans",
        "ecn",
        "frto",
        "limit_output_bytes",
        "no_metrics_save",
        "recovery",
        "reordering",
        "rmem",
        "sack",
        "slow_start_after_idle",
        "timestamps",
        "window_scaling",
        "wmem",
    )
)


def configure_hosts(emulation: Emulation, asked: Mapping[str, str]) -> dict[str, str]:
    """Set the sysctls that a scenario asks for on every host; returns what they are (ChildFailed)."""
    settings: dict[str, str] = {}
    for host in emulation.network.hosts:
        try:
            settings = in_namespace(emulation.host(host).pid, lambda: _set_and_read(asked))
        except OSError as error:
            raise ChildFailed(f"{host} does not take the TCP settings: {error}") from error
        for name, value in asked.items():
            if settings.get(name) != value:
                raise ChildFailed(f"{name} is {settings.get(name)} on {host} although {value} was set")
    return settings


def _set_and_read(asked: Mapping[str, str]) -> dict[str, str]:
    for name, wanted in asked.items():
        sysctl_path(name).write_text(wanted)
    names = sorted({*RECORDED, *asked})
    return {name: value for name in names if (value := read_sysctl(name)) is not None}
