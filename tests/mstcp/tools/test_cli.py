"""The `mstcp` command."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import hashlib
import io
import json
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import mstcp
from mstcp.proto.generate import ROOT
from mstcp.tools.cli import main
from mstcp.tools.progress import Progress, progress_line
from tests.fakes.flow_controller import FlowController
from tests.fakes.mstcp_command import ended, mstcp_command, result_of
from tests.fakes.ports import free_ports
from tests.fakes.waiting import until

Result = tuple[int, str, str]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"mstcp {mstcp.__version__}\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_being_told_to_end_interrupts_no_callback(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    async def work(_: object) -> int:
        def callback() -> None:
            signal.raise_signal(number)
            seen.append("the callback's last line")

        asyncio.get_running_loop().call_soon(callback)
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0)
            seen.append("the work's last line")
        return 0

    monkeypatch.setattr("mstcp.tools.cli._bench", work)
    before = signal.getsignal(number)
    assert main(["bench"]) == 130
    assert seen == ["the callback's last line", "the work's last line"]
    assert signal.getsignal(number) == before


async def test_allocate_prints_the_allocation_and_gives_it_back() -> None:
    async with FlowController() as controller:
        status, out, err = await result_of(
            "allocate", "127.0.0.1", "--port", "9000", "--rate", "8.5e6", "--controller", controller.address
        )
        assert (status, err) == (0, "")
        assert "8.5 of 8.5 Mbit/s" in out
        assert re.search(r"4.25 Mbit/s  3 ms  T0 S1 T2", out)
        assert controller.released == ["flow-1"]


async def test_a_controller_is_told_the_token_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("ours\n")
    async with FlowController() as controller:
        asked = ("allocate", "127.0.0.1", "--port", "9000", "--rate", "8.5e6")
        where = ("--controller", controller.address, "--controller-token-file", str(tmp_path / "token"))
        assert (await result_of(*asked, *where))[0] == 0
        assert controller.metadata[0]["authorization"] == "Bearer ours"


async def test_what_fails_says_why() -> None:
    status, out, err = await result_of("send", "127.0.0.1", "1", "no such file")
    assert (status, out) == (1, "")
    assert err == "mstcp send: no such file: No such file or directory\n"


async def receive_and_send(source: Path, *receiving: str, sending: Sequence[str] = ()) -> list[Result]:
    """Send a file as soon as a receiver listens; return how both ended."""
    port = str(free_ports(1)[0])
    received = asyncio.create_task(result_of("receive", port, *receiving))
    sent = (1, "", "Connection refused")
    while "Connection refused" in sent[2]:
        sent = await result_of("send", "127.0.0.1", port, str(source), *sending)
    return [await received, sent]


async def test_send_and_receive_agree_on_the_digest(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(bytes(range(256)) * 5000)
    received, sent = await receive_and_send(source, str(target))
    assert sent == received == (0, hashlib.sha256(source.read_bytes()).hexdigest() + "\n", "")
    assert target.read_bytes() == source.read_bytes()


async def test_a_file_goes_over_one_authenticated_stream(tmp_path: Path) -> None:
    source, secret = tmp_path / "source", tmp_path / "secret"
    source.write_bytes(bytes(range(256)) * 500)
    secret.write_bytes(b"known to both")
    options = ("--secret-file", str(secret), "--authenticate-frames")
    received, sent = await receive_and_send(source, *options, sending=(*options, "--streams", "1"))
    assert sent[:2] == (0, received[1]), sent


async def test_a_full_disk_is_told_on_both_sides(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(30_000_000))
    received, sent = await receive_and_send(source, "/dev/full")
    assert sent == (1, "", "mstcp send: the receiver: No space left on device\n")
    assert received == (1, "", "mstcp receive: /dev/full: No space left on device\n")


async def test_a_folder_that_is_not_there_is_told_with_the_files_name(tmp_path: Path) -> None:
    target = tmp_path / "absent" / "copy"
    status, _, told = await result_of("receive", "9000", str(target))
    assert (status, told) == (1, f"mstcp receive: {target}: No such file or directory\n")


async def test_an_interrupted_receiver_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("before")
    port = free_ports(1)[0]
    async with mstcp_command("receive", str(port), str(tmp_path / "target")) as receive:
        for _ in range(500):
            try:
                reader, writer = await mstcp.open_connection("127.0.0.1", port)
                break
            except OSError:
                await asyncio.sleep(0.02)
        writer.write(bytes(1_000_000))
        await until(lambda: len(list(tmp_path.iterdir())) == 2)
        await ended(receive)
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
    assert (tmp_path / "target").read_text() == "before"
    writer.transport.abort()
    with contextlib.suppress(mstcp.MstcpError):
        await reader.read()


def test_a_background_job_ends_when_it_is_told_to() -> None:
    argv = [sys.executable, "-m", "mstcp.tools.cli", "bench", "--serve", "127.0.0.1:0"]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"")


def test_a_signal_that_linux_delivers_in_another_thread_ends_it() -> None:
    """Any thread may take a signal of the process (signal(7)), while the main one waits for its sockets."""
    argv = [sys.executable, "-m", "mstcp.tools.cli", "bench", "--serve", "127.0.0.1:0"]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        threads = [int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()]
        other = next(thread for thread in threads if thread != process.pid)
        assert ctypes.CDLL(None).tgkill(process.pid, other, int(signal.SIGTERM)) == 0
        try:
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, err) == (130, b"")


async def test_bench_over_loopback_counts_what_it_sent() -> None:
    status, out, err = await result_of("bench", "--seconds", "0.3", "--streams", "3", "--json")
    assert (status, err) == (0, "")
    measured = json.loads(out)
    assert measured["bytes"] > 0
    assert len(measured["streams"]) == 3
    assert sum(measured["streams"]) >= measured["bytes"]
    assert measured["goodput_bps"] == pytest.approx(
        measured["bytes"] * 8 / measured["seconds"], rel=0.05, abs=1e6
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("send", "127.0.0.1", "0", "x"), "'0' is not a port of 1 to 65535"),
        (("send", "127.0.0.1", "9", "x", "--streams", "65"), "'65' is not a number of streams, 1 to 64"),
        (("send", "127.0.0.1", "9", "x", "--rates", "1e6,nan"), "'nan' is not a rate"),
        (("proxy", "enter", "9", "host"), "'host' is not HOST:PORT"),
        (("proxy", "exit", "9", "--allow", "all"), "'all' is not ADDRESS[/BITS][:PORT]"),
        (("run", "--via", "9000", "--", "true"), "'9000' is not HOST:PORT"),
        (("run", "--via", ":9000"), "the following arguments are required: COMMAND"),
        (("bench", "--seconds", "0"), "'0' is not a time in seconds"),
    ],
)
def test_wrong_arguments_are_named(
    arguments: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(list(arguments))
    assert exit_.value.code == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("send", "127.0.0.1", "9", "x", "--may-grow"), "--may-grow is for a controller"),
        (("send", "127.0.0.1", "9", "x", "--controller", "c:1"), "--controller needs --rate"),
        (("send", "127.0.0.1", "9", "x", "--controller-ca", "ca.pem"), "need --controller"),
        (
            ("send", "127.0.0.1", "9", "x", "--controller", "c:1", "--controller-cert", "cert.pem"),
            "which needs --controller-ca",
        ),
        (
            ("send", "127.0.0.1", "9", "x", "--controller", "c:1", "--controller-ca", "/no/ca"),
            "/no/ca: No such file",
        ),
        (
            ("send", "127.0.0.1", "9", "x", "--controller", "c:1", "--controller-token-file", "/dev/null"),
            "/dev/null is empty",
        ),
        (("send", "127.0.0.1", "9", "x", "--rate", "1e6", "--streams", "2"), "give --rates for several"),
        (("send", "127.0.0.1", "9", "x", "--rates", "1e6,2e6", "--streams", "3"), "contradicts the 2 rates"),
        (("send", "127.0.0.1", "9", "x", "--interfaces", "--streams", "3"), "leave --streams, --rates,"),
        (("send", "127.0.0.1", "9", "x", "--secret-file", "/no/secret"), "/no/secret: No such file"),
        (("send", "127.0.0.1", "9", "x", "--secret-file", "/dev/null"), "/dev/null is empty"),
        (("send", "127.0.0.1", "9", "x", "--authenticate-frames"), "give --secret-file"),
        (
            ("receive", "9", "--authenticate-frames", "--secret-file", __file__, "--tls-cert", "cert.pem"),
            "without TLS: leave one of them out",
        ),
        (("bench", "127.0.0.1:9", "--serve", "9"), "either HOST:PORT or --serve"),
        (("proxy", "exit", "9", "127.0.0.1:9", "--allow", "10.0.0.1"), "--allow is for connections that ask"),
    ],
)
def test_arguments_that_contradict_each_other_are_named(
    arguments: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(list(arguments)) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"mstcp {arguments[0]}: ")
    assert sentence in err


def test_the_progress_line() -> None:
    assert progress_line(1 << 20, 1 << 22, 1.0) == (
        "[" + "#" * 8 + " " * 22 + "]  25%  1.0 MiB  8.4 Mbit/s  3 s left"
    )
    assert progress_line(0, 10, 0.0) == "[" + " " * 30 + "]   0%  0 B  "
    assert progress_line(5000, None, 2.0) == "4.9 KiB  0.0 Mbit/s"


def test_progress_is_for_terminals() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, shows in ((io.StringIO(), False), (Terminal(), True)):
        with Progress(100, stream) as progress:
            progress._shown_s = -1.0  # as if time had passed
            progress.add(50)
        assert ("50%" in stream.getvalue()) == shows
        assert stream.getvalue().endswith("\r") == shows
