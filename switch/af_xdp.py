"""AF_XDP ports of Open vSwitch's userspace datapath: frames come and go by rings in memory.

A packet socket wakes ovs-vswitchd's main thread for nearly every packet, which then looks at all it has, also
at each bridge's management sockets. AF_XDP ports have a forwarding thread ("pmd") of their own that takes
what came and sleeps for some 100 us. In the butterfly's case 1 (22,000 packets over links a second) that is
0.2 of a core instead of 0.86. Each port has 16,384 frames of 4 KiB, which Open vSwitch fixed when it
was compiled: hence the bound on the memory.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

PORT_BYTES = 76 << 20
"""Memory of a port: its frames and what Open vSwitch keeps beside each (measured, 3.1)."""
MEMORY_SHARE = 3
"""All ports together may take one part in this many of what is available."""
SLEEP_US = 100
"""Longest sleep of the forwarding thread. 50 costs a third more and saves 0.05 ms over three switches."""
OLDEST_VERSION = (3, 1)
"""Of Open vSwitch: an older forwarding thread never sleeps, and takes a whole core."""
INTERFACE_TYPE = "afxdp"
_AF_XDP = 44
"""Of <linux/socket.h>; Python has no name for it."""


def problem(interface_types: Sequence[str], version: str) -> str | None:
    """Return why ports cannot be of this kind here; None if they can.

    Args:
        interface_types: column `iface_types` of a running Open vSwitch.
        version: what it answers to `ovs-appctl version`, as `ovs-vswitchd (Open vSwitch) 3.1.0`.
    """
    if INTERFACE_TYPE not in interface_types:
        return "Open vSwitch was built without AF_XDP"
    match = re.search(r"(\d+)\.(\d+)", version)
    if match is None or (int(match[1]), int(match[2])) < OLDEST_VERSION:
        oldest = ".".join(map(str, OLDEST_VERSION))
        return f"Open vSwitch {oldest} or later is needed, this is {' '.join(version.split())}"
    try:
        socket.socket(_AF_XDP, socket.SOCK_RAW, 0).close()
    except OSError as failure:
        return f"the kernel opens no AF_XDP socket ({failure.strerror})"
    return None


def has_memory_for(ports: int, meminfo: Path = Path("/proc/meminfo")) -> bool:
    """Return whether this machine can spare what this many ports take."""
    match = re.search(r"^MemAvailable:\s*(\d+) kB$", meminfo.read_text(), re.MULTILINE)
    return match is not None and ports * PORT_BYTES * MEMORY_SHARE <= int(match[1]) << 10


def port_settings() -> list[str]:
    """Return the columns of an interface of this kind, as ovs-vsctl takes them."""
    # `native`: a veth has no zero copy, which would be tried first for each port.
    return [f"type={INTERFACE_TYPE}", "options:xdp-mode=native"]


def instance_settings() -> list[str]:
    """Return the columns of `Open_vSwitch` that let the forwarding thread sleep, by old and new name."""
    return [f"other_config:{key}={SLEEP_US}" for key in ("pmd-maxsleep", "pmd-sleep-max")]


def unpin(pid: int) -> None:
    """Let the forwarding threads of an ovs-vswitchd run on any core: it pins each to one, idle or not."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # a thread that has just ended
            if (task / "comm").read_text().startswith("pmd-"):
                os.sched_setaffinity(int(task.name), range(os.cpu_count() or 1))
