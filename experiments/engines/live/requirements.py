"""What the live engine needs on the machine."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

from experiments.errors import MissingRequirement
from experiments.installation import repair_command

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
