"""The control channel: asking a controller for rates and paths (mstcp/proto/control.proto).

Needs the `control` extra: `pip install 'mstcp[control]'`.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import itertools
import logging
import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mstcp.control.allocation import Allocation, RequestedPath
from mstcp.endpoints import parse_endpoints
from mstcp.errors import ControllerError, DependencyMissing, LocalProtocolError, MstcpError
from mstcp.streams import StreamSpec

if TYPE_CHECKING:
    from mstcp.proto import control_pb2 as pb

LOGGER = logging.getLogger("mstcp")

TOKEN_VARIABLE = "MSTCP_CONTROLLER_TOKEN"  # noqa: S105  # its name, not the token
CA_VARIABLE = "MSTCP_CONTROLLER_CA"

OnChanged = Callable[[Allocation], None]
OnEnded = Callable[[str], None]

_RENEWALS_A_LEASE = 3
_RECONNECT_S = (0.1, 2.0)
_REFUSAL_S = 5.0

_RETRIABLE_REASONS = ("does not lead", "ailed to connect", "Connection refused")
"""What is said where nothing of a session was heard: another controller may be asked the same."""


_SILENT_OPTIONS = (
    ("grpc.keepalive_time_ms", 4000),
    ("grpc.http2.ping_timeout_ms", 3000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.min_reconnect_backoff_ms", 2000),  # also how long connecting may take
)
"""Where there are other controllers: one that is frozen or cut off is left before leases end."""


@dataclass
class _Flow:
    """A flow of this client, with the callbacks for its changes."""

    allocation: Allocation
    on_changed: OnChanged | None
    on_ended: OnEnded | None


@dataclass
class _Question:
    """A message that waits for its answer; `on_*` are of a flow request."""

    message: pb.ClientMessage
    answer: asyncio.Future[pb.ServerMessage]
    opens_flow: bool
    on_changed: OnChanged | None = None
    on_ended: OnEnded | None = None


@dataclass(frozen=True)
class ControllerAddress:
    """Where a controller is, or several are, and how to speak to it: for `controller=` of `open_connection`.

    The connection has a session of its own then; see `ControllerClient`, whose arguments these are.
    """

    address: str
    timeout_s: float = 10.0
    token: str | None = field(default=None, repr=False)
    ca_file: str | os.PathLike[str] | None = None
    certificate_files: tuple[str | os.PathLike[str], str | os.PathLike[str]] | None = None

    def client(self) -> ControllerClient:
        """Return a client of it.

        Raises:
            DependencyMissing: grpcio or protobuf is not installed.
            LocalProtocolError: the address is none.
        """
        return ControllerClient(
            self.address,
            timeout_s=self.timeout_s,
            token=self.token,
            ca_file=self.ca_file,
            certificate_files=self.certificate_files,
        )


class ControllerClient:
    """A session with the controller, for any number of flows; an asynchronous context manager that closes it.

    It connects when first asked something. It renews the leases of its flows by itself, and connects again
    if the controller goes away while it holds any; the flows' connections go on at their last rates
    meanwhile.

    Where several controllers share their state, it speaks to the one that leads, and goes on with the next
    that does.

    Args:
        address: `host:port` of the controller's gRPC interface; of several controllers, with commas between.
        timeout_s: How long an answer may take.
        token: What the controller knows this client by; None: the environment's MSTCP_CONTROLLER_TOKEN, if
            it is set.
        ca_file: PEM file of the authority that signed the controller's certificate: the channel is TLS then.
            None: the environment's MSTCP_CONTROLLER_CA, if it is set.
        certificate_files: PEM files of a certificate and its key, for a controller that asks for one.

    Raises:
        DependencyMissing: grpcio or protobuf is not installed.
        LocalProtocolError: an address is none.
    """

    def __init__(
        self,
        address: str,
        *,
        timeout_s: float = 10.0,
        token: str | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        certificate_files: tuple[str | os.PathLike[str], str | os.PathLike[str]] | None = None,
    ) -> None:
        _require("grpc.aio", "grpcio")
        _require("google.protobuf.message", "protobuf")
        self.address = address
        try:
            self._addresses = list(parse_endpoints(address))
        except ValueError as error:
            raise LocalProtocolError(f"controller: {error}") from None
        self._timeout_s = timeout_s
        self._token = token if token is not None else os.environ.get(TOKEN_VARIABLE)
        self._ca_file = ca_file if ca_file is not None else os.environ.get(CA_VARIABLE)
        self._certificate_files = certificate_files
        self._request_ids = itertools.count(1)
        self._questions: dict[int, _Question] = {}
        self._flows: dict[str, _Flow] = {}
        self._outgoing: asyncio.Queue[pb.ClientMessage | None] = asyncio.Queue()
        self._session: asyncio.Task[None] | None = None
        self._renewer: asyncio.Task[None] | None = None
        # Whether the controller has said anything in this session.
        self._has_heard = False

    async def __aenter__(self) -> ControllerClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def request(
        self,
        *,
        source: str,
        destination: str,
        destination_port: int,
        source_ports: Sequence[int],
        rate_bps: float,
        packet_bytes: int = 0,
        objective: str = "",
        paths: Sequence[RequestedPath] = (),
        max_paths: int = 0,
        segment_overhead_bytes: int = 0,
        protocol: Literal["tcp", "udp"] = "tcp",
        may_grow: bool = False,
        on_changed: OnChanged | None = None,
        on_ended: OnEnded | None = None,
    ) -> Allocation:
        """Ask for a flow; its rules are installed when this returns.

        Args:
            source: Host name or IP address of the sender.
            destination: Host name or IP address of the receiver.
            destination_port: Port of the receiver.
            source_ports: Ports bound already; the allocation uses the first of them.
            rate_bps: Goodput in bit/s.
            packet_bytes: Ethernet frame of a full segment without checksum; 0: 1514.
            objective: What to optimise; empty: the controller's default.
            paths: Paths given by hand instead of computed ones.
            max_paths: The most paths; 0: as many as source ports.
            segment_overhead_bytes: Ethernet, IP and TCP (UDP) header and options of a segment; 0: 54 (42).
            protocol: What the packets are of.
            may_grow: The other source ports stay bound, and the controller may add streams from them and take
                some off while the flow runs: `on_changed` opens and closes them, `report_streams` says so.
            on_changed: Called with the new allocation when the controller changes a running flow.
            on_ended: Called with the reason when the controller ends the flow.

        Raises:
            ControllerError: Refused, or unreachable.
        """
        from mstcp.proto import control_pb2 as pb

        message = pb.ClientMessage(
            request=pb.FlowRequest(
                source=source,
                destination=destination,
                destination_port=destination_port,
                source_ports=source_ports,
                rate_bps=rate_bps,
                packet_bytes=packet_bytes,
                objective=objective,
                paths=[pb.RequestedPath(nodes=path.nodes, rate_bps=path.rate_bps) for path in paths],
                max_paths=max_paths,
                segment_overhead_bytes=segment_overhead_bytes,
                protocol=protocol,
                may_grow=may_grow,
            )
        )
        answer = await self._ask(message, opens_flow=True, on_changed=on_changed, on_ended=on_ended)
        return _allocation(answer.allocation)

    async def change(self, flow_id: str, rate_bps: float) -> Allocation:
        """Ask for another goodput (bit/s) for a flow of this client; its streams and paths stay.

        Raises:
            ControllerError: Refused, or unreachable.
        """
        from mstcp.proto import control_pb2 as pb

        answer = await self._ask(pb.ClientMessage(change=pb.FlowChange(flow_id=flow_id, rate_bps=rate_bps)))
        return self._changed(answer.allocation)

    def report_streams(
        self, flow_id: str, open_ports: Sequence[int], failed_ports: Sequence[int], spare_ports: Sequence[int]
    ) -> None:
        """Tell how the streams of a flow with `may_grow` are; nothing is answered.

        Args:
            flow_id: The flow.
            open_ports: Source ports of the streams that are connected.
            failed_ports: Of those that were allocated and could not be opened.
            spare_ports: Bound for further ones.
        """
        from mstcp.proto import control_pb2 as pb

        if flow_id in self._flows:
            report = pb.StreamsReport(
                flow_id=flow_id, open_ports=open_ports, failed_ports=failed_ports, spare_ports=spare_ports
            )
            self._outgoing.put_nowait(pb.ClientMessage(streams=report))

    async def release(self, flow_id: str) -> None:
        """Give a flow back.

        Raises:
            ControllerError: Unknown flow, or the controller cannot be reached; its lease will run out then.
        """
        from mstcp.proto import control_pb2 as pb

        self._flows.pop(flow_id, None)
        await self._ask(pb.ClientMessage(release=pb.FlowRelease(flow_id=flow_id)))

    async def close(self) -> None:
        """End the session. Flows that were not released live until their leases run out."""
        self._flows.clear()
        for task in (self._renewer, self._session):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        self._fail_questions("the client was closed")

    # --- the session ----------------------------------------------------------------------------------------
    async def _ask(
        self,
        message: pb.ClientMessage,
        *,
        opens_flow: bool = False,
        on_changed: OnChanged | None = None,
        on_ended: OnEnded | None = None,
    ) -> pb.ServerMessage:
        message.request_id = next(self._request_ids)
        answer = asyncio.get_running_loop().create_future()
        question = _Question(message, answer, opens_flow, on_changed, on_ended)
        self._questions[message.request_id] = question
        self._outgoing.put_nowait(message)
        if self._session is None or self._session.done():
            self._session = asyncio.create_task(self._run())
        try:
            return await asyncio.wait_for(question.answer, self._timeout_s)
        except asyncio.TimeoutError:
            reason = f"{self.address} did not answer within {self._timeout_s:g} s"
            raise ControllerError("UNAVAILABLE", "", reason) from None
        finally:
            self._questions.pop(message.request_id, None)

    async def _run(self) -> None:
        """Hold a session, and begin a new one while flows depend on it."""
        first, longest = _RECONNECT_S
        delay = first
        while True:
            self._has_heard = False
            began_s = asyncio.get_running_loop().time()
            reason, was_taken = await self._run_once()
            # It was there, so it may be back soon. It does not answer renewals.
            if self._has_heard or asyncio.get_running_loop().time() - began_s > longest:
                delay = first
            self._outgoing = asyncio.Queue()
            self._addresses.append(self._addresses.pop(0))
            if was_taken or len(self._addresses) == 1:
                self._fail_questions(reason)
            if not self._flows and not self._unanswered():
                return
            LOGGER.warning("controller %s: %s; connecting again in %.1f s", self.address, reason, delay)
            await asyncio.sleep(delay)
            delay = min(2 * delay, longest)
            for question in self._unanswered():
                self._outgoing.put_nowait(question.message)
            self._renew()

    def _unanswered(self) -> list[_Question]:
        return [question for question in self._questions.values() if not question.answer.done()]

    async def _run_once(self) -> tuple[str, bool]:
        """Hold one session until it ends; return why it did, and whether what was asked may count."""
        address = self._addresses[0]
        import grpc
        import grpc.aio

        from mstcp.proto import control_pb2_grpc

        try:
            opened = self._channel()
        except OSError as error:
            return f"the certificates for {address} cannot be read: {error}", True
        async with opened as channel:
            stub = control_pb2_grpc.FlowControlStub(channel)
            metadata = (("authorization", f"Bearer {self._token}"),) if self._token else ()
            call = stub.Session(self._messages(self._outgoing), metadata=metadata)
            try:
                async for message in call:
                    self._take(message)
            except grpc.aio.AioRpcError as ended:
                told = ended
                if ended.code() is grpc.StatusCode.INTERNAL:
                    # The server ended the call while a message was being written: gRPC does not say why.
                    told = await self._refusal(channel, metadata) or ended
                if told.code() in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
                    hint = f" (give a token: token=, --controller-token-file or {TOKEN_VARIABLE})"
                    return f"{address} refuses this client: {told.details()}{hint}", True
                details = told.details() or told.code().name
                reason = unreachable(details, self._ca_file)
                was_taken = self._has_heard or not any(text in details for text in _RETRIABLE_REASONS)
                return f"cannot reach {address}: {reason}", was_taken
            finally:
                self._outgoing.put_nowait(None)  # gRPC goes on reading what a call sends after its end
        return f"{address} ended the session", True

    @staticmethod
    async def _refusal(channel: Any, metadata: Any) -> Any:
        """Ask for nothing, to learn why the server refuses; None if it does not."""
        import grpc.aio

        from mstcp.proto import control_pb2 as pb
        from mstcp.proto import control_pb2_grpc

        stub = control_pb2_grpc.ControllerStub(channel)
        try:
            await stub.RenewFlows(pb.LeaseRenewal(), metadata=metadata, timeout=_REFUSAL_S)
        except grpc.aio.AioRpcError as error:
            return error
        return None

    def _channel(self) -> Any:
        """Return a channel to the controller, protected where an authority is known.

        Raises:
            OSError: A file cannot be read.
        """
        import grpc
        import grpc.aio

        options = _SILENT_OPTIONS if len(self._addresses) > 1 else ()
        if self._ca_file is None:
            return grpc.aio.insecure_channel(self._addresses[0], options)
        roots = Path(self._ca_file).read_bytes()
        chain = key = None
        if self._certificate_files is not None:
            chain, key = (Path(file).read_bytes() for file in self._certificate_files)
        credentials = grpc.ssl_channel_credentials(roots, key, chain)
        return grpc.aio.secure_channel(self._addresses[0], credentials, options)

    @staticmethod
    async def _messages(queue: asyncio.Queue[pb.ClientMessage | None]) -> AsyncIterator[pb.ClientMessage]:
        while (message := await queue.get()) is not None:
            yield message

    def _fail_questions(self, reason: str) -> None:
        for question in self._unanswered():
            question.answer.set_exception(ControllerError("UNAVAILABLE", "", reason))

    def _take(self, message: pb.ServerMessage) -> None:
        """Handle one message of the controller."""
        from mstcp.proto import control_pb2 as pb

        self._has_heard = True
        kind = message.WhichOneof("body")
        if kind == "changed":
            self._changed(message.changed.allocation)
        elif kind == "ended":
            flow = self._flows.pop(message.ended.flow_id, None)
            if flow is not None and flow.on_ended is not None:
                flow.on_ended(message.ended.reason)
        else:
            question = self._questions.get(message.request_id)
            if question is None or question.answer.done():
                if kind == "allocation" and message.allocation.flow_id not in self._flows:
                    # Came after its asker had gone.
                    release = pb.FlowRelease(flow_id=message.allocation.flow_id)
                    self._outgoing.put_nowait(pb.ClientMessage(release=release))
            elif kind == "error":
                code = pb.Error.Code.Name(message.error.code)
                question.answer.set_exception(
                    ControllerError(code, message.error.field, message.error.reason)
                )
            else:
                if question.opens_flow:
                    self._hold(_Flow(_allocation(message.allocation), question.on_changed, question.on_ended))
                question.answer.set_result(message)

    # --- flows ----------------------------------------------------------------------------------------------
    def _hold(self, flow: _Flow) -> None:
        self._flows[flow.allocation.flow_id] = flow
        if self._renewer is not None:
            self._renewer.cancel()
            self._renew()  # or a steady trickle of new flows would keep putting it off
        self._renewer = asyncio.create_task(self._keep_renewing())

    async def _keep_renewing(self) -> None:
        while self._flows:
            lease_s = min(flow.allocation.lease_s for flow in self._flows.values())
            await asyncio.sleep(max(lease_s / _RENEWALS_A_LEASE, 0.01))
            self._renew()

    def _renew(self) -> None:
        from mstcp.proto import control_pb2 as pb

        if self._flows:
            self._outgoing.put_nowait(pb.ClientMessage(renewal=pb.LeaseRenewal(flow_ids=list(self._flows))))

    def _changed(self, message: pb.Allocation) -> Allocation:
        allocation = _allocation(message)
        flow = self._flows.get(allocation.flow_id)
        if flow is not None:
            flow.allocation = allocation
            if flow.on_changed is not None:
                try:
                    flow.on_changed(allocation)
                except MstcpError as error:
                    LOGGER.warning("flow %s keeps its rates: %s", allocation.flow_id, error)
        return allocation


def _require(module: str, package: str) -> None:
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise DependencyMissing(package, "control") from error


def unreachable(details: str, ca_file: str | os.PathLike[str] | None) -> str:
    """Return in a sentence why gRPC could not connect, by what it says, and what to do about TLS."""
    where = f"ca_file=, --controller-ca or {CA_VARIABLE}"
    if "WRONG_VERSION_NUMBER" in details:
        return f"it does not speak TLS: leave out {where}"
    if "CERTIFICATE_VERIFY_FAILED" in details:
        return f"its certificate is not one for this address by an authority in {ca_file}"
    reason = details.removeprefix("failed to connect to all addresses; last error: ").removeprefix(
        "UNKNOWN: "
    )
    if ca_file is None and "Socket closed" in details:
        return f"{reason} (where it speaks TLS, give the certificate of its authority: {where})"
    return reason


def _allocation(message: pb.Allocation) -> Allocation:
    return Allocation(
        flow_id=message.flow_id,
        requested_bps=message.requested_bps,
        rate_bps=message.rate_bps,
        streams=tuple(
            StreamSpec(stream.source_port, stream.rate_bps, stream.delay_s, tuple(stream.path) or None)
            for stream in message.streams
        ),
        lease_s=message.lease_s,
    )
