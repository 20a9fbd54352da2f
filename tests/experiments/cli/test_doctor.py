"""What the doctor says of machines that lack this or that, and of this one."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest
from rich.console import Console

from experiments import doctor
from experiments.cli import command_line
from experiments.cli import doctor as command
from experiments.errors import MissingRequirement
from switch.capabilities import Capability

HERE = Path("/somewhere")


def has(name: str) -> Capability:
    return Capability(name, True, "there")


def lacks(name: str, remedy: str = "install it", tried: bool = True) -> Capability:
    return Capability(name, False, "not there", remedy, tried)


@pytest.mark.parametrize(
    ("capability", "state", "blocks"),
    [
        (has("rights"), "ok", False),
        (lacks("rights", "run it with sudo"), "missing", True),
        (lacks("openvswitch"), "missing", True),
        (lacks("ovs-kernel-datapath"), "degraded", False),
        (lacks("sch_netem"), "degraded", False),
        (lacks("sch_netem", tried=False), "unknown", False),
        (lacks("sch_netem", "run sudo apt-get install it"), "degraded", False),
        (lacks("xdp"), "missing", False),
        (lacks("mptcp"), "missing", False),
        (lacks("something-new"), "missing", False),
    ],
)
def test_states_of_capabilities(capability: Capability, state: str, blocks: bool) -> None:
    check = doctor.from_capability(capability)
    assert (check.state, check.blocks) == (state, blocks)
    assert check.remedy == capability.remedy


def test_one_datapath_is_enough() -> None:
    kernel, userspace = "ovs-kernel-datapath", "ovs-userspace-datapath"
    assert doctor.check_datapaths({userspace: has(userspace), kernel: lacks(kernel)}).state == "ok"
    neither = doctor.check_datapaths({userspace: lacks(userspace), kernel: lacks(kernel)})
    assert neither.blocks
    assert neither.remedy == "install it"


def test_switches_of_the_system_are_wanted_by_mn_alone() -> None:
    assert doctor.check_system_switches(None).state == "ok"
    silent = doctor.check_system_switches("ovsdb-server does not answer")
    assert (silent.state, silent.blocks) == ("degraded", False)
    assert "openvswitch-switch" in silent.remedy


@pytest.mark.parametrize("lacking", ["sch_netem", "sch_tbf"])
def test_links_need_netem_with_tbf_or_the_emulator(lacking: str) -> None:
    there = {name: has(name) for name in ("sch_netem", "sch_tbf")}
    assert doctor.check_links(there, "not built").state == "ok"
    assert doctor.check_links(there | {lacking: lacks(lacking)}, None).state == "ok"
    assert doctor.check_links(there | {lacking: lacks(lacking)}, "not built").state == "missing"
    assert doctor.check_links(there | {lacking: lacks(lacking, tried=False)}, "not built").state == "unknown"
    assert doctor.check_links({}, "not built").blocks


def test_missing_programs_name_their_packages() -> None:
    check = doctor.check_programs(lambda name: None if name in ("ethtool", "tc", "ip") else "/bin/x")
    assert check.blocks
    assert check.remedy == "apt-get install ethtool iproute2"
    assert doctor.check_programs(lambda name: "/bin/x").state == "ok"


def test_packages_core_and_mininet() -> None:
    assert doctor.check_packages(lambda name: name != "pulp").detail == "not importable: pulp"
    assert doctor.check_packages(lambda name: True).state == "ok"
    assert doctor.check_core(lambda name: False).remedy == "make setup"
    assert doctor.check_mininet(None).blocks
    assert doctor.check_mininet(HERE).detail == str(HERE)


@pytest.mark.parametrize(("busy", "state"), [(0.0, "ok"), (0.5, "ok"), (0.9, "degraded"), (None, "unknown")])
def test_a_busy_processor_degrades_and_does_not_block(busy: float | None, state: str) -> None:
    check = doctor.check_cpu(busy)
    assert check.state == state
    assert not check.blocks


def test_little_memory_or_disk_degrades() -> None:
    assert doctor.check_memory(100 * 1024**2).state == "degraded"
    assert doctor.check_memory(8 * 1024**3).detail == "8.0 GiB free"
    assert doctor.check_memory(None).state == "unknown"
    assert doctor.check_disk(0).state == "degraded"


def test_whatever_is_not_ok_has_a_meaning_and_a_remedy() -> None:
    checks = [
        *(doctor.from_capability(lacks(name)) for name in doctor.CONSEQUENCES),
        doctor.check_datapaths({}),
        doctor.check_programs(lambda name: None),
        doctor.check_mininet(None),
        doctor.check_links({}, "not built"),
        doctor.check_packages(lambda name: False),
        doctor.check_core(lambda name: False),
        doctor.check_cpu(1.0),
        doctor.check_memory(0),
        doctor.check_disk(0),
    ]
    for check in checks:
        assert check.state != "ok"
        assert check.meaning
        assert check.remedy


def test_the_table_tells_remedies_and_the_verdict_in_ascii() -> None:
    out = io.StringIO()
    checks = [doctor.check_mininet(None), doctor.check_core(lambda name: True), doctor.check_disk(1024**4)]
    command.print_checks(checks, Console(file=out, width=100))
    text = out.getvalue()
    assert text.isascii()
    assert "mininet: apt-get install mininet" in text
    assert "The live engine cannot run here: mininet." in text


def test_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    status = command.main(command_line.make_parser().parse_args(["doctor", "--json"]))
    document = json.loads(capsys.readouterr().out)
    assert status == (0 if document["live"] else 1)
    checks = {check["name"]: check for check in document["checks"]}
    assert {"rights", "openvswitch", "sch_netem", "xdp", "mptcp", "mininet", "links", "free-cpu"} <= set(
        checks
    )
    if os.geteuid() != 0:
        assert checks["rights"]["state"] == "missing"
    assert document["live"] == (not any(c["required"] and c["state"] != "ok" for c in document["checks"]))


def test_without_its_kernel_the_virtual_engine_alone_cannot_run() -> None:
    assert doctor.check_virtual(None).state == "ok"
    check = doctor.check_virtual(MissingRequirement("The kernel cannot be unpacked.", "Make room."))
    assert (check.state, check.remedy, check.blocks) == ("missing", "Make room.", False)
