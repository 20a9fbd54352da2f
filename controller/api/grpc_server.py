"""gRPC: the control channel of mstcp/proto/control.proto, which the end-host library speaks.

A session that ends without releasing its flows leaves them alive until their leases run out: a client whose
connection broke may open another session and renew them, and so owns them again. What it has asked and not
been answered is undone.
"""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, NoReturn
from urllib.parse import unquote

import grpc
import grpc.aio

from controller.api.event_history import HISTORY_LOST
from controller.api.grpc_messages import (
    allocation_of,
    asked_by,
    ended,
    error_of,
    event_of,
    fields_of,
    message_of,
    refusal,
)
from controller.api.grpc_standard import add_standard_services
from controller.api.rest_common import ReplicaView
from controller.api.schema import checked, parse
from controller.api.service import Service
from controller.configuration.access import Access, AccessRole
from controller.connection_limits import ConnectionLimits, ServiceLimits
from controller.errors import ErrorCode, RequestError
from controller.model.callers import Caller
from controller.model.client_events import ClientEvent
from controller.model.events import FlowsRequested
from controller.model.messages import Abandoned, AllocationChanged, LeaseResult, Notify, Reply
from controller.model.requests import FlowQuery, PreviewRequest
from controller.model.views import FlowPage, FlowView
from mstcp.proto import control_pb2, control_pb2_grpc

_Method = Callable[..., Awaitable[Any]]

_MAX_IN_FLIGHT = 1024
"""Requests of one session that wait for an answer; further ones are not read until then."""

_MAX_BUNDLED = 256
"""Messages that are sent as one, at most."""

MAX_UNSENT = 4096
"""Messages that a client may leave unread before its session is ended."""

_STATUS = {
    ErrorCode.INVALID: grpc.StatusCode.INVALID_ARGUMENT,
    ErrorCode.NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    ErrorCode.CONFLICT: grpc.StatusCode.ABORTED,
    ErrorCode.INFEASIBLE: grpc.StatusCode.FAILED_PRECONDITION,
    ErrorCode.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    ErrorCode.UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED,
    ErrorCode.FORBIDDEN: grpc.StatusCode.PERMISSION_DENIED,
    ErrorCode.PRECONDITION_FAILED: grpc.StatusCode.ABORTED,
    ErrorCode.DEADLINE_EXCEEDED: grpc.StatusCode.DEADLINE_EXCEEDED,
}

ERROR_METADATA = "mstcp-error-bin"
"""Trailing metadata of a refused call: an `Error` message."""

_PAGE = 1000
_MAX_PAGE = 10_000


def make_server(
    service: Service,
    access: Access | None = None,
    limits: ConnectionLimits | None = None,
    replica: ReplicaView | None = None,
) -> grpc.aio.Server:
    """Return a server that offers a service to those who may; give it addresses and start it.

    The limits are on connections in all, and on sessions and watches of one address.
    """
    limits = limits or ServiceLimits.of().grpc
    # Without this, a second controller could listen on the same port and each would get half of the clients.
    # A client that is dead is noticed by keepalives (gRFC A8), a minute after it last said something.
    server = grpc.aio.server(
        options=[
            ("grpc.so_reuseport", 0),
            ("grpc.keepalive_time_ms", 40_000),
            ("grpc.keepalive_timeout_ms", 20_000),
            ("grpc.server_handshake_timeout_ms", 10_000),
            ("grpc.max_connection_idle_ms", 60_000),
            # Clients of replicas ask every few seconds whether this one is still there.
            ("grpc.http2.min_ping_interval_without_data_ms", 1000),
            ("grpc.max_concurrent_streams", 256),
            ("grpc.max_allowed_incoming_connections", limits.total),
        ]
    )
    access = access or Access()
    control_pb2_grpc.add_FlowControlServicer_to_server(
        FlowControlServicer(service, access, limits, replica), server
    )
    control_pb2_grpc.add_ControllerServicer_to_server(ControllerServicer(service, access, limits), server)
    add_standard_services(server, service)
    return server


class FlowControlServicer(control_pb2_grpc.FlowControlServicer):
    """Translates between sessions and the service layer."""

    def __init__(
        self, service: Service, access: Access, limits: ConnectionLimits, replica: ReplicaView | None
    ) -> None:
        self._service = service
        self._access = access
        self._limits = limits
        self._replica = replica
        self._sessions = count(1)

    async def Session(  # type: ignore[override]  # gRPC takes a coroutine that writes too
        self, request_iterator: AsyncIterator[control_pb2.ClientMessage], context: Any
    ) -> None:
        """Serve one client until it closes its side and everything it asked is answered."""
        caller = await _caller(context, self._access, AccessRole.REQUEST)
        if self._replica is not None and not self._replica.is_leading:
            await self._send_to_leader(context)
        async with _counted(context, self._limits):
            session = _Session(self._service, f"grpc-{next(self._sessions)}", caller)
            reader = asyncio.create_task(session.read(request_iterator))
            try:
                while (message := await session.next_message()) is not None:
                    await context.write(message)
                if session.is_abandoned:
                    await self._send_to_leader(context)
                if session.overflowed:
                    text = f"more than {MAX_UNSENT} messages were left unread"
                    await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, text)
            finally:
                session.close()
                reader.cancel()

    async def _send_to_leader(self, context: Any) -> None:
        """End a session here: its client opens one where flows are decided about."""
        holder = None if self._replica is None else self._replica.holder
        where = "no replica leads at the moment" if holder is None else f"another leads, at {holder.grpc}"
        await context.abort(grpc.StatusCode.UNAVAILABLE, f"this replica does not lead; {where}")


def _call(needed: AccessRole) -> Callable[[_Method], Any]:
    """Let those call who have a role; a refusal ends the call with its status."""

    def decorate(method: _Method) -> Any:
        @functools.wraps(method)
        async def call(servicer: ControllerServicer, request: Any, context: Any) -> Any:
            caller = await _caller(context, servicer.access, needed)
            try:
                return await method(servicer, request, context, caller)
            except RequestError as error:
                return await _abort(context, error)

        return call

    return decorate


class ControllerServicer(control_pb2_grpc.ControllerServicer):
    """Translates between single calls and the service layer."""

    def __init__(self, service: Service, access: Access, limits: ConnectionLimits) -> None:
        self._service = service
        self.access = access
        self._limits = limits

    @_call(AccessRole.REQUEST)
    async def RequestFlow(
        self, request: control_pb2.FlowRequest, context: Any, caller: Caller
    ) -> control_pb2.Allocation:
        """Ask for a flow; it is undone if the call ends before the answer."""
        wanted, timeout_s = parse(fields_of(request)), context.time_remaining()
        flow, _ = await self._service.request(wanted, caller=caller, timeout_s=timeout_s)
        return allocation_of(flow)

    @_call(AccessRole.REQUEST)
    async def ChangeFlow(
        self, request: control_pb2.FlowChange, context: Any, caller: Caller
    ) -> control_pb2.Allocation:
        """Ask for another rate of a flow."""
        asked, timeout_s = asked_by(request, caller), context.time_remaining()
        return allocation_of((await self._service.ask(asked, FlowView, timeout_s))[0])

    @_call(AccessRole.REQUEST)
    async def ReleaseFlow(
        self, request: control_pb2.FlowRelease, _: Any, caller: Caller
    ) -> control_pb2.Released:
        """End a flow."""
        await self._service.ask(asked_by(request, caller), type(None))
        return control_pb2.Released(flow_id=request.flow_id)

    @_call(AccessRole.REQUEST)
    async def RenewFlows(
        self, request: control_pb2.LeaseRenewal, _: Any, caller: Caller
    ) -> control_pb2.Renewed:
        """Let flows live on for another lease."""
        result, _ = await self._service.ask(asked_by(request, caller), LeaseResult)
        return message_of(control_pb2.Renewed, result, flow_ids=result.renewed)

    @_call(AccessRole.READ)
    async def ListFlows(
        self, request: control_pb2.ListFlowsRequest, _: Any, __: Caller
    ) -> control_pb2.ListFlowsResponse:
        """List flows, page by page."""
        query = FlowQuery(**fields_of(request) | {"limit": min(request.limit or _PAGE, _MAX_PAGE)})
        page, _ = await self._service.ask(lambda token: FlowsRequested(token, query), FlowPage)
        flows = [message_of(control_pb2.Flow, flow, allocation=allocation_of(flow)) for flow in page.flows]
        return message_of(control_pb2.ListFlowsResponse, page, flows=flows)

    @_call(AccessRole.READ)
    async def ListLinks(
        self, request: control_pb2.ListLinksRequest, _: Any, __: Caller
    ) -> control_pb2.ListLinksResponse:
        """List both directions of all links, or of one."""
        links, _ = await self._service.links(request.link)
        return control_pb2.ListLinksResponse(links=[message_of(control_pb2.Link, each) for each in links])

    @_call(AccessRole.READ)
    async def Preview(
        self, request: control_pb2.PreviewRequest, _: Any, __: Caller
    ) -> control_pb2.PreviewResponse:
        """Tell what would happen if."""
        view = await self._service.preview(checked(PreviewRequest, fields_of(request)))
        return message_of(control_pb2.PreviewResponse, view)

    async def Watch(  # type: ignore[override]  # as above
        self, request: control_pb2.WatchRequest, context: Any
    ) -> None:
        """Tell what happens, as it does."""
        await _caller(context, self.access, AccessRole.READ)
        async with _counted(context, self._limits):
            await self._watch(request, context)

    async def _watch(self, request: control_pb2.WatchRequest, context: Any) -> None:
        history = self._service.history
        last_id, is_first = request.last_event_id or None, True
        async for event in history.follow(last_id, request.past):
            if isinstance(event, ClientEvent):
                await context.write(event_of(event, history.id_of(event)))
            elif is_first and last_id is not None:
                text = "events were lost: look at everything again"
                await context.write(control_pb2.WatchEvent(kind=HISTORY_LOST, text=text))
            else:
                text = f"{event.missed} events were dropped because this client reads too slowly"
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, text)
            is_first = False


@asynccontextmanager
async def _counted(context: Any, limits: ConnectionLimits) -> AsyncIterator[None]:
    """Count a call that lasts; one that is too many of its address is ended."""
    address = _address(context)
    refused = limits.take(address)
    if refused is not None:
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, refused)
    try:
        yield
    finally:
        limits.free(address)


async def _caller(context: Any, access: Access, needed: AccessRole) -> Caller:
    """Return who calls, or end the call where it may not."""
    metadata = dict(context.invocation_metadata() or ())
    try:
        return access.caller(metadata.get("authorization"), needed, _address(context))
    except RequestError as error:
        return await _abort(context, error)


def _address(context: Any) -> str:
    """Return where a call comes from: `ipv4:127.0.0.1:40001` without its port, IPv6 without brackets."""
    host = unquote(str(context.peer())).partition(":")[2].rpartition(":")[0]
    return host.strip("[]")


async def _abort(context: Any, error: RequestError) -> NoReturn:
    context.set_trailing_metadata(((ERROR_METADATA, error_of(error).SerializeToString()),))
    await context.abort(_STATUS[error.code], str(error))
    raise AssertionError("abort raises")


class _Session:
    """One client: what it asked, and what it is still to be told."""

    def __init__(self, service: Service, owner: str, caller: Caller) -> None:
        self._caller = caller
        self._unsent: deque[control_pb2.ServerMessage | None] = deque()  # None: the end
        self._has_unsent = asyncio.Event()
        self._takes_bundles = False
        self._service = service
        self._owner = owner
        self._in_flight = asyncio.Semaphore(_MAX_IN_FLIGHT)
        self._waiting = 0
        self._finished = False
        self._tokens: set[int] = set()  # of requests for flows that are not answered
        self.overflowed = False
        self.is_abandoned = False
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
                if message.HasField("bundle"):
                    await self._submit_bundle(message.bundle.messages)
                else:
                    await self._in_flight.acquire()
                    self._submit(message)
        finally:
            self._finished = True
            self._end_if_done()

    async def _submit_bundle(self, messages: Sequence[control_pb2.ClientMessage]) -> None:
        """Hand over side by side as many messages as may be in flight, and so on."""
        self._takes_bundles = True
        left = deque(messages)
        while left:
            await self._in_flight.acquire()
            with self._service.together():
                self._submit(left.popleft())
                while left and not self._in_flight.locked():
                    await self._in_flight.acquire()
                    self._submit(left.popleft())

    async def next_message(self) -> control_pb2.ServerMessage | None:
        """Wait for what is to be sent; None at the end. Who takes bundles gets all that waits as one."""
        while not self._unsent:
            self._has_unsent.clear()
            await self._has_unsent.wait()
        message = self._unsent.popleft()
        if message is None or not self._takes_bundles or not self._unsent:
            return message
        messages = [message]
        while self._unsent and len(messages) < _MAX_BUNDLED and (following := self._unsent[0]) is not None:
            messages.append(following)
            self._unsent.popleft()
        return control_pb2.ServerMessage(bundle=control_pb2.ServerBundle(messages=messages))

    def _put(self, message: control_pb2.ServerMessage | None) -> None:
        self._unsent.append(message)
        self._has_unsent.set()

    def _submit(self, message: control_pb2.ClientMessage) -> None:
        self._waiting += 1
        request_id, body = message.request_id, message.WhichOneof("body")

        def done(answer: Reply) -> None:
            self._in_flight.release()
            self._waiting -= 1
            self._tokens.discard(answer.token)
            self._on_answer(request_id, message, answer)
            self._end_if_done()

        try:
            if body == "request":
                request = parse(fields_of(message.request))
                self._tokens.add(self._service.submit_request(request, done, self._owner, self._caller))
            else:
                asked = asked_by(getattr(message, body or "body", None), self._caller, self._owner)
                self._service.submit(asked, done)
        except RequestError as error:
            done(Reply(0, error))

    def _on_answer(self, request_id: int, message: control_pb2.ClientMessage, answer: Reply) -> None:
        result = answer.result
        if isinstance(result, LeaseResult):
            for flow_id in result.unknown:
                self._send(ended(flow_id, "there is no such flow; it may have ended with its lease"))
            for flow_id in result.forbidden:
                self._send(ended(flow_id, "it is another client's"))
        elif isinstance(result, RequestError):
            self._send(refusal(request_id, result))
        elif isinstance(result, FlowView):
            self._send(control_pb2.ServerMessage(request_id=request_id, allocation=allocation_of(result)))
        elif result is None and message.HasField("release"):
            released = control_pb2.Released(flow_id=message.release.flow_id)
            self._send(control_pb2.ServerMessage(request_id=request_id, released=released))

    def _on_notification(self, message: Notify | Abandoned) -> None:
        if isinstance(message, Abandoned):
            self.is_abandoned = True
            self._put(None)
            return
        change = message.change
        if isinstance(change, AllocationChanged):
            changed = control_pb2.AllocationChanged(allocation=allocation_of(change.flow))
            self._send(control_pb2.ServerMessage(changed=changed))
        else:
            self._send(ended(change.flow_id, change.reason))

    def _send(self, message: control_pb2.ServerMessage) -> None:
        """Queue a message; a client that leaves too many unread loses them all, and then its session.

        gRPC can end a call only between two writes: so the end waits until the client reads again, or until
        its connection is found dead.
        """
        if self.overflowed:
            return
        if len(self._unsent) >= MAX_UNSENT:
            self.overflowed = True
            self.close()
            self._unsent.clear()
            self._put(None)
        else:
            self._put(message)

    def _end_if_done(self) -> None:
        if self._finished and self._waiting == 0:
            self._put(None)
