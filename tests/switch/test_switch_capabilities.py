"""What is found out about the machine, and that finding out leaves no trace."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from switch import capabilities
from switch.capabilities import Capability, probe, probe_qdisc
from tests.sandbox import run_in_sandbox, snapshot

NAMES = [
    "rights",
    "openvswitch",
    "ovs-kernel-datapath",
    "ovs-userspace-datapath",
    "sch_netem",
    "sch_tbf",
    "sch_htb",
    "sch_fq",
    "xdp",
    "mptcp",
]


def test_every_capability_has_a_detail_and_what_is_missing_a_remedy() -> None:
    found = probe()
    assert [capability.name for capability in found] == NAMES
    assert all(capability.detail for capability in found)
    assert all(bool(capability.remedy) != capability.available for capability in found)


def test_unknown_qdisc_is_missing() -> None:
    found = probe_qdisc("nosuchqdisc", [])
    assert not found.available
    assert found.remedy


def test_missing_programs_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = {capability.name: capability for capability in probe()}
    assert found["openvswitch"].remedy == "apt-get install openvswitch-switch"
    assert found["sch_netem"].remedy == "apt-get install iproute2"
    assert not found["ovs-kernel-datapath"].available


def test_slow_probe_is_not_available(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*arguments: Any, **options: Any) -> None:
        raise subprocess.TimeoutExpired("tc", 15)

    monkeypatch.setattr(subprocess, "run", hang)
    found = probe_qdisc("netem", [])
    assert not found.available
    assert "no answer within 15 s" in found.detail


def test_missing_rights_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "_effective_capabilities", lambda: 1 << capabilities.CAP_NET_ADMIN)
    found = capabilities.probe_rights()
    assert found == Capability("rights", False, "this user lacks CAP_SYS_ADMIN", "run it with sudo")


def probe_and_look() -> dict[str, Any]:
    before = snapshot()
    found = probe()
    return {"available": [c.name for c in found if c.available], "before": before, "after": snapshot()}


@pytest.mark.root
def test_probing_leaves_nothing() -> None:
    found = run_in_sandbox(probe_and_look)
    assert {"rights", "openvswitch", "sch_htb"} <= set(found["available"])
    assert found["after"] == found["before"]
