"""gRPC's single calls and its stream of events: a real server and client, the real core, fake switches."""

import asyncio
import json
from typing import Any

import grpc.aio
import pytest

from controller.api.event_history import EventHistory
from controller.api.grpc_server import ERROR_METADATA
from controller.model.client_events import ClientEvent
from controller.model.settings import Settings
from mstcp.proto import control_pb2, control_pb2_grpc
from tests.fakes.requests import FIRST
from tests.fakes.served_controller import Controller
from tests.fakes.waiting import TIMEOUT_S, until

REQUEST = control_pb2.FlowRequest(**FIRST)


@pytest.fixture
def stub(channel: grpc.aio.Channel) -> Any:
    return control_pb2_grpc.ControllerStub(channel)


async def refused(call: Any) -> tuple[grpc.StatusCode, control_pb2.Error]:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    metadata = dict(raised.value.trailing_metadata() or ())
    return raised.value.code(), control_pb2.Error.FromString(metadata[ERROR_METADATA])


async def test_the_life_of_a_flow(stub: Any) -> None:
    flow = await stub.RequestFlow(control_pb2.FlowRequest(**FIRST, streams=3, lease_s=77.0))
    assert (len(flow.streams), flow.lease_s, flow.rate_bps) == (3, 77.0, 8.5e6)
    listed = await stub.ListFlows(control_pb2.ListFlowsRequest(source="T0"))
    assert (listed.total, listed.flows[0].allocation) == (1, flow)
    changed = await stub.ChangeFlow(control_pb2.FlowChange(flow_id=flow.flow_id, rate_bps=1e6))
    assert (changed.rate_bps, changed.revision > flow.revision) == (1e6, True)
    stale = control_pb2.FlowChange(flow_id=flow.flow_id, rate_bps=2e6, if_revisions=[flow.revision])
    code, error = await refused(stub.ChangeFlow(stale))
    assert (code, error.code) == (grpc.StatusCode.ABORTED, control_pb2.Error.PRECONDITION_FAILED)
    renewed = await stub.RenewFlows(control_pb2.LeaseRenewal(flow_ids=[flow.flow_id, "nothing"]))
    assert (list(renewed.flow_ids), list(renewed.unknown)) == ([flow.flow_id], ["nothing"])
    await stub.ReleaseFlow(control_pb2.FlowRelease(flow_id=flow.flow_id))
    assert (await stub.ListFlows(control_pb2.ListFlowsRequest())).total == 0


async def test_pages(stub: Any) -> None:
    for port in range(6000, 6005):
        fields = FIRST | {"destination_port": port, "rate_bps": 1e5}
        await stub.RequestFlow(control_pb2.FlowRequest(**fields))
    after, ports = 0, []
    while True:
        page = await stub.ListFlows(control_pb2.ListFlowsRequest(limit=2, after=after))
        ports += [flow.destination_port for flow in page.flows]
        after = page.next_after
        if not after:
            break
    assert ports == list(range(6000, 6005))


async def test_refusals_have_a_status_and_say_why(stub: Any) -> None:
    code, error = await refused(stub.RequestFlow(control_pb2.FlowRequest(source="T9")))
    assert (code, error.code) == (grpc.StatusCode.INVALID_ARGUMENT, control_pb2.Error.INVALID)
    assert (error.field, bool(error.reason)) == ("destination", True)
    code, error = await refused(stub.ReleaseFlow(control_pb2.FlowRelease(flow_id="nothing")))
    assert (code, error.field) == (grpc.StatusCode.NOT_FOUND, "flow_id")


async def test_a_call_whose_deadline_passes_or_whose_client_leaves_is_undone(
    stub: Any, controller: Controller
) -> None:
    await controller.service.links()
    controller.core._state.settings = Settings(confirm_timeout_s=60)
    controller.silent = True
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await stub.RequestFlow(REQUEST, timeout=0.2)
    assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await until(lambda: not len(controller.core._state.flows))
    call = stub.RequestFlow(REQUEST)
    await until(lambda: len(controller.core._state.flows) == 1)
    call.cancel()
    await until(lambda: not len(controller.core._state.flows))


async def test_preview(stub: Any) -> None:
    flow = await stub.RequestFlow(REQUEST)
    answer = await stub.Preview(control_pb2.PreviewRequest(fail={"links": ["S3-S4"]}, add=[REQUEST]))
    (moved,) = answer.flows
    assert (moved.flow_id, moved.rate_before_bps) == (flow.flow_id, 8.5e6)
    assert moved.rate_after_bps < 5e6
    assert (answer.summary.flows, answer.summary.refused) == (1, 1)
    (added,) = answer.added
    assert (added.granted, added.refusal.code) == (False, control_pb2.Error.INFEASIBLE)
    assert {link.link for link in answer.links if not link.up} == {"S3->S4", "S4->S3"}
    code, error = await refused(stub.Preview(control_pb2.PreviewRequest(fail={"links": ["S3-S9"]})))
    assert (code, error.field) == (grpc.StatusCode.NOT_FOUND, "fail.links")


async def test_watching(stub: Any, controller: Controller) -> None:
    await controller.service.links()  # the network is up: what happens from now on is the flow's
    watch = stub.Watch(control_pb2.WatchRequest(past=1))
    first = await asyncio.wait_for(watch.read(), TIMEOUT_S)
    flow = await stub.RequestFlow(REQUEST)
    granted = await asyncio.wait_for(watch.read(), TIMEOUT_S)
    assert (granted.kind, json.loads(granted.data_json)["flow"]) == ("flow_granted", flow.flow_id)
    watch.cancel()
    again = stub.Watch(control_pb2.WatchRequest(last_event_id=first.id))
    assert await asyncio.wait_for(again.read(), TIMEOUT_S) == granted
    again.cancel()
    lost = stub.Watch(control_pb2.WatchRequest(last_event_id="another-start-7"))
    assert (await asyncio.wait_for(lost.read(), TIMEOUT_S)).kind == "history_lost"
    lost.cancel()


async def test_a_watcher_that_does_not_read_is_cut_off_and_fills_no_memory(
    stub: Any, controller: Controller
) -> None:
    history = controller.service.history = EventHistory("boot", capacity=1000)
    watch = stub.Watch(control_pb2.WatchRequest())
    text = "x" * 1000
    read = asyncio.ensure_future(watch.read())
    await asyncio.sleep(0.1)
    for start in range(1, 20_001, 100):
        for number in range(start, start + 100):
            history.append(ClientEvent(number, "link_up", 0.0, text, {}))
        await asyncio.sleep(0)  # the server writes until the connection is full
    await read
    assert len(history._events) == 1000
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        while await asyncio.wait_for(watch.read(), TIMEOUT_S) is not grpc.aio.EOF:
            pass
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "reads too slowly" in (raised.value.details() or "")


async def test_links_are_listed(stub: Any) -> None:
    links = (await stub.ListLinks(control_pb2.ListLinksRequest())).links
    assert len(links) == 22
    assert not any(link.HasField("measured_bps") for link in links), "no counters are read here"
    both = (await stub.ListLinks(control_pb2.ListLinksRequest(link="S4-S0"))).links
    assert {link.link for link in both} == {"S0->S4", "S4->S0"}
    assert all(link.capacity_bps == link.free_bps > 0 for link in both)
    code, error = await refused(stub.ListLinks(control_pb2.ListLinksRequest(link="S0-S9")))
    assert (code, error.field) == (grpc.StatusCode.NOT_FOUND, "link")


async def test_streams_that_come_and_go_are_for_sessions(stub: Any) -> None:
    request = control_pb2.FlowRequest(**FIRST, source_ports=[1, 2], may_grow=True)
    code, error = await refused(stub.RequestFlow(request))
    assert (code, error.field) == (grpc.StatusCode.INVALID_ARGUMENT, "may_grow")
