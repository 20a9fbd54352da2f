"""The hosts' TCP settings: set in each network namespace, read back and recorded."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.engines.live.child import ChildFailed
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
        if asked:
            done = emulation.run(
                host, ["sysctl", "-q", "-w", *(f"{name}={value}" for name, value in asked.items())]
            )
            if done.returncode:
                raise ChildFailed(f"{host} does not take the TCP settings: {done.stderr.strip()}")
        settings = _read(emulation, host, sorted({*RECORDED, *asked}))
        for name, value in asked.items():
            if settings.get(name) != value:
                raise ChildFailed(f"{name} is {settings.get(name)} on {host} although {value} was set")
    return settings


def _read(emulation: Emulation, host: str, names: list[str]) -> dict[str, str]:
    lines = emulation.run(host, ["sysctl", "-e", *names]).stdout.splitlines()
    pairs = (line.partition(" = ") for line in lines)
    return {name.strip(): " ".join(value.split()) for name, equals, value in pairs if equals}
