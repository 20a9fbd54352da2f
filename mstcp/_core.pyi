"""The protocol core (crates/mstcp-proto), pure and sans-IO: no sockets, clock or global random numbers."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, final

from mstcp.open.connect import DriverOptions
from mstcp.stream_requests import StreamRequest

__all__ = [
    "MAX_EARLY_BYTES",
    "MAX_PRIORITY",
    "MAX_STREAMS",
    "SCHEDULERS",
    "Action",
    "Connection",
    "Counters",
    "Incoming",
    "LoopWaker",
    "Readiness",
    "Server",
    "Waiter",
    "keep_waiting_threads",
    "limit_receive_memory",
    "receive_memory",
    "sends_timestamps",
]

MAX_EARLY_BYTES: int
"""The most application bytes that may come with the first hello."""
MAX_PRIORITY: int
MAX_STREAMS: int
SCHEDULERS: list[str]
"""The names of the schedulers."""

@final
class Counters:
    """What a connection has carried; bytes are application bytes."""

    @property
    def streams(self) -> list[tuple[int, int, int, int, int, int, int]]:
        """For each stream: frames and bytes sent, frames and bytes received, out of order, resent, stalls."""

    @property
    def out_of_order_frames(self) -> int: ...
    @property
    def reorder_bytes(self) -> int: ...
    @property
    def reorder_max_bytes(self) -> int: ...
    @property
    def queued_bytes(self) -> int: ...
    @property
    def unacknowledged_bytes(self) -> int: ...
    @property
    def duplicate_bytes(self) -> int: ...

@final
class Action:
    """What a transport is to do.

    By `kind`:

    | | |
    |---|---|
    | watch | have the loop tell of `socket` (`descriptor`): `for_bytes`, `for_room`, or neither |
    | unwatch | `socket` is used no more: close it, if the stream has joined |
    | timer | call `due` at `due_ns` |
    | joined | `stream` (`number`, `rate_bps`, `priority`) is open inside `layer`: close its `descriptor` |
    | opened | a client's connection is open |
    | unreachable | the stream of this `number` could not be opened at first, by `error`; it is tried again |
    | deliver | bytes are in order, or have ended: `take` until there are none |
    | pause, resume | write no more, write again |
    | lost | `stream` is gone, by `loss`: finished, removed, ended, silent, or broken with an `errno` |
    | stalled, recovered | nothing comes through `stream`, or something does again |
    | ended | it is over, by `error`, or by `loss`: lost (all streams), broken (the plain one) |
    """

    @property
    def kind(self) -> str: ...
    @property
    def socket(self) -> int: ...
    @property
    def for_bytes(self) -> bool: ...
    @property
    def for_room(self) -> bool: ...
    @property
    def stream(self) -> int: ...
    @property
    def number(self) -> int: ...
    @property
    def loss(self) -> str: ...
    @property
    def errno(self) -> int: ...
    @property
    def error(self) -> Exception | None: ...
    @property
    def due_ns(self) -> int: ...
    @property
    def descriptor(self) -> int: ...
    @property
    def is_ipv6(self) -> bool: ...
    @property
    def rate_bps(self) -> float | None: ...
    @property
    def priority(self) -> int: ...
    @property
    def layer(self) -> Any: ...

@final
class Connection:
    """The driver of a connection (`mstcp_net::Driver`): it waits for nothing, and `actions` says what to do.

    After each call that takes `now_ns` what `actions` says is to be done.
    """

    @staticmethod
    def connect(
        now_ns: int,
        destinations: list[Any],
        streams: list[StreamRequest],
        options: DriverOptions,
        cipher: Callable[[], object] | None,
        /,
    ) -> Connection:
        """Open a connection of a client to one of some socket addresses; `cipher` makes each stream's TLS."""

    def readable(self, now_ns: int, socket: int, deliver: bool, /) -> list[bytes]:
        """Read a socket, send what follows, and return what is in order if `deliver`; see `take`."""

    def writable(self, now_ns: int, socket: int, /) -> None:
        """Note that a socket has room, and send."""

    def due(self, now_ns: int, /) -> None:
        """Do what is due."""

    def settle(self, now_ns: int, /) -> None:
        """Send what is to be sent: after calls that take no `now_ns`."""

    def actions(self) -> list[Action]:
        """Return what is to be done, in this order."""

    def start(self) -> None:
        """Have the streams read from now on."""

    def stand_by(self, stands_by: bool, /) -> None:
        """Have no socket watched, as others use them, or have them watched again."""

    def hold(self, holds: bool, /) -> None:
        """Say whether the application takes nothing now: what comes is joined, or stays in the kernel."""

    def take(self) -> list[bytes]:
        """Return bytes that are in order, half a megabyte or so, in as many objects as spares copying them.

        The peer may then send as many more, and hears of it by `settle`.
        """

    def hand_over(self, waker: LoopWaker, number: int, /) -> Waiter:
        """Allow threads to drive the connection; they wake the loop with this number."""

    def write_file(self, descriptor: int, offset: int, length: int, /) -> None:
        """Queue a part of a file, 1 byte at least, without copying it; OSError if it cannot be mapped.

        The part must be within the file, which must not be cut short until the peer has it.
        """

    def write_now(self, now_ns: int, data: bytes, /) -> None:
        """Queue and send bytes; BufferLimitExceeded if the queue is not empty and would pass its bound."""

    def end(self, now_ns: int, /) -> None:
        """Send the end after what was written."""

    def close(self, now_ns: int, /) -> None:
        """Send what was written and the end, then close; nothing more is received."""

    def abort(self, now_ns: int, code: int, reason: str, /) -> None:
        """Close at once, and tell the peer why."""

    def give_up(self, now_ns: int, /) -> None:
        """Close at once, without a word."""

    def set_write_limits(self, most_bytes: int, few_bytes: int, /) -> None:
        """Pause writing above this many queued bytes, and resume at `low`."""

    def set_rates(self, now_ns: int, rates: Sequence[tuple[int, float | None]], /) -> None:
        """Pace streams, by their numbers, at other rates; LocalProtocolError if all would be 0."""

    def remove_stream(self, now_ns: int, number: int, /) -> None:
        """Take a stream out once its frames are reported; LocalProtocolError if it is the last, or none."""

    def dial(self, now_ns: int, stream: StreamRequest, /) -> int:
        """Open a further stream of a client; return its number."""

    def announce(self, now_ns: int, addresses: Sequence[tuple[str, int]], /) -> None:
        """Announce to the client at which further addresses streams are accepted."""

    def network_changed(self, now_ns: int, /) -> None:
        """Give up streams from addresses that are gone, and open what is to be opened at once."""

    @property
    def is_joining(self) -> bool:
        """Whether streams are being opened that have not failed yet."""

    def set_delay(self, stream: int, delay_ns: int, /) -> None:
        """Take the one-way propagation delay of a stream's path."""

    def set_priority(self, stream: int, priority: int, /) -> None:
        """Use a stream by this priority, the lowest first, in both directions."""

    def greet(self, now_ns: int, /) -> None:
        """Say the first hello, with what was written, if the connection is open before it."""

    def set_keepalive(self, idle_ns: int | None, probes: int, /) -> None:
        """Ask for a sign of life after so much silence, and give up after this many that nothing answers."""

    @property
    def connection_id(self) -> bytes | None:
        """The connection's id, if the driver opened it."""

    @property
    def frame_payload_bytes(self) -> int:
        """Application bytes in a full-size frame, or in a segment of plain TCP."""

    @property
    def is_plain(self) -> bool:
        """Whether it is plain TCP."""

    @property
    def alive(self) -> int:
        """The streams that are alive, one bit each, stream 0 lowest."""

    @property
    def stalled(self) -> int:
        """Those of them that bring nothing through."""

    @property
    def ready_bytes(self) -> int:
        """How many bytes `take` would return."""

    @property
    def queued_bytes(self) -> int:
        """Application bytes that no socket has taken."""

    @property
    def sent_bytes(self) -> int:
        """Bytes that the sockets have taken, headers included."""

    @property
    def unacknowledged_bytes(self) -> int:
        """Those of them that the peer's kernel has not acknowledged."""

    @property
    def ended(self) -> bool:
        """Whether all of the peer's bytes have been taken."""

    def counters(self) -> Counters: ...

@final
class Server:
    """The connections of a listening server, and who may open one.

    Streams that say nothing for `plain_after_s`, or do not begin as a hello, are plain TCP; 0: all are, None:
    none is.
    """

    def __new__(
        cls,
        *,
        secret: bytes,
        authenticate_frames: bool,
        max_connections: int,
        plain_after_s: float | None,
        plain_payload_bytes: int,
        takes_early_data: bool,
        max_hellos_per_s: float,
        hello_timeout_s: float,
        scheduler: str,
        seed: int | None,
        send_queue_bytes: int,
        reorder_buffer_bytes: int,
        reconnect_timeout_s: float,
        announced: Sequence[tuple[str, int]],
    ) -> Server: ...
    def accept(self, now_ns: int, descriptor: int, layer: object | None, /) -> Incoming:
        """Begin with an accepted socket, which is the core's now; MstcpError if it may not come in."""

@final
class Incoming:
    """An accepted socket until it opens a connection, joins one or is closed."""

    def fileno(self) -> int:
        """Return its descriptor, to be watched."""

    @property
    def for_bytes(self) -> bool: ...
    @property
    def for_room(self) -> bool: ...
    @property
    def due_ns(self) -> int:
        """When to call `advance` though nothing happened."""

    @property
    def unconfirmed(self) -> bytes | None:
        """The connection that it opens once it is confirmed, as by a stream that joins: `advance` then."""

    @property
    def error(self) -> Exception | None:
        """Why it was closed; None where its connection had ended well."""

    def advance(self, now_ns: int, /) -> Literal[True] | bytes | Connection | None:
        """Go on.

        Returns:
            True: it waits. Else it is done: the connection that it has opened, the id of that which it has
            joined and whose `due` is to be called, or None if it was closed.
        """

    def close(self) -> None:
        """Close it."""

@final
class LoopWaker:
    """Wakes an event loop that threads want something of."""

    def __new__(cls) -> LoopWaker:
        """Make one; OSError if there is no descriptor left."""

    def fileno(self) -> int:
        """Return the descriptor that the loop watches: readable once a thread has woken it."""

    def take(self) -> list[int]:
        """Return the numbers that woke the loop since the last call."""

def keep_waiting_threads() -> None:
    """Keep threads that wait in a `Waiter` there for good: the process ends."""

@final
class Readiness:
    """A descriptor that is readable as long as something is there, for `select` and its kind."""

    def __new__(cls) -> Readiness:
        """Make one that is not readable; OSError if there is no descriptor left."""

    def fileno(self) -> int:
        """Return the descriptor; nothing is to be read from it."""

    def set(self, is_set: bool, /) -> None:
        """Make it readable, or not."""

@final
class Waiter:
    """A connection that an event loop and the threads which wait for it drive in turn.

    One thread may receive while another sends. A timeout is in nanoseconds: None waits for ever; with 0
    nothing waits (BlockingIOError) and the loop goes on driving the connection. Signal handlers run as within
    Python's own sockets, and what they raise ends a wait.
    """

    def receive(self, now_ns: int, size: int, timeout_ns: int | None, keeps: bool = False, /) -> bytes | None:
        """Return bytes in order, 1 MiB at most; b"" at their end, None once closed or dismissed.

        Where it `keeps` them they are received again.
        """

    def receive_into(self, now_ns: int, buffer: object, timeout_ns: int | None, /) -> int | None:
        """As `receive`, into a buffer that is not empty; return how many bytes."""

    def send(self, now_ns: int, data: bytes, most: int, few: int, timeout_ns: int | None, /) -> bool:
        """Write and transmit; False once closed or dismissed.

        Waits first, if `most` bytes are queued, until `few` are.
        """

    def fileno(self) -> int:
        """Return a descriptor that is readable while `receive` would return at once."""

    def dismiss(self, readers: bool, writers: bool, /) -> None:
        """Have those that wait return, and nobody wait any more."""

    def requests(self) -> tuple[bool, bool, bool]:
        """Return what the loop is asked for since the last call: to stand by, to `claim`, to `look`."""

    @property
    def is_out(self) -> bool:
        """Whether threads have the sockets."""

    def look(self, now_ns: int, idle_ns: int, /) -> str:
        """Return how threads use the connection.

        "idle": not for `idle_ns`, the loop has it back; "recent"; "waiting": one has waited since the last
        call, and rings when it leaves.
        """

    def claim(self) -> bool:
        """Take the connection back unless one of the threads polls it now; return whether the loop has it."""

def sends_timestamps() -> bool:
    """Return whether this network namespace's TCP sends timestamps; True where it does not say."""

def limit_receive_memory(limit_bytes: int, /) -> None:
    """Bound what all connections may promise to receive beyond 256 KiB each."""

def receive_memory() -> tuple[int, int]:
    """Return what is promised now, and the bound, in bytes."""
