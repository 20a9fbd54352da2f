"""A controller that answers by script, over real gRPC on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import grpc
import grpc.aio

from mstcp.proto import control_pb2 as pb
from mstcp.proto import control_pb2_grpc


def split_evenly(request: pb.FlowRequest, count: int = 2) -> pb.ServerMessage:
    """Allocate the rate over the first `count` source ports, alike."""
    streams = [
        pb.Stream(
            source_port=port, rate_bps=request.rate_bps / count, delay_s=0.003, path=["T0", f"S{index}", "T2"]
        )
        for index, port in enumerate(request.source_ports[:count])
    ]
    return pb.ServerMessage(
        allocation=pb.Allocation(
            flow_id="flow-1",
            requested_bps=request.rate_bps,
            rate_bps=request.rate_bps,
            streams=streams,
            lease_s=0.15,
        )
    )


class FlowController(control_pb2_grpc.FlowControlServicer):
    """An asynchronous context manager that serves on `address`; `answer` answers flow requests."""

    def __init__(self, answer: Callable[[pb.FlowRequest], pb.ServerMessage | None] = split_evenly) -> None:
        self.answer = answer
        self.address = ""
        self.requests: list[pb.FlowRequest] = []
        self.changes: list[pb.FlowChange] = []
        self.released: list[str] = []
        self.reports: list[pb.StreamsReport] = []
        self.renewed: list[list[str]] = []
        self.sessions = 0
        self.leads = True
        self.metadata: list[dict[str, str | bytes]] = []
        self.heard = asyncio.Condition()
        self._outgoing: asyncio.Queue[pb.ServerMessage] = asyncio.Queue()
        self._server = grpc.aio.server()

    async def __aenter__(self) -> FlowController:
        await self.start("127.0.0.1:0")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, address: str) -> None:
        self._server = grpc.aio.server()
        control_pb2_grpc.add_FlowControlServicer_to_server(self, self._server)
        port = self._server.add_insecure_port(address)
        self.address = f"127.0.0.1:{port}"
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(None)

    def send(self, message: pb.ServerMessage) -> None:
        """Send something of the controller's own accord."""
        self._outgoing.put_nowait(message)

    def reallocate(self, port_rates: Mapping[int, float], lease_s: float = 5.0) -> None:
        """Change the streams of the first flow: their rates, by their source ports."""
        streams = [pb.Stream(source_port=port, rate_bps=rate) for port, rate in port_rates.items()]
        rate_bps = sum(port_rates.values())
        allocation = pb.Allocation(flow_id="flow-1", rate_bps=rate_bps, streams=streams, lease_s=lease_s)
        self.send(pb.ServerMessage(changed=pb.AllocationChanged(allocation=allocation)))

    def end_flow(self, reason: str) -> None:
        """End the first flow."""
        self.send(pb.ServerMessage(ended=pb.FlowEnded(flow_id="flow-1", reason=reason)))

    async def wait_for(self, predicate: Callable[[], object]) -> None:
        """Wait until what the controller heard fulfils `predicate`."""
        async with self.heard:
            await asyncio.wait_for(self.heard.wait_for(lambda: bool(predicate())), 20)

    async def Session(
        self, messages: AsyncIterator[pb.ClientMessage], context: grpc.aio.ServicerContext
    ) -> AsyncIterator[pb.ServerMessage]:
        self.sessions += 1
        if not self.leads:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "this replica does not lead; another does")
        self.metadata.append(dict(context.invocation_metadata() or ()))
        outgoing = self._outgoing = asyncio.Queue()
        reading = asyncio.create_task(self._read(messages, outgoing))
        try:
            while True:
                yield await outgoing.get()
        finally:
            reading.cancel()

    async def _read(
        self, messages: AsyncIterator[pb.ClientMessage], outgoing: asyncio.Queue[pb.ServerMessage]
    ) -> None:
        async for message in messages:
            answer = self._hear(message)
            if answer is not None:
                answer.request_id = message.request_id
                outgoing.put_nowait(answer)
            async with self.heard:
                self.heard.notify_all()

    def _hear(self, message: pb.ClientMessage) -> pb.ServerMessage | None:
        kind = message.WhichOneof("body")
        if kind == "request":
            self.requests.append(message.request)
            return self.answer(message.request)
        if kind == "change":
            self.changes.append(message.change)
            request = pb.FlowRequest(
                source_ports=self.requests[-1].source_ports, rate_bps=message.change.rate_bps
            )
            return self.answer(request)
        if kind == "release":
            self.released.append(message.release.flow_id)
            return pb.ServerMessage(released=pb.Released(flow_id=message.release.flow_id))
        if kind == "streams":
            self.reports.append(message.streams)
            return None
        self.renewed.append(list(message.renewal.flow_ids))
        return None
