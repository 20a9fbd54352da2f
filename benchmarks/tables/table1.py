"""docs/simulator.md: Table I of the paper in the simulator beside ns-3, and what each setting does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import topologies
from benchmarks.pages import markdown_table
from experiments.sim import Simulation

from .cells import spread

PAGE = "simulator.md"
NS3 = Path(__file__).parents[2] / "crates/netsim/tests/simulation/ns3-butterfly.json"
SEEDS = range(1, 21)
DURATION_S = 120.0
PROTOCOLS = ("mstcp", "ppfs", "ospf")
PAPER = {"allocation": "paper", "warm_up_s": 0.0, "sim.profile": "paper"}
"""The paper's allocation as it stands, its simulator, and all that happened from the first byte on."""

LINKS = [f"{link.ends[0]}-{link.ends[1]}" for link in topologies.load("butterfly").links]
SETTING_SEEDS = range(1, 5)
SETTING_DURATION_S = 60.0
SETTINGS: Sequence[tuple[str, Mapping[str, Any], str]] = (
    ("as it is", {}, "6.01"),
    ("SACK on", {"tcp.sack": True}, "1.2 to 3.2 (a: 2.53)"),
    ("PRR", {"sim.recovery": "prr"}, "3.4"),
    ("ACKs split at random", {"ppfs.ack_path": "split"}, "1.3 to 3.7"),
    ("queues of 100 packets", {f"links.{link}.queue_packets": 100 for link in LINKS}, "4.2"),
)
"""Settings, and the goodput that ns-3 3.37 has with them."""


def table1() -> Iterator[str]:
    """Run the simulations, and return all rows on both variants of the network."""
    simulated = {variant: {case: runs(variant, case) for case in ("1", "2")} for variant in ("a", "b")}
    rows = []
    for row in json.loads(NS3.read_text(encoding="utf-8"))["rows"]:
        mine = [
            flow
            for flow in simulated[row["variant"]][row["case"]]
            if (flow["protocol"], flow["flow"]) == (row["protocol"], row["flow"])
        ]
        goodput = spread([flow["goodput_bps"] for flow in mine], 1e-6, 2)
        delay = spread([flow["delay_mean_s"] for flow in mine], 1e3, 1)
        flow = "{variant}, {case}.{flow}".format(**row)
        rows.append(
            (flow, row["protocol"], goodput, f"{row['goodput_bps'] / 1e6:.2f}", delay, ns3_delay(row))
        )
    head = ("variant, flow", "protocol", "goodput Mbit/s", "ns-3", "mean delay, ms", "ns-3")
    return markdown_table(head, rows)


def settings() -> Iterator[str]:
    """Run the simulations of PPFS, flow 1 of case 1, variant a, with other settings; return the table."""
    rows = []
    for setting, values, ns3 in SETTINGS:
        study = Simulation.load("butterfly", "1", variant="a", settings={**PAPER, **values})
        flows = study.run(("ppfs",), seeds=SETTING_SEEDS, duration_s=SETTING_DURATION_S).flows
        goodputs = [row["goodput_bps"] for row in flows if row["flow"] == "1"]
        rows.append((setting, ns3, spread(goodputs, 1e-6, 2)))
    return markdown_table(("setting", "ns-3", "ours"), rows)


TABLES = {"table I": table1, "settings": settings}


def runs(variant: str, case: str) -> list[dict[str, Any]]:
    """Return a row for each flow, protocol and seed; nothing is drawn with OSPF, so one seed serves."""
    study = Simulation.load("butterfly", case, variant=variant, settings=PAPER)
    drawn = study.run(PROTOCOLS[:2], seeds=SEEDS, duration_s=DURATION_S)
    fixed = study.run(PROTOCOLS[2:], seeds=(1,), duration_s=DURATION_S)
    return [*drawn.flows, *fixed.flows]


def ns3_delay(row: Mapping[str, Any]) -> str:
    """Return ns-3's mean delay in ms with its range over the seeds, where they differ."""
    mean = f"{row['delay_mean_s'] * 1e3:.1f}"
    if "delay_range_s" not in row:
        return mean
    least, most = (f"{delay_s * 1e3:.1f}" for delay_s in row["delay_range_s"])
    return f"{mean} ({least} to {most})"
