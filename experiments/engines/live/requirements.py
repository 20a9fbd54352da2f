"""What the live engine needs on the machine."""

from __future__ import annotations

import errno
import importlib.util
import shutil
import socket
from pathlib import Path

from experiments import protocols
from experiments.apps.config import IPPROTO_MPTCP
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
    if protocol.kernel_protocol == "mptcp":
        try:
            socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP).close()
        except OSError:
            raise MissingRequirement(
                f"This kernel has no MPTCP, which {plan.protocol} needs.",
                "Use one with CONFIG_MPTCP, or --engine virtual or sim.",
            ) from None
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, tcp.congestion_control.encode())
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise
            known = read_sysctl("net.ipv4.tcp_available_congestion_control")
            raise MissingRequirement(
                f"This kernel does not have congestion control {tcp.congestion_control}.",
                f"It has {known}; take one of them (--set tcp.congestion_control=…), or load the module.",
            ) from None
    for name in (*protocol.kernel_settings, *tcp.sysctls()):
        if read_sysctl(name) is None:
            raise MissingRequirement(
                f"This kernel does not have the setting {name}, which the run needs.",
                "Leave it out, or use another kernel or --engine sim.",
            )
