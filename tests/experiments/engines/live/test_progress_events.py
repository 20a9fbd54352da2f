"""What a live run tells while it goes on: no source waits for it, and rates are those of the counters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import topologies
from experiments.analysis.logs import Window
from experiments.engines.live.child import Child
from experiments.engines.live.progress_events import ProgressEvents
from experiments.engines.live.sampling import LinkSampler
from experiments.model import scenario
from experiments.model.events import Event, FlowsConnected, RatesMeasured, ValidityMeasured
from experiments.model.plan import RunPlan
from tests.fakes.waiting import wait_until
from topologies.wires import DirectionCounters, Lateness

SECOND = 10**9

TELLER = """
import sys
from experiments.apps.process import emit, emit_if_there_is_room
sys.stdin.readline()
for number in range(3000):
    emit_if_there_is_room("sampled", flow="1", time_ns=number, streams=[number] * 50, subflows={})
emit_if_there_is_room("sampled", flow="x" * 5000, time_ns=0, streams=[], subflows={})
sys.stderr.write("through")
sys.stderr.flush()
emit("done")
sys.stdin.readline()
"""


@pytest.fixture
def teller(tmp_path: Path) -> Iterator[Child]:
    log = tmp_path / "log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", TELLER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )
    child = Child("The teller", process, log)
    yield child
    child.stop()


def test_samples_never_hold_a_source_up_and_are_no_events(teller: Child, tmp_path: Path) -> None:
    assert teller.sampled() == []
    teller.tell({"order": "go"})
    # Nobody reads, and the pipe takes 64 KiB of the 800.
    wait_until((tmp_path / "log").read_text, "the teller's last sample")
    assert (tmp_path / "log").read_text() == "through"
    assert teller.expect("done", 30) == {"event": "done"}
    told = teller.sampled()
    assert [sample["time_ns"] for sample in told] == list(range(len(told)))
    assert 0 < len(told) < 3000
    assert teller.sampled() == []


class Traffic:
    """Sources whose samples the test gives."""

    def __init__(self, case: Any) -> None:
        self.samples: list[dict[str, Any]] = []
        self._transfers = [
            SimpleNamespace(
                name=name,
                flow=SimpleNamespace(flow=flow),
                connected={
                    "streams": [{"path": ["T0", "S0"], "rate_bps": 1e6}, {"path": None, "rate_bps": None}]
                },
            )
            for name, flow in case.flows.items()
        ]

    def connections(self) -> list[Any]:
        return self._transfers

    def sampled(self) -> list[dict[str, Any]]:
        told, self.samples = self.samples, []
        return told


class Switches:
    """An agent that knows the paths of flow 2, and counts on them."""

    def __init__(self) -> None:
        self.counted = [0, 0]

    def streams(self, flow: str) -> list[Any] | None:
        paths = [
            SimpleNamespace(path=[name], rate_bps=2e6, source_port=7000 + n) for n, name in enumerate("ab")
        ]
        return paths if flow == "2" else None

    def counted_bytes(self, flow: str) -> list[int] | None:
        return list(self.counted) if flow == "2" else None


class Run:
    """A run that the test samples by hand."""

    def __init__(self) -> None:
        loaded = scenario.load("butterfly")
        network = topologies.load("butterfly")
        self.plan = RunPlan(
            scenario=loaded, network=network, case_name="1", protocol="mstcp", seed=1, duration_s=10.0
        )
        self.heard: list[Event] = []
        self.traffic, self.agent = Traffic(self.plan.case), Switches()
        self.bytes = self.packets = 0
        self.sampler = LinkSampler(self._counters)
        window = Window(2 * SECOND, 10.0)
        parts: Any = (self.plan, self.traffic, self.sampler, self.agent, window, self.heard.append)
        self.telling = ProgressEvents(*parts, busy=False)

    def _counters(self) -> list[DirectionCounters]:
        late = Lateness(1.0, 1.0, p99_us=2.0 * self.packets, max_us=3.0 * self.packets)
        common: dict[str, Any] = dict.fromkeys(("dropped", "lost", "dropped_by_machine"), 0)
        common |= dict.fromkeys(("queued_packets", "queued_bytes"), 0)
        return [
            DirectionCounters(
                arc.link, arc.tail, arc.head, packets=self.packets, bytes=self.bytes, lateness=late, **common
            )
            for arc in self.plan.network.arcs()
        ]

    def sample(self, now_s: float) -> None:
        self.sampler.sample(round(now_s * SECOND))
        self.telling.sampled(round(now_s * SECOND), None)


def test_rates_are_those_between_samples_and_come_from_who_knows_them() -> None:
    run = Run()
    run.telling.connected()
    run.traffic.samples = [{"flow": "1", "time_ns": SECOND, "streams": [0, 0], "subflows": {}}]
    run.sample(1.0)
    run.traffic.samples = [
        {"flow": "1", "time_ns": 3 * SECOND, "streams": [250_000, 500_000], "subflows": {}}
    ]
    run.bytes, run.packets, run.agent.counted = 1_000_000, 1000, [125_000, 0]
    run.sample(3.0)

    connected, first, second, valid = run.heard
    assert isinstance(connected, FlowsConnected)
    assert [[stream.path for stream in flow.streams] for flow in connected.flows] == [
        [["T0", "S0"], None],
        [["a"], ["b"]],
    ]
    assert isinstance(first, RatesMeasured)
    assert (first.seconds, first.links, first.streams_bps) == (-1.0, [], {})
    assert isinstance(second, RatesMeasured)
    assert second.seconds == 1.0
    assert second.streams_bps == {"1": [1e6, 2e6], "2": [500e3, 0.0]}
    assert second.links == pytest.approx([4e6 / arc.rate_bps for arc in run.plan.network.arcs()])
    assert isinstance(valid, ValidityMeasured)
    assert (valid.cpu_busy, valid.lateness_max_us) == (None, 3000.0)
    assert len(valid.problems) == 1
    assert "late" in valid.problems[0]


def test_subflows_keep_their_places_as_they_come_and_go() -> None:
    run = Run()
    for second, ports in (
        (1, {"5": 0}),
        (2, {"5": 1000, "6": 0}),
        (3, {"6": 2000}),
        (4, {"6": 3000, "5": 1000}),
    ):
        sample = {"flow": "1", "time_ns": second * SECOND, "streams": [0], "subflows": ports}
        run.traffic.samples = [json.loads(json.dumps(sample))]
        run.sample(float(second))
    rates = [event.streams_bps.get("1") for event in run.heard if isinstance(event, RatesMeasured)]
    assert rates == [None, None, [0.0, 16_000.0], [0.0, 8000.0]]


def test_a_closed_output_is_told_as_any_other() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    code = "from experiments.apps.process import emit_if_there_is_room as tell; tell('sampled')"
    done = subprocess.run([sys.executable, "-c", code], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert b"BrokenPipeError" in done.stderr
