"""The protocol core (crates/mstcp-core), pure and sans-IO: no sockets, no clock, no global random numbers.

`gomr` is the controller's routing engine and `sim` the simulator; they share this compiled module.
"""

from typing import final

from mstcp._core import gomr, sim

__all__ = [
    "FRAME_HEADER_BYTES",
    "HELLO_PREFIX_BYTES",
    "MAGIC",
    "MAX_FRAME_PAYLOAD_BYTES",
    "MAX_STREAMS",
    "PROTOCOL_VERSION",
    "SCHEDULERS",
    "Connection",
    "Statistics",
    "decode_hello",
    "encode_hello",
    "gomr",
    "hello_body_bytes",
    "sim",
]

MAGIC: bytes
"""The first bytes on every stream."""
HELLO_PREFIX_BYTES: int
"""Bytes before the hello message: the magic and the message's length."""
FRAME_HEADER_BYTES: int
"""What a full-size frame costs beside its payload."""
MAX_FRAME_PAYLOAD_BYTES: int
MAX_STREAMS: int
PROTOCOL_VERSION: int
SCHEDULERS: list[str]
"""The names of the schedulers."""

@final
class Statistics:
    """What a connection has carried; bytes are application bytes."""

    @property
    def streams(self) -> list[tuple[int, int, int, int, int]]:
        """Of each stream: frames sent, bytes sent, frames received, bytes received, out-of-order frames."""

    @property
    def out_of_order_frames(self) -> int: ...
    @property
    def reorder_bytes(self) -> int: ...
    @property
    def reorder_max_bytes(self) -> int: ...
    @property
    def queued_bytes(self) -> int: ...

@final
class Connection:
    """Both directions of one connection, after the hellos."""

    def __new__(
        cls,
        weights: list[float],
        frame_payload_bytes: int,
        *,
        scheduler: str,
        seed: int,
        send_queue_bytes: int,
        reorder_buffer_bytes: int,
    ) -> Connection:
        """Make a connection of `len(weights)` streams; LocalProtocolError on impossible values."""

    def write(self, data: bytes, /) -> None:
        """Queue application bytes; BufferLimitExceeded if the queue is not empty and would pass its bound."""

    def end(self) -> None:
        """Say that no more application bytes will come."""

    def poll(self, now_ns: int, /) -> tuple[int, bytes] | None:
        """Return the stream that sends next and the bytes; None if nothing waits or no stream has room."""

    def sent(self, stream: int, count: int, /) -> bool:
        """Report how many of the polled bytes the socket took; True if the stream has sent its last byte."""

    def writable(self, stream: int, /) -> None:
        """Note that a stream's socket has room again."""

    def receive(self, stream: int, data: bytes, /) -> bytes:
        """Take a stream's bytes, return those now in order; RemoteProtocolError ends the connection."""

    def stream_end(self, stream: int, /) -> None:
        """Note that TCP ended a stream; RemoteProtocolError if it was not finished."""

    def set_weights(self, weights: list[float], /) -> None:
        """Take new weights, one per stream: rates in bit/s where they are known."""

    def set_delay(self, stream: int, delay_ns: int, /) -> None:
        """Take the one-way propagation delay of a stream's path."""

    def unsent(self, now_ns: int, stream: int, unsent_bytes: int, /) -> None:
        """Report how many bytes of a stream are still in the host."""

    def blocked(self, stream: int, /) -> bool:
        """Return whether the stream's socket was full when last tried."""

    @property
    def readable(self) -> int:
        """The streams that should be read now, one bit each, stream 0 lowest."""

    @property
    def queued_bytes(self) -> int: ...
    @property
    def finished(self) -> bool:
        """Whether the sockets took everything, the FINs included."""

    @property
    def ended(self) -> bool:
        """Whether all of the peer's bytes have been delivered."""

    def statistics(self) -> Statistics: ...

def encode_hello(
    connection_id: bytes, stream_index: int, stream_count: int, frame_payload_bytes: int, proof: bytes
) -> bytes:
    """Return the bytes that open a stream: magic, length, message."""

def hello_body_bytes(prefix: bytes, /) -> int:
    """Return the length of the message that follows the prefix; RemoteProtocolError if it is none."""

def decode_hello(body: bytes, /) -> tuple[bytes, int, int, int, bytes]:
    """Return connection id, stream index, stream count, frame payload bytes and proof of a hello message."""
