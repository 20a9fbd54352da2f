"""The kernel's TCP over an emulated medium of Wi-Fi, beside the simulator's TCP over the same medium."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.model.results import Results
from tests.experiments.virtual import golden

pytestmark = pytest.mark.timeout(1800)

SETTLED = ("--protocol", "ospf", "--duration", "2", "--set", "warm_up_s=1.5")
BOUNDED = ("--set", "tcp.receive_buffer_bytes=262144")
"""Of two round trips, so that no queue overflows: how slow start ends is TCP's affair, not the medium's."""


def goodput_bps(folder: Path, engine: str, distance_m: int) -> float:
    return run(folder, engine, distance_m).runs[0].flows[0].goodput_bps


def run(folder: Path, engine: str, distance_m: int) -> Results:
    options = ["--set", f"links.AP-STA.distance_m={distance_m}", "--set", "sim.profile=linux"]
    return golden.run(
        folder / f"{engine}-{distance_m}", *SETTLED, *BOUNDED, *options, scenario="wifi", engine=engine
    )


@pytest.mark.parametrize("distance_m", [10, 30, 40])
def test_tcp_has_the_simulators_goodput_at_each_distance(distance_m: int, tmp_path: Path) -> None:
    simulated = goodput_bps(tmp_path, "sim", distance_m)
    assert goodput_bps(tmp_path, "virtual", distance_m) == pytest.approx(simulated, rel=0.05)


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    options = ("--protocol", "ospf", "--duration", "1", "--seeds", "2")
    first, second = (golden.run(tmp_path / name, *options, scenario="wifi") for name in ("a", "longer"))
    assert first.model_dump_json(include={"runs"}) == second.model_dump_json(include={"runs"})
    assert first.environment.link_backend == "emulator"
    assert first.runs[0].digest != first.runs[1].digest
