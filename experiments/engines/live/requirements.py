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
from switch.errors import BpfUnavailable
from switch.tcp import NAMES as OUR_CONTROLS
from switch.tcp import Controls
from topologies.commands import IPV6_SETTINGS

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
    """Refuse where a program or the compiled core is missing (MissingRequirement: with what brings it)."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        packages = " ".join(sorted({PROGRAMS[name] for name in missing}))
        raise MissingRequirement(
            f"The engines live and virtual need {', '.join(missing)}.", f"Run: apt-get install {packages}"
        )
    if importlib.util.find_spec("mstcp._core") is None:
        raise MissingRequirement("The compiled core of mstcp is not built.", f"Run: {repair_command()}")


def check_programs(plan: RunPlan) -> None:
    """Refuse programs of the scenario that are not installed; MissingRequirement names the first."""
    for program in plan.programs:
        needed = [program.command[0], *(["mptcpize"] if program.over == "mptcp" else [])]
        for name in needed:
            if shutil.which(name) is None:
                what = f"There is no program {name}, which {program.name} of the scenario needs."
                raise MissingRequirement(what, "Install it, or leave the program out.")


def check_kernel(plan: RunPlan) -> None:
    """Refuse a run that needs of TCP or MPTCP what this kernel does not have (MissingRequirement)."""
    for name in plan.parts():
        for setting, wanted in protocols.get(name).kernel_settings.items():
            if read_sysctl(setting) is None or wanted not in (None, read_sysctl(setting)):
                needed = setting if wanted is None else f"{setting} = {wanted}"
                raise MissingRequirement(
                    f"This kernel does not have {needed}, which {name} needs.",
                    "Use one that has it, or --engine virtual or sim.",
                )
    try:
        with missing_controls(plan):
            pass
    except BpfUnavailable as problem:
        raise MissingRequirement(f"{problem.reason}.", f"{problem.remedy}.") from None
    if plan.scenario.ip_version == 6 and not IPV6_SETTINGS.exists():
        raise MissingRequirement(
            "This kernel has no IPv6.", "Leave ip_version out, or use --engine virtual or sim."
        )
    asked = plan.scenario.sysctls()
    scheduler = asked.get("net.mptcp.scheduler", "default")
    if scheduler not in (read_sysctl("net.mptcp.available_schedulers") or "default").split():
        raise MissingRequirement(
            f"This kernel's MPTCP has no packet scheduler {scheduler}: Linux itself has the default alone.",
            "Use --engine virtual or sim, or a kernel that registers it.",
        )
    for setting in asked:
        if read_sysctl(setting) is None:
            raise MissingRequirement(
                f"This kernel does not have the setting {setting}, which the run needs.",
                "Leave it out, or use another kernel or --engine sim.",
            )


def missing_controls(plan: RunPlan) -> Controls:
    """Return what registers those congestion controls of a plan that the kernel lacks, while it is open.

    Raises:
        MissingRequirement: one of them is none of ours either.
    """
    known = (read_sysctl("net.ipv4.tcp_available_congestion_control") or "").split()
    names = dict.fromkeys(map(plan.kernel_control_of, plan.case.flows))
    missing = [name for name in names if name not in known and not _can_load(name)]
    for name in set(missing) - set(OUR_CONTROLS):
        raise MissingRequirement(
            f"This kernel does not have congestion control {name}.",
            f"Take one of {', '.join(sorted({*known, *OUR_CONTROLS}))} (--set tcp.congestion_control=…).",
        )
    return Controls(missing)


def _can_load(congestion_control: str) -> bool:
    """Return whether the kernel takes a congestion control on a socket: it loads the module then."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
        except OSError as error:
            return error.errno != errno.ENOENT  # it is there, for others
    return True
