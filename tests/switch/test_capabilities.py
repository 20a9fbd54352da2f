"""What is found out about the machine, and that finding out leaves no trace."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from switch import capabilities
from switch.capabilities import Capability, probe, probe_qdisc
from tests.fakes.lab import LAB_COMMAND
from tests.sandbox import run_in_sandbox, snapshot

NAMES = [
    "rights",
    "openvswitch",
    "ovs-kernel-datapath",
    "ovs-userspace-datapath",
    "af_xdp",
    "sch_netem",
    "sch_tbf",
    "xdp",
    "mptcp",
]


def test_every_capability_has_a_detail_and_what_is_missing_a_remedy() -> None:
    capabilities_here = probe()
    assert [capability.name for capability in capabilities_here] == NAMES
    assert all(capability.detail for capability in capabilities_here)
    assert all(bool(capability.remedy) != capability.available for capability in capabilities_here)


def test_unknown_qdisc_is_missing() -> None:
    capability = probe_qdisc("nosuchqdisc", [])
    assert not capability.available
    assert capability.remedy


def test_missing_programs_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    by_name = {capability.name: capability for capability in probe()}
    assert by_name["openvswitch"].remedy == "apt-get install openvswitch-switch"
    assert by_name["sch_netem"].remedy == "apt-get install iproute2"
    assert not by_name["ovs-kernel-datapath"].available


def test_slow_probe_is_not_available(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*arguments: Any, **options: Any) -> None:
        raise subprocess.TimeoutExpired("tc", 15)

    monkeypatch.setattr(subprocess, "run", hang)
    capability = probe_qdisc("netem", [])
    assert not capability.available
    assert "no answer within 15 s" in capability.detail


def test_missing_rights_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "_effective_capabilities", lambda: 1 << capabilities.CAP_NET_ADMIN)
    rights = capabilities.probe_rights()
    assert rights == Capability("rights", False, "this user lacks CAP_SYS_ADMIN", "run it with sudo")


IN_A_USER_NAMESPACE = ["unshare", "--user", "--map-root-user", "--", "sh", "-euc"]
FORBIDDEN = """
import ctypes, struct, subprocess, sys
UNSHARE, ALLOW, EPERM = {"x86_64": 272, "aarch64": 97}[sys.argv[1]], 0x7FFF0000, 0x00050001
code = [(0x20, 0, 0, 0), (0x15, 0, 1, UNSHARE), (0x06, 0, 0, EPERM), (0x06, 0, 0, ALLOW)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
filter = struct.pack("HxxxxxxP", len(code), ctypes.addressof(program))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.create_string_buffer(filter)) == 0
sys.exit(subprocess.run(sys.argv[2:]).returncode)
"""
"""Runs a program under a seccomp filter (seccomp(2)) that answers unshare(2) with EPERM."""


@pytest.mark.parametrize(
    ("without", "detail", "remedy"),
    [
        (
            [*IN_A_USER_NAMESPACE, 'echo 0 >/proc/sys/user/max_net_namespaces; exec "$@"', "sh"],
            "no more namespaces may be made (user.max_net_namespaces = 0,",
            "sysctl -w user.max_net_namespaces=10000",
        ),
        (
            [sys.executable, "-c", FORBIDDEN, platform.machine()],
            "a seccomp filter forbids new namespaces (unshare: unshare failed: Operation not permitted)",
            "docker run --privileged",
        ),
    ],
)
def test_namespaces_that_cannot_be_made_are_told_by_the_doctor_and_before_a_run(
    without: list[str], detail: str, remedy: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    environment = {**os.environ, "MSTCP_LAB_KERNEL": "/bin/false"}  # that does not boot
    lab = [*without, *LAB_COMMAND]
    doctor = subprocess.run([*lab, "doctor", "--json"], capture_output=True, text=True, env=environment)
    document = json.loads(doctor.stdout)
    checks = {check["name"]: check for check in document["checks"]}
    assert "does not boot: it ended before its program" in checks["virtual-kernel"]["detail"]
    rights = checks["rights"]
    assert (document["live"], rights["state"]) == (False, "missing")
    assert rights["detail"].startswith(detail)
    assert remedy in rights["remedy"]
    for command in (["run", "butterfly", "--protocol", "ospf"], ["shell", "butterfly"]):
        done = subprocess.run([*lab, *command], capture_output=True, text=True)
        assert done.returncode == 1
        assert done.stderr.startswith(f"mstcp-lab: The live engine makes network namespaces, and {detail}")
        assert remedy in done.stderr
        assert len(done.stderr.splitlines()) == 1


def probe_and_look() -> dict[str, Any]:
    before = snapshot()
    probed = [*probe(), probe_qdisc("htb", ["default", "1"])]
    return {"available": [c.name for c in probed if c.available], "before": before, "after": snapshot()}


@pytest.mark.root
def test_probing_leaves_nothing() -> None:
    outcome = run_in_sandbox(probe_and_look)
    assert {"rights", "openvswitch", "sch_htb"} <= set(outcome["available"])
    assert outcome["after"] == outcome["before"]
