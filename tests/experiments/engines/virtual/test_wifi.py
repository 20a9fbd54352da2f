"""The kernel's TCP over an emulated medium of Wi-Fi, beside the simulator's TCP over the same medium."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.model.results import Results
from tests.experiments.engines.virtual import golden

pytestmark = pytest.mark.timeout(1800)

SETTLED = ("--protocol", "ospf", "--duration", "2", "--set", "warm_up_s=1.5")
BOUNDED = ("--set", "tcp.receive_buffer_bytes=262144")
"""Of two round trips, so that no queue overflows: how slow start ends is TCP's affair, not the medium's."""


NEAR_M = 10


def run(folder: Path, engine: str, distance_m: int, seeds: int = 1) -> Results:
    options = [
        "--set",
        f"links.AP-STA.distance_m={distance_m}",
        "--set",
        "sim.profile=linux",
        "--seeds",
        str(seeds),
    ]
    return golden.run(folder / engine, *SETTLED, *BOUNDED, *options, scenario="wifi", engine=engine)


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Return the runs of two seeds."""
    return run(tmp_path_factory.mktemp("near"), "virtual", NEAR_M, seeds=2)


@pytest.mark.parametrize("distance_m", [NEAR_M, 30, 40])
def test_tcp_has_the_simulators_goodput_at_each_distance(
    near: Results, distance_m: int, tmp_path: Path
) -> None:
    kernel = near if distance_m == NEAR_M else run(tmp_path, "virtual", distance_m)
    simulated = run(tmp_path, "sim", distance_m).runs[0].flows[0].goodput_bps
    assert kernel.runs[0].flows[0].goodput_bps == pytest.approx(simulated, rel=0.05)


def test_the_same_seed_gives_the_same_bytes(near: Results, tmp_path: Path) -> None:
    again = run(tmp_path / "a-longer-name", "virtual", NEAR_M)
    assert again.runs[0].model_dump_json() == near.runs[0].model_dump_json()
    assert near.environment.link_backend == "emulator"
    assert near.runs[0].digest != near.runs[1].digest
