"""The command itself, as a process of its own."""

import ctypes
import json
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import pytest

from controller.address import Address, listen
from controller.cli import main
from controller.process import random_ids
from tests.fakes.controller_command import ALONE, started
from tests.fakes.waiting import TIMEOUT_S
from tests.paths import ROOT


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "controller.cli", *options]


def run(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


@pytest.mark.parametrize("package", ["pydantic", "numpy", "gomr._native", "os_ken", "grpc", "uvicorn"])
def test_an_incomplete_installation_is_told_in_a_sentence(package: str) -> None:
    program = (
        f"import sys; sys.modules[{package!r}] = None; from controller import entry; sys.exit(entry.main())"
    )
    done = run([sys.executable, "-c", program, *ALONE])
    assert done.returncode == 2
    [said] = done.stderr.splitlines()
    assert said.startswith("mstcp-controller: ")
    assert package in said
    assert said.endswith("Run: pip install --force-reinstall mstcp-lab, or in a clone: make setup")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_and_stops_cleanly(number: signal.Signals, tmp_path: Path) -> None:
    ready_file = tmp_path / "ready.json"
    options = ("--ready-file", str(ready_file), "--log-format", "json")
    with started(tmp_path / "log", *ALONE, *options) as (process, ready):
        assert json.loads(ready_file.read_text()) == ready
        with urllib.request.urlopen(f"http://{ready['rest'][0]}/v1/health", timeout=TIMEOUT_S) as answer:
            assert json.load(answer)["ready"] is False
        process.send_signal(number)
        assert process.wait(TIMEOUT_S) == 0
        assert json.loads((tmp_path / "log").read_text().splitlines()[-1])["event"] == "stopped"
        assert not ready_file.exists()


def test_a_signal_that_linux_delivers_in_another_thread_stops_it(tmp_path: Path) -> None:
    """Any thread may take a signal of the process (signal(7)); now and then it is not the main one."""
    with started(tmp_path / "log", *ALONE) as (process, _):
        threads = [int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()]
        other = next(thread for thread in threads if thread != process.pid)
        assert ctypes.CDLL(None).tgkill(process.pid, other, int(signal.SIGTERM)) == 0
        assert process.wait(TIMEOUT_S) == 0


def test_every_address_is_loopback_unless_told_otherwise(tmp_path: Path) -> None:
    with started(tmp_path / "log", *ALONE, "--rest", "127.0.0.1:0") as (_, ready):
        assert len(ready["rest"]) == 2
        addresses = ready["openflow"] + ready["rest"] + ready["grpc"]
        assert all(address.startswith("127.0.0.1:") for address in addresses)


@pytest.mark.parametrize("service", ["openflow", "rest", "grpc"])
def test_an_address_in_use_is_a_sentence(service: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        free = ALONE.index(f"--{service}") + 1
        ended = run(command(*ALONE[:free], address, *ALONE[free + 1 :]))
    assert ended.returncode == 2
    assert ended.stdout == ""
    last = ended.stderr.splitlines()[-1]
    assert last.startswith(f"mstcp-controller: --{service}: cannot listen on {address}")
    assert "Traceback" not in ended.stderr


def test_a_topology_that_does_not_exist_is_a_sentence() -> None:
    ended = run(command(*ALONE, "--topology", "nowhere.toml"))
    assert ended.returncode == 2
    assert "nowhere.toml" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rest", "8080"], "is not IP-ADDRESS:PORT"),
        (["--rest", "127.0.0.1:99999"], "is not IP-ADDRESS:PORT"),
        (["--lease", "0"], "must be greater than 0"),
        (["--lease", "nan"], "must be a finite number"),
        (["--ack-ratio", "1"], "must be less than 1"),
        (["--reserved-share", "-0.1"], "must be at least 0"),
        (["--reserved-share", "much"], "'much' is not a number"),
        (["--policing-burst", "-1"], "must be at least 0"),
        (["--objective", "best"], "invalid choice"),
        (["--default-routing", "magic"], "invalid choice"),
    ],
)
def test_wrong_options_are_refused(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--topology", "butterfly", *options])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_addresses() -> None:
    assert Address.parse("127.0.0.1:80") == Address("127.0.0.1", 80)
    assert Address.parse("localhost:80") == Address("127.0.0.1", 80)
    assert Address.parse("[::1]:80") == Address("::1", 80)
    assert str(Address("::1", 80)) == "[::1]:80"
    for wrong in ("", "80", "1.2.3.4", "1.2.3.4:", "1.2.3.4:x", "1.2.3.4:-1", "host.name:80"):
        with pytest.raises(ValueError, match="is not IP-ADDRESS:PORT"):
            Address.parse(wrong)


def test_what_is_sent_waits_for_no_acknowledgement_of_what_was_sent_before() -> None:
    listener, address = listen("--openflow", Address("127.0.0.1", 0))
    with listener, socket.create_connection((address.host, address.port)), listener.accept()[0] as accepted:
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_all_switches_may_connect_at_once() -> None:
    listener, address = listen("--openflow", Address("127.0.0.1", 0))
    with ExitStack() as stack:
        stack.enter_context(listener)
        for _ in range(300):
            stack.enter_context(socket.create_connection((address.host, address.port), timeout=5))


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            "from controller.core import Core; Core.next_deadline = lambda self: 1 / 0",
            "the core's thread ended: ZeroDivisionError",
        ),
        (
            "from controller.openflow import runtime as r; r.Reactor._take_new = lambda _: 1 / 0",
            "the thread controller-openflow ended: ZeroDivisionError",
        ),
        (
            "from controller.openflow.runtime import OpenFlowRuntime as R; R._accept = lambda *_: 1 / 0",
            "the thread controller-accept ended: ZeroDivisionError",
        ),
        (
            "import uvicorn; uvicorn.Server.on_tick = lambda *_: 1 / 0",
            "the thread of REST and gRPC ended: ZeroDivisionError",
        ),
    ],
)
def test_a_thread_that_ends_by_a_fault_ends_the_process_with_a_reason(fault: str, said: str) -> None:
    program = f"import sys; from controller import cli\n{fault}\nsys.exit(cli.main())"
    ended = run([sys.executable, "-c", program, *ALONE])
    assert ended.returncode == 70, ended.stderr
    assert f"mstcp-controller: {said}" in ended.stderr


def test_ids_of_flows_are_random_bits_and_never_the_same() -> None:
    ids = list(islice(random_ids(), 3000))
    assert len(set(ids)) == 3000
    assert {len(bytes.fromhex(each)) for each in ids} == {16}
