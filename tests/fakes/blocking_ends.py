"""Both ends of a blocking MSTCP connection over loopback."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from mstcp import StreamSpec, blocking
from tests.fakes.waiting import TIMEOUT_S

Ends = tuple[blocking.Socket, blocking.Socket]


@contextlib.contextmanager
def connected(
    count: int = 2, host: str = "127.0.0.1", *, server: dict[str, Any] | None = None, **options: Any
) -> Iterator[Ends]:
    """Yield client and server; `server` are the server's options, `options` the client's."""
    with blocking.create_server((host, 0), plain=count == 1, timeout=TIMEOUT_S, **(server or {})) as listener:
        ours = blocking.create_connection(
            listener.getsockname()[:2], streams=[StreamSpec()] * count, timeout=TIMEOUT_S, **options
        )
        theirs, peer = listener.accept()
        theirs.settimeout(TIMEOUT_S)
        assert peer == ours.getsockname()
        with ours, theirs:
            yield ours, theirs
