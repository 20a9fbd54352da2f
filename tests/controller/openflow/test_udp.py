"""Flows of UDP: requested over REST, gRPC and by the library, and pinned by rules of protocol 17."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

import topologies
from controller.errors import InvalidRequest, RequestError
from controller.model.rules import IP_PROTO_UDP, TcpConnection
from mstcp.control import ControllerClient
from tests.fakes.controller_command import controlled
from tests.fakes.openflow_table import ControlledNetwork, Packet

BUTTERFLY = topologies.load("butterfly")
REQUEST: dict[str, Any] = {
    "source": "T0",
    "destination": "T2",
    "destination_port": 443,
    "rate_bps": 8.5e6,
    "packet_bytes": 590,
    "source_ports": [40001, 40002],
    "protocol": "udp",
}
_IP_PROTO, _UDP_SRC, _UDP_DST = 10, 15, 16


def test_datagrams_take_their_paths_and_tcp_with_the_same_ports_others() -> None:
    net = ControlledNetwork.brought_up(BUTTERFLY)
    flow = net.request(**REQUEST)
    assert flow.protocol == "udp"
    assert len(flow.streams) == 2
    wire = 590 / (590 - 42)
    for stream in flow.streams:
        assert stream.wire_bps == pytest.approx(stream.rate_bps * wire), "42 bytes of headers, no identifiers"
        ends = TcpConnection(
            flow.source_ip, flow.destination_ip, stream.source_port, flow.destination_port, IP_PROTO_UDP
        )
        there, back = Packet.tcp(ends), Packet.tcp(ends.reverse)
        datagram, answer = (replace(each, ip_protocol=IP_PROTO_UDP) for each in (there, back))
        assert net.switches.path(datagram, "T0") == stream.path
        assert net.switches.path(answer, "T2") == stream.path[::-1]
    net.release(net.request(**REQUEST | {"protocol": "tcp", "rate_bps": 1e4}).flow_id)
    with pytest.raises(RequestError, match="is in use"):
        net.request(**REQUEST)
    before = net.snapshot().flows
    net.restart()
    net.come_back()
    assert net.snapshot().flows == before


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"protocol": "sctp"}, "protocol"),
        ({"splitting": "packets", "source_ports": [1]}, "splitting: is for TCP connections"),
        ({"protocol": "tcp", "segment_overhead_bytes": 42}, "segment_overhead_bytes: must be at least 54"),
    ],
)
def test_what_a_flow_of_udp_cannot_have(fields: dict[str, Any], said: str) -> None:
    net = ControlledNetwork.brought_up(BUTTERFLY)
    with pytest.raises(InvalidRequest, match=said):
        net.request(**REQUEST | fields)


async def test_rest_and_the_library_ask_for_udp_and_switches_are_given_its_rules(tmp_path: Path) -> None:
    async with (
        controlled(BUTTERFLY, tmp_path) as (running, fleet),
        ControllerClient(running.grpc) as client,
    ):
        allocation = await client.request(**REQUEST)
        matches = [
            dict(rule.change.match)
            for switch in fleet.switches.values()
            for rule in switch.tables.rules()
            if (_IP_PROTO, b"\x11") in rule.change.match
        ]
        ends = {(fields[_UDP_SRC], fields[_UDP_DST]) for fields in matches}
        expected = {(stream.source_port, 443) for stream in allocation.streams}
        both = expected | {(there, here) for here, there in expected}
        assert ends == {(a.to_bytes(2, "big"), b.to_bytes(2, "big")) for a, b in both}
        async with httpx.AsyncClient(base_url=f"http://{running.rest}") as rest:
            wanted = REQUEST | {"source": "T1", "destination": "T3", "rate_bps": 1e5}
            answer = await rest.post("/v1/flows", json=wanted)
            assert (answer.status_code, answer.json()["protocol"]) == (201, "udp")
            flows = (await rest.get("/v1/flows")).json()
        assert {flow["protocol"] for flow in flows} == {"udp"}
