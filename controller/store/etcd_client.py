"""Calls etcd's gRPC interface: one server after the other, until one answers or time is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc

from controller.errors import StoreError
from controller.store import etcd_pb2 as pb

_TRY_S = 0.5
"""Time for a server to answer; then the next one is asked."""

_PAUSE_S = 0.03
"""Between two tries, where all servers have refused one after the other."""

_PASSING = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)
_OPTIONS = (
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.enable_retries", 0),
)
_HAS_LEADER = ("hasleader", "true")
"""A server that is cut off from the others refuses instead of saying what it knew before."""

_Message = TypeVar("_Message")


@dataclass(frozen=True)
class EtcdAccess:
    """How etcd's servers are reached.

    Attributes:
        endpoints: `HOST:PORT` of each.
        authority: PEM of the authority that has signed their certificates; None: no TLS.
        certificate: PEM of our certificate and its key, where they ask for one.
        user: Name and password; None: etcd asks for none.
    """

    endpoints: tuple[str, ...]
    authority: bytes | None = None
    certificate: tuple[bytes, bytes] | None = None
    user: tuple[str, str] | None = None


class EtcdClient:
    """Calls methods by their names; may be used by several threads."""

    def __init__(self, access: EtcdAccess) -> None:
        self.place = "etcd://" + ",".join(access.endpoints)
        self._user = access.user
        self._token: str | None = None
        self._channels = [self._channel(access, endpoint) for endpoint in access.endpoints]
        self._at = 0  # the server that answered last
        self._calls: dict[tuple[int, str], Any] = {}

    @staticmethod
    def _channel(access: EtcdAccess, endpoint: str) -> grpc.Channel:
        if access.authority is None:
            return grpc.insecure_channel(endpoint, _OPTIONS)
        certificate, key = access.certificate or (None, None)
        credentials = grpc.ssl_channel_credentials(access.authority, key, certificate)
        return grpc.secure_channel(endpoint, credentials, _OPTIONS)

    def close(self) -> None:
        """End all connections, and what is under way on them."""
        for channel in self._channels:
            channel.close()

    def call(
        self,
        method: str,
        request: Any,
        answer: type[_Message],
        goes_on: Callable[[], bool],
        stream: bool = False,
    ) -> _Message:
        """Return the answer to a request.

        `goes_on` is asked before each further try; once it says no, it was too late. On a stream one request
        goes out and one answer comes back.

        Raises:
            StoreError: etcd refuses it, or no server has answered in time.
        """
        while True:
            at = self._at
            try:
                return self._try(at, method, request, answer, stream)
            except grpc.RpcError as error:
                reason = self._reason(error)
                if self._is_about_token(error):
                    self._token = None
                elif error.code() not in _PASSING:
                    raise StoreError(self.place, reason) from None
            if not goes_on():
                raise StoreError(self.place, f"no server has answered in time ({reason})")
            self._at = (at + 1) % len(self._channels)
            if self._at == 0:
                time.sleep(_PAUSE_S)

    def _try(self, at: int, method: str, request: Any, answer: type[_Message], stream: bool) -> _Message:
        metadata = self._metadata(at)
        call = self._method(at, method, answer, stream)
        if not stream:
            result: _Message = call(request, timeout=_TRY_S, metadata=metadata)
            return result
        answers = call(iter((request,)), timeout=_TRY_S, metadata=metadata)
        try:
            first: _Message = next(answers)
            return first
        finally:
            answers.cancel()

    def stream(self, method: str, requests: Iterator[Any], answer: type[_Message]) -> Any:
        """Return the answers to requests as they come, from the server that answered last.

        They end with grpc.RpcError; `cancel` ends them.
        """
        call = self._method(self._at, method, answer, stream=True)
        return call(requests, metadata=self._metadata(self._at))

    def try_another(self) -> None:
        """Ask another server next."""
        self._at = (self._at + 1) % len(self._channels)

    def _metadata(self, at: int) -> tuple[tuple[str, str], ...]:
        if self._user is None:
            return (_HAS_LEADER,)
        if self._token is None:
            name, password = self._user
            login = pb.Authenticate(name=name, password=password)
            call = self._method(at, "Auth/Authenticate", pb.Authenticated, stream=False)
            self._token = call(login, timeout=_TRY_S).token
        return (_HAS_LEADER, ("token", self._token))

    def _method(self, at: int, method: str, answer: Any, stream: bool) -> Any:
        key = at, method
        if key not in self._calls:
            channel = self._channels[at]
            make = channel.stream_stream if stream else channel.unary_unary
            self._calls[key] = make(
                f"/etcdserverpb.{method}",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=answer.FromString,
            )
        return self._calls[key]

    def _is_about_token(self, error: Any) -> bool:
        """Return whether a token has run out: then the next try asks for another."""
        return self._token is not None and "invalid auth token" in str(error.details())

    @staticmethod
    def _reason(error: Any) -> str:
        return str(error.details() or error.code().name)


def until(deadline: float, clock: Callable[[], float] = time.monotonic) -> Callable[[], bool]:
    """Return what says whether a time is still to come."""
    return lambda: clock() < deadline
