"""Runs plans in the simulator: no root, no Mininet, no Open vSwitch; as many at once as there are cores."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import netsim_native as sim

from controller.errors import FAILURES
from experiments import environment, protocols
from experiments.engines.admission import check_routes
from experiments.engines.base import Abilities, Clock
from experiments.engines.dual_homing import with_second_interfaces
from experiments.engines.sim.description import describe, tcp_of
from experiments.engines.sim.methods import is_own, load
from experiments.engines.sim.process import SimulationFailed
from experiments.engines.sim.rerouting import reroutes
from experiments.engines.sim.results import run_result
from experiments.engines.sim.routing import routes
from experiments.errors import MissingRequirement, RunFailed, ScenarioError, reason_of
from experiments.installation import extra_command
from experiments.model.events import Report
from experiments.model.plan import RunPlan
from experiments.model.results import Environment, RunResult, SimulationCost
from experiments.model.settings import CONGESTION_CONTROLS, COUPLED_CONTROLS
from experiments.protocols import PROTOCOLS
from experiments.scheduling.simulator import simulator


class SimEngine:
    """The simulator. Each run has a process of its own; the same plan gives the same result anywhere."""

    name = "sim"

    def __init__(self, scheduler: str | None = None) -> None:
        """Make the runs in processes of this machine, or on the cluster at an address."""
        self._simulator = simulator(scheduler)
        self.most_at_once = self._simulator.at_once
        self._remote = scheduler is not None
        self._costs: dict[tuple[str, str, int], SimulationCost] = {}
        simulated = tuple(name for name, each in PROTOCOLS.items() if each.is_simulated)
        self.abilities = Abilities(clock=Clock.SIMULATED, protocols=simulated, drains=False)

    def check(self, plans: list[RunPlan]) -> None:
        """Refuse protocols and settings that the simulator does not have.

        Raises:
            MissingRequirement: with what there is instead.
            ScenarioError: a protocol needs second links that the scenario does not have, or a method of one's
            own cannot be loaded.
        """
        for plan in plans:
            if self._remote and plan.scenario.sim.trace:
                raise MissingRequirement(
                    "Traces are files of this machine.", "Leave --trace or --scheduler out."
                )
            reason = _unsupported(plan, self.abilities.protocols or ())
            if reason is not None:
                raise MissingRequirement(*reason)
            _check_own_methods(plan)
            _check_tcp(plan)
        check_routes([with_second_interfaces(plan)[0] for plan in plans], in_kernels=False)

    def environment(self) -> Environment:
        """Describe this machine, and what the runs took."""
        described = environment.describe(link_backend=None, datapath=None, simulated=True)
        described.simulations = self.costs()
        return described

    def costs(self) -> list[SimulationCost]:
        """Return what each of its runs took, by scenario, protocol and seed."""
        return [self._costs[key] for key in sorted(self._costs)]

    def run_case(self, plan: RunPlan, out: Path, report: Report) -> RunResult:
        """Run one plan; it is too short to report progress, and needs the folder for traces alone."""
        del report
        return self.simulate(plan, out)

    def simulate(self, plan: RunPlan, traces: Path | None = None) -> RunResult:
        """Route a plan's flows and simulate them; traces go to a folder, if any (RunFailed: says why)."""
        plan, homes = with_second_interfaces(plan)
        try:
            ways = routes(plan)
            later = reroutes(plan, ways)
            formats = plan.scenario.sim.trace if traces else ()
            tracing = [str(traces), ",".join(formats)] if formats else []
            simulated = self._simulator.run(describe(plan, ways, homes, later), *tracing)
        except (*FAILURES, SimulationFailed) as error:
            raise RunFailed(plan.title, reason_of(error)) from error
        self._costs[plan.case_name, plan.protocol, plan.seed] = SimulationCost(
            protocol=plan.protocol,
            case=plan.case_name,
            seed=plan.seed,
            events=simulated.document["counters"]["events"],
            wall_s=simulated.wall_s,
            peak_rss_bytes=simulated.peak_rss_bytes,
        )
        return run_result(plan, ways, later, simulated.document)

    def stop(self) -> None:
        """End the runs at once."""
        self._simulator.stop()


def _check_own_methods(plan: RunPlan) -> None:
    """Load the methods of one's own that a run has; ScenarioError says which cannot be."""
    scenario = plan.scenario
    named = {
        **{
            f"cases.{plan.case_name}.flows.{name}.congestion_control": (
                "congestion control",
                flow.congestion_control,
            )
            for name, flow in plan.case.flows.items()
        },
        "tcp.congestion_control": ("congestion control", scenario.tcp.congestion_control),
        "sim.mptcp.scheduler": ("scheduler", scenario.sim.mptcp.scheduler),
        "sim.mptcp.congestion_control": ("congestion control", scenario.sim.mptcp.congestion_control),
        "sim.reordering": ("response to reordering", scenario.sim.reordering),
    }
    for place, (kind, name) in named.items():
        if name is not None and is_own(name):
            try:
                load(kind, name)
            except Exception as error:
                raise ScenarioError(scenario.name, place, str(error)) from error


def _check_tcp(plan: RunPlan) -> None:
    """Let the simulator look at the settings of TCP; ScenarioError says which cannot go together."""
    flow = {"name": "1", "src": "A", "dst": "B", "protocol": "tcp", "traffic": {"kind": "bulk"}}
    link = {"ends": ["A", "B"], "rate_bps": 1e6, "delay_us": 1.0}
    description = {"format": 1, "duration_s": 1.0, "links": [link], "tcp": tcp_of(plan), "flows": [flow]}
    try:
        sim.check(json.dumps(description), load)
    except sim.InvalidDescription as error:
        place, reason = error.args
        raise ScenarioError(plan.scenario.name, place or "tcp", reason) from None


def _unsupported(plan: RunPlan, known: tuple[str, ...]) -> tuple[str, str] | None:
    """Return what of a plan the simulator does not have, with what to do about it."""
    for protocol in plan.parts():
        if not protocols.get(protocol).is_simulated:
            remedy = f"It has {', '.join(known)}; the live engine has all protocols (--engine live)."
            return f"The simulator does not have protocol {protocol}.", remedy
    if plan.programs:
        names = ", ".join(program.name for program in plan.programs)
        return f"The simulator runs no programs: {names}.", "Use --engine live or virtual, or leave them out."
    if "parquet" in plan.scenario.sim.trace and find_spec("pyarrow") is None:
        remedy = f"Install it ({extra_command('parquet')}), or take csv."
        return "Parquet needs pyarrow, which is not installed.", remedy
    controls = (*CONGESTION_CONTROLS, *COUPLED_CONTROLS)
    for name in (plan.scenario.tcp.congestion_control, *map(plan.congestion_control_of, plan.case.flows)):
        if name not in controls and not is_own(name):
            remedy = f"It has {', '.join(controls)}; the live engine has those of the kernel."
            return f"The simulator does not have congestion control {name}.", remedy
    return None
