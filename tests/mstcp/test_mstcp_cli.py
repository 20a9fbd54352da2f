"""The `mstcp` command."""

from __future__ import annotations

import asyncio
import hashlib
import re
import sys
from pathlib import Path

import pytest

import mstcp
from mstcp.cli import main
from mstcp.proto.generate import ROOT
from tests.fakes.flow_controller import FlowController


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"mstcp {mstcp.__version__}\n"


async def run(*arguments: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "mstcp.cli",
        *arguments,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def test_allocate_prints_the_allocation_and_gives_it_back() -> None:
    async with FlowController() as controller:
        status, out, err = await run(
            "allocate", "127.0.0.1", "--port", "9000", "--rate", "8.5e6", "--controller", controller.address
        )
        assert (status, err) == (0, "")
        assert "8.5 of 8.5 Mbit/s" in out
        assert re.search(r"4.25 Mbit/s  3 ms  T0 S1 T2", out)
        assert controller.released == ["flow-1"]


async def test_what_fails_says_why() -> None:
    status, out, err = await run("send", "127.0.0.1", "1", "no such file")
    assert (status, out) == (1, "")
    assert "mstcp send: [Errno 2] No such file" in err


async def test_send_and_receive_agree_on_the_digest(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(bytes(range(256)) * 5000)
    with_port = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1")
    port = str(with_port.sockets[0].getsockname()[1])
    with_port.close()
    await with_port.wait_closed()
    receiving = asyncio.create_task(run("receive", port, str(target)))
    for _ in range(100):
        status, sent, _ = await run("send", "127.0.0.1", port, str(source))
        if status == 0:
            break
    _, received, _ = await receiving
    assert sent == received == hashlib.sha256(source.read_bytes()).hexdigest() + "\n"
    assert target.read_bytes() == source.read_bytes()
