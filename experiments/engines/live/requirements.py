"""What the live engine needs on the machine."""

from __future__ import annotations

import errno
import importlib.util
import shutil
import socket
from pathlib import Path

from experiments import protocols
from experiments.environment import read_sysctl
from experiments.errors import MissingRequirement
from experiments.installation import repair_command
from experiments.model.plan import RunPlan

PROGRAMS = {
    "ovs-vswitchd": "openvswitch-switch",
    "ovsdb-server": "openvswitch-switch",
    "ovs-ofctl": "openvswitch-switch",
    "mnexec": "mininet",
    "ethtool": "ethtool",
    "ip": "iproute2",
    "tc": "iproute2",
    "sysctl": "procps",
    "nsenter": "util-linux",
    "chrt": "util-linux",
}
"""Program and the Debian package that has it."""

OVS_FOLDER = Path("/run/mstcp-lab/ovs")
"""In a /run of the worker's own: socket paths must be short, and its database is of no use afterwards."""


def check() -> None:
    """Refuse where a program or the compiled core is missing.

    Raises:
        MissingRequirement: with the command that brings it.
    """
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        packages = " ".join(sorted({PROGRAMS[name] for name in missing}))
        raise MissingRequirement(
            f"The engines live and virtual need {', '.join(missing)}.", f"Run: apt-get install {packages}"
        )
    if importlib.util.find_spec("mstcp._core") is None:
        raise MissingRequirement("The compiled core of mstcp is not built.", f"Run: {repair_command()}")


def check_kernel(plan: RunPlan) -> None:
    """Refuse a run that needs of TCP or MPTCP what the kernel here does not have.

    Raises:
        MissingRequirement: with what to do about it.
    """
    protocol, tcp = protocols.get(plan.protocol), plan.scenario.tcp
    if protocol.kernel_protocol == "mptcp" and read_sysctl("net.mptcp.enabled") != "1":
        raise MissingRequirement(
            f"This kernel has no MPTCP, which {plan.protocol} needs, or it is off.",
            "Use one with CONFIG_MPTCP and net.mptcp.enabled = 1, or --engine virtual or sim.",
        )
    known = (read_sysctl("net.ipv4.tcp_available_congestion_control") or "").split()
    if tcp.congestion_control not in known and not _can_load(tcp.congestion_control):
        raise MissingRequirement(
            f"This kernel does not have congestion control {tcp.congestion_control}.",
            f"It has {', '.join(known)}: take one of them (--set tcp.congestion_control=…).",
        )
    for name in (*protocol.kernel_settings, *tcp.sysctls()):
        if read_sysctl(name) is None:
            raise MissingRequirement(
                f"This kernel does not have the setting {name}, which the run needs.",
                "Leave it out, or use another kernel or --engine sim.",
            )


def _can_load(congestion_control: str) -> bool:
    """Return whether the kernel takes a congestion control on a socket: it loads the module then."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
        except OSError as error:
            return error.errno != errno.ENOENT  # it is there, for others
    return True
