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
    "af_xdp",
    "sch_netem",
    "sch_tbf",
    "sch_htb",
    "sch_fq",
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


def probe_and_look() -> dict[str, Any]:
    before = snapshot()
    probed = probe()
    return {"available": [c.name for c in probed if c.available], "before": before, "after": snapshot()}


@pytest.mark.root
def test_probing_leaves_nothing() -> None:
    outcome = run_in_sandbox(probe_and_look)
    assert {"rights", "openvswitch", "sch_htb"} <= set(outcome["available"])
    assert outcome["after"] == outcome["before"]
