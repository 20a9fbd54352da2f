"""Process 1 in the virtual kernel: mounts what programs expect, runs one program, and powers off.

    python init.py ORDER.json

It is started before anything else is mounted, and imports the standard library alone.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

SETTLED_AT_S = 20.0
"""Open vSwitch counts threads by the machine's load and uptime: started within 10 s of the boot it decides on
no handler threads, and answers no upcall. These seconds are virtual and cost nothing."""
SET_TIMER_SLACK = 29
"""PR_SET_TIMERSLACK of prctl(2): how many nanoseconds late timers may be, 50,000 by default; inherited."""
POWER_OFF = 0x4321FEDC
"""LINUX_REBOOT_CMD_POWER_OFF of reboot(2)."""
SPARE_FOLDERS = ("/tmp", "/var/log", "/var/lib/openvswitch")  # noqa: S108 (of the guest)
WRITABLE = "rw,noatime"
"""How folders of the host are mounted: times of access that are written back depend on those before."""
FILESYSTEMS = (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"))


def main(order_path: Path) -> None:
    """Run the order, whatever happens on the way, and end the machine."""
    libc = ctypes.CDLL(None)
    try:
        libc.prctl(SET_TIMER_SLACK, 1)
        for kind, folder in FILESYSTEMS:
            _mount(kind, folder)
        for folder in ("/dev/shm", "/dev/pts"):  # noqa: S108
            Path(folder).mkdir(exist_ok=True)
        _mount("tmpfs", "/dev/shm")  # noqa: S108
        _mount("devpts", "/dev/pts")
        order = json.loads(order_path.read_text())
        for folder in SPARE_FOLDERS:
            if Path(folder).is_dir():
                _mount("tmpfs", folder)
        for mode, named in ((WRITABLE, order["writable"]), ("ro", order["readable"])):
            for folder, host in named.items():
                Path(folder).mkdir(parents=True, exist_ok=True)
                _mount("hostfs", folder, "-o", f"{mode},{host}")
        order_path.with_name("status").write_text(str(_run(order)))
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os.sync()
    libc.reboot(POWER_OFF)


def _run(order: dict[str, Any]) -> int:
    """Run the order's program to its end and return its exit status."""
    os.environ.clear()
    os.environ.update(order["environment"])
    Path("/run/netns").mkdir()
    _call("ip", "link", "set", "lo", "up")
    # The controller starts while the network is built, perhaps before the management network is there.
    _call("sysctl", "-q", "-w", "net.ipv4.ip_nonlocal_bind=1")
    # Until a time, not for one: what came before may have taken some.
    time.sleep(SETTLED_AT_S - time.monotonic())
    child = subprocess.Popen(order["argv"], cwd=order["folder"], stdin=subprocess.DEVNULL)
    # As process 1 it takes over every daemon: none of them may stay as a zombie.
    while True:
        pid, status = os.wait()
        if pid == child.pid:
            return os.waitstatus_to_exitcode(status)


def _mount(kind: str, folder: str, *options: str) -> None:
    _call("mount", "-t", kind, *options, kind, folder)


def _call(*argv: str) -> None:
    """Run a program; what it complains of becomes the last line on the console."""
    done = subprocess.run(argv, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(argv)}: {' '.join(done.stderr.split())}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
