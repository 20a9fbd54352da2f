"""`mstcp-lab sweep`: a small network under rising load, through the real solver and simulator."""

from __future__ import annotations

import csv
import itertools
import json
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from experiments.engines.sim.process import Processes
from experiments.errors import Interrupted, OutputError, RunFailed, ScenarioError
from experiments.report.terminal import WIDTH
from experiments.sweep.description import Admitted, admit, describe, plan_of
from experiments.sweep.offered_load import FRAMING, PACKETS_PER_ACK, OfferedLoads
from experiments.sweep.plan import Conditions, Metric, Point, Sweep
from experiments.sweep.routes import DefaultRoutes
from experiments.sweep.runner import run
from experiments.sweep.store import POINTS, PointResult, SweepStore
from experiments.sweep.summary import rows
from experiments.sweep.table import print_table
from tests.fakes.lab import LAB_COMMAND, Lab
from tests.fakes.simulations import stop_simulating
from topologies.model import Network

CONDITIONS = Conditions(network="ring:6", flows=12, scale=0.04, warm_up_s=1.0, duration_s=2.0, metric="hops")
SWEEP = Sweep(conditions=CONDITIONS, loads=(0.6, 1.6), protocols=("mstcp", "ospf", "ecmp"), seeds=2)
METRICS: tuple[Metric, ...] = ("hops", "delay")
COSTS = {"wall_s", "peak_rss_bytes"}


def swept(
    folder: Path, sweep: Sweep = SWEEP, workers: int = 2, resume: bool = False
) -> tuple[list[PointResult], list[PointResult]]:
    """Return the sweep's results, and the points that were run for them."""
    ran: list[PointResult] = []

    def report(ended: PointResult | RunFailed) -> None:
        assert isinstance(ended, PointResult), ended
        ran.append(ended)

    store = SweepStore(folder, sweep.conditions, resume=resume)
    run(sweep, OfferedLoads(sweep.conditions, kept=workers + 1), store, report, Processes(), workers)
    return store.results(sweep), ran


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[PointResult]:
    return swept(tmp_path_factory.mktemp("sweep") / "out")[0]


def findings(results: list[PointResult]) -> list[dict[str, Any]]:
    return [result.model_dump(exclude=COSTS) for result in results]


def test_the_results_do_not_depend_on_the_workers(results: list[PointResult], tmp_path: Path) -> None:
    again, _ = swept(tmp_path / "one", workers=1)
    assert findings(again) == findings(results)
    assert [result.point for result in again] == SWEEP.points()


def test_every_packet_is_accounted_for(results: list[PointResult]) -> None:
    for result in results:
        gone = result.packets_delivered + result.packets_dropped + result.packets_in_flight
        assert result.packets_sent == gone
        assert result.bytes_wrong == 0


def test_no_more_is_read_than_written_and_no_more_written_than_admitted(results: list[PointResult]) -> None:
    span_s = CONDITIONS.warm_up_s + CONDITIONS.duration_s
    for result in results:
        # A flow's first write comes at its start, so it is up to one ahead of its rate.
        ahead_bytes = result.flows * FRAMING.packet_bytes
        assert result.bytes_read <= result.bytes_written
        assert result.bytes_written <= result.admitted_bps * span_s / 8 + ahead_bytes
        assert result.admitted_bps <= result.requested_bps * (1 + 1e-9)


def test_the_optimum_delivers_what_it_admits_and_the_others_do_not(results: list[PointResult]) -> None:
    for result in results:
        one_write_each_bps = result.flows * FRAMING.packet_bytes * 8 / CONDITIONS.duration_s
        assert result.received_bps <= result.admitted_bps + one_write_each_bps
        if result.point.protocol == "mstcp":
            assert result.received_bps >= 0.97 * result.admitted_bps - one_write_each_bps
            # 1 / load, but for the identifiers that flows over one path do without.
            share = result.admitted_bps / result.requested_bps
            assert min(1.0, 1 / result.point.load) <= share * (1 + 1e-9)
            assert share <= min(1.0, 1.01 / result.point.load)
        else:
            assert result.admitted_bps == result.requested_bps
    overloaded = {r.point.protocol: r for r in results if r.point.load > 1 and r.point.seed == 1}
    assert overloaded["ospf"].received_bps < 0.9 * overloaded["ospf"].admitted_bps
    assert overloaded["mstcp"].received_bps > overloaded["ospf"].received_bps


def test_all_protocols_are_asked_for_the_same(results: list[PointResult]) -> None:
    for load in SWEEP.loads:
        for seed in (1, 2):
            same = {r.requested_bps for r in results if (r.point.load, r.point.seed) == (load, seed)}
            assert len(same) == 1


def test_an_allocation_in_goodput_fits_the_links_with_headers_and_acknowledgements() -> None:
    offers = OfferedLoads(CONDITIONS, kept=1)
    flows = offers.flows(1.6, 1)
    wire_bps: dict[tuple[str, str], float] = {}
    ratio = FRAMING.ack_ratio(66, PACKETS_PER_ACK)
    for flow in flows:
        paths = [(path.path, path.rate_bps or 0.0) for path in flow.paths]
        assert sum(rate_bps for _, rate_bps in paths) <= flow.requested_bps * (1 + 1e-9)
        for nodes, rate_bps in paths:
            assert (nodes[0], nodes[-1]) == (flow.src, flow.dst)
            bps = FRAMING.wire_bps(rate_bps, len(paths))
            for tail, head in itertools.pairwise(nodes):
                wire_bps[tail, head] = wire_bps.get((tail, head), 0.0) + bps
                wire_bps[head, tail] = wire_bps.get((head, tail), 0.0) + bps * ratio
    capacity_bps = {(arc.tail, arc.head): arc.rate_bps for arc in offers.network.arcs()}
    assert all(bps <= capacity_bps[arc] * (1 + 1e-6) for arc, bps in wire_bps.items())
    assert any(bps > capacity_bps[arc] * 0.999 for arc, bps in wire_bps.items())


def test_flows_that_get_nothing_are_not_simulated() -> None:
    offers = OfferedLoads(CONDITIONS, kept=1)
    flows = offers.flows(4.0, 1)
    nothing = {flow.name for flow in flows if not flow.paths}
    assert nothing, "a load at which flows get nothing"
    routes = DefaultRoutes(offers.network, "hops")
    described = {}
    admitted: dict[str, list[Admitted]] = {}
    for protocol in ("mstcp", "ospf"):
        point = Point(seed=1, load=4.0, protocol=protocol)
        plan = plan_of(CONDITIONS, point, offers.network, flows)
        admitted[protocol] = admit(plan, routes, flows)
        described[protocol] = describe(plan, admitted[protocol])
    assert {flow["name"] for flow in described["mstcp"]["flows"]} == {f.name for f in flows} - nothing
    assert len(described["ospf"]["flows"]) == len(flows)
    asked_bps = {flow.offered.name: flow.rate_bps for flow in admitted["ospf"]}
    assert {f["name"]: f["traffic"]["rate_bps"] for f in described["ospf"]["flows"]} == asked_bps


def test_routes_are_short_by_delay_or_by_links_and_hashing_uses_all_of_them() -> None:
    link = {"rate_bps": 1e6}
    square = Network.model_validate(
        {
            "name": "square",
            "nodes": [{"name": name, "kind": "switch"} for name in "ABCD"],
            "links": [
                {"ends": ("A", "B"), "delay_us": 1, **link},
                {"ends": ("B", "D"), "delay_us": 1, **link},
                {"ends": ("A", "C"), "delay_us": 1, **link},
                {"ends": ("C", "D"), "delay_us": 9, **link},
                {"ends": ("D", "A"), "delay_us": 20, **link},
            ],
        }
    )
    assert DefaultRoutes(square, "delay").shortest("A", "D") == ("A", "B", "D")
    assert DefaultRoutes(square, "hops").shortest("A", "D") == ("A", "D")
    by_hops, by_delay = (
        {DefaultRoutes(square, m).hashed("B", "C", str(k)) for k in range(30)} for m in METRICS
    )
    assert by_hops == {("B", "A", "C"), ("B", "D", "C")}
    assert by_delay == {("B", "A", "C")}


def test_resuming_runs_only_what_is_missing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    small = SWEEP.model_copy(update={"seeds": 1, "loads": (0.6,)})
    before, _ = swept(out, small)
    with (out / POINTS).open("a", encoding="utf-8") as file:
        file.write('{"point": {"seed"')  # what a power cut leaves
    larger = SWEEP.model_copy(update={"seeds": 1})
    results, ran = swept(out, larger, resume=True)
    assert results[: len(before)] == before
    assert {result.point for result in ran} == set(larger.points()) - set(small.points())
    assert len((out / POINTS).read_text().splitlines()) == len(results)


def test_a_folder_is_not_used_for_something_else(tmp_path: Path) -> None:
    SweepStore(tmp_path, CONDITIONS, resume=False)
    with pytest.raises(OutputError, match="--resume"):
        SweepStore(tmp_path, CONDITIONS, resume=False)
    with pytest.raises(ScenarioError, match="flows: the sweep there was begun with 12, not 13"):
        SweepStore(tmp_path, CONDITIONS.model_copy(update={"flows": 13}), resume=True)


def test_stopping_keeps_what_is_finished(tmp_path: Path) -> None:
    store = SweepStore(tmp_path, CONDITIONS, resume=False)

    def report(ended: PointResult | RunFailed) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as stopped:
        run(SWEEP, OfferedLoads(CONDITIONS, kept=2), store, report, Processes(), 1)
    assert (stopped.value.finished, stopped.value.planned) == (1, 12)
    assert len(SweepStore(tmp_path, CONDITIONS, resume=True).results(SWEEP)) == 1


def test_means_are_over_the_seeds(results: list[PointResult]) -> None:
    made = rows(SWEEP, results)
    assert [(row.load, row.protocol) for row in made] == [
        (load, protocol) for load in SWEEP.loads for protocol in SWEEP.protocols
    ]
    received = [r.received_bps for r in results if (r.point.load, r.point.protocol) == (0.6, "mstcp")]
    assert made[0].received_bps.mean == pytest.approx(sum(received) / 2)
    assert made[0].received_bps.half_width is not None


def test_the_table_fits_in_its_width(results: list[PointResult], capsys: pytest.CaptureFixture[str]) -> None:
    print_table(SWEEP, results, Console())
    page = capsys.readouterr().out
    assert page.isascii() and max(map(len, page.splitlines())) <= WIDTH
    assert "12 flows, 2 s, 2 seeds" in page


ARGUMENTS = ("sweep", "ring:6", "--flows", "8", "--scale", "0.02", "--duration", "1", "--warm-up", "0.5")


def test_the_command_writes_table_plot_and_documents(tmp_path: Path, lab: Lab) -> None:
    out = tmp_path / "out"
    arguments = (*ARGUMENTS, "--loads", "0.5,1.5", "--protocol", "mstcp,ospf", "--out", str(out), "--json")
    document = json.loads(lab(*arguments))
    assert document == json.loads((out / "sweep.json").read_text())
    assert set(document) == {"format", "sweep", "summary", "points"}
    assert len(document["points"]) == 4
    with (out / "sweep.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [line["protocol"] for line in lines] == ["mstcp", "ospf", "mstcp", "ospf"]
    svg = (out / "sweep.svg").read_text()
    assert all(word in svg for word in ("admitted", "goodput", "mean delay", "mstcp", "ospf", "load"))
    assert (out / "sweep.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "sweep.pdf").read_bytes().startswith(b"%PDF")
    page = (out / "sweep.html").read_text()
    assert all(f'<td class="text">{name}</td>' in page for name in ("mstcp", "ospf"))
    assert "<svg" in page and "One seed." in page and "http" not in page.replace("http://www.w3.org", "")
    # Ended already: nothing is run again, and the same is written.
    assert json.loads(lab(*arguments, "--resume")) == document


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        (("--protocol", "mstcp,osfp"), "There is no protocol for sweeps called 'osfp'. Did you mean ospf?"),
        (("--engine", "live"), "There is no engine for sweeps called 'live'"),
        (("--objective", "most"), "There is no objective called 'most'"),
        (("--loads", "0.5,0.5"), "names one twice"),
        (("--loads", "0"), "'0' is not a number above 0"),
        (("--demands", "nothing.csv"), "nothing.csv"),
        (("--warm-up", "-1"), "'-1' is not a number of seconds"),
    ],
)
def test_wrong_arguments_are_named(
    argument: tuple[str, str], sentence: str, tmp_path: Path, lab: Lab
) -> None:
    arguments = (*ARGUMENTS, "--out", str(tmp_path / "out"), *argument)
    assert sentence in lab.refusal(*arguments)
    assert not (tmp_path / "out").exists()


def test_a_stopped_sweep_says_how_to_go_on(tmp_path: Path) -> None:
    out = str(tmp_path / "with space")
    command = ["sweep", "ring:6", "--loads", "1", "--seeds", "8", "--duration", "80000", "--out", out]
    status, errors = stop_simulating([*LAB_COMMAND, *command], signal.SIGTERM)
    assert status == 130
    assert "0 of 24 runs are complete and kept" in errors
    assert f"`mstcp-lab {shlex.join(command)} --resume` makes the others." in errors
