"""Whether the machine's own Open vSwitch runs, where `mn` takes its switches from."""

from __future__ import annotations

import shutil
import subprocess

REMEDY = "systemctl start openvswitch-switch (without systemd: /usr/share/openvswitch/scripts/ovs-ctl start)"
TIMEOUT_S = 3


def why_none() -> str | None:
    """Return why `mn` would have no Open vSwitch switches, in words; None where it has them."""
    if shutil.which("ovs-vsctl") is None:
        return "Open vSwitch is not installed"
    call = ["ovs-vsctl", f"--timeout={TIMEOUT_S}", "--columns=ovs_version", "list", "Open_vSwitch"]
    asked = subprocess.run(call, capture_output=True, text=True, check=False)
    if asked.returncode == 0:
        return None
    last = asked.stderr.strip().splitlines()[-1:] or ["no answer"]
    return f"ovsdb-server does not answer ({last[0].removeprefix('ovs-vsctl: ')})"


def are_wanted(arguments: list[str]) -> bool:
    """Return whether `mn` with these arguments uses Open vSwitch's switches, its default."""
    for index, argument in enumerate(arguments):
        if argument in ("-h", "--help", "--version", "-c", "--clean"):
            return False
        name, _, value = argument.partition("=")
        if name == "--switch":
            kind = value or "".join(arguments[index + 1 : index + 2])
            return kind.partition(",")[0] in ("default", "ovs", "ovsk", "ovsbr")
    return True
