"""Frames that are authenticated without TLS: nothing that is done in the path comes to the application."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import mstcp
from mstcp import LocalProtocolError, RemoteProtocolError, StreamSpec
from tests.fakes.echo_server import echo_server
from tests.fakes.tcp_server import PassOn, relay

SECRET = b"between us"
SERVER: dict[str, Any] = {"plain": False, "secret": SECRET}
DATA = bytes(range(256)) * 4000
AFTER_BYTES = 20_000
"""What goes by unharmed before somebody in the path does something: the hellos, and some frames."""

Deed = Callable[[bytes], bytes]


class InThePath:
    """Does one thing to what a client sends, and nothing after."""

    def __init__(self, deed: Deed) -> None:
        self._deed: Deed | None = deed

    @property
    def is_done(self) -> bool:
        return self._deed is None

    def path(self) -> PassOn:
        """Return what passes a stream on."""
        count = 0

        async def pass_on(direction: int, data: bytes) -> bytes:
            nonlocal count
            count += len(data) if direction == 0 else 0
            if direction == 0 and count > AFTER_BYTES and self._deed is not None:
                data, self._deed = self._deed(data), None
            return data

        return pass_on


async def echoed(port: int, streams: int, **options: Any) -> bytes:
    """Return what comes back of DATA."""
    specs = [StreamSpec()] * streams
    reader, writer = await mstcp.open_connection(
        "127.0.0.1", port, streams=specs, secret=SECRET, authenticate_frames=True, **options
    )
    async with writer.transport:
        assert writer.get_extra_info("protocol") == "mstcp"
        # The server has read the CONFIRM when something comes back.
        writer.write(DATA[:1])
        first = await asyncio.wait_for(reader.readexactly(1), 60)
        writer.write(DATA[1:])
        return first + await asyncio.wait_for(reader.readexactly(len(DATA) - 1), 60)


@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("required", [False, True])
async def test_authenticated_streams_carry_everything(streams: int, required: bool) -> None:
    async with echo_server(**SERVER, authenticate_frames=required) as echo:
        assert await echoed(echo.port, streams) == DATA


@pytest.mark.parametrize(
    "deed",
    [
        pytest.param(lambda data: data[:-1] + bytes([data[-1] ^ 1]), id="changed"),
        pytest.param(lambda data: data + data, id="replayed"),
        pytest.param(lambda data: data[: len(data) // 2], id="left out"),
        pytest.param(lambda data: b"\0\0\0\1x" + bytes(16) + data, id="put in"),
    ],
)
async def test_what_is_done_in_the_path_never_comes_to_the_application(deed: Deed) -> None:
    """The stream is lost, what it carried goes over the other, and it is opened again."""
    between = InThePath(deed)
    async with (
        echo_server(**SERVER, authenticate_frames=True) as echo,
        relay(echo.port, between.path) as port,
    ):
        assert await echoed(port, 2) == DATA
        assert between.is_done


async def test_a_server_that_requires_it_says_so() -> None:
    async with echo_server(**SERVER, authenticate_frames=True) as echo:
        with pytest.raises(RemoteProtocolError, match="takes authenticated frames alone"):
            await mstcp.open_connection("127.0.0.1", echo.port, streams=[StreamSpec()] * 2, secret=SECRET)


@pytest.mark.parametrize("options", [{}, {"secret": b""}, {"secret": SECRET, "ssl": True}])
async def test_without_a_secret_or_beside_tls_it_is_refused_before_anything_is_sent(options: Any) -> None:
    with pytest.raises(LocalProtocolError, match="authenticate_frames"):
        await mstcp.open_connection("127.0.0.1", 9, authenticate_frames=True, **options)
