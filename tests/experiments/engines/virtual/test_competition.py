"""Flows of several protocols, a traced link, programs and a capture in one run of the virtual kernel."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from experiments.model.results import Results, RunResult
from tests.fakes.lab import LAB_COMMAND

pytestmark = pytest.mark.timeout(900)

FETCH = 'import urllib.request as u; print(len(u.urlopen(\\"http://{h2}:8000/served\\").read()))'
COUNT = """
import asyncio
async def count(reader, writer):
    writer.write(str(len(await reader.read())).encode())
    writer.close()
async def main():
    await (await asyncio.start_server(count, "0.0.0.0", 9000)).serve_forever()
asyncio.run(main())
"""
UPLOAD = """
import socket, time
control, data = (socket.create_connection(("{h2}", 9000)) for _ in range(2))
began_s = time.monotonic()
data.sendall(bytes(400_000))
data.shutdown(socket.SHUT_WR)
print(int(data.recv(99)) * 8 / (time.monotonic() - began_s))
"""
UPLOAD_BPS = 4.5e6
SCENARIO = f"""
format = 1
name = "mixed"
network = "line:2"
duration_s = 3
warm_up_s = 1
protocols = ["ospf"]
traces = [{{ link = "s1-s2", trace = {{ kind = "csv", file = "trace.csv" }} }}]
live.capture = ["s2-s1"]

[[programs]]
name = "server"
host = "h2"
command = "python3 -m http.server 8000 --directory FOLDER"
server = true

[[programs]]
name = "over-mstcp"
host = "h1"
command = "python3 -c '{FETCH}'"
at_s = 0.5
over = "mstcp"

[[programs]]
name = "counter"
host = "h2"
command = ["python3", "-c", '''{COUNT}''']
server = true

[[programs]]
name = "upload"
host = "h1"
command = ["python3", "-c", '''{UPLOAD}''']
at_s = 0.7
over = "mstcp"
rate_bps = {UPLOAD_BPS}

[[programs]]
name = "endless"
host = "h1"
command = "sleep 100"
at_s = 0.25
every_s = 1.0
for_s = 0.5

[cases.1.flows]
a = {{ src = "h1", dst = "h2", requested_bps = 2e6, protocol = "mstcp" }}
b = {{ src = "h1", dst = "h2", requested_bps = 0.8e6, protocol = "mptcp" }}
c = {{ src = "h1", dst = "h2", requested_bps = 0.8e6, congestion_control = "cubic" }}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mixed")
    (folder / "trace.csv").write_text("time_s,rate_bps\n0,9e6\n2,6e6\n")
    licences = "/usr/share/common-licenses"
    (folder / "mixed.toml").write_text(SCENARIO.replace("FOLDER", licences).replace("served", "GPL-3"))
    narrow = ("--set", "links.s1-s2.rate_bps=10e6", "--set", "links.s1-s2.queue_packets=60")
    call = [*LAB_COMMAND, "run", str(folder / "mixed.toml"), "--engine", "virtual"]
    subprocess.run([*call, *narrow, "--out", str(folder / "out")], check=True)
    return folder / "out"


@pytest.fixture(scope="module")
def run(folder: Path) -> RunResult:
    (run,) = Results.read(folder / "results.json").runs
    assert run.valid, run.why_invalid
    return run


def test_each_flow_has_its_own_protocol_and_control(run: RunResult) -> None:
    assert [(flow.protocol, flow.congestion_control) for flow in run.flows] == [
        ("mstcp", "reno"),
        ("mptcp", "reno"),
        (None, "cubic"),
    ]
    assert all(flow.goodput_bps > 0.5e6 for flow in run.flows)


def test_the_kernel_says_window_and_round_trip_over_time(run: RunResult) -> None:
    for flow in run.flows:
        (stream,) = flow.series.streams
        assert len(stream.cwnd_bytes) == len(stream.rtt_s) == len(flow.series.time_s)
        assert all((window or 0) >= 1000 for window in stream.cwnd_bytes)
        assert all(0 < (rtt or 0) < 2 for rtt in stream.rtt_s)


def test_the_link_followed_its_trace(run: RunResult) -> None:
    assert [(each.time_s, each.settings) for each in run.link_changes] == [
        (0.0, {"rate_bps": 9e6}),
        (2.0, {"rate_bps": 6e6}),
    ]


def test_programs_ran_and_say_what_they_did(run: RunResult) -> None:
    server, counter, first, fetched, upload, *again = run.commands
    assert (server.program, server.exit_status) == ("server", None)
    assert (counter.program, counter.exit_status) == ("counter", None)
    size = Path("/usr/share/common-licenses/GPL-3").stat().st_size
    assert (fetched.program, fetched.exit_status, fetched.output) == ("over-mstcp", 0, f"{size}\n")
    assert fetched.bytes_received > size
    # One allocation for the program: beside a connection that is silent, the other has all of it.
    assert (upload.program, upload.exit_status) == ("upload", 0), upload.output
    assert float(upload.output) == pytest.approx(UPLOAD_BPS, rel=0.1)
    for number, each in enumerate([first, *again]):
        assert (each.program, each.exit_status) == ("endless", None)
        assert each.started_s == pytest.approx(0.25 + number, abs=0.3)
        assert each.ended_s <= 3.5
    assert len(again) == 2


def test_the_capture_has_the_link(folder: Path) -> None:
    (file,) = (folder / "logs").glob("*/s1-s2.pcapng")
    assert file.stat().st_size > 500_000
