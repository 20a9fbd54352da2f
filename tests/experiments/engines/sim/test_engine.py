"""The simulator behind `mstcp-lab run`: its document, its settings, the same bytes, Ctrl-C."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments import cli, runner
from experiments.engines.sim.description import describe
from experiments.engines.sim.engine import SimEngine
from experiments.engines.sim.routing import routes
from experiments.errors import MissingRequirement, RunFailed
from experiments.model.plan import RunPlan
from experiments.model.results import FlowResult, Results, RunResult
from tests.experiments.engines.sim.sim_plans import plan_of
from tests.experiments.stream_rates import check_run
from tests.fakes.lab import LAB_COMMAND, Lab
from tests.fakes.simulations import stop_simulating

PAPER = ("mstcp", "ppfs", "ospf")


def simulate(plan: RunPlan) -> RunResult:
    return SimEngine().simulate(plan)


def described(plan: RunPlan) -> dict[str, Any]:
    return describe(plan, routes(plan))


def run_command(out: Path, *more: str) -> int:
    return cli.main(["run", "butterfly", "--engine", "sim", "--duration", "3", "--out", str(out), *more])


def test_the_contract(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--protocol", "mstcp,ppfs,ospf", "--case", "1,2", "--variant", "a"]
    assert run_command(tmp_path / "out", *arguments, "--seeds", "2", "--json") == 0
    results = Results.model_validate_json(capsys.readouterr().out)
    assert (results.engine, results.variant, results.environment.valid) == ("sim", "a", True)
    order = [(run.case, run.protocol, run.seed) for run in results.runs]
    assert order == [(case, protocol, seed) for case in "12" for protocol in PAPER for seed in (1, 2)]
    costs = results.environment.simulations
    assert {(cost.case, cost.protocol, cost.seed) for cost in costs} == set(order)
    for cost in costs:
        assert cost.events > 10_000
        assert cost.wall_s > 0
        assert 5 << 20 < cost.peak_rss_bytes < 40 << 20
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Case 2" in page


def test_the_report_may_be_left_out_and_made_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lab: Lab
) -> None:
    arguments = ["--protocol", "ospf", "--case", "1", "--no-report"]
    assert run_command(tmp_path / "out", *arguments) == 0
    shown = capsys.readouterr().out
    assert "ospf" in shown
    assert "report.html" not in shown
    assert not (tmp_path / "out" / "report.html").exists()
    lab("report", str(tmp_path / "out"))
    assert (tmp_path / "out" / "report.html").exists()


def test_any_number_of_workers_gives_the_same_bytes() -> None:
    plans = [plan_of(protocol, duration_s=2, seed=seed) for protocol in PAPER for seed in (1, 2)]
    engine = SimEngine()
    alone = [engine.simulate(plan).model_dump_json() for plan in plans]
    together = [_executed(plans, workers) for workers in (1, 5)]
    assert together[0] == together[1] == alone


def _executed(plans: list[RunPlan], workers: int) -> list[str]:
    from concurrent.futures import ThreadPoolExecutor

    engine = SimEngine()
    with ThreadPoolExecutor(workers) as pool:
        return [result.model_dump_json() for result in pool.map(lambda plan: engine.simulate(plan), plans)]


def test_the_cells_of_table_1_that_are_not_drawn() -> None:
    flows = {flow.flow: flow for flow in simulate(plan_of("ospf", duration_s=30)).flows}
    for name, (goodput_bps, delay_s) in {"1": (4.54e6, 0.22573), "2": (9.08e6, 0.10965)}.items():
        assert flows[name].goodput_bps == pytest.approx(goodput_bps, rel=0.005)
        assert mean_delay_s(flows[name]) == pytest.approx(delay_s, rel=0.01)
        assert flows[name].ticks_skipped > 0


def mean_delay_s(flow: FlowResult) -> float:
    assert flow.delay_s is not None
    return flow.delay_s.mean


def test_a_result_agrees_with_itself() -> None:
    result = simulate(plan_of("mstcp", duration_s=10))
    for flow in result.flows:
        series = flow.series
        assert series.time_s[-1] == pytest.approx(10, abs=0.26)
        assert len(series.goodput_bps) == len(series.delay_mean_s) == len(series.time_s)
        assert sum(series.goodput_bps) / len(series.goodput_bps) == pytest.approx(flow.goodput_bps, rel=0.02)
        assert [stream.path for stream in series.streams] == [path.path for path in flow.allocated]
        assert flow.bytes_read <= flow.bytes_written
        assert flow.bytes_wrong == 0
    for link in result.links:
        assert link.utilisation is not None
        assert 0 <= link.utilisation <= 1 + 1e-9
    packets = result.evidence.network
    ended = packets["packets_delivered"] + packets["packets_dropped"] + packets["packets_in_flight"]
    assert packets["packets_sent"] == ended


def test_a_seed_moves_what_one_path_carries_and_allocated_pacing_leaves_it_unpaced() -> None:
    runs = [
        simulate(plan_of("ospf", seed=seed, sim__pacing=how)) for seed, how in ((1, None), (2, "allocated"))
    ]
    for one, other in zip(*(run.flows for run in runs), strict=True):
        assert mean_delay_s(one) != mean_delay_s(other)
        assert one.goodput_bps == pytest.approx(other.goodput_bps, rel=0.001)
    assert runs[0].flows[0].goodput_bps == pytest.approx(4.54e6, rel=0.005)


@pytest.mark.parametrize("protocol", [*PAPER, "mptcp-sdn", "mptcp"])
def test_what_streams_have_sent_is_not_what_was_written(protocol: str) -> None:
    """While a file fills the send buffer, and the queues of links behind it."""
    file = {"kind": "bulk", "size_bytes": 4_000_000}
    plan = plan_of(protocol, duration_s=2, warm_up_s=0, workload=file, sim__sample_s=0.05)
    check_run(simulate(plan), plan.network)


def test_round_trips_are_the_paths_and_their_queues() -> None:
    """Over the butterfly's links of 8 Mbit/s and some milliseconds with its queues."""
    (flow,) = simulate(plan_of("mptcp", duration_s=5)).flows[:1]
    for stream in flow.series.streams:
        assert len(stream.rtt_s) == len(flow.series.time_s)
        trips = [trip for trip in stream.rtt_s if trip is not None]
        assert trips
        assert 0 < min(trips) <= max(trips) < 1


def test_split_packets_follow_the_allocation() -> None:
    evidence = simulate(plan_of("ppfs", duration_s=10)).evidence.flows["1"].paths
    assert [share.asked for share in evidence] == pytest.approx([0.5, 0.5], abs=0.01)
    assert [share.realised for share in evidence] == pytest.approx([0.5, 0.5], abs=0.03)


def ppfs_goodput_mbps(**sets: Any) -> float:
    return simulate(plan_of("ppfs", duration_s=30, sim__profile="paper", **sets)).flows[0].goodput_bps / 1e6


def test_what_takes_ppfs_from_6_mbps() -> None:
    """Goodputs of flow 1 as ns-3 has them (docs/butterfly.md)."""
    assert 5.8 < ppfs_goodput_mbps() < 6.2
    assert 1.0 < ppfs_goodput_mbps(tcp__sack=True) < 3.4
    assert 1.1 < ppfs_goodput_mbps(ppfs__ack_path="split") < 3.9


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("tcp.sack", True, ("tcp", "sack")),
        ("tcp.timestamps", True, ("tcp", "timestamps")),
        ("tcp.window_scaling", False, ("tcp", "window_scaling")),
        ("tcp.congestion_control", "cubic", ("tcp", "congestion_control")),
        ("tcp.send_buffer_bytes", 65536, ("tcp", "send_buffer_bytes")),
        ("tcp.receive_buffer_bytes", 65536, ("tcp", "receive_buffer_bytes")),
        ("sim.profile", "rfc", ("tcp", "profile")),
        ("sim.recovery", "prr", ("tcp", "recovery")),
        ("sim.initial_window_segments", 2, ("tcp", "initial_window_segments")),
        ("sim.initial_ssthresh_bytes", 65535, ("tcp", "initial_ssthresh_bytes")),
        ("sim.delayed_ack_segments", 1, ("tcp", "delayed_ack_segments")),
        ("sim.delayed_ack_timeout_s", 0.04, ("tcp", "delayed_ack_timeout_s")),
        ("sim.limited_transmit", False, ("tcp", "limited_transmit")),
        ("sim.duplicate_threshold", 9, ("tcp", "duplicate_threshold")),
        ("sim.nagle", True, ("tcp", "nagle")),
        ("sim.rto_min_s", 0.2, ("tcp", "rto_min_s")),
        ("sim.pacing", "allocated", ("tcp", "pacing")),
        ("sim.sample_s", 1.5, ("series_interval_s",)),
        ("sim.arrivals", "poisson", ("flows", 0, "traffic", "kind")),
        ("sim.binding", "early", ("flows", 0, "mstcp", "binding")),
        ("sim.tick_jitter", 0.25, ("flows", 0, "traffic", "jitter")),
        ("sim.reorder_buffer_bytes", 65536, ("flows", 0, "mstcp", "reorder_buffer_bytes")),
        ("sim.identify_single", True, ("flows", 0, "mstcp", "identify_single")),
        ("mstcp.scheduler", "earliest", ("flows", 0, "mstcp", "scheduler")),
    ],
)
def test_settings_reach_the_simulator(key: str, value: object, place: tuple[str | int, ...]) -> None:
    import netsim_native as sim

    def described_value(plan: RunPlan) -> object:
        at: Any = described(plan)
        sim.check(json.dumps(at))
        for step in place:
            at = at.get(step) if isinstance(at, dict) else at[step]
        return at

    assert described_value(plan_of("mstcp")) != value
    sets: dict[str, Any] = {key.replace(".", "__"): value}
    assert described_value(plan_of("mstcp", **sets)) == value


def test_connections_are_open_when_flows_start_and_flows_start_as_the_seed_says() -> None:
    plan = plan_of("mstcp", stagger_s=0.5, warm_up_s=0.25, sim__start_jitter_s=0.001)
    described_run = described(plan)
    opened = [flow["start_s"] for flow in described_run["flows"]]
    assert opened == [pytest.approx(0.5 * number, abs=0.001) for number in (0, 1)]
    assert opened != [flow["start_s"] for flow in described(plan.model_copy(update={"seed": 2}))["flows"]]
    ahead = [flow["write_from_s"] - flow["start_s"] for flow in described_run["flows"]]
    assert ahead == pytest.approx([0.4, 0.4])
    assert described_run["warm_up_s"] == pytest.approx(0.65)


def test_the_papers_profile_is_the_papers_simulator() -> None:
    paper = described(plan_of("mstcp", sim__profile="paper", warm_up_s=0.25))
    first, second = paper["flows"]
    assert (paper["tcp"]["profile"], paper["tcp"]["pacing"]) == ("ns3", "off")
    assert (first["mstcp"]["binding"], first["traffic"]["jitter"]) == ("early", 0.0)
    assert first["start_s"] == first["write_from_s"] == second["start_s"] == 0.0
    assert paper["warm_up_s"] == 0.25


def test_the_librarys_whole_protocol_binds_late() -> None:
    import netsim_native as sim

    sim.check(json.dumps(described(plan_of("mstcp", mstcp__trust_streams=False))))
    early = described(plan_of("mstcp", mstcp__trust_streams=False, sim__binding="early"))
    with pytest.raises(sim.InvalidDescription, match="binds late"):
        sim.check(json.dumps(early))


def test_a_segment_fills_its_packet() -> None:
    without, with_timestamps = (
        described(plan_of("mstcp", tcp__timestamps=offered)) for offered in (False, True)
    )
    assert without["tcp"]["mss_bytes"] == 536
    assert with_timestamps["tcp"]["mss_bytes"] == 524
    assert without["packet_overhead_bytes"] == 34


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        (plan_of("ppfs-group"), "does not have protocol ppfs-group. It has ospf, ecmp, mptcp, "),
        (
            plan_of("ospf", tcp__congestion_control="vegas"),
            "does not have congestion control vegas. It has reno",
        ),
    ],
)
def test_what_it_does_not_have_is_said(plan: RunPlan, sentence: str) -> None:
    with pytest.raises(MissingRequirement) as refusal:
        SimEngine().check([plan])
    assert sentence in str(refusal.value)


def test_it_runs_all_that_it_has_by_default(tmp_path: Path) -> None:
    assert run_command(tmp_path, "--case", "1", "--duration", "0.5", "--no-report") == 0
    runs = Results.read(tmp_path / "results.json").runs
    assert [run.protocol for run in runs] == [
        *("ospf", "ecmp", "mptcp", "mptcp-dualhomed", "mptcp-sdn", "ppfs", "mstcp")
    ]


def test_a_buffer_without_room_for_a_segment_fails_with_the_reason() -> None:
    with pytest.raises(RunFailed, match="send_buffer_bytes must be at least one segment"):
        simulate(plan_of("ospf", packet_bytes=9000, tcp__send_buffer_bytes=4096))


def test_it_needs_neither_os_ken_nor_mininet(tmp_path: Path) -> None:
    program = """
import sys

for name in ("os_ken", "mininet", "grpc", "httpx", "fastapi"):
    sys.modules[name] = None
from experiments import cli
sys.exit(cli.main(sys.argv[1:]))
"""
    out = tmp_path / "out"
    arguments = f"run butterfly --engine sim --protocol mstcp --case 1 --duration 1 --json --out {out}"
    done = subprocess.run([sys.executable, "-c", program, *arguments.split()], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"][0]["flows"][0]["goodput_bps"] > 8e6


def test_ctrl_c_ends_all_simulations_at_once(tmp_path: Path) -> None:
    command = [*LAB_COMMAND, "run", "butterfly", "--engine", "sim", "--seeds", "8"]
    command += ["--protocol", "mstcp", "--duration", "80000", "--out", str(tmp_path / "out")]
    program = (
        "import signal, runpy, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        f"sys.argv = {command[2:]!r}; runpy.run_module('experiments.cli', run_name='__main__')"
    )
    status, errors = stop_simulating([sys.executable, "-c", program], signal.SIGINT)
    assert status == 130
    assert "0 of 16 runs are complete" in errors
    assert "Traceback" not in errors
    assert not list((tmp_path / "out" / "runs").iterdir())


def test_the_runner_says_which_transfers_were_wrong_in_a_simulation_too() -> None:
    result = simulate(plan_of("ospf", duration_s=1))
    assert runner.check_transfers([result], drained=False) == []
    assert "were sent and" in runner.check_transfers([result])[0]
    result.flows[0].bytes_wrong = 3
    assert "3 bytes arrived other" in runner.check_transfers([result], drained=False)[0]


@pytest.mark.parametrize("protocol", ["ospf", "mstcp", "mptcp-sdn"])
def test_no_stream_carries_more_than_its_links(protocol: str) -> None:
    """Whatever the application and the scheduler write at once: a file is all written at its start."""
    plan = plan_of(protocol, "1", duration_s=3.0, workload__kind="bulk", workload__size_bytes=20_000_000)
    rates_bps = {(arc.tail, arc.head): arc.rate_bps for arc in plan.network.arcs()}
    for flow in simulate(plan).flows:
        for stream in flow.series.streams:
            assert stream.path is not None
            narrowest_bps = min(rates_bps[hop] for hop in itertools.pairwise(stream.path))
            a_packet_bps = 536 * 8 / plan.scenario.sim.sample_s
            assert 0 < max(stream.rate_bps) <= narrowest_bps * 536 / 590 + a_packet_bps
