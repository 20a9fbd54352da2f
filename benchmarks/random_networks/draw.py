"""Draws a network with flows over it, and what carries them, by a seed.

Names, degrees, rates, delays and queues are drawn; so are segments, TCP's options and buffers. More than half
of the draws ask for less than the network carries.
"""

from __future__ import annotations

import random
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from controller.decide.offline import OfflineController
from controller.model.requests import FlowRequest
from experiments import protocols
from experiments.model import scenario
from experiments.model.job import Job
from experiments.model.scenario import Scenario
from topologies import Link, Network, Node, check_network

CASE = "1"
DURATION_S = 1.6
PROTOCOLS = ("ospf", "ecmp", "mptcp", "mptcp-sdn", "ppfs", "mstcp", "mstcp")
WORKLOADS = ("cbr", "onoff", "bulk", "requests")
OBJECTIVES = ("max_throughput_min_delay", "even_split", "fair")
FULL = 1e12
"""More than any network carries."""
MAX_BPS = 4e6
"""Total rate of all flows, since a run in virtual time costs by the packet."""


@dataclass(frozen=True)
class Drawn:
    """What was drawn by `seed`: a scenario with one case, its network, and the protocol to run it with."""

    seed: int
    scenario: Scenario
    network: Network
    protocol: str

    @property
    def label(self) -> str:
        """What a line of a report says of it."""
        flows = self.scenario.case(CASE).flows.values()
        kinds = "+".join(sorted({flow.workload.kind for flow in flows}))
        size = f"{len(self.network.switches)} switches, {len(self.network.links)} links"
        return f"network {self.seed}: {self.protocol}, {kinds}, {len(flows)} flows, {size}"

    def job(self, engine: str, **more: Any) -> Job:
        """Return the run of an engine; `more` are fields of the job, `out` among them."""
        return Job(
            engine=engine,
            scenario=self.scenario,
            network=self.network,
            variant=None,
            overrides={},
            cases=(CASE,),
            protocols=(self.protocol,),
            seeds=(self.seed,),
            duration_s=self.scenario.duration_s,
            **more,
        )


def draw(seed: int, protocol: str | None = None, workload: str | None = None) -> Drawn:
    """Draw by a seed; protocol and kind of workload may be given."""
    rng = random.Random(f"network {seed}")
    sources = rng.randint(1, 3)
    network = _network(rng, sources)
    drawn_protocol, drawn_workload = rng.choice(PROTOCOLS), rng.choice(WORKLOADS)
    protocol, workload = protocol or drawn_protocol, workload or drawn_workload
    settings = _settings(rng)
    ends = list(zip(network.hosts[:sources], network.hosts[sources:], strict=True))
    objective = rng.choice(OBJECTIVES)
    bare = scenario.parse(settings | {"cases": {CASE: {"flows": _flows(ends, [1e6] * sources)}}}, "drawn")
    most = _capacities(bare, network, protocol, objective)
    share = rng.uniform(0.2, 0.7) if rng.random() < 0.6 else rng.uniform(0.8, 1.1)
    share = min(share, MAX_BPS / sum(most))
    asked = [round(share * capacity, -2) for capacity in most]
    flows = _flows(ends, asked)
    for flow in flows.values():
        flow["workload"] = _workload(rng, workload, flow["requested_bps"])
        flow["start_s"] = round(rng.choice([0.0, rng.uniform(0, 0.3)]), 3)
    case = {"allocation": objective, "flows": flows}
    return Drawn(seed, scenario.parse(settings | {"cases": {CASE: case}}, "drawn"), network, protocol)


@dataclass
class _Draft:
    """A network being drawn."""

    rng: random.Random
    names: Iterator[str]
    nodes: list[Node] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)

    def node(self, kind: str) -> str:
        name = next(self.names)
        self.nodes.append(Node.model_validate({"name": name, "kind": kind}))
        return name

    def link(self, a: str, b: str, least_bps: float, most_bps: float, most_delay_us: float) -> None:
        rng = self.rng
        rate_bps = 8.0 * round(least_bps * (most_bps / least_bps) ** rng.random() / 8)
        delay_us = round(most_delay_us * 0.005 * 200 ** rng.random(), 2)
        queue = rng.choice([None, rng.randint(20, 300)])
        ends = rng.choice([(a, b), (b, a)])
        self.links.append(Link(ends=ends, rate_bps=rate_bps, delay_us=delay_us, queue_packets=queue))


def _network(rng: random.Random, sources: int) -> Network:
    draft = _Draft(rng, _names(rng))
    switches = [draft.node("switch") for _ in range(rng.randint(2, 6))]
    joined = {(a, rng.choice(switches[:place])) for place, a in enumerate(switches) if place}
    for _ in range(rng.randint(0, 2 * len(switches))):
        a, b = rng.sample(switches, 2)
        if (a, b) not in joined and (b, a) not in joined:
            joined.add((a, b))
    for a, b in sorted(joined, key=lambda pair: [switches.index(end) for end in pair]):
        draft.link(a, b, 1e6, 8e6, 12_000)
    for _ in range(2 * sources):
        draft.link(draft.node("host"), rng.choice(switches), 8e6, 60e6, 2_000)
    rng.shuffle(draft.nodes)
    rng.shuffle(draft.links)
    network = Network(name="drawn", nodes=tuple(draft.nodes), links=tuple(draft.links))
    check_network(network)
    return network


def _names(rng: random.Random) -> Iterator[str]:
    """Yield names of nodes of very different length, which differ in case as well."""
    seen: set[str] = set()
    while True:
        length = rng.choice([1, 2, 5, 15, 32])
        rest = rng.choices(string.ascii_letters + string.digits + "_", k=length - 1)
        name = rng.choice(string.ascii_letters) + "".join(rest)
        if name not in seen:
            seen.add(name)
            yield name


def _settings(rng: random.Random) -> dict[str, Any]:
    buffer_bytes = rng.choice([65_536, 131_072, 262_144])
    return {
        "format": 1,
        "name": "drawn",
        "network": "drawn",
        "packet_bytes": rng.choice([590, 1000, 1514]),
        "duration_s": DURATION_S,
        "tcp": {
            "congestion_control": rng.choice(["reno", "cubic"]),
            "send_buffer_bytes": buffer_bytes,
            "receive_buffer_bytes": rng.choice([buffer_bytes, 2 * buffer_bytes]),
            "sack": rng.random() < 0.7,
            "timestamps": rng.random() < 0.5,
            "no_metrics_save": True,
        },
        "live": {"sample_s": 1.0},
        "sim": {"sample_s": 0.0},
    }


def _flows(ends: list[tuple[str, str]], asked: list[float]) -> dict[str, dict[str, Any]]:
    return {
        str(number): {"src": src, "dst": dst, "requested_bps": rate_bps}
        for number, ((src, dst), rate_bps) in enumerate(zip(ends, asked, strict=True), start=1)
    }


def _capacities(bare: Scenario, network: Network, protocol: str, objective: str) -> list[float]:
    """Return the goodput in bit/s that each flow could have beside the others, roughly."""
    controller = OfflineController(network)
    flows = bare.case(CASE).flows
    payload = bare.packet_bytes - bare.overhead_bytes - protocols.get(protocol).header_bytes
    if protocol in ("mptcp-sdn", "ppfs", "mstcp"):
        requests = {
            name: FlowRequest(
                source=flow.src,
                destination=flow.dst,
                destination_port=1,
                rate_bps=FULL,
                packet_bytes=bare.packet_bytes,
                segment_overhead_bytes=bare.overhead_bytes,
                objective="fair" if objective != "even_split" else objective,
            )
            for name, flow in flows.items()
        }
        granted = controller.allocate(requests)
        return [sum(path.rate_bps for path in paths) or 1e5 for paths in granted.values()]
    rates = {frozenset(link.ends): link.rate_bps for link in network.links}
    paths = [controller.shortest(flow.src, flow.dst) for flow in flows.values()]
    arcs = [list(pairwise(path)) for path in paths]
    users = {arc: sum(arc in other for other in arcs) for path in arcs for arc in path}
    share = payload / bare.packet_bytes
    return [share * min(rates[frozenset(arc)] / users[arc] for arc in path) for path in arcs]


def _workload(rng: random.Random, kind: str, rate_bps: float) -> Mapping[str, Any]:
    if kind == "cbr":
        return {"kind": kind}
    if kind == "onoff":
        lengths = rng.choice(["fixed", "exponential"])
        on_s, off_s = (round(rng.uniform(0.1, 0.5), 3) for _ in range(2))
        return {"kind": kind, "on_s": on_s, "off_s": off_s, "lengths": lengths}
    if kind == "bulk":
        return {"kind": kind, "size_bytes": max(1000, round(rate_bps / 8 * rng.uniform(0.5, 2.5)))}
    mean_bytes = rng.choice([2_000, 10_000, 40_000])
    sizes = rng.choice([mean_bytes, {"kind": "exponential", "mean_bytes": mean_bytes}])
    if rng.random() < 0.5:
        per_s = round(rng.uniform(0.2, 0.6) * rate_bps / 8 / mean_bytes, 3)
        return {"kind": kind, "per_s": max(per_s, 0.5), "sizes": sizes}
    think_s = round(rng.uniform(0.02, 0.2), 3)
    return {"kind": kind, "users": rng.randint(1, 4), "think_s": think_s, "sizes": sizes}
