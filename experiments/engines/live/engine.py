"""Runs plans on real components: Mininet, Open vSwitch, the controller and the kernel's TCP."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from experiments import environment, protocols
from experiments.analysis.logs import Window
from experiments.analysis.validity import CpuMeter, why_invalid
from experiments.apps.config import PORT, Timing
from experiments.engines.base import Abilities, Clock
from experiments.engines.dual_homing import with_second_interfaces
from experiments.engines.live import requirements
from experiments.engines.live.agent import Agent, Lab
from experiments.engines.live.agents import agent_of
from experiments.engines.live.capture import Captures
from experiments.engines.live.changes import Changes
from experiments.engines.live.child import ChildFailed
from experiments.engines.live.controller_process import ControllerSubprocess
from experiments.engines.live.hosts import configure_hosts
from experiments.engines.live.machine_drops import MachineDrops
from experiments.engines.live.program_times import ProgramMeter
from experiments.engines.live.programs import Programs
from experiments.engines.live.progress_events import ProgressEvents
from experiments.engines.live.results import flow_result
from experiments.engines.live.sampling import LinkSampler
from experiments.engines.live.traffic import Traffic, Transfer
from experiments.errors import MissingRequirement, RunFailed, reason_of
from experiments.model.events import PhaseBegun, Report, TimeMeasured
from experiments.model.plan import RunPlan
from experiments.model.results import Environment, ProgramTimes, RunResult
from switch.errors import SwitchError
from switch.ovs import PrivateInstance
from switch.tcp import Controls
from topologies.errors import TopologyError
from topologies.interface_names import InterfaceNames
from topologies.mininet_builder import Emulation

LEAD_S = 0.3
"""From the order to start to the first byte: time for the order to reach every source."""

POLL_S = 0.6
"""How long before the end of the measurement the connections are looked at: `ss` takes some 20 ms a host."""


class LiveEngine:
    """The live engine. Each run has a network, switches and a controller of its own: none inherits state."""

    name = "live"
    abilities = Abilities(clock=Clock.MACHINE, protocols=None, drains=True)
    most_at_once = 1

    def __init__(self) -> None:
        self._link_backend: str | None = None
        self._datapath: str | None = None

    def check(self, plans: list[RunPlan]) -> None:
        """Refuse what the network, the controller, the kernel or the machine's programs could not do."""
        # It brings the controller's own code, which a worker, whose runs have to be the same, has no use for.
        from experiments.engines.admission import check_routes

        plans = [with_second_interfaces(plan)[0] for plan in plans]
        for plan in plans:
            requirements.check_programs(plan)
            routings = set()
            for name, part in plan.parts().items():
                protocols.get(name).check_live(part)
                routings.add(protocols.get(name).default_routing)
            if len(routings) > 1:
                what = f"{' and '.join(plan.parts())} want other default routes, and a run has one kind."
                raise MissingRequirement(what, "Give these flows protocols that agree, or use --engine sim.")
            if self.abilities.clock is Clock.MACHINE:
                requirements.check_kernel(plan)
        check_routes(plans, in_kernels=True)
        requirements.check()

    def environment(self) -> Environment:
        """Describe this machine, and what the links and switches of the last run were."""
        return environment.describe(link_backend=self._link_backend, datapath=self._datapath)

    def stop(self) -> None:
        """Do nothing: its runs are made one after the other, by the one who is interrupted."""

    def run_case(self, plan: RunPlan, out: Path, report: Report) -> RunResult:
        """Build the network, run the flows, tear it down (RunFailed: why, and where the logs are)."""
        try:
            with ExitStack() as stack:
                return self._run(plan, out, report, stack)
        except (ChildFailed, SwitchError, TopologyError) as error:
            raise RunFailed(plan.title, reason_of(error), str(out)) from error

    def _run(self, plan: RunPlan, out: Path, report: Report, stack: ExitStack) -> RunResult:
        requirements.check_kernel(plan)
        report(PhaseBegun(text="building the network"))
        plan, homes = with_second_interfaces(plan)
        specs = [protocols.get(name) for name in plan.parts()]
        takes_time = self.abilities.clock is Clock.MACHINE
        charged_s = self._charged_s(plan)
        planning_s = charged_s["planning"] if charged_s else 0.0
        controller = stack.enter_context(
            ControllerSubprocess(plan.network, out, specs[0].default_routing, planning_s)
        )
        # At ordinary priority: in real time ovs-vswitchd wakes for every packet and costs four times more.
        # No capture sees what AF_XDP receives.
        captured = plan.scenario.live.capture
        is_plain = bool(captured) or any(spec.programs_ports for spec in specs)
        ports: Literal["auto", "packet"] = "packet" if is_plain else "auto"
        ovs = stack.enter_context(PrivateInstance(requirements.OVS_FOLDER, ports=ports))
        emulation = stack.enter_context(
            Emulation(
                plan.network,
                ovs=ovs,
                controller=None,
                link_backend=plan.scenario.live.link_backend,
                seed=plan.seed,
                mtu=plan.scenario.mtu_bytes,
                ip_version=plan.scenario.ip_version,
                homes=homes,
                exact_clock=not takes_time,
            )
        )
        stack.callback(ovs.begin_stop)  # before the network: it ends while that is removed
        has_af_xdp = ovs.port_kind == "af_xdp"
        self._link_backend = emulation.link_backend
        self._datapath = f"{ovs.datapath} with AF_XDP" if has_af_xdp else ovs.datapath
        sysctls = configure_hosts(emulation, plan.scenario.sysctls())
        controller.wait_listening()
        emulation.connect_switches(controller.openflow)
        controls = stack.enter_context(requirements.missing_controls(plan))
        reached_at = controller.grpc_for_hosts
        traffic = stack.enter_context(self._traffic(plan, emulation, out, reached_at, controls))
        traffic.start_programs()  # they come up while the controller looks for links
        report(PhaseBegun(text="waiting for the controller"))
        controller.wait_ready()
        report(PhaseBegun(text="connecting"))
        ports_of_flows = {name: PORT + number for number, name in enumerate(plan.case.flows)}
        lab = Lab(plan, emulation, controller, ovs, InterfaceNames(plan.network), ports_of_flows)
        agent = stack.enter_context(agent_of(lab))
        changes = Changes(emulation, agent)
        agent.prepare()
        commands = stack.enter_context(Programs(plan, emulation, controller.grpc_for_hosts))
        commands.start_servers()
        stack.enter_context(Captures(plan.network, captured, out))
        traffic.connect(agent)
        changes.connected()
        agent.look(counting=False)
        drops = MachineDrops(plan.network, lab.names, has_af_xdp=has_af_xdp)
        begin_ns = time.monotonic_ns() + round(LEAD_S * 1e9)
        watched = stack.enter_context(self._watch_packets(lab, begin_ns))
        programs = _programs(traffic, ovs) if takes_time else {}
        sampler = LinkSampler(emulation.link_counters)
        measured = _measure(
            plan,
            begin_ns,
            traffic,
            programs,
            sampler,
            agent,
            changes,
            commands,
            report,
            takes_time=takes_time,
        )
        commands.finish()
        if not takes_time:
            measured = replace(measured, cpu_busy=None)
        report(PhaseBegun(text="draining"))
        transfers = traffic.finish()
        agent.finish()
        lost = measured.sampler.machine_drops() | drops.since_start()
        result = _result(lab, measured, transfers, sysctls, agent, changes, lost)
        told = {"commands": commands.results(measured.window.start_ns)}
        result = result.model_copy(update={"digest": watched(), "charged_s": charged_s, **told})
        reasons = result.why_invalid + changes.problems()
        result = result.model_copy(update={"valid": not reasons, "why_invalid": reasons})
        controller.begin_stop()  # ends while the network is removed
        return result

    def _charged_s(self, plan: RunPlan) -> dict[str, float] | None:
        """Return what programs are charged on a clock that does not move by itself while they run."""
        del plan
        return None

    def _traffic(
        self, plan: RunPlan, emulation: Emulation, out: Path, controller: str, controls: Controls
    ) -> Traffic:
        """Return the sources and sinks of a plan, not yet started."""
        return Traffic(plan, emulation, out, controller, Timing(), controls)

    def _watch_packets(self, lab: Lab, begin_ns: int) -> AbstractContextManager[Callable[[], str | None]]:
        """Return what tells the run's digest at its end, if packets' times are worth one."""
        del lab, begin_ns
        return nullcontext(lambda: None)


@dataclass(frozen=True)
class _Measured:
    """What the engine itself saw of a run."""

    started_at: str
    window: Window
    cpu_busy: float | None
    programs: list[ProgramTimes]
    sampler: LinkSampler


def _measure(
    plan: RunPlan,
    begin_ns: int,
    traffic: Traffic,
    programs: Mapping[str, int],
    sampler: LinkSampler,
    agent: Agent,
    changes: Changes,
    commands: Programs,
    report: Report,
    *,
    takes_time: bool,
) -> _Measured:
    """Start the sources at a time, and sample links and processor until the measurement is over."""
    settings = plan.scenario.live
    started_at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    start_ns = begin_ns + round(plan.scenario.warm_up_s * 1e9)
    window = Window(start_ns, plan.duration_s, settings.sample_s)
    traffic.start(begin_ns, window.end_ns)
    telling = ProgressEvents(plan, traffic, sampler, agent, window, report, busy=takes_time)
    telling.connected()
    meters: tuple[CpuMeter, ProgramMeter] | None = None
    looked = False
    pending = [(start_ns + round(change.time_s * 1e9), change) for change in plan.changes]
    while True:
        now_ns = time.monotonic_ns()
        changes.make([change for at_ns, change in pending if at_ns <= now_ns])
        pending = [(at_ns, change) for at_ns, change in pending if at_ns > now_ns]
        elapsed_s = (now_ns - start_ns) * 1e-9
        program_s = commands.advance(elapsed_s)
        sampler.sample(now_ns)
        agent.sample(now_ns)
        changes.sample(now_ns)
        if meters is None and now_ns >= window.start_ns:
            meters = CpuMeter(), ProgramMeter(programs)
        if now_ns >= window.end_ns:
            busy = meters[0].busy() if meters else None
            times = meters[1].read(plan.duration_s) if meters else []
            return _Measured(started_at, window, busy, times, sampler)
        report(TimeMeasured(seconds=max(0.0, (now_ns - window.start_ns) * 1e-9)))
        telling.sampled(now_ns, meters[1] if meters else None)
        traffic.check_alive()
        left_s = (window.end_ns - now_ns) * 1e-9
        if not looked and left_s < POLL_S:
            looked = True
            agent.look()
        to_change_s = min(((at_ns - now_ns) * 1e-9 for at_ns, _ in pending), default=left_s)
        if program_s is not None:
            to_change_s = min(to_change_s, program_s - elapsed_s)
        # A long interval passes over the time to look, but does not end the measurement without it.
        to_end_s = left_s if looked or left_s > settings.sample_s else left_s - POLL_S
        time.sleep(min(settings.sample_s, max(min(to_end_s, to_change_s), 0.001)))


def _programs(traffic: Traffic, ovs: PrivateInstance) -> dict[str, int]:
    """Return the programs that packets pass: sources, sinks and, unless the kernel forwards, the switch."""
    programs = traffic.programs()
    if ovs.datapath == "netdev" and ovs.forwarder_pid is not None:
        programs["Open vSwitch"] = ovs.forwarder_pid
    return programs


def _result(
    lab: Lab,
    measured: _Measured,
    transfers: list[Transfer],
    sysctls: dict[str, str],
    agent: Agent,
    changes: Changes,
    lost: dict[str, int],
) -> RunResult:
    plan = lab.plan
    window = measured.window
    flows = [
        changes.as_before(flow_result(transfer, plan, window, lab.default_path, agent.carried(transfer.name)))
        for transfer in transfers
    ]
    links = measured.sampler.results(plan.network, window)
    reasons = why_invalid(plan.scenario.live, measured.cpu_busy, measured.programs, links, lost)
    reasons += agent.problems()
    return RunResult(
        protocol=plan.protocol,
        case=plan.case_name,
        seed=plan.seed,
        duration_s=plan.duration_s,
        started_at=measured.started_at,
        valid=not reasons,
        why_invalid=reasons,
        host_cpu_busy=measured.cpu_busy,
        programs=measured.programs,
        sysctls=sysctls,
        flows=flows,
        links=links,
        evidence=agent.evidence(),
        link_changes=changes.links(window.start_ns),
        path_changes=changes.paths(window.start_ns),
    )
