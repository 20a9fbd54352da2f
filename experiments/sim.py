"""The simulator from a notebook: a network, flows, settings, and runs as rows of a table.

    from experiments.sim import Simulation

    study = Simulation("butterfly", variant="b", settings={"packet_bytes": 590, "tcp.timestamps": False})
    study.flow("T0", "T2", rate_bps=8.5e6)
    study.flow("T1", "T3", rate_bps=4.5e6)
    results = study.run(["mstcp", "ospf"], seeds=range(1, 5), duration_s=30)
    pandas.DataFrame(results.flows).groupby(["protocol", "flow"]).goodput_bps.mean()

See docs/simulator.md. Scenario files run the same way: `Simulation.load("butterfly", case="2")`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import topologies
from experiments.analysis.tables import flow_row, link_row, series_rows
from experiments.engines.sim.engine import SimEngine
from experiments.engines.thread_pool import run_together
from experiments.model import overrides, scenario
from experiments.model.demands import with_files
from experiments.model.given_paths import check_given_paths
from experiments.model.plan import RunPlan
from experiments.model.results import RunResult, SimulationCost
from experiments.model.scenario import Scenario
from experiments.workloads.shorthand import parse_workload
from topologies import Link, Network, Node, check_network

__all__ = ["Simulation", "SimulationResults", "make_network"]

_CASE = "1"


def make_network(
    hosts: Sequence[str], links: Iterable[tuple[str, str, float, float]], name: str = "network"
) -> Network:
    """Return a network of links, given as `(end, other end, rate in bit/s, delay in µs)`.

    Args:
        hosts: Names of the nodes that send and receive; all others are switches.
        links: The links, alike in both directions, with unlimited queues.
        name: Of the network.

    Raises:
        TopologyError: It cannot be a network; pydantic.ValidationError: a value does not fit.
    """
    made = [Link(ends=(a, b), rate_bps=rate_bps, delay_us=delay_us) for a, b, rate_bps, delay_us in links]
    names = dict.fromkeys(end for link in made for end in link.ends)
    nodes = [Node(name=node, kind="host" if node in hosts else "switch") for node in names]
    network = Network(name=name, nodes=tuple(nodes), links=tuple(made))
    check_network(network)
    return network


@dataclass(frozen=True)
class SimulationResults:
    """What runs gave, by protocol and then by seed, and what they took of the machine.

    Their tables are lists of flat dictionaries, which `pandas.DataFrame` takes as they are.
    """

    runs: list[RunResult]
    costs: list[SimulationCost]

    @property
    def flows(self) -> list[dict[str, Any]]:
        """A row for each flow of each run, with every metric."""
        return [flow_row(run, flow) for run in self.runs for flow in run.flows]

    @property
    def links(self) -> list[dict[str, Any]]:
        """A row for each direction of each link of each run."""
        return [link_row(run, link) for run in self.runs for link in run.links]

    @property
    def series(self) -> list[dict[str, Any]]:
        """A row for each interval of each flow of each run."""
        return [row for run in self.runs for flow in run.flows for row in series_rows(run, flow)]


class Simulation:
    """A network with flows and settings, to be run with several protocols and seeds.

    Args:
        network: As `topologies.load` takes it (a built-in one, a file, a generator such as `ring:6`), or one.
        variant: Of a network that has some.
        settings: Dotted keys and values, as `--set` has them: `tcp.sack`, `sim.profile`, `packet_bytes`,
            `links.S0-S4.rate_bps`.

    Raises:
        TopologyError: There is no such network.
        OverrideError: A setting does not fit; said when it is run.
    """

    def __init__(
        self, network: str | Network, *, variant: str | None = None, settings: Mapping[str, Any] | None = None
    ) -> None:
        given, changes = _parted(settings)
        if isinstance(network, Network):
            self.network = topologies.apply_overrides(network, changes)
        else:
            self.network = topologies.load(network, variant=variant, overrides=changes or None)
        self._settings = given
        self._flows: dict[str, dict[str, Any]] = {}
        self._scenario: Scenario | None = None
        self._case = _CASE

    @classmethod
    def load(
        cls, spec: str, case: str, *, variant: str | None = None, settings: Mapping[str, Any] | None = None
    ) -> Simulation:
        """Take network, flows and settings from a scenario file.

        Args:
            spec: A built-in scenario's name, or the path of a file.
            case: Of the scenario.
            variant: Of the network; None for the scenario's.
            settings: As above, on top of the scenario's.

        Raises:
            ExperimentError: There is no such scenario or case, or a setting does not fit.
            TopologyError: Its network cannot be loaded.
        """
        loaded = scenario.load(spec)
        loaded.case(case)
        study = cls(loaded.network, variant=variant or loaded.variant, settings=settings)
        final = overrides.apply(loaded, study._settings, [case])
        folder = scenario.path_of(spec).parent
        study._scenario = with_files(final, folder, study.network.hosts, [case])
        study._case = case
        return study

    def flow(
        self,
        src: str,
        dst: str,
        rate_bps: float,
        *,
        name: str | None = None,
        workload: str = "cbr",
        start_s: float = 0.0,
    ) -> Simulation:
        """Add a flow; returns the simulation, so that calls can be chained.

        Args:
            src: Host that sends.
            dst: Host that receives.
            rate_bps: Goodput asked for, and sent at by constant-bit-rate sources.
            name: In the results; None for its number, from 1.
            workload: As `--workload` has it: `cbr`, `bulk:size=20MB`, `requests:users=3,sizes=20kB`.
            start_s: Delay of its first byte.

        Raises:
            OverrideError: There is no such workload.
            ValueError: The name is taken, or the flows are a scenario's.
        """
        name = str(len(self._flows) + 1) if name is None else name
        if self._scenario is not None:
            raise ValueError("the flows are those of the scenario file; write another one")
        if name in self._flows:
            raise ValueError(f"there is a flow {name!r} already")
        self._flows[name] = {
            "src": src,
            "dst": dst,
            "requested_bps": rate_bps,
            "workload": parse_workload(workload),
            "start_s": start_s,
        }
        return self

    def run(
        self,
        protocols: Iterable[str] = ("mstcp",),
        *,
        seeds: Iterable[int] = (1,),
        duration_s: float | None = None,
        workers: int | None = None,
    ) -> SimulationResults:
        """Run all protocols with all seeds, in parallel; the result does not depend on how many at once.

        Args:
            protocols: Those that the simulator has (`mstcp-lab list`); `mptcp-dualhomed` where the scenario
                has second links.
            seeds: At least one.
            duration_s: Simulated seconds; None for what the scenario has (20).
            workers: How many runs at once; None for one on each core.

        Raises:
            ScenarioError: A flow or setting does not fit.
            MissingRequirement: The simulator does not have a protocol or workload.
            RunFailed: With the reason.
        """
        made = self._scenario or self._from_flows()
        scenario.check_network(made, [self._case], self.network)
        check_given_paths(made, [self._case], self.network)
        plans = [
            RunPlan(
                scenario=made,
                network=self.network,
                case_name=self._case,
                protocol=protocol,
                seed=seed,
                duration_s=made.duration_s if duration_s is None else duration_s,
            )
            for protocol, seed in itertools.product(protocols, list(seeds))
        ]
        engine = SimEngine()
        engine.most_at_once = workers or engine.most_at_once
        engine.check(plans)
        with run_together(plans, engine.simulate, workers=engine.most_at_once, stop=engine.stop) as ending:
            results = {number: future.result() for number, _, future in ending}
        return SimulationResults([results[number] for number in sorted(results)], engine.costs())

    def _from_flows(self) -> Scenario:
        data = {
            "format": 1,
            "name": "simulation",
            "network": self.network.name,
            "cases": {_CASE: {"flows": self._flows}},
        }
        return overrides.apply(scenario.parse(data, "simulation"), self._settings, [_CASE])


def _parted(settings: Mapping[str, Any] | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Part settings into those of the scenario and those of the network."""
    own: dict[str, Any] = {}
    network: dict[str, Any] = {}
    for key, value in (settings or {}).items():
        (network if key.split(".")[0] in overrides.NETWORK_ROOTS else own)[key] = value
    return own, network
