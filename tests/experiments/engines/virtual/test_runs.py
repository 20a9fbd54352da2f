"""`mstcp-lab run --engine virtual` as a user calls it: the same bytes every time, and exact ones."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from experiments.model.results import Results
from tests.experiments.engines.virtual import golden
from tests.fakes.lab import LAB_COMMAND
from tests.fakes.waiting import wait_until
from tests.paths import ROOT

pytestmark = pytest.mark.timeout(1800)

CASE_1 = ("--case", "1", "--protocol", "mstcp", "--duration", "1")
NOBODY = 65534


@contextmanager
def busy_core() -> Iterator[None]:
    """Keep a core busy with a process of the same priority."""
    hog = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        hog.kill()
        hog.wait()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where the run is that others are held against."""
    return tmp_path_factory.mktemp("alone") / "out"


@pytest.fixture(scope="module")
def alone(folder: Path) -> Results:
    return golden.run(folder, *CASE_1)


def test_a_run_is_the_same_bytes_under_any_load_and_with_any_neighbour(
    alone: Results, tmp_path: Path
) -> None:
    with busy_core():
        # In another folder, at another number, and beside another run.
        beside = golden.run(tmp_path / "a-folder-with-a-longer-name", *CASE_1, "--seeds", "2", "--jobs", "2")
    assert beside.runs[0].model_dump_json() == alone.runs[0].model_dump_json()
    assert beside.environment == alone.environment
    assert len(str(alone.runs[0].digest)) == 64
    assert beside.runs[1].digest != alone.runs[0].digest
    for flow, other in zip(*(run.flows for run in beside.runs), strict=True):
        assert flow.goodput_bps == pytest.approx(other.goodput_bps, rel=0.01)


def test_the_document_on_standard_output_is_the_file(alone: Results, folder: Path) -> None:
    assert Results.read(folder / "results.json") == alone
    (run,) = alone.runs
    assert alone.engine == "virtual"
    assert alone.environment.datapath == "system"
    assert alone.environment.link_backend == "netem"
    assert run.valid
    assert run.host_cpu_busy is None
    assert (run.started_at or "").startswith("2026-01-01T")


def test_frames_over_two_paths_take_the_time_that_the_paths_take(tmp_path: Path) -> None:
    """One flow alone: what both paths of a weighted schedule take can be computed by hand."""
    scenario = tmp_path / "alone.toml"
    butterfly = Path("experiments/scenarios/butterfly.toml").read_text()
    head, _, rest = butterfly.partition("[cases.1.flows.2]")
    assert rest
    scenario.write_text(head)
    settings = ("--set", "mstcp.scheduler=weighted", "--set", "virtual.tick_jitter=0")
    results = golden.run(
        tmp_path / "out", "--protocol", "mstcp", "--duration", "3", *settings, scenario=str(scenario)
    )
    ((flow,),) = (run.flows for run in results.runs)
    tick_s = 528 * 8 / 8.5e6

    def path_s(*rates_bps: float) -> float:
        return sum(1e-3 + 590 * 8 / rate_bps for rate_bps in rates_bps)

    short_s, long_s = path_s(80e6, 5e6, 80e6), path_s(80e6, 10e6, 10e6, 5e6, 80e6)
    # Frames take turns: one over the short path waits for the one before it, which left a tick earlier.
    assert long_s - tick_s > short_s
    mean_s = (long_s + long_s - tick_s) / 2
    assert flow.goodput_bps == pytest.approx(8.5e6, rel=0.001)
    assert flow.delay_s is not None
    assert flow.delay_s.mean == pytest.approx(mean_s, rel=0.01)
    # A control frame (an acknowledgement's answer, a sign of life) may be sent just before one.
    control_s = (590 - 528 + 32) * 8 / 5e6
    assert long_s <= flow.delay_s.max * 1.0001 <= long_s + control_s
    assert flow.out_of_order_ratio == pytest.approx(0.5, abs=0.01)


def test_hashed_flows_report_the_paths_they_took(tmp_path: Path) -> None:
    arguments = ("--protocol", "ecmp", "--case", "2", "--duration", "2")
    (run,) = golden.run(tmp_path / "out", *arguments, scenario="parallel4").runs
    over: dict[str, int] = {}
    for flow in run.flows:
        (taken,) = flow.allocated
        source, left, middle, right, destination = taken.path
        assert (source, left, right, destination) == (flow.src, "L", "R", flow.dst)
        (counted,) = run.evidence.flows[flow.flow].paths
        assert (counted.packets or 0) * 1448 >= flow.bytes_read
        over[middle] = over.get(middle, 0) + flow.bytes_read
        assert flow.series.streams[0].path == taken.path
    # The links saw the same: those that nobody took have LLDP alone.
    busy = {link.link: link.utilisation or 0.0 for link in run.links}
    for middle in ("M1", "M2", "M3", "M4"):
        assert (busy[f"L->{middle}"] > 0.02) == (middle in over)


def test_time_that_is_charged_is_seen(alone: Results, tmp_path: Path) -> None:
    charged = golden.run(tmp_path / "charged", *CASE_1, "--set", "virtual.wakeup_s=50e-6")
    assert charged.overrides == {"virtual.wakeup_s": 50e-6}
    means = [results.runs[0].flows[1].delay_s.mean for results in (alone, charged)]  # type: ignore[union-attr]
    # A write and a read are charged once each; what falls due meanwhile is served together.
    assert 40e-6 < means[1] - means[0] < 300e-6


OPEN_HOME = """
home=$1 aside=$2; shift 2
mount --bind "$home" "$aside"
mount -t tmpfs -o mode=755 tmpfs "$home"
for each in "$aside"/* "$aside"/.[!.]*; do
    [ -d "$each" ] || continue
    mkdir "$home/${each##*/}"
    mount --bind "$each" "$home/${each##*/}"
done
exec "$@"
"""
"""Lets others into root's home, in a mount namespace of its own: Python and the checkout may lie there."""


def test_another_user_a_used_folder_other_libraries_and_another_locale_change_nothing(
    alone: Results, folder: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else, and show programs another list of libraries")
    home, aside = (Path("/tmp", f"virtual-{name}-{os.getpid()}") for name in ("nobody", "aside"))
    for made in (home, aside):
        made.mkdir()
    try:
        used, libraries = home / "used", home / "ld.so.cache"
        shutil.copytree(folder / "logs", used / "logs")
        libraries.write_bytes(Path("/etc/ld.so.cache").read_bytes() + bytes(1 << 16))
        for path in (home, *home.rglob("*")):
            os.utime(path, (0, path.stat().st_mtime))
            os.chown(path, NOBODY, NOBODY)
        mounts = f"mount --bind {libraries} /etc/ld.so.cache\n{OPEN_HOME}"
        call = ["unshare", "--mount", "--", "sh", "-euc", mounts]
        call += ["sh", str(Path.home()), str(aside)]
        call += ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
        call += ["env", f"XDG_CACHE_HOME={home}/cache", f"HOME={home}", f"MPLCONFIGDIR={home}"]
        call += ["LC_ALL=tr_TR.UTF-8", "LANG=tr_TR.UTF-8", "TZ=Asia/Kathmandu"]
        call += [*LAB_COMMAND, "run", "butterfly", "--engine", "virtual"]
        call += [*CASE_1, "--json", "--no-report", "--out", str(used)]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert Results.model_validate_json(done.stdout).runs[0].digest == alone.runs[0].digest
    finally:
        shutil.rmtree(home)
        aside.rmdir()


def test_ctrl_c_keeps_finished_runs_and_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    call = [*LAB_COMMAND, "run", "butterfly", "--engine", "virtual"]
    call += ["--case", "1", "--protocol", "ospf", "--duration", "1", "--seeds", "50", "--out", str(out)]
    process = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: any((out / "runs").glob("*.json")), "the first result", timeout_s=600)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, stderr
    assert "of 50 runs are complete and kept" in stderr
    finished = len(list((out / "runs").glob("*.json")))
    assert 1 <= finished == len(Results.read(out / "results.json").runs) < 50
    wait_until(lambda: kernels_with(process.pid) == [], "the end of all kernels")


def kernels_with(parent: int) -> list[str]:
    """Return the kernels that a process started."""
    call = ["ps", "-o", "pid=,args=", "--ppid", str(parent)]
    return subprocess.run(call, capture_output=True, text=True, check=False).stdout.splitlines()


def test_killing_the_command_ends_its_kernels(tmp_path: Path) -> None:
    out = tmp_path / "out"
    call = [*LAB_COMMAND, "run", "butterfly", "--engine", "virtual"]
    call += ["--case", "1", "--protocol", "ospf", "--duration", "900", "--out", str(out)]
    process = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    console = out / "logs" / "1-ospf-s1" / "console.log"
    wait_until(lambda: kernels_with(process.pid) != [] and console.exists(), "the boot", timeout_s=120)
    (pid,) = (int(line.split()[0]) for line in kernels_with(process.pid))
    process.kill()
    process.wait()
    wait_until(
        lambda: not Path(f"/proc/{pid}").exists() or "(Z)" in _state(pid), "the kernel's end", timeout_s=30
    )


def _state(pid: int) -> str:
    try:
        return f"({Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0]})"
    except OSError:
        return "(Z)"


def test_a_run_that_cannot_be_is_told_and_fails(tmp_path: Path) -> None:
    call = [*LAB_COMMAND, "run", "butterfly", "--engine", "virtual", *CASE_1]
    call += ["--set", "tcp.congestion_control=nosuch", "--json", "--out", str(tmp_path / "out")]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "does not have congestion control nosuch" in done.stderr
    assert "/run/mstcp-lab" not in done.stderr
    assert json.loads(done.stdout)["runs"] == []
    assert "Traceback" not in done.stderr


BOTH_WAYS = """
format = 1
name = "both-ways"
network = "butterfly"
variant = "a"
packet_bytes = 590

[tcp]
timestamps = false

[cases.1]
flows.1 = { src = "T0", dst = "T2", requested_bps = 7e6 }
flows.2 = { src = "T2", dst = "T0", requested_bps = 6e6 }
flows.3 = { src = "T1", dst = "T0", requested_bps = 1e6 }
"""


def test_mptcp_of_hosts_that_send_and_receive_and_the_same_again(tmp_path: Path) -> None:
    scenario = tmp_path / "both-ways.toml"
    scenario.write_text(BOTH_WAYS)
    out, again = tmp_path / "out", tmp_path / "again"
    options = ("--protocol", "mptcp-sdn", "--duration", "1")
    (run,) = golden.run(out, *options, scenario=str(scenario)).runs
    assert run.valid, run.why_invalid  # so that every path has its subflow
    assert [flow.goodput_bps for flow in run.flows] == pytest.approx([7e6, 6e6, 1e6], rel=0.02)
    subflows = [len(run.evidence.flows[name].connections) for name in "123"]
    assert subflows == [2, 2, 1]
    scenario.unlink()
    call = [*LAB_COMMAND, "rerun", str(out), "--out", str(again), "--no-report"]
    done = subprocess.run(call, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert f"The runs are those of {out}, to the byte." in done.stderr
    assert (again / "runs" / "001.json").read_bytes() == (out / "runs" / "001.json").read_bytes()


EVENTS = """
format = 1
name = "events"
network = "butterfly"
variant = "a"
warm_up_s = 0.5

[cases.1.flows.1]
src = "T0"
dst = "T2"
requested_bps = 8.5e6

[[events]]
at_s = 1
link = "S4-S0"
up = false

[[events]]
between_s = [1.9, 2.1]
link = "S2-S3"
rate_bps = 4e6
delay_us = 2000
"""


def test_events_change_links_and_paths_as_in_the_simulator(tmp_path: Path) -> None:
    scenario = tmp_path / "events.toml"
    scenario.write_text(EVENTS)
    main, detour = (["T0", "S0", "S4", "T2"], ["T0", "S0", "S2", "S3", "S4", "T2"])
    before = {"ospf": [main], "mstcp": [main, detour]}
    options = ("--duration", "3.5", "--protocol", ",".join(before))
    virtual = golden.run(tmp_path / "virtual", *options, scenario=str(scenario)).runs
    simulated = golden.run(tmp_path / "sim", *options, scenario=str(scenario), engine="sim").runs
    for run, other in zip(virtual, simulated, strict=True):
        assert run.valid, run.why_invalid
        cut, slowed = run.link_changes
        assert (cut.time_s, cut.link, cut.up, cut.settings) == (1.0, "S0-S4", False, {})
        assert (slowed.link, slowed.settings) == ("S2-S3", {"rate_bps": 4e6, "delay_us": 2000})
        assert 1.9 <= slowed.time_s <= 2.1
        assert other.link_changes == run.link_changes
        assert [entry.path for entry in run.flows[0].allocated] == before[run.protocol]
        for each in (run, other):
            moved = each.path_changes
            assert cut.time_s <= moved[0].time_s < slowed.time_s
            assert {tuple(entry.path) for entry in moved[-1].paths} == {tuple(detour)}
        # At the end ospf still drains its queue on the detour; mstcp has none.
        ends = [sum(each.flows[0].series.goodput_bps[-3:]) for each in (run, other)]
        assert ends[0] == pytest.approx(ends[1], rel=0.05 if run.protocol == "mstcp" else 0.15)
