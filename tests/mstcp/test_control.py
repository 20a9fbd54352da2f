"""The control client against a scripted controller over real gRPC."""

from __future__ import annotations

import asyncio
import queue
import socket
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import grpc.aio
import pytest
import trustme

import mstcp
from mstcp.background import background
from mstcp.control import ControllerAddress, ControllerClient
from mstcp.proto import control_pb2 as pb
from mstcp.tools.relay import relay
from tests.fakes.flow_controller import FlowController, split_evenly
from tests.fakes.tcp_server import tcp_server


async def drain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(1 << 16):
        pass
    writer.close()


async def start_sink() -> tuple[mstcp.Server, int]:
    server = await mstcp.start_server(drain, "127.0.0.1")
    return server, server.sockets[0].getsockname()[1]


def changed(port_rates: Mapping[int, float], flow_id: str = "flow-1") -> pb.ServerMessage:
    streams = [pb.Stream(source_port=port, rate_bps=rate) for port, rate in port_rates.items()]
    allocation = pb.Allocation(flow_id=flow_id, rate_bps=sum(port_rates.values()), streams=streams, lease_s=5)
    return pb.ServerMessage(changed=pb.AllocationChanged(allocation=allocation))


async def test_the_allocation_is_what_gets_connected_and_is_released_at_the_end() -> None:
    server, port = await start_sink()
    async with server, FlowController() as controller:
        _, writer = await mstcp.open_connection(
            "127.0.0.1",
            port,
            rate=8e6,
            controller=controller.address,
            packet_bytes=590,
            objective="fair",
            max_paths=3,
        )
        request = controller.requests[0]
        streams = writer.get_extra_info("streams")
        assert [stream.source_port for stream in streams] == list(request.source_ports[:2])
        assert [stream.rate_bps for stream in streams] == [4e6, 4e6]
        assert [stream.path for stream in streams] == [("T0", "S0", "T2"), ("T0", "S1", "T2")]
        assert (request.source, request.destination) == ("127.0.0.1", "127.0.0.1")
        assert (request.destination_port, request.packet_bytes, request.objective) == (port, 590, "fair")
        assert len(set(request.source_ports)) == 3
        assert request.segment_overhead_bytes in (54, 66)
        assert writer.get_extra_info("allocation").flow_id == "flow-1"
        assert controller.released == []
        writer.close()
        await writer.wait_closed()
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


async def test_paths_given_by_hand_are_asked_for() -> None:
    server, port = await start_sink()
    paths = [mstcp.RequestedPath(("T0", "S0", "T2"), 3e6), mstcp.RequestedPath(("T0", "S2", "T2"), 1e6)]
    async with server, FlowController() as controller:
        _, writer = await mstcp.open_connection("127.0.0.1", port, controller=controller.address, paths=paths)
        request = controller.requests[0]
        assert [tuple(path.nodes) for path in request.paths] == [path.nodes for path in paths]
        assert request.rate_bps == 4e6
        assert len(request.source_ports) == 2
        writer.close()
        await writer.wait_closed()


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


async def test_a_change_of_the_allocation_changes_the_split() -> None:
    server, port = await start_sink()
    async with server, FlowController() as controller:
        _, writer = await mstcp.open_connection(
            "127.0.0.1", port, rate=1e9, controller=controller.address, seed=1
        )
        transport = writer.transport
        assert isinstance(transport, mstcp.ConnectionTransport)
        first, second = (stream.source_port for stream in transport.streams())
        controller.send(changed({first: 0.0, second: 1e9}))
        while transport.streams()[0].rate_bps != 0:
            await asyncio.sleep(0.01)
        before = transport.counters().streams
        for _ in range(100):
            writer.write(bytes(1000))
            await writer.drain()
        after = transport.counters().streams
        assert after[0].bytes_sent == before[0].bytes_sent
        assert after[1].bytes_sent > before[1].bytes_sent
        assert writer.get_extra_info("allocation").rate_bps == 1e9
        writer.close()
        await writer.wait_closed()


async def test_the_application_hears_of_changes_after_they_were_made() -> None:
    heard: asyncio.Queue[mstcp.AllocationChanged] = asyncio.Queue()
    server, port = await start_sink()
    async with server, FlowController() as controller:
        _, writer = await mstcp.open_connection(
            "127.0.0.1", port, rate=8e6, controller=controller.address, on_allocation_changed=heard.put_nowait
        )
        first = writer.get_extra_info("allocation")
        ports = [stream.source_port for stream in first.streams]
        controller.send(changed(dict(zip(ports, (3e6, 1e6), strict=True))))
        event = await heard.get()
        assert (event.before, event.after, event.reason) == (first, writer.get_extra_info("allocation"), "")
        assert event.after is not None and event.after.rate_bps == 4e6
        assert [stream.rate_bps for stream in writer.get_extra_info("streams")] == [3e6, 1e6]
        controller.send(pb.ServerMessage(ended=pb.FlowEnded(flow_id="flow-1", reason="host moved")))
        assert await heard.get() == mstcp.AllocationChanged(event.after, None, "host moved")
        assert writer.get_extra_info("allocation") is None
        assert [stream.rate_bps for stream in writer.get_extra_info("streams")] == [3e6, 1e6]
        writer.close()
        await writer.wait_closed()
        assert heard.empty()


async def test_rates_that_cannot_be_are_no_change(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[mstcp.AllocationChanged] = []
    server, port = await start_sink()
    async with server, FlowController() as controller:
        _, writer = await mstcp.open_connection(
            "127.0.0.1", port, rate=8e6, controller=controller.address, on_allocation_changed=heard.append
        )
        first = writer.get_extra_info("allocation")
        ports = [stream.source_port for stream in first.streams]
        controller.send(changed(dict.fromkeys(ports, 0.0)))
        controller.send(changed(dict.fromkeys(ports, 1e6)))
        while not heard:
            await asyncio.sleep(0.01)
        assert "keeps its rates" in caplog.text
        assert [event.before for event in heard] == [first]
        writer.close()
        await writer.wait_closed()


async def test_a_callback_that_fails_is_the_applications_and_breaks_nothing() -> None:
    problems: list[object] = []

    def fail(event: mstcp.AllocationChanged) -> None:
        raise ValueError(event.reason)

    server, port = await start_sink()
    async with server, FlowController() as controller:
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: problems.append(context["exception"])
        )
        _, writer = await mstcp.open_connection(
            "127.0.0.1", port, rate=8e6, controller=controller.address, on_allocation_changed=fail
        )
        ports = [stream.source_port for stream in writer.get_extra_info("allocation").streams]
        for rate_bps in (1e6, 2e6):
            controller.send(changed(dict.fromkeys(ports, rate_bps)))
        while len(problems) < 2:
            await asyncio.sleep(0.01)
        assert all(isinstance(problem, ValueError) for problem in problems)
        assert writer.get_extra_info("allocation").rate_bps == 4e6
        writer.close()
        await writer.wait_closed()


async def test_what_changes_while_the_streams_are_connected_is_known_when_they_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[mstcp.AllocationChanged] = []
    ready = asyncio.Event()
    server, port = await start_sink()

    async def hold_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ready.wait()
        await relay((reader, writer), await asyncio.open_connection("127.0.0.1", port))

    async with server, tcp_server(hold_up) as slow_port, FlowController() as controller:
        opening = asyncio.create_task(
            mstcp.open_connection(
                "127.0.0.1",
                slow_port,
                rate=8e6,
                controller=controller.address,
                on_allocation_changed=heard.append,
            )
        )
        await controller.wait_for(lambda: controller.renewed)  # so it has the allocation
        ports = controller.requests[0].source_ports[:2]
        controller.send(changed(dict(zip(ports, (3e6, 1e6), strict=True))))
        controller.send(pb.ServerMessage(ended=pb.FlowEnded(flow_id="flow-1", reason="host moved")))
        while "host moved" not in caplog.text:
            await asyncio.sleep(0.01)
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
        loop.call(lambda: controller.send(changed(dict.fromkeys(ports, 1e6))))
        event, thread = heard.get(timeout=20)
        assert event.after == sock.get_extra_info("allocation")
        assert thread == "mstcp"
    loop.run(controller.stop())


async def test_the_client_changes_the_rate_of_a_running_connection() -> None:
    server, port = await start_sink()
    async with server, FlowController() as controller, ControllerClient(controller.address) as client:
        _, writer = await mstcp.open_connection("127.0.0.1", port, rate=8e6, controller=client)
        allocation = await client.change(writer.get_extra_info("allocation").flow_id, 2e6)
        assert allocation.rate_bps == 2e6
        assert [stream.rate_bps for stream in writer.get_extra_info("streams")] == [1e6, 1e6]
        writer.close()
        await writer.wait_closed()
        assert controller.released == ["flow-1"]


async def test_leases_are_renewed_while_the_connection_is_open() -> None:
    server, port = await start_sink()
    async with server, FlowController() as controller:
        _, writer = await mstcp.open_connection("127.0.0.1", port, rate=8e6, controller=controller.address)
        await controller.wait_for(lambda: len(controller.renewed) >= 3)
        assert controller.renewed[0] == ["flow-1"]
        writer.close()
        await writer.wait_closed()


async def test_the_connection_outlives_the_controller_and_the_lease_is_taken_up_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, port = await start_sink()
    async with server:
        controller = FlowController()
        await controller.start("127.0.0.1:0")
        _, writer = await mstcp.open_connection("127.0.0.1", port, rate=8e6, controller=controller.address)
        await controller.stop()
        writer.write(b"still works")
        await writer.drain()
        controller.renewed.clear()
        await controller.start(controller.address)
        await controller.wait_for(lambda: controller.sessions == 2 and controller.renewed)
        assert "connecting again" in caplog.text
        writer.close()
        await writer.wait_closed()
        assert controller.released == ["flow-1"]
        await controller.stop()


async def test_the_back_off_begins_again_after_a_session_that_worked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, port = await start_sink()
    async with server, FlowController() as controller:
        _, writer = await mstcp.open_connection("127.0.0.1", port, rate=8e6, controller=controller.address)
        ports = [stream.source_port for stream in writer.get_extra_info("streams")]
        for round_number in range(3):
            caplog.clear()
            await controller.stop()
            while "connecting again" not in caplog.text:
                await asyncio.sleep(0.01)
            assert "connecting again in 0.1 s" in caplog.messages[0]
            await controller.start(controller.address)
            await controller.wait_for(lambda: controller.sessions == round_number + 2)  # noqa: B023
            rate_bps = 1e6 + round_number
            controller.send(changed(dict.fromkeys(ports, rate_bps)))
            while writer.get_extra_info("streams")[0].rate_bps != rate_bps:
                await asyncio.sleep(0.01)
        writer.close()
        await writer.wait_closed()


async def test_an_address_may_say_what_the_controller_knows_us_by() -> None:
    server, port = await start_sink()
    async with server, FlowController() as flows:
        controller = ControllerAddress(flows.address, token="ours")
        async with mstcp.open_connection("127.0.0.1", port, rate=8e6, controller=controller):
            assert flows.metadata[0]["authorization"] == "Bearer ours"
        assert flows.released == ["flow-1"]
        assert "ours" not in repr(controller)


async def test_closing_without_a_controller_is_no_error() -> None:
    server, port = await start_sink()
    async with server:
        controller = FlowController()
        await controller.start("127.0.0.1:0")
        client = ControllerClient(controller.address, timeout_s=20)
        _, writer = await mstcp.open_connection("127.0.0.1", port, rate=8e6, controller=client)
        await controller.stop()
        writer.close()
        await writer.wait_closed()
        await client.close()


async def test_a_flow_that_the_controller_ends_goes_on_without_it(caplog: pytest.LogCaptureFixture) -> None:
    server, port = await start_sink()
    async with server, FlowController() as controller:
        _, writer = await mstcp.open_connection("127.0.0.1", port, rate=8e6, controller=controller.address)
        controller.send(pb.ServerMessage(ended=pb.FlowEnded(flow_id="flow-1", reason="host moved")))
        while writer.get_extra_info("allocation") is not None:
            await asyncio.sleep(0.01)
        assert "host moved" in caplog.text
        writer.write(b"on")
        writer.close()
        await writer.wait_closed()
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


async def test_a_controller_that_is_cut_off_is_left_for_another() -> None:
    """Its connections stay and nothing comes over them any more, as from a machine without power."""
    is_open = asyncio.Event()
    is_open.set()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(1 << 16):
                await is_open.wait()
                writer.write(data)

        inner = await asyncio.open_connection(*first.address.split(":"))
        try:
            await asyncio.gather(pump(reader, inner[1]), pump(inner[0], writer))
        finally:
            for each in (writer, inner[1]):
                each.close()

    async with FlowController() as first, FlowController() as second:
        wire = await asyncio.start_server(carry, "127.0.0.1")
        address = f"127.0.0.1:{wire.sockets[0].getsockname()[1]}"
        async with ControllerClient(f"{address}, {second.address}") as client:
            request = {"source": "T0", "destination": "T2", "destination_port": 1, "source_ports": (2, 3)}
            allocation = await client.request(**request, rate_bps=8e6)  # type: ignore[arg-type]
            is_open.clear()
            await second.wait_for(lambda: [allocation.flow_id] in second.renewed)
            assert second.requests == []
        is_open.set()
        wire.close()


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
        await mstcp.open_connection("127.0.0.1", 9, on_allocation_changed=start_sink)  # type: ignore[arg-type]
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
