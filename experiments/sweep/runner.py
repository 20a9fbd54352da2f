"""Runs the points of a sweep, as many at once as there are workers, and keeps each as it finishes."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future

from gomr.errors import SolverError

from experiments.engines.sim.process import SimulationFailed, SimulatorOutput
from experiments.engines.thread_pool import run_together
from experiments.errors import Interrupted, RunFailed
from experiments.scheduling.simulator import Simulator
from experiments.sweep.description import Admitted, admit, describe, plan_of
from experiments.sweep.offered_load import OfferedLoads
from experiments.sweep.plan import Point, Sweep
from experiments.sweep.routes import DefaultRoutes
from experiments.sweep.store import PointResult, SweepStore

Report = Callable[[PointResult | RunFailed], None]


def run(
    sweep: Sweep, offers: OfferedLoads, store: SweepStore, report: Report, simulator: Simulator, workers: int
) -> None:
    """Run the points that the store does not have, this many at once; `report` is told of each as it ends.

    Raises:
        OutputError: The folder cannot be written.
        Interrupted: The user stopped; what was finished is kept.
    """
    points = sweep.points()
    waiting = [point for point in points if point not in store.finished]
    routes = DefaultRoutes(offers.network, offers.conditions.metric)

    def run_point(point: Point) -> PointResult:
        flows = offers.flows(point.load, point.seed)
        plan = plan_of(offers.conditions, point, offers.network, flows)
        admitted = admit(plan, routes, flows)
        return summarise(point, admitted, simulator.run(describe(plan, admitted)))

    try:
        with run_together(waiting, run_point, workers=workers, stop=simulator.stop) as ending:
            for _, point, future in ending:
                _settle(future, point, store, report)
    except KeyboardInterrupt:
        finished = sum(point in store.finished for point in points)
        raise Interrupted(finished, len(points)) from None


def _settle(future: Future[PointResult], point: Point, store: SweepStore, report: Report) -> None:
    try:
        result = future.result()
    except (SimulationFailed, SolverError) as error:
        report(RunFailed(point.label[0].upper() + point.label[1:], str(error)))
        return
    store.add(result)
    report(result)


def summarise(point: Point, flows: list[Admitted], simulated: SimulatorOutput) -> PointResult:
    """Return what came of a point, summed over its flows."""
    simulated_flows, counters = simulated.document["flows"], simulated.document["counters"]
    received_bps = math.fsum(flow["goodput_bps"] for flow in simulated_flows)
    delay_bps_s = math.fsum(
        flow["goodput_bps"] * flow["delay_s"]["mean"]
        for flow in simulated_flows
        if flow["delay_s"] is not None
    )
    return PointResult(
        point=point,
        flows=len(flows),
        flows_admitted=len(simulated_flows),
        paths=sum(max(1, len(flow["streams"])) for flow in simulated_flows),
        requested_bps=math.fsum(flow.offered.requested_bps for flow in flows),
        admitted_bps=math.fsum(flow.rate_bps for flow in flows),
        received_bps=received_bps,
        delay_mean_s=delay_bps_s / received_bps if received_bps else None,
        bytes_written=sum(flow["bytes_written"] for flow in simulated_flows),
        bytes_read=sum(flow["bytes_read"] for flow in simulated_flows),
        bytes_wrong=sum(flow["bytes_wrong"] for flow in simulated_flows),
        packets_sent=counters["packets_sent"],
        packets_delivered=counters["packets_delivered"],
        packets_dropped=counters["packets_dropped"],
        packets_in_flight=counters["packets_in_flight"],
        retransmits=sum(stream["retransmits"] for flow in simulated_flows for stream in flow["streams"]),
        events=counters["events"],
        wall_s=simulated.wall_s,
        peak_rss_bytes=simulated.peak_rss_bytes,
    )
