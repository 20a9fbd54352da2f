"""Shared by the tests of the experiments."""

from __future__ import annotations

import os
import shutil
import socket
from contextlib import ExitStack

import pytest

from experiments.engines.live.requirements import PROGRAMS


@pytest.fixture
def live_machine() -> None:
    """Skip where no live run can be made."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    for program in ("unshare", *PROGRAMS):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")


@pytest.fixture
def free_port() -> int:
    """A TCP port of loopback that was free a moment ago."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@pytest.fixture
def free_ports() -> list[int]:
    """Four TCP ports of loopback that were free a moment ago."""
    with ExitStack() as stack:
        socks = [stack.enter_context(socket.socket()) for _ in range(4)]
        for sock in socks:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in socks]
