"""The datapaths of Open vSwitch: the kernel's, or its own in userspace."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Literal

from switch.errors import SwitchUnavailable

Datapath = Literal["system", "netdev"]
DATAPATH_DEVICES: dict[Datapath, str] = {"system": "ovs-system", "netdev": "ovs-netdev"}
"""The interface by which a datapath that is in use shows."""
TIMEOUT_S = 30.0


def choose_datapath(asked: Literal["auto", "system", "netdev"]) -> Datapath:
    """Return the datapath type to use.

    Raises:
        SwitchUnavailable: `system` was asked for, and the kernel has no openvswitch module.
    """
    if asked == "netdev":
        return "netdev"
    if kernel_datapath_available():
        return "system"
    if asked == "auto":
        return "netdev"
    raise SwitchUnavailable(
        "the kernel datapath of Open vSwitch is not there",
        f"install a kernel with the openvswitch module (modprobe openvswitch), or use datapath netdev; "
        f"this is {os.uname().release}",
    )


def kernel_datapath_available() -> bool:
    """Return whether the kernel has Open vSwitch's datapath, loading its module if need be and allowed."""
    if shutil.which("ovs-dpctl") is None:
        return False
    if not Path("/sys/module/openvswitch").exists() and shutil.which("modprobe"):
        subprocess.run(
            ["modprobe", "--quiet", "openvswitch"],
            check=False,
            capture_output=True,
            timeout=TIMEOUT_S,
        )
    # dump-dps succeeds, with no line, where the Generic Netlink family of the datapath exists.
    asked = subprocess.run(["ovs-dpctl", "dump-dps"], check=False, capture_output=True, timeout=TIMEOUT_S)
    return asked.returncode == 0 and b"does not exist" not in asked.stderr


def require_free(datapath: Datapath) -> None:
    """Raise SwitchUnavailable where another instance has the datapath of this network namespace."""
    device = DATAPATH_DEVICES[datapath]
    if device in (name for _, name in socket.if_nameindex()):
        raise SwitchUnavailable(
            f"another Open vSwitch has the {datapath} datapath of this network namespace ({device})",
            "run in a namespace of its own (unshare --net)",
        )
