"""Errors of the controller. Catch `ControllerError` for all of them.

    ControllerError
    ├── ConfigError              a setting or the topology file cannot be used
    ├── RequestError             a request that is refused; carries `code` and `field`
    │   ├── InvalidRequest       a field has a value that no network could serve
    │   ├── NotFound             no such host or flow
    │   ├── Conflict             a port in use, or capacity that other flows hold
    │   ├── InfeasibleRequest    the network as it is cannot serve it
    │   ├── Unavailable          a switch did not confirm, or the controller is stopping
    │   │   └── NotLeading       another replica of the controller decides
    │   ├── Unauthenticated      no token, or none that is known
    │   ├── Forbidden            the token does not give the right to do this
    │   ├── PreconditionFailed   the flow or link has changed since the client looked at it
    │   └── DeadlineExceeded     the time that the client gave is over
    ├── StoreError               what must survive a restart cannot be read or written; carries `store`
    │   ├── WrongFormat          another version of the controller has written it
    │   └── Fenced               the store does not obey this replica, or nobody knows whether it has
    └── CoreFailed               the core cannot go on, and the process ends with status 70

The solver has errors of its own (`gomr.errors`); `FAILURES` are both.

Each failure a client can see is one of RequestError's kinds, the same over REST and gRPC.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, TypeAlias

from gomr.errors import GomrError


class ErrorCode(str, Enum):
    """Why a request was refused; the names of `Error.Code` in mstcp/proto/control.proto."""

    INVALID = "INVALID"
    NOT_FOUND = "NOT_FOUND"
    CONFLICT = "CONFLICT"
    INFEASIBLE = "INFEASIBLE"
    UNAVAILABLE = "UNAVAILABLE"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    PRECONDITION_FAILED = "PRECONDITION_FAILED"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"


class ControllerError(Exception):
    """Root of the controller's errors."""


@dataclass(eq=False)
class ConfigError(ControllerError):
    """A setting cannot be used.

    Attributes:
        setting: Name of the setting, as on the command line.
        reason: What is wrong with it and what to do, as a sentence.
    """

    setting: str
    reason: str

    def __str__(self) -> str:
        return f"{self.setting}: {self.reason}"


@dataclass(eq=False)
class RequestError(ControllerError):
    """A request that is refused.

    Attributes:
        code: The kind of refusal, the same over REST and gRPC.
        field: Name of the field that is to blame; empty where it is none of them.
        reason: What is wrong and what to do, as a sentence.
    """

    code: ClassVar[ErrorCode] = ErrorCode.INVALID
    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}" if self.field else self.reason


class InvalidRequest(RequestError):
    """A field has a value that no network could serve."""

    code = ErrorCode.INVALID


def key_of_another() -> InvalidRequest:
    """Return the refusal of a key that belongs to another request."""
    return InvalidRequest(
        "Idempotency-Key", "was used for another request; choose a new one for each request"
    )


class NotFound(RequestError):
    """No such host or flow."""

    code = ErrorCode.NOT_FOUND


def unknown_flow(flow_id: str, field: str = "flow_id") -> NotFound:
    """Return the refusal where there is no such flow."""
    return NotFound(field, f"there is no flow {flow_id!r}; it may have ended with its lease")


class Conflict(RequestError):
    """Something the request needs is in use: a port, or capacity that other flows hold."""

    code = ErrorCode.CONFLICT


class InfeasibleRequest(RequestError):
    """The network as it is cannot serve the request."""

    code = ErrorCode.INFEASIBLE


class Unavailable(RequestError):
    """A switch did not confirm in time, or the controller is stopping."""

    code = ErrorCode.UNAVAILABLE


class NotLeading(Unavailable):
    """Another replica of the controller decides."""

    def __init__(self) -> None:
        super().__init__("", "this replica does not lead, or does so no more; ask again in a moment")


class Unauthenticated(RequestError):
    """No token was sent, or one that the controller does not know."""

    code = ErrorCode.UNAUTHENTICATED


class Forbidden(RequestError):
    """The client's token does not give it the right to do this."""

    code = ErrorCode.FORBIDDEN


def flow_of_another(flow_id: str) -> Forbidden:
    """Return the refusal where a flow is another client's."""
    return Forbidden("flow_id", f"{flow_id} is another client's; only that or an administrator may")


class PreconditionFailed(RequestError):
    """It has changed since the client looked at it."""

    code = ErrorCode.PRECONDITION_FAILED


class DeadlineExceeded(RequestError):
    """The time that the client gave for its request is over."""

    code = ErrorCode.DEADLINE_EXCEEDED


@dataclass(eq=False)
class StoreError(ControllerError):
    """What must survive a restart cannot be read or written.

    Attributes:
        store: Its place, as a path.
        reason: What is wrong with it.
    """

    store: str
    reason: str

    def __str__(self) -> str:
        return f"the store {self.store} cannot be used: {self.reason}"


class WrongFormat(StoreError):
    """Another version of the controller has written what is in the store."""


class Fenced(StoreError):
    """The store does not obey this replica, or nobody knows whether it has."""


class CoreFailed(ControllerError):
    """The core cannot go on, a fault of ours. The process ends, for its supervisor to start it again."""


AnyFailure: TypeAlias = ControllerError | GomrError
FAILURES = (ControllerError, GomrError)
"""What stops a request or a plan: an error of the controller, or of the solver."""
