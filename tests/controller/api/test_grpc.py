"""The control channel over loopback: a real gRPC server and client, the real core, fake switches."""

import asyncio
import hashlib
import ipaddress
import random
from typing import Any

import grpc.aio
import pytest

import mstcp
import topologies
from controller.api import grpc_server
from controller.api.grpc_server import MAX_UNSENT
from controller.model.events import FlowsRequested
from controller.model.requests import FlowQuery
from controller.model.settings import Settings
from controller.model.views import FlowPage
from controller.state.flow import Flow
from mstcp.control import ControllerClient
from mstcp.proto import control_pb2, control_pb2_grpc
from tests.fakes.requests import FIRST
from tests.fakes.served_controller import Controller
from tests.fakes.waiting import TIMEOUT_S, until


@pytest.fixture
def hosts_on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the hosts addresses of this machine, so that real connections can run between them."""
    monkeypatch.setitem(topologies.model.DATA_NETWORKS, 4, ipaddress.IPv4Network("127.0.0.0/16"))


def flows(controller: Controller) -> list[Flow]:
    return list(controller.core._state.flows)


class Session:
    """A client's end of a session."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.call: Any = control_pb2_grpc.FlowControlStub(channel).Session()

    async def send(self, request_id: int = 0, **body: Any) -> None:
        await self.call.write(control_pb2.ClientMessage(request_id=request_id, **body))

    async def receive(self) -> control_pb2.ServerMessage:
        message = await asyncio.wait_for(self.call.read(), TIMEOUT_S)
        assert isinstance(message, control_pb2.ServerMessage), "the session ended"
        return message

    async def ask(self, request_id: int, **body: Any) -> control_pb2.ServerMessage:
        await self.send(request_id, **body)
        message = await self.receive()
        assert message.request_id == request_id
        return message


def flow_request(**fields: Any) -> control_pb2.FlowRequest:
    wanted = FIRST | {"source": "10.0.0.1", "source_ports": [40001, 40002, 40003]}
    return control_pb2.FlowRequest(**wanted | fields)


async def test_the_life_of_a_flow(channel: grpc.aio.Channel) -> None:
    session = Session(channel)
    allocation = (await session.ask(5, request=flow_request())).allocation
    assert allocation.flow_id == "f-1"
    assert (allocation.requested_bps, allocation.rate_bps, allocation.lease_s) == (8.5e6, 8.5e6, 30.0)
    assert [stream.source_port for stream in allocation.streams] == [40001, 40002]
    assert list(allocation.streams[0].path) == ["T0", "S0", "S4", "T2"]
    assert allocation.streams[0].delay_s == pytest.approx(0.003)
    assert not allocation.HasField("split")

    change = control_pb2.FlowChange(flow_id="f-1", rate_bps=1e6)
    assert (await session.ask(6, change=change)).allocation.rate_bps == 1e6

    release = control_pb2.FlowRelease(flow_id="f-1")
    assert (await session.ask(7, release=release)).released.flow_id == "f-1"
    assert (await session.ask(8, release=release)).released.flow_id == "f-1"
    await session.call.done_writing()
    assert await session.call.read() == grpc.aio.EOF


async def test_paths_given_by_hand(channel: grpc.aio.Channel) -> None:
    path = control_pb2.RequestedPath(nodes=["T0", "S0", "S2", "S3", "S4", "T2"], rate_bps=4e6)
    answer = await Session(channel).ask(1, request=flow_request(rate_bps=0, paths=[path]))
    (stream,) = answer.allocation.streams
    assert (stream.source_port, stream.rate_bps) == (40001, 4e6)
    assert list(stream.path) == list(path.nodes)


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        ({"destination": "T9"}, control_pb2.Error.NOT_FOUND, "destination"),
        ({"destination": ""}, control_pb2.Error.INVALID, "destination"),
        ({"rate_bps": 0}, control_pb2.Error.INVALID, "rate_bps"),
        ({"rate_bps": float("inf")}, control_pb2.Error.INVALID, "rate_bps"),
        ({"destination_port": 0}, control_pb2.Error.INVALID, "destination_port"),
        ({"source_ports": [1, 1]}, control_pb2.Error.INVALID, "source_ports"),
        ({"source_ports": [70000]}, control_pb2.Error.INVALID, "source_ports[0]"),
        ({"max_paths": 100}, control_pb2.Error.INVALID, "max_paths"),
        ({"splitting": "bytes"}, control_pb2.Error.INVALID, "splitting"),
        ({"splitting": "group"}, control_pb2.Error.INVALID, "source_ports"),
        ({"ack_path": "reverse:0"}, control_pb2.Error.INVALID, "ack_path"),
    ],
)
async def test_refusals(channel: grpc.aio.Channel, fields: dict[str, Any], code: int, field: str) -> None:
    error = (await Session(channel).ask(3, request=flow_request(**fields))).error
    assert (error.code, error.field) == (code, field)
    assert error.reason


async def test_a_message_without_a_body_and_a_change_to_nothing(channel: grpc.aio.Channel) -> None:
    session = Session(channel)
    assert (await session.ask(1)).error.code == control_pb2.Error.INVALID
    change = control_pb2.FlowChange(flow_id="f-1", rate_bps=-1)
    assert (await session.ask(2, change=change)).error.field == "rate_bps"
    change = control_pb2.FlowChange(flow_id="f-1", rate_bps=1)
    assert (await session.ask(3, change=change)).error.code == control_pb2.Error.NOT_FOUND


async def test_changed_rates_are_pushed_to_the_session_of_the_flow(channel: grpc.aio.Channel) -> None:
    two, one = Session(channel), Session(channel)
    before = await two.ask(1, request=flow_request(source="T1", destination="T3", rate_bps=31.32e6))
    await one.ask(1, request=flow_request(rate_bps=8.95e6))
    notification = await two.receive()
    assert notification.request_id == 0
    allocation = notification.changed.allocation
    assert allocation.flow_id == before.allocation.flow_id
    assert [list(s.path) for s in allocation.streams] == [list(s.path) for s in before.allocation.streams]
    assert [s.rate_bps for s in allocation.streams] != [s.rate_bps for s in before.allocation.streams]


@pytest.mark.usefixtures("hosts_on_loopback")
async def test_a_running_connection_gives_way_to_another_and_its_application_hears(address: str) -> None:
    heard: asyncio.Queue[mstcp.AllocationChanged] = asyncio.Queue()

    async def connect(
        source: str, destination: str, rate_bps: float, **options: Any
    ) -> mstcp.ConnectionTransport:
        transport, _ = await mstcp.create_connection(
            asyncio.Protocol,
            destination,
            port,
            source_address=source,
            rate=rate_bps,
            controller=address,
            packet_bytes=590,
            **options,
        )
        return transport

    async with await mstcp.create_server(asyncio.Protocol, "0.0.0.0") as server:
        port = server.sockets[0].getsockname()[1]
        one = await connect("127.0.0.2", "127.0.0.4", 31.32e6, on_allocation_changed=heard.put_nowait)
        before = one.get_extra_info("allocation")
        two = await connect("127.0.0.1", "127.0.0.3", 8.95e6)
        event = await asyncio.wait_for(heard.get(), TIMEOUT_S)
        after = one.get_extra_info("allocation")
        assert event == mstcp.AllocationChanged(before, after)
        assert [stream.rate_bps for stream in one.streams()] == [s.rate_bps for s in after.streams]
        assert [s.path for s in after.streams] == [s.path for s in before.streams]
        assert [s.rate_bps for s in after.streams] != [s.rate_bps for s in before.streams]
        for transport in (one, two):
            transport.close()
            await transport.wait_closed()


async def test_a_session_that_breaks_leaves_its_flows_to_another_that_renews_them(
    channel: grpc.aio.Channel, controller: Controller
) -> None:
    first = Session(channel)
    await first.ask(1, request=flow_request())
    first.call.cancel()
    second = Session(channel)
    await second.send(renewal=control_pb2.LeaseRenewal(flow_ids=["f-1", "f-7"]))
    ended = (await second.receive()).ended
    assert (ended.flow_id, "no such flow" in ended.reason) == ("f-7", True)
    page, _ = await controller.service.ask(lambda token: FlowsRequested(token, FlowQuery(limit=9)), FlowPage)
    assert [flow.flow_id for flow in page.flows] == ["f-1"]
    await second.ask(2, request=flow_request(source="T1", destination="T3", rate_bps=9e6))
    change = control_pb2.FlowChange(flow_id="f-2", rate_bps=31.32e6)
    await second.ask(3, change=change)


async def test_many_requests_as_one_message(channel: grpc.aio.Channel) -> None:
    """Each is answered for itself; who sends bundles gets them too, and others never do."""
    stub: Any = control_pb2_grpc.FlowControlStub(channel)
    call, count = stub.Session(), 300
    requests = [
        control_pb2.ClientMessage(
            request_id=number, request=flow_request(source_ports=[10000 + number], rate_bps=1e3, max_paths=1)
        )
        for number in range(1, count + 1)
    ]
    requests[7].request.rate_bps = -1.0
    requests.append(control_pb2.ClientMessage(request_id=count + 1, bundle=control_pb2.ClientBundle()))
    await call.write(control_pb2.ClientMessage(bundle=control_pb2.ClientBundle(messages=requests)))
    answers: dict[int, str | None] = {}
    received = 0
    while len(answers) < count + 1:
        message = await asyncio.wait_for(call.read(), TIMEOUT_S)
        received += 1
        for each in message.bundle.messages if message.HasField("bundle") else (message,):
            assert each.request_id not in answers
            answers[each.request_id] = each.WhichOneof("body")
    refused = {number for number, body in answers.items() if body == "error"}
    assert refused == {8, count + 1}, "a wrong rate, and a bundle in a bundle"
    assert received < count
    other = stub.Session()
    for number in range(5):
        request = flow_request(source_ports=[20000 + number], rate_bps=1e3)
        await other.write(control_pb2.ClientMessage(request_id=number + 1, request=request))
    for _ in range(5):
        assert (await asyncio.wait_for(other.read(), TIMEOUT_S)).WhichOneof("body") == "allocation"


async def test_a_split_flow_and_its_new_shares(channel: grpc.aio.Channel) -> None:
    session = Session(channel)
    path = control_pb2.RequestedPath(nodes=["T0", "S0", "S4", "T2"], rate_bps=4e6)
    await session.ask(1, request=flow_request(rate_bps=0, paths=[path], destination_port=80))
    # Path 0 is nearly full, so most of the split flow takes path 1, until the other flow ends.
    split_request = flow_request(splitting="packets", source_ports=[40001], rate_bps=4e6)
    before = (await session.ask(2, request=split_request)).allocation
    assert [stream.source_port for stream in before.streams] == [40001, 40001]
    assert (before.split.ingress.switch, before.split.ingress.port) == ("S0", 1)
    assert list(before.split.stamps) == ["0a:50:50:00:02:00", "0a:50:50:00:02:01"]
    assert before.split.acks == "shortest"
    assert list(before.split.shares) == pytest.approx([s.rate_bps / 4e6 for s in before.streams])
    await session.send(3, release=control_pb2.FlowRelease(flow_id="f-1"))
    answers = [await session.receive() for _ in range(2)]
    (changed,) = [answer.changed.allocation for answer in answers if answer.HasField("changed")]
    assert list(changed.split.shares) == pytest.approx([1.0, 0.0])
    assert list(changed.split.stamps) == list(before.split.stamps)


async def test_a_client_that_does_not_read_fills_no_memory_and_is_sent_away(
    channel: grpc.aio.Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued: list[int] = []
    put = grpc_server._Session._put

    def counted(session: Any, message: Any) -> None:
        if message is not None:
            queued.append(len(session._unsent))
        put(session, message)

    monkeypatch.setattr(grpc_server._Session, "_put", counted)
    stub: Any = control_pb2_grpc.FlowControlStub(channel)
    call = stub.Session()
    unknown = [f"nothing-{number}" for number in range(10 * MAX_UNSENT)]
    await call.write(control_pb2.ClientMessage(renewal=control_pb2.LeaseRenewal(flow_ids=unknown)))
    await until(lambda: len(queued) >= MAX_UNSENT)
    with pytest.raises(grpc.aio.AioRpcError, match="left unread"):
        async for _ in call:
            pass
    assert max(queued) < MAX_UNSENT


async def test_what_was_asked_in_a_session_that_broke_before_the_answer_is_undone(
    channel: grpc.aio.Channel, controller: Controller
) -> None:
    controller.core._state.settings = Settings(confirm_timeout_s=60)
    controller.silent = True
    stub: Any = control_pb2_grpc.FlowControlStub(channel)
    call = stub.Session()
    request = control_pb2.FlowRequest(source="T0", destination="T2", destination_port=5001, rate_bps=1e6)
    await call.write(control_pb2.ClientMessage(request_id=1, request=request))
    await until(lambda: bool(flows(controller)))
    call.cancel()
    await until(lambda: not flows(controller))


@pytest.mark.usefixtures("hosts_on_loopback")
async def test_a_running_connection_opens_and_closes_streams_as_the_controller_says(
    controller: Controller, address: str
) -> None:
    got, ended = hashlib.sha256(), asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            got.update(data)
        ended.set()
        writer.close()

    async def write(count: int) -> None:
        for _ in range(count):
            data = draw.randbytes(5000)
            sent.update(data)
            writer.write(data)
            await writer.drain()

    draw, sent = random.Random(1), hashlib.sha256()
    async with (
        ControllerClient(address) as client,
        await mstcp.start_server(take, "0.0.0.0") as server,
    ):
        _, writer = await mstcp.open_connection(
            "127.0.0.3",
            server.sockets[0].getsockname()[1],
            source_address="127.0.0.1",
            rate=4e6,
            packet_bytes=590,
            controller=client,
            may_grow=True,
        )
        transport = writer.transport
        assert isinstance(transport, mstcp.ConnectionTransport)
        flow_id = transport.get_extra_info("allocation").flow_id
        assert transport.alive_streams == 1
        await write(20)
        await client.change(flow_id, 8.5e6)
        await until(lambda: transport.alive_streams == 2)
        await until(lambda: [s.state.value for s in flows(controller)[0].streams] == ["open", "open"])
        await write(60)
        assert all(stream.bytes_sent > 0 for stream in transport.counters().streams)
        await client.change(flow_id, 4e6)
        await until(lambda: transport.alive_streams == 1)
        await until(lambda: not flows(controller)[0].leaving)
        assert len(flows(controller)[0].spare_ports) == 3
        await write(20)
        writer.close()
        await writer.wait_closed()
        await ended.wait()
    assert got.digest() == sent.digest()
    assert flows(controller) == []


async def test_spare_ports_that_are_none_are_refused_and_a_right_report_is_not_answered(
    channel: grpc.aio.Channel,
) -> None:
    session = Session(channel)
    flow = (await session.ask(1, request=flow_request(may_grow=True))).allocation
    report = control_pb2.StreamsReport(flow_id=flow.flow_id, spare_ports=[70000])
    refusal = await session.ask(2, streams=report)
    assert refusal.error.field == "spare_ports"
    await session.send(3, streams=control_pb2.StreamsReport(flow_id=flow.flow_id, spare_ports=[40003]))
    released = await session.ask(4, release=control_pb2.FlowRelease(flow_id=flow.flow_id))
    assert released.released.flow_id == flow.flow_id
