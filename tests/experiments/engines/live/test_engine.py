"""`mstcp-lab run` as a user calls it: real Open vSwitch, Mininet, controller and TCP."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from experiments.environment import read_sysctl
from experiments.model.results import Results, RunResult
from tests.fakes.lab import LAB_COMMAND
from tests.fakes.waiting import wait_until
from tests.paths import ROOT

MAIN_PATH = ["T0", "S0", "S4", "T2"]
MIDDLE_PATH = ["T0", "S0", "S2", "S3", "S4", "T2"]
"""For the first run of a call to end, on a machine that does much else."""

pytestmark = [pytest.mark.root, pytest.mark.timeout(600), pytest.mark.usefixtures("live_machine")]


Lab = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def lab() -> Iterator[Lab]:
    """Starts `mstcp-lab` with arguments; what still runs after the test is killed."""
    with ExitStack() as stack:

        def start(*argv: str) -> subprocess.Popen[str]:
            command = [*LAB_COMMAND, *argv]
            pipe = subprocess.PIPE
            process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield start


def traces(out: Path) -> list[str]:
    """Return what is there of a call: processes that name its folder, interfaces."""
    left = [
        line
        for entry in Path("/proc").glob("[0-9]*/cmdline")
        if str(out) in (line := _read(entry).replace("\0", " "))
    ]
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    left += [line for line in links.splitlines() if "mgmt" in line or "S0" in line]
    return left


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it has just ended
        return ""


def test_scenario_1_with_both_protocols(tmp_path: Path, lab: Lab) -> None:
    out = tmp_path / "out"
    call = [
        "run",
        "butterfly",
        "--engine",
        "live",
        "--protocol",
        "ospf,mstcp",
        "--case",
        "1",
        "--duration",
        "3",
    ]
    process = lab(*call, "--json", "--out", str(out))
    stdout, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr
    results = Results.model_validate_json(stdout)
    assert Results.read(out / "results.json") == results
    assert (out / "report.html").exists()
    runs = {run.protocol: run for run in results.runs}
    assert set(runs) == {"ospf", "mstcp"}
    for run in results.runs:
        check_sound(run)
    check_ospf(runs["ospf"])
    check_mstcp(runs["mstcp"])
    assert results.environment.link_backend in ("netem", "emulator")
    assert traces(out) == []


@contextmanager
def loaded_machine() -> Iterator[None]:
    """Take every core from all other programs for 4 ms of each 10, until the block ends, or for two minutes.

    Endless loops of the ordinary priority would not do: the scheduler lets who has slept go before them.
    """
    loop = (
        "import os, time\n"
        "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))\n"
        "end = time.monotonic() + 120\n"
        "while (now := time.monotonic()) < end:\n"
        "    while time.monotonic() < now + 0.004: pass\n"
        "    time.sleep(0.006)\n"
    )
    with ExitStack() as stack:
        for core in sorted(os.sched_getaffinity(0)):
            process = subprocess.Popen(["taskset", "--cpu-list", str(core), sys.executable, "-c", loop])
            stack.enter_context(process)
            stack.callback(process.kill)
        yield


def test_a_run_on_a_loaded_machine_says_which_program_had_no_processor(tmp_path: Path, lab: Lab) -> None:
    options = ("--engine", "live", "--protocol", "ospf", "--case", "1", "--duration", "2")
    process = lab("run", "butterfly", *options, "--no-report", "--json", "--out", str(tmp_path))
    wait_until((tmp_path / "logs" / "1-ospf-s1" / "sink-T2.log").exists, "the first flow")
    with loaded_machine():
        wait_until((tmp_path / "runs" / "001.json").exists, "the end of the run")
    stdout, stderr = process.communicate()
    [run] = Results.model_validate_json(stdout).runs
    assert not run.valid, stderr
    assert {times.program for times in run.programs} >= {"the source in T0", "the sink in T2"}
    assert any("for a processor" in reason for reason in run.why_invalid), (run.why_invalid, run.programs)
    assert "for a processor" in stderr


def check_sound(run: RunResult) -> None:
    """What holds on any machine, however slow: every byte, and no more than the links carry."""
    assert run.sysctls["net.ipv4.tcp_sack"] == "0"
    assert run.sysctls["net.ipv4.tcp_timestamps"] == "0"
    for flow in run.flows:
        assert flow.bytes_read == flow.bytes_written > 0
        assert flow.bytes_wrong == 0
        assert flow.congestion_control == "reno"
        assert flow.delay_s is not None
        # Propagation alone takes 3 ms on the shortest path.
        assert flow.delay_s.p50 > 0.003
    for link in run.links:
        # One interval's samples may be a few milliseconds apart from its edges.
        assert link.utilisation is not None
        assert link.utilisation <= 1.02


def check_ospf(run: RunResult) -> None:
    first, second = run.flows
    assert [allocated.path for allocated in first.allocated] == [MAIN_PATH]
    assert [allocated.path for allocated in second.allocated] == [["T1", "S1", "S2", "S3", "S5", "T3"]]
    # 5 Mbit/s of 590-byte packets carry 4.54.
    assert first.goodput_bps <= 4.6e6
    check_rates(run, [4.54e6, 4.5e6])
    busy = {link.link: link.utilisation for link in run.links}
    assert (busy["S0->S2"] or 0.0) < 0.01  # LLDP alone


def check_mstcp(run: RunResult) -> None:
    first, second = run.flows
    assert {tuple(allocated.path) for allocated in first.allocated} == {tuple(MAIN_PATH), tuple(MIDDLE_PATH)}
    assert [allocated.rate_bps for allocated in first.allocated] == pytest.approx([4.25e6, 4.25e6])
    assert len(second.allocated) == 1
    assert first.out_of_order_ratio is not None
    assert second.out_of_order_ratio is None
    assert all(sum(stream.rate_bps) > 0 for stream in first.series.streams)
    busy = {link.link: link.utilisation or 0.0 for link in run.links}
    assert busy["S0->S4"] > 0.05
    assert busy["S0->S2"] > 0.05
    check_rates(run, [8.5e6, 4.5e6])


def check_rates(run: RunResult, expected_bps: list[float]) -> None:
    """What the flows get where the machine kept up, by the run's own word; the virtual engine is exact."""
    if run.valid:
        assert [flow.goodput_bps for flow in run.flows] == pytest.approx(expected_bps, rel=0.05)


def test_paths_that_the_controller_pins_for_others(tmp_path: Path, lab: Lab) -> None:
    """Splitting at the userspace datapath's ports, and kernel MPTCP; all others run in virtual time."""
    names = ["ppfs", "mptcp-sdn"]
    call = ["run", "butterfly", "--protocol", ",".join(names), "--case", "1", "--duration", "3"]
    process = lab(*call, "--json", "--out", str(tmp_path / "out"))
    stdout, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr
    runs = {run.protocol: run for run in Results.model_validate_json(stdout).runs}
    assert list(runs) == names
    for run in runs.values():
        check_sound(run)
        paths = {tuple(allocated.path) for allocated in run.flows[0].allocated}
        assert paths == {tuple(MAIN_PATH), tuple(MIDDLE_PATH)}
    check_split(runs["ppfs"])
    assert len(runs["mptcp-sdn"].evidence.flows["1"].connections) == 2
    check_rates(runs["mptcp-sdn"], [8.5e6, 4.5e6])


def check_split(run: RunResult) -> None:
    """The realised split is within 4 standard deviations of the binomial (1 in 16,000 runs is not)."""
    split = run.evidence.flows["1"]
    packets = sum(path.packets or 0 for path in split.paths)
    assert split.paths[0].realised == pytest.approx(split.paths[0].asked, abs=4 * 0.5 / packets**0.5)
    assert split.ack_path == MAIN_PATH[::-1]
    assert all(sum(stream.rate_bps) > 0 for stream in run.flows[0].series.streams)


def test_ctrl_c_keeps_finished_runs_and_leaves_nothing(tmp_path: Path, lab: Lab) -> None:
    out = tmp_path / "out"
    process = lab(
        "run", "butterfly", "--protocol", "ospf", "--duration", "2", "--seeds", "20", "--out", str(out)
    )
    wait_until(lambda: any((out / "runs").glob("*.json")), "the first result")
    assert traces(out) != []
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "of 40 runs are complete and kept" in stderr
    assert stdout == ""
    results = Results.read(out / "results.json")
    assert len(results.runs) == len(list((out / "runs").glob("*.json"))) >= 1
    assert traces(out) == []


def test_killing_the_command_leaves_nothing(tmp_path: Path, lab: Lab) -> None:
    out = tmp_path / "out"
    process = lab("run", "butterfly", "--protocol", "ospf", "--duration", "60", "--out", str(out))
    wait_until((out / "logs" / "1-ospf-s1" / "sink-T2.log").exists, "the first flow")
    process.kill()
    process.communicate(timeout=10)
    wait_until(lambda: traces(out) == [], "the end of all it made")


def registered() -> set[str]:
    """Return the controls that runs have registered with this kernel, under names of their own."""
    return {
        name
        for name in (read_sysctl("net.ipv4.tcp_available_congestion_control") or "").split()
        if "." in name
    }


def test_of_two_runs_with_our_controls_one_is_killed_and_nothing_stays_registered(
    tmp_path: Path, lab: Lab
) -> None:
    before = registered()
    common = ["run", "butterfly", "--protocol", "ospf", "--case", "1"]
    common += ["--set", "tcp.congestion_control=lia"]
    killed = lab(*common, "--duration", "120", "--out", str(tmp_path / "killed"))
    wait_until(lambda: len(registered() - before) == 1, "the first run's control")
    of_killed = registered() - before
    kept = lab(*common, "--duration", "2", "--out", str(tmp_path / "kept"))
    wait_until(lambda: len(registered() - before) == 2, "the second run's control")
    killed.kill()
    killed.communicate(timeout=10)
    wait_until(lambda: registered().isdisjoint(of_killed), "the end of what was killed")
    _, stderr = kept.communicate(timeout=200)
    assert "Traceback" not in stderr
    (run,) = Results.read(tmp_path / "kept" / "results.json").runs
    assert {flow.congestion_control for flow in run.flows} == {"lia"}
    assert not any("congestion control" in why for why in run.why_invalid)
    wait_until(lambda: registered() == before, "the end of the other")


def test_a_run_that_cannot_be_is_told_and_fails(tmp_path: Path, lab: Lab) -> None:
    out = tmp_path / "out"
    setting = "tcp.congestion_control=nosuch"
    process = lab(
        "run", "butterfly", "--protocol", "ospf", "--case", "1", "--set", setting, "--json", "--out", str(out)
    )
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "does not have congestion control nosuch" in stderr
    assert stdout == ""  # refused before anything was built
    assert "Traceback" not in stderr
