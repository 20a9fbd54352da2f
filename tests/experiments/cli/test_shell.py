"""`mstcp-lab shell` as a user calls it: commands from files and pipes, and nothing left however it ends."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import topologies
from tests.fakes.lab import LAB_COMMAND
from tests.fakes.waiting import wait_until
from tests.paths import ROOT

COMMAND = [*LAB_COMMAND, "shell", "line:2"]
MARK = "MSTCP_LAB_TEST_OF_SHELL"
"""For the network to be built, on a machine that does much else."""

pytestmark = [pytest.mark.root, pytest.mark.timeout(600), pytest.mark.usefixtures("live_machine")]


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    """What every process that a call makes has in its environment, to be known by."""
    marked = {**os.environ, MARK: uuid.uuid4().hex}
    yield marked
    for pid in processes(marked):
        os.kill(pid, signal.SIGKILL)


def processes(environment: dict[str, str]) -> list[int]:
    mark = f"{MARK}={environment[MARK]}\0".encode()
    return [
        int(entry.parent.name) for entry in Path("/proc").glob("[0-9]*/environ") if mark in _content(entry)
    ]


@contextmanager
def closing_with(action: Callable[[], object]) -> Iterator[None]:
    try:
        yield
    finally:
        action()


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has just ended
        return b""


OUTSIDE = """\
h2 ip address add 192.0.2.9 dev lo
h2 ip address add 2001:db8::9 dev lo
h1 ping -c 1 -W 5 fd00::2 | grep -c 'bytes from'
h1 ping -c 1 -W 5 192.0.2.9 | grep -c 'bytes from'
h1 ping -c 1 -W 5 2001:db8::9 | grep -c 'bytes from'
"""
SCRIPT = """\
h1 echo first   # and a comment
h1 cat
sh cat; echo of the machine
h1 sleep 1000 &
h1 (echo to be seen; sleep 1000) >&2 &
h1 sleep 0.2
  h1	x=5
h1 ping -c 1 -W 5 h2 | grep -c 'bytes from'
h1 echo $x
exit
h1 echo never
"""


def test_commands_come_from_a_file_or_standard_input(tmp_path: Path, environment: dict[str, str]) -> None:
    """Programs in hosts find nothing to read, hosts keep what commands set, and `exit` ends the script."""
    file = tmp_path / "a script"
    file.write_text(SCRIPT)
    for arguments, text in ((["--script", str(file)], "sh echo not read"), ([], SCRIPT)):
        done = subprocess.run(
            [*COMMAND, *arguments], input=text, env=environment, cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == "first\nof the machine\nto be seen\n1\n5\n"
    assert processes(environment) == []


def test_hosts_have_both_versions_of_ip_and_a_gateway(tmp_path: Path, environment: dict[str, str]) -> None:
    line = topologies.load("line:2")
    nodes = [node.model_dump() | {"gateway": node.name == "h2"} for node in line.nodes]
    file = tmp_path / "line.json"
    file.write_text(json.dumps(line.model_dump() | {"nodes": nodes}))
    call = [*COMMAND[:-1], str(file)]
    done = subprocess.run(call, input=OUTSIDE, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "1\n1\n1\n"), done.stderr


ALLOCATE = "h1 mstcp allocate 10.0.0.2 --port 5001 --rate 1e6 --controller " + ",".join(
    f"10.255.0.1:{port}" for port in (50051, 50052, 50053)
)
REPLICAS = f"""\
{ALLOCATE}
sh mstcp-controller step-down 127.0.0.1:8080,127.0.0.1:8081
{ALLOCATE}
"""


@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("etcd") is None, reason="etcd is not installed (package etcd-server)")
def test_several_controllers_share_etcd_and_take_over(environment: dict[str, str]) -> None:
    """Programs in hosts are given the addresses of all of them."""
    path = {**environment, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        [*COMMAND, "--controllers", "3"], input=REPLICAS, env=path, cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("1 of 1 Mbit/s") == 2, done.stdout
    assert "The leader has stepped down; another replica takes over." in done.stdout


def test_what_is_no_command_is_told_with_its_line(environment: dict[str, str]) -> None:
    text = "h1 echo before\nh9 echo wrong\nh1 echo after\n"
    done = subprocess.run(COMMAND, input=text, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "before\n")
    assert "line 2: there is no command and no host or switch 'h9'" in done.stderr
    closed = ["sh", "-c", 'exec "$@" <&-', "sh", *COMMAND]
    assert subprocess.run(closed, cwd=ROOT, capture_output=True).returncode == 0
    missing = subprocess.run([*COMMAND, "--script", "/none"], cwd=ROOT, capture_output=True, text=True)
    assert (missing.returncode, "/none cannot be read: No such file" in missing.stderr) == (2, True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_leaves_nothing(number: signal.Signals, environment: dict[str, str], tmp_path: Path) -> None:
    environment["TMPDIR"] = str(tmp_path)
    pipe = subprocess.PIPE
    # Under nohup, or behind `&` in a script, signals are ignored, and the shell would inherit and keep that.
    command = ["env", "--default-signal", *COMMAND]
    with (
        subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, cwd=ROOT) as process,
        closing_with(process.kill),
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"h1 echo begun\nh1 sleep 1000\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"begun\n"
        assert len(processes(environment)) > 5
        process.send_signal(number)
        process.wait(60)
        assert process.returncode in (130, -number)
        wait_until(lambda: processes(environment) == [], "the end of all that it made")
        assert list(tmp_path.iterdir()) == []


def test_a_closed_terminal_leaves_nothing(environment: dict[str, str]) -> None:
    ours, theirs = pty.openpty()
    take_terminal = ["setsid", "--ctty", *COMMAND]
    process = subprocess.Popen(
        take_terminal, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=ROOT
    )
    os.close(theirs)
    seen = b""
    while b"mininet> " not in seen:
        seen += os.read(ours, 4096)
    os.close(ours)
    process.wait(60)
    wait_until(lambda: processes(environment) == [], "the end of all that it made")
