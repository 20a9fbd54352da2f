"""gRPC: the control channel of mstcp/proto/control.proto, which the end-host library speaks.

A session that ends without releasing its flows leaves them alive until their leases run out: a client whose
connection broke may open another session and renew them, and so owns them again. What it has asked and not
been answered is undone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import grpc
import grpc.aio

from controller.api.schema import check_rate, parse
from controller.api.service import Service
from controller.core.events import FlowChanged, FlowReleased, FlowRequested, LeaseRenewed
from controller.core.messages import AllocationChanged, Answer, LeaseResult, Notify
from controller.core.views import FlowView, SplitView
from controller.errors import ErrorCode, InvalidRequest, RequestError
from mstcp.proto import control_pb2, control_pb2_grpc

__all__ = ["MAX_UNSENT", "FlowControlServicer", "make_server"]

_MAX_IN_FLIGHT = 256
"""Requests of one session that wait for an answer; further ones are not read until then."""

MAX_UNSENT = 4096
"""Messages that a client may leave unread before its session is ended."""

_ERROR_CODES = {
    ErrorCode.INVALID: control_pb2.Error.INVALID,
    ErrorCode.NOT_FOUND: control_pb2.Error.NOT_FOUND,
    ErrorCode.CONFLICT: control_pb2.Error.CONFLICT,
    ErrorCode.INFEASIBLE: control_pb2.Error.INFEASIBLE,
    ErrorCode.UNAVAILABLE: control_pb2.Error.UNAVAILABLE,
}


def make_server(service: Service) -> grpc.aio.Server:
    """Return a server that offers a service; give it addresses and start it."""
    # Without this, a second controller could listen on the same port and each would get half of the clients.
    # A client that is dead is noticed by keepalives (gRFC A8), a minute after it last said something.
    server = grpc.aio.server(
        options=[
            ("grpc.so_reuseport", 0),
            ("grpc.keepalive_time_ms", 40_000),
            ("grpc.keepalive_timeout_ms", 20_000),
        ]
    )
    control_pb2_grpc.add_FlowControlServicer_to_server(FlowControlServicer(service), server)
    return server


class FlowControlServicer(control_pb2_grpc.FlowControlServicer):
    """Translates between sessions and the service layer."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._sessions = count(1)

    async def Session(  # type: ignore[override]  # gRPC takes a coroutine that writes too
        self, request_iterator: AsyncIterator[control_pb2.ClientMessage], context: Any
    ) -> None:
        """Serve one client until it closes its side and everything it asked is answered."""
        session = _Session(self._service, f"grpc-{next(self._sessions)}")
        reader = asyncio.create_task(session.read(request_iterator))
        try:
            while (message := await session.unsent.get()) is not None:
                await context.write(message)
            if session.overflowed:
                await context.abort(
                    grpc.StatusCode.RESOURCE_EXHAUSTED, f"more than {MAX_UNSENT} messages were left unread"
                )
        finally:
            session.close()
            reader.cancel()


class _Session:
    """One client: what it asked, and what it is still to be told."""

    def __init__(self, service: Service, owner: str) -> None:
        self.unsent: asyncio.Queue[control_pb2.ServerMessage | None] = asyncio.Queue()
        self._service = service
        self._owner = owner
        self._in_flight = asyncio.Semaphore(_MAX_IN_FLIGHT)
        self._waiting = 0
        self._finished = False
        self._tokens: set[int] = set()  # of requests for flows that are not answered
        self.overflowed = False
        service.subscribe(owner, self._on_notification)

    def close(self) -> None:
        """Take no more notifications, and undo what is not answered: the client will not know its flows."""
        self._service.unsubscribe(self._owner)
        for token in list(self._tokens):
            self._service.abandon(token, undo=True)

    async def read(self, messages: AsyncIterator[control_pb2.ClientMessage]) -> None:
        """Hand the client's messages to the service until it closes its side."""
        try:
            async for message in messages:
                await self._in_flight.acquire()
                self._waiting += 1
                self._submit(message)
        finally:
            self._finished = True
            self._end_if_done()

    def _submit(self, message: control_pb2.ClientMessage) -> None:
        request_id, body = message.request_id, message.WhichOneof("body")

        def done(answer: Answer) -> None:
            self._in_flight.release()
            self._waiting -= 1
            self._tokens.discard(answer.token)
            self._on_answer(request_id, message, answer)
            self._end_if_done()

        try:
            if body == "request":
                request = parse(_request_fields(message.request))
                token = self._service.submit(lambda token: FlowRequested(token, request, self._owner), done)
                self._tokens.add(token)
            elif body == "change":
                change = message.change
                rate_bps = check_rate(change.rate_bps)
                self._service.submit(lambda token: FlowChanged(token, change.flow_id, rate_bps), done)
            elif body == "release":
                flow_id = message.release.flow_id
                self._service.submit(lambda token: FlowReleased(token, flow_id), done)
            elif body == "renewal":
                flow_ids = tuple(message.renewal.flow_ids)
                self._service.submit(lambda token: LeaseRenewed(token, flow_ids, self._owner), done)
            else:
                raise InvalidRequest("body", "is missing or unknown to this controller")
        except RequestError as error:
            done(Answer(0, error))

    def _on_answer(self, request_id: int, message: control_pb2.ClientMessage, answer: Answer) -> None:
        result = answer.result
        if isinstance(result, LeaseResult):
            for flow_id in result.unknown:
                self._send(_ended(flow_id, "there is no such flow; it may have ended with its lease"))
        elif isinstance(result, RequestError):
            self._send(_error(request_id, result))
        elif isinstance(result, FlowView):
            self._send(control_pb2.ServerMessage(request_id=request_id, allocation=_allocation(result)))
        elif result is None:
            released = control_pb2.Released(flow_id=message.release.flow_id)
            self._send(control_pb2.ServerMessage(request_id=request_id, released=released))

    def _on_notification(self, message: Notify) -> None:
        change = message.change
        if isinstance(change, AllocationChanged):
            changed = control_pb2.AllocationChanged(allocation=_allocation(change.flow))
            self._send(control_pb2.ServerMessage(changed=changed))
        else:
            self._send(_ended(change.flow_id, change.reason))

    def _send(self, message: control_pb2.ServerMessage) -> None:
        """Queue a message; a client that leaves too many unread loses them all, and then its session.

        gRPC can end a call only between two writes: so the end waits until the client reads again, or until
        its connection is found dead.
        """
        if self.overflowed:
            return
        if self.unsent.qsize() >= MAX_UNSENT:
            self.overflowed = True
            self.close()
            while not self.unsent.empty():
                self.unsent.get_nowait()
            self.unsent.put_nowait(None)
        else:
            self.unsent.put_nowait(message)

    def _end_if_done(self) -> None:
        if self._finished and self._waiting == 0:
            self.unsent.put_nowait(None)


def _request_fields(message: control_pb2.FlowRequest) -> dict[str, Any]:
    """Return a request's fields as JSON has them; what is 0 or empty in the message was left out."""
    fields: dict[str, Any] = {
        "source": message.source,
        "destination": message.destination,
        "destination_port": message.destination_port,
        "source_ports": tuple(message.source_ports) or None,
        "rate_bps": message.rate_bps,
        "objective": message.objective or None,
        "splitting": message.splitting or "streams",
        "ack_path": message.ack_path or None,
        "max_paths": message.max_paths or None,
        "paths": tuple({"nodes": tuple(path.nodes), "rate_bps": path.rate_bps} for path in message.paths),
    }
    if message.paths and message.rate_bps == 0:
        del fields["rate_bps"]
    if message.packet_bytes:
        fields["packet_bytes"] = message.packet_bytes
    if message.segment_overhead_bytes:
        fields["segment_overhead_bytes"] = message.segment_overhead_bytes
    return fields


def _allocation(flow: FlowView) -> control_pb2.Allocation:
    return control_pb2.Allocation(
        flow_id=flow.flow_id,
        requested_bps=flow.requested_bps,
        rate_bps=flow.rate_bps,
        streams=[
            control_pb2.Stream(
                source_port=stream.source_port,
                rate_bps=stream.rate_bps,
                delay_s=stream.delay_s,
                path=stream.path,
            )
            for stream in flow.streams
        ],
        lease_s=flow.lease_s,
        split=None if flow.split is None else _split(flow.split),
    )


def _split(split: SplitView) -> control_pb2.Split:
    return control_pb2.Split(
        ingress_switch=split.ingress.switch,
        ingress_port=split.ingress.port,
        shares=split.shares,
        stamps=split.stamps,
        acks=split.acks,
    )


def _error(request_id: int, error: RequestError) -> control_pb2.ServerMessage:
    body = control_pb2.Error(code=_ERROR_CODES[error.code], field=error.field, reason=error.reason)
    return control_pb2.ServerMessage(request_id=request_id, error=body)


def _ended(flow_id: str, reason: str) -> control_pb2.ServerMessage:
    return control_pb2.ServerMessage(ended=control_pb2.FlowEnded(flow_id=flow_id, reason=reason))
