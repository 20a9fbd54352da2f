"""A client of the controller's gRPC session that measures what each request waits."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import grpc.aio

from mstcp.proto import control_pb2 as pb
from mstcp.proto import control_pb2_grpc


class Refused(Exception):
    """The controller refused a request."""


class Session:
    """One gRPC session; any number of requests at once, which travel as one message (`ClientBundle`)."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.aio.insecure_channel(address)
        self._call: Any = control_pb2_grpc.FlowControlStub(self._channel).Session()
        self._waiting: dict[int, asyncio.Future[pb.ServerMessage]] = {}
        self._last = 0
        self._unsent: list[pb.ClientMessage] = []
        self._writing = asyncio.Lock()  # gRPC takes one message at a time
        self.ended: list[str] = []
        self.changed_at: dict[str, float] = {}  # flow id -> when its last AllocationChanged came
        self._reader = asyncio.get_running_loop().create_task(self._read())

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def request(self, **fields: Any) -> pb.Allocation:
        """Ask for a flow (Refused: naming the reason)."""
        answer = await self._ask(pb.ClientMessage(request=pb.FlowRequest(**fields)))
        return answer.allocation

    async def release(self, flow_id: str) -> None:
        """End a flow."""
        await self._ask(pb.ClientMessage(release=pb.FlowRelease(flow_id=flow_id)))

    async def renew(self, flow_ids: list[str]) -> None:
        """Renew leases; nothing is answered."""
        await self._send(pb.ClientMessage(renewal=pb.LeaseRenewal(flow_ids=flow_ids)))

    async def close(self) -> None:
        """End the session."""
        self._reader.cancel()
        self._call.cancel()
        await self._channel.close()

    async def _ask(self, message: pb.ClientMessage) -> pb.ServerMessage:
        self._last += 1
        message.request_id = self._last
        answer: asyncio.Future[pb.ServerMessage] = asyncio.get_running_loop().create_future()
        self._waiting[self._last] = answer
        await self._send(message)
        reply = await answer
        if reply.WhichOneof("body") == "error":
            raise Refused(reply.error.reason)
        return reply

    async def _send(self, message: pb.ClientMessage) -> None:
        self._unsent.append(message)
        async with self._writing:
            if self._unsent:  # else another has sent it along with its own
                bundle, self._unsent = pb.ClientBundle(messages=self._unsent), []
                await self._call.write(pb.ClientMessage(bundle=bundle))

    async def _read(self) -> None:
        try:
            async for received in self._call:
                is_bundle = received.HasField("bundle")
                for message in received.bundle.messages if is_bundle else (received,):
                    self._take(message)
        finally:
            for answer in self._waiting.values():
                answer.cancel("the session has ended")

    def _take(self, message: pb.ServerMessage) -> None:
        body = message.WhichOneof("body")
        if body == "changed":
            self.changed_at[message.changed.allocation.flow_id] = time.perf_counter()
        elif body == "ended":
            self.ended.append(message.ended.flow_id)
        else:
            self._waiting.pop(message.request_id).set_result(message)
