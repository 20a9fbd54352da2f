"""The control client against a scripted controller over real gRPC."""

from __future__ import annotations

import asyncio
import queue
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
import trustme

import mstcp
from mstcp import StreamWriter
from mstcp.aio.connect_context import ConnectContext
from mstcp.background import background
from mstcp.control import ControllerAddress, ControllerClient
from mstcp.proto import control_pb2 as pb
from tests.fakes.connections import serving
from tests.fakes.flow_controller import FlowController, split_evenly
from tests.fakes.tcp_server import tcp_server, wire
from tests.fakes.waiting import until

Connect = Callable[..., ConnectContext]


async def drain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(1 << 16):
        pass
    writer.close()


@pytest.fixture
async def controller() -> AsyncIterator[FlowController]:
    async with FlowController() as served:
        yield served


@pytest.fixture
async def connect(controller: FlowController) -> AsyncIterator[Connect]:
    """Return what connects to a sink, at 8 Mbit/s that the controller is asked for."""
    async with serving(drain) as (host, port):
        yield partial(mstcp.open_connection, host, port, rate=8e6, controller=controller.address)


def has_rate(writer: StreamWriter, rate_bps: float) -> bool:
    return bool(writer.get_extra_info("streams")[0].rate_bps == rate_bps)


def ports_of(writer: StreamWriter) -> list[int]:
    return [stream.source_port for stream in writer.get_extra_info("streams")]


async def test_the_allocation_is_what_gets_connected_and_is_released_at_the_end(
    connect: Connect, controller: FlowController
) -> None:
    async with connect(packet_bytes=590, objective="fair", max_paths=3) as (_, writer):
        request = controller.requests[0]
        streams = writer.get_extra_info("streams")
        assert [stream.source_port for stream in streams] == list(request.source_ports[:2])
        assert [stream.rate_bps for stream in streams] == [4e6, 4e6]
        assert [stream.path for stream in streams] == [("T0", "S0", "T2"), ("T0", "S1", "T2")]
        assert (request.source, request.destination) == ("127.0.0.1", "127.0.0.1")
        assert (request.destination_port, request.packet_bytes, request.objective) == (
            writer.get_extra_info("peername")[1],
            590,
            "fair",
        )
        assert len(set(request.source_ports)) == 3
        assert request.segment_overhead_bytes in (54, 66)
        assert writer.get_extra_info("allocation").flow_id == "flow-1"
        assert controller.released == []
    assert controller.released == ["flow-1"]


async def test_one_allocated_stream_is_plain_tcp() -> None:
    got: list[bytes] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await reader.read())

    # Not our server: any TCP server can be the peer.
    async with (
        tcp_server(take) as port,
        FlowController(lambda request: split_evenly(request, 1)) as controller,
    ):
        reader, writer = await mstcp.open_connection(
            "127.0.0.1", port, rate=1e9, controller=controller.address
        )
        assert writer.get_extra_info("protocol") == "tcp"
        writer.write(b"just this")
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
    assert got == [b"just this"]


async def test_paths_given_by_hand_are_asked_for(connect: Connect, controller: FlowController) -> None:
    paths = [mstcp.RequestedPath(("T0", "S0", "T2"), 3e6), mstcp.RequestedPath(("T0", "S2", "T2"), 1e6)]
    async with connect(rate=None, paths=paths):
        request = controller.requests[0]
        assert [tuple(path.nodes) for path in request.paths] == [path.nodes for path in paths]
        assert request.rate_bps == 4e6
        assert len(request.source_ports) == 2


@pytest.mark.parametrize("code", ["INVALID", "NOT_FOUND", "CONFLICT", "INFEASIBLE", "UNAVAILABLE"])
async def test_a_refusal_tells_code_field_and_reason(code: str) -> None:
    error = pb.ServerMessage(error=pb.Error(code=code, field="rate_bps", reason="too much"))
    async with FlowController(lambda request: error) as controller:
        with pytest.raises(mstcp.ControllerError, match=rf"{code} \(rate_bps\): too much") as caught:
            await mstcp.open_connection("127.0.0.1", 9, rate=8e6, controller=controller.address)
        assert (caught.value.code, caught.value.field) == (code, "rate_bps")
        assert controller.released == []


async def test_an_allocation_that_cannot_be_connected_is_released() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        async with FlowController() as controller:
            with pytest.raises(ConnectionRefusedError):
                await mstcp.open_connection("127.0.0.1", port, rate=8e6, controller=controller.address)
            assert controller.released == ["flow-1"]


async def test_an_allocation_of_ports_not_ours_is_refused() -> None:
    def foreign(request: pb.FlowRequest) -> pb.ServerMessage:
        answer = split_evenly(request)
        answer.allocation.streams[0].source_port = 1
        return answer

    async with FlowController(foreign) as controller:
        with pytest.raises(mstcp.ControllerError, match="not those asked for"):
            await mstcp.open_connection("127.0.0.1", 9, rate=8e6, controller=controller.address)
        assert controller.released == ["flow-1"]


async def test_a_change_of_the_allocation_changes_the_split(
    connect: Connect, controller: FlowController
) -> None:
    async with connect(rate=1e9, seed=1) as (_, writer):
        transport = writer.transport
        first, second = ports_of(writer)
        controller.reallocate({first: 0.0, second: 1e9})
        await until(lambda: transport.streams()[0].rate_bps == 0)
        before = transport.counters().streams
        for _ in range(100):
            writer.write(bytes(1000))
            await writer.drain()
        after = transport.counters().streams
        assert after[0].bytes_sent == before[0].bytes_sent
        assert after[1].bytes_sent > before[1].bytes_sent
        assert writer.get_extra_info("allocation").rate_bps == 1e9


async def test_the_application_hears_of_changes_after_they_were_made(
    connect: Connect, controller: FlowController
) -> None:
    heard: asyncio.Queue[mstcp.AllocationChanged] = asyncio.Queue()
    async with connect(on_allocation_changed=heard.put_nowait) as (_, writer):
        first = writer.get_extra_info("allocation")
        controller.reallocate(dict(zip(ports_of(writer), (3e6, 1e6), strict=True)))
        event = await heard.get()
        assert (event.before, event.after, event.reason) == (first, writer.get_extra_info("allocation"), "")
        assert event.after is not None and event.after.rate_bps == 4e6
        assert [stream.rate_bps for stream in writer.get_extra_info("streams")] == [3e6, 1e6]
        controller.end_flow("host moved")
        assert await heard.get() == mstcp.AllocationChanged(event.after, None, "host moved")
        assert writer.get_extra_info("allocation") is None
        assert [stream.rate_bps for stream in writer.get_extra_info("streams")] == [3e6, 1e6]
    assert heard.empty()


async def test_rates_that_cannot_be_are_no_change(
    connect: Connect, controller: FlowController, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[mstcp.AllocationChanged] = []
    async with connect(on_allocation_changed=heard.append) as (_, writer):
        first = writer.get_extra_info("allocation")
        for rate_bps in (0.0, 1e6):
            controller.reallocate(dict.fromkeys(ports_of(writer), rate_bps))
        await until(lambda: heard)
        assert "keeps its rates" in caplog.text
        assert [event.before for event in heard] == [first]


async def test_a_callback_that_fails_is_the_applications_and_breaks_nothing(
    connect: Connect, controller: FlowController
) -> None:
    problems: list[object] = []

    def fail(event: mstcp.AllocationChanged) -> None:
        raise ValueError(event.reason)

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: problems.append(context["exception"]))
    async with connect(on_allocation_changed=fail) as (_, writer):
        for rate_bps in (1e6, 2e6):
            controller.reallocate(dict.fromkeys(ports_of(writer), rate_bps))
        await until(lambda: len(problems) == 2)
        assert all(isinstance(problem, ValueError) for problem in problems)
        assert writer.get_extra_info("allocation").rate_bps == 4e6


async def test_what_changes_while_the_streams_are_connected_is_known_when_they_are(
    controller: FlowController, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[mstcp.AllocationChanged] = []
    ready = asyncio.Event()
    asking: dict[str, Any] = {"rate": 8e6, "controller": controller.address}
    async with serving(drain) as (host, port), wire(ready, port) as slow_port:
        opening = asyncio.create_task(
            mstcp.open_connection(host, slow_port, **asking, on_allocation_changed=heard.append)
        )
        await controller.wait_for(lambda: controller.renewed)  # so it has the allocation
        ports = controller.requests[0].source_ports[:2]
        controller.reallocate(dict(zip(ports, (3e6, 1e6), strict=True)))
        controller.end_flow("host moved")
        await until(lambda: "host moved" in caplog.text)
        ready.set()
        _, writer = await opening
        assert writer.get_extra_info("allocation") is None
        assert heard == []
        writer.close()
        await writer.wait_closed()


def test_a_blocking_application_hears_of_changes_in_the_librarys_thread() -> None:
    heard: queue.Queue[tuple[mstcp.AllocationChanged, str]] = queue.Queue()

    async def started() -> FlowController:
        controller = FlowController()
        await controller.start("127.0.0.1:0")
        return controller

    loop = background()
    controller = loop.run(started())
    with (
        mstcp.blocking.create_server(("127.0.0.1", 0)) as listener,
        mstcp.blocking.create_connection(
            listener.getsockname(),
            timeout=20,
            rate=8e6,
            controller=controller.address,
            on_allocation_changed=lambda event: heard.put((event, threading.current_thread().name)),
        ) as sock,
    ):
        ports = [stream.source_port for stream in sock.streams()]
        loop.call(lambda: controller.reallocate(dict.fromkeys(ports, 1e6)))
        event, thread = heard.get(timeout=20)
        assert event.after == sock.get_extra_info("allocation")
        assert thread == "mstcp"
    loop.run(controller.stop())


async def test_the_client_changes_the_rate_of_a_running_connection(
    connect: Connect, controller: FlowController
) -> None:
    async with ControllerClient(controller.address) as client, connect(controller=client) as (_, writer):
        allocation = await client.change(writer.get_extra_info("allocation").flow_id, 2e6)
        assert allocation.rate_bps == 2e6
        assert [stream.rate_bps for stream in writer.get_extra_info("streams")] == [1e6, 1e6]
    assert controller.released == ["flow-1"]


async def test_leases_are_renewed_while_the_connection_is_open(
    connect: Connect, controller: FlowController
) -> None:
    async with connect():
        await controller.wait_for(lambda: len(controller.renewed) >= 3)
        assert controller.renewed[0] == ["flow-1"]


async def test_the_connection_outlives_the_controller_and_the_lease_is_taken_up_again(
    connect: Connect, controller: FlowController, caplog: pytest.LogCaptureFixture
) -> None:
    async with connect() as (_, writer):
        await controller.stop()
        writer.write(b"still works")
        await writer.drain()
        controller.renewed.clear()
        await controller.start(controller.address)
        await controller.wait_for(lambda: controller.sessions == 2 and controller.renewed)
        assert "connecting again" in caplog.text
    assert controller.released == ["flow-1"]


async def test_the_back_off_begins_again_after_a_session_that_worked(
    connect: Connect, controller: FlowController, caplog: pytest.LogCaptureFixture
) -> None:
    async with connect() as (_, writer):
        ports = ports_of(writer)
        for round_number in range(3):
            caplog.clear()
            await controller.stop()
            await until(lambda: "connecting again" in caplog.text)
            assert "connecting again in 0.1 s" in caplog.messages[0]
            await controller.start(controller.address)
            await controller.wait_for(lambda: controller.sessions == round_number + 2)  # noqa: B023
            rate_bps = 1e6 + round_number
            controller.reallocate(dict.fromkeys(ports, rate_bps))
            await until(partial(has_rate, writer, rate_bps))


async def test_an_address_may_say_what_the_controller_knows_us_by(
    connect: Connect, controller: FlowController
) -> None:
    address = ControllerAddress(controller.address, token="ours")
    async with connect(controller=address):
        assert controller.metadata[0]["authorization"] == "Bearer ours"
    assert controller.released == ["flow-1"]
    assert "ours" not in repr(address)


async def test_closing_without_a_controller_is_no_error(connect: Connect, controller: FlowController) -> None:
    async with ControllerClient(controller.address, timeout_s=20) as client, connect(controller=client):
        await controller.stop()


async def test_a_flow_that_the_controller_ends_goes_on_without_it(
    connect: Connect, controller: FlowController, caplog: pytest.LogCaptureFixture
) -> None:
    async with connect() as (_, writer):
        controller.end_flow("host moved")
        await until(lambda: writer.get_extra_info("allocation") is None)
        assert "host moved" in caplog.text
        writer.write(b"on")
    assert controller.released == []


async def test_a_controller_that_is_not_there_is_unavailable() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(mstcp.ControllerError, match=r"UNAVAILABLE.*cannot reach"):
            await mstcp.open_connection("127.0.0.1", 9, rate=8e6, controller=address)
        with pytest.raises(mstcp.ControllerError, match=r"UNAVAILABLE"):
            several = ControllerAddress(f"{address},{address}", timeout_s=0.5)
            await mstcp.open_connection("127.0.0.1", 9, rate=8e6, controller=several)
    with pytest.raises(mstcp.LocalProtocolError, match=r"controller: '10\.0\.0\.2' is not HOST:PORT"):
        await mstcp.open_connection("127.0.0.1", 9, rate=8e6, controller="10.0.0.1:50051,10.0.0.2")


async def test_of_several_controllers_the_one_that_leads_is_asked_and_the_next_one_after_it() -> None:
    async with FlowController() as first, FlowController() as second:
        first.leads = False
        gone = "127.0.0.1:1"
        async with ControllerClient(",".join((gone, first.address, second.address))) as client:
            request = {"source": "T0", "destination": "T2", "destination_port": 1, "source_ports": (2, 3)}
            allocation = await client.request(**request, rate_bps=8e6)  # type: ignore[arg-type]
            assert (first.requests, len(second.requests)) == ([], 1)
            first.leads, second.leads = True, False
            await second.stop()
            await first.wait_for(lambda: first.renewed and first.renewed[-1] == [allocation.flow_id])
            running = [repr(task) for task in asyncio.all_tasks()]
            assert sum("_consume_request_iterator" in task for task in running) == 1, "ended sessions read on"


async def test_a_controller_that_is_cut_off_is_left_for_another(controller: FlowController) -> None:
    """Its connections stay and nothing comes over them any more, as from a machine without power."""
    is_open = asyncio.Event()
    is_open.set()
    port = int(controller.address.split(":")[1])
    async with wire(is_open, port) as start, FlowController() as second:
        address = f"127.0.0.1:{start}"
        async with ControllerClient(f"{address}, {second.address}") as client:
            request = {"source": "T0", "destination": "T2", "destination_port": 1, "source_ports": (2, 3)}
            allocation = await client.request(**request, rate_bps=8e6)  # type: ignore[arg-type]
            is_open.clear()
            await second.wait_for(lambda: [allocation.flow_id] in second.renewed)
            assert second.requests == []


async def test_a_late_allocation_is_given_back() -> None:
    async with (
        FlowController(lambda request: None) as controller,
        ControllerClient(controller.address, timeout_s=0.2) as client,
    ):
        with pytest.raises(mstcp.ControllerError, match=r"did not answer within 0\.2 s"):
            await client.request(
                source="T0", destination="T2", destination_port=1, source_ports=[2, 3], rate_bps=1e6
            )
        late = split_evenly(controller.requests[0])
        late.request_id = 1
        controller.send(late)
        await controller.wait_for(lambda: controller.released == ["flow-1"])


async def test_arguments_that_contradict_each_other() -> None:
    streams = [mstcp.StreamSpec(rate_bps=1e6)]
    path = [mstcp.RequestedPath(("T0", "T2"), 1e6)]
    with pytest.raises(mstcp.LocalProtocolError, match="not both"):
        await mstcp.open_connection("127.0.0.1", 9, controller="x:1", streams=streams)
    with pytest.raises(mstcp.LocalProtocolError, match="needs a rate"):
        await mstcp.open_connection("127.0.0.1", 9, controller="x:1")
    with pytest.raises(mstcp.LocalProtocolError, match="for a controller"):
        await mstcp.open_connection("127.0.0.1", 9, paths=path)
    with pytest.raises(mstcp.LocalProtocolError, match="on_allocation_changed are for a controller"):
        await mstcp.open_connection("127.0.0.1", 9, on_allocation_changed=print)
    with pytest.raises(mstcp.LocalProtocolError, match="must be a plain function"):
        await mstcp.open_connection("127.0.0.1", 9, on_allocation_changed=drain)  # type: ignore[arg-type]
    with pytest.raises(mstcp.LocalProtocolError, match="leave rate out"):
        await mstcp.open_connection("127.0.0.1", 9, rate=1e6, streams=streams)


@pytest.mark.parametrize("module", ["grpc.aio", "google.protobuf.message"])
async def test_without_its_packages_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(mstcp.DependencyMissing, match=r"pip install 'mstcp\[control\]'"):
        await mstcp.open_connection("127.0.0.1", 9, rate=8e6, controller="127.0.0.1:1")


async def test_a_controller_without_tls_is_told_from_one_that_is_not_there(tmp_path: Path) -> None:
    """A plain server answers TLS's first message with something else."""

    def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"not TLS at all")
        writer.close()

    authority = tmp_path / "authority.pem"
    trustme.CA().cert_pem.write_to_path(authority)
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with ControllerClient(address, ca_file=str(authority), timeout_s=30) as client:
            with pytest.raises(mstcp.ControllerError, match="it does not speak TLS: leave out ca_file="):
                await client.request(
                    source="", destination="127.0.0.1", destination_port=9, source_ports=[1], rate_bps=1e6
                )


async def test_why_a_call_ended_is_asked_for_where_grpc_does_not_say() -> None:
    async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
        error = await ControllerClient._refusal(channel, None)
    assert error.code() is grpc.StatusCode.UNAVAILABLE
