"""The wifi scenario: one 802.11g link under a bulk TCP, and what it cannot be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import topologies
from benchmarks.frame_errors import lost_share
from tests.fakes.lab import Lab
from topologies.errors import TopologyError

RUN = ["run", "wifi", "--engine", "sim", "--protocol", "ospf", "--duration", "6", "--no-report"]


def goodput_mbps(lab: Lab, folder: Path, *assignments: str) -> float:
    settings = [part for assignment in assignments for part in ("--set", assignment)]
    document = lab.json(*RUN, *settings, "--out", folder / " ".join(assignments))
    (run,) = document["runs"]
    (flow,) = run["flows"]
    return float(flow["goodput_bps"]) / 1e6


def test_the_link_carries_what_ns3_finds_at_its_distance(lab: Lab, tmp_path: Path) -> None:
    near = goodput_mbps(lab, tmp_path, "links.AP-STA.distance_m=20", "links.AP-STA.phy_rate_bps=54e6")
    assert near == pytest.approx(23.2, rel=0.1)
    far = goodput_mbps(lab, tmp_path, "links.AP-STA.distance_m=50", "links.AP-STA.phy_rate_bps=54e6")
    assert far == pytest.approx(13.0, rel=0.15)


def test_a_slower_rate_reaches_farther(lab: Lab, tmp_path: Path) -> None:
    slow = goodput_mbps(lab, tmp_path, "links.AP-STA.distance_m=80", "links.AP-STA.phy_rate_bps=6e6")
    fast = goodput_mbps(lab, tmp_path, "links.AP-STA.distance_m=80", "links.AP-STA.phy_rate_bps=54e6")
    assert slow > 1 > fast


@pytest.mark.parametrize(
    ("assignment", "reason"),
    [
        ("links.AP-STA.distance_m=0", "links.AP-STA.distance_m: must be greater than 0"),
        ("links.AP-STA.phy_rate_bps=11e6", "802.11g has no rate of 11 Mbit/s; it has 6, 9, 12, 18"),
        ("links.SRV-AP.distance_m=5", "distance_m: only a link with wifi has this"),
        ("links.AP-STA.rate_bps=5e6", "a link with wifi has no rate_bps"),
        ("links.AP-STA.loss=0.1", "a link with wifi has no loss"),
    ],
)
def test_what_the_link_cannot_be_is_refused_before_anything_runs(
    assignment: str, reason: str, lab: Lab
) -> None:
    assert reason in lab.refusal(*RUN, "--set", assignment)


def test_a_wireless_link_goes_through_json_and_back() -> None:
    network = topologies.load("wifi", overrides={"links.AP-STA.phy_rate_bps": 24e6})
    again = type(network).model_validate_json(network.model_dump_json())
    assert again == network
    assert again.link("AP-STA").rate_bps == 24e6


def test_netem_refuses_wireless_links() -> None:
    from topologies.link_backends import choose_backend

    with pytest.raises(TopologyError, match=r"AP-STA.*netem has no Wi-Fi"):
        choose_backend("netem", topologies.load("wifi"), 1, 1514)


@pytest.mark.parametrize(("mbps", "snr_db", "lost"), [(6, -2, 0.605), (24, 6, 0.65), (54, 14.5, 0.57)])
def test_the_table_of_frame_errors_is_what_its_program_finds(mbps: int, snr_db: float, lost: float) -> None:
    assert lost_share(mbps, 32, snr_db, 600, np.random.default_rng(1)) == pytest.approx(lost, abs=0.06)
