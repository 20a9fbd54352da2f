"""A preview of a failure is what then happens: random networks, flows and failures."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

import topologies
from controller.decide.preview import preview
from controller.errors import RequestError
from controller.model.events import CopyRequested, PortWentDown, StreamsReported
from controller.model.preview_views import PreviewView
from controller.model.requests import FailedElements, PreviewRequest
from controller.model.settings import Settings
from controller.model.state_copy import StateCopy
from tests.controller.decide.failing_links import BUTTERFLY
from tests.fakes.openflow_table import ControlledNetwork, Snapshot
from tests.fakes.requests import FIRST
from topologies.model import Network

CASES = int(os.environ.get("PREVIEW_CASES", "150"))
OBJECTIVES = ("max_throughput_min_delay", "fair", "max_min", "min_max_utilisation")


def random_request(draw: random.Random, net: ControlledNetwork, number: int) -> dict[str, Any]:
    network = net.switches.network
    source, destination = draw.sample(network.hosts, 2)
    request: dict[str, Any] = {
        "source": source,
        "destination": destination,
        "destination_port": 5000 + number,
        "rate_bps": draw.choice([0.1, 0.3, 0.8, 1.5]) * 1e7,
        "packet_bytes": draw.choice([590, 1500]),
    }
    kind = draw.choice(["plain", "plain", "packets", "packets", "group", "hand", "grow"])
    if kind in ("packets", "group"):
        acks = draw.choice(["shortest", "reverse:0"])
        return request | {"splitting": kind, "ack_path": acks, "objective": draw.choice(OBJECTIVES)}
    path = net.core._state.paths.least_delay(source, destination)
    if kind == "hand" and path is not None:
        del request["rate_bps"]
        return request | {"paths": [{"nodes": list(path), "rate_bps": 1e5}]}
    if kind == "grow":
        return request | {"source_ports": [40000 + 8 * number + each for each in range(4)], "may_grow": True}
    return request | {"objective": draw.choice(OBJECTIVES)}


def prepared(draw: random.Random, case: int) -> ControlledNetwork:
    spec = draw.choice(
        ["butterfly", "parallel2", "parallel4", "ring:5", f"waxman:{draw.randint(4, 9)}:seed={case % 40}"]
    )
    network: Network = BUTTERFLY if spec == "butterfly" else topologies.load(spec)
    net = ControlledNetwork.brought_up(network, Settings(lease_s=1e6, fast_failover=draw.random() < 0.5))
    for number in range(draw.randint(1, 6)):
        try:
            flow = net.request(**random_request(draw, net, number))
        except RequestError:
            continue
        if flow.may_grow:
            ports = frozenset(stream.source_port for stream in flow.streams)
            net.handle(StreamsReported(9, flow.flow_id, ports, frozenset(), ()))
    for _ in range(draw.randint(0, 3)):
        net.pass_time(1.0)
    return net


def fail(draw: random.Random, net: ControlledNetwork) -> FailedElements | None:
    """Choose what fails: mostly what carries a flow."""
    hosts = set(net.switches.network.hosts)
    links = [link.name for link in net.switches.network.links if not set(link.ends) & hosts]
    used = {
        link
        for flow in net.snapshot().flows
        for path in [
            *(stream.path for stream in flow.streams),
            *((flow.split.ack_path,) if flow.split else ()),
        ]
        for step in pairwise(path)
        for link in links
        if set(link.split("-")) == set(step)
    }
    candidates = sorted(used) or links
    return (
        FailedElements(links=tuple(draw.sample(candidates, min(len(candidates), 1)))) if candidates else None
    )


def expected_of(net: ControlledNetwork, failure: FailedElements) -> PreviewView:
    (answer,) = net.handle(CopyRequested(1))
    assert isinstance(answer.result, StateCopy)
    return preview(answer.result, PreviewRequest(fail=failure))


def same(expected: PreviewView, before: Snapshot, after: Snapshot) -> None:
    """The same links are down and loaded, and each flow has the same paths and rates."""
    links = {link.link: link for link in after.links}
    for each in expected.links:
        assert each.up == links[each.link].up, each.link
        assert each.allocated_after_bps == pytest.approx(links[each.link].allocated_bps, abs=2.0), each.link
        if not each.up:
            assert each.allocated_after_bps == pytest.approx(0.0, abs=2.0), "nothing on what is down"
    changed = {flow.flow_id: flow for flow in expected.flows}
    had = {flow.flow_id: flow for flow in before.flows}
    for flow in after.flows:
        told = changed.get(flow.flow_id)
        streams = had[flow.flow_id].streams if told is None else told.paths_after
        assert [stream.path for stream in streams] == [stream.path for stream in flow.streams]
        assert [s.rate_bps for s in streams] == pytest.approx(
            [s.rate_bps for s in flow.streams], rel=1e-5, abs=2
        )


@pytest.mark.timeout(1200)
def test_a_preview_is_what_then_happens() -> None:
    for case in range(CASES):
        draw = random.Random(case)
        net = prepared(draw, case)
        failure = fail(draw, net)
        if failure is None:
            continue
        before = net.snapshot()
        expected = expected_of(net, failure)
        for link in failure.links:
            net.break_link(link)
        try:
            same(expected, before, net.snapshot())
        except AssertionError as error:
            raise AssertionError(f"case {case}: {failure}") from error


def test_the_acknowledgements_of_a_split_flow_leave_a_link_that_fails() -> None:
    """The butterfly, T0 to T2 by packets: they went over S4->S0, and then take another way."""
    net = ControlledNetwork.brought_up(BUTTERFLY)
    request = FIRST | {"rate_bps": 3e6}
    net.request(**request, splitting="packets", source_ports=[40001])
    before = net.snapshot()
    expected = expected_of(net, FailedElements(links=("S0-S4",)))
    net.break_link("S0-S4")
    same(expected, before, net.snapshot())
    loads = {link.link: link.allocated_after_bps for link in expected.links}
    assert loads["S4->S0"] == 0.0
    assert min(loads["S4->S3"], loads["S3->S2"], loads["S2->S0"]) > 0


def test_switches_that_fail_together_are_as_they_would_be() -> None:
    """Ports of several links go one after the other: the preview is of all of them at once."""
    net = ControlledNetwork.brought_up(BUTTERFLY, replace(Settings(), lease_s=1e6))
    net.request(source="T0", destination="T2", destination_port=5001, rate_bps=3e6, packet_bytes=590)
    expected = expected_of(net, FailedElements(switches=("S4",)))
    (flow,) = expected.flows
    assert flow.outcome == "lost"
    datapath_id = BUTTERFLY.datapath_id("S4")
    for port in sorted(net.core._state.live._live_ports[datapath_id]):
        net.handle(PortWentDown(datapath_id, port))
    (after,) = net.snapshot().flows
    assert after.rate_bps == 0
