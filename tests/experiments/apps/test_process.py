"""Sources and sinks: their timing and payload, and the processes themselves over loopback."""

from __future__ import annotations

import fcntl
import itertools
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.apps import config, pattern, stream_progress
from experiments.engines.live.child import Child, ChildFailed
from experiments.workloads import Bulk, Cbr, OnOff, Requests, Workload
from experiments.workloads.sizes import ExponentialSize, FixedSize
from tests.fakes.ports import free_ports
from tests.fakes.tcp_pair import connected
from tests.fakes.waiting import TIMEOUT_S, wait_until
from tests.paths import ROOT

SOCKETS = config.SocketSettings("reno", 131072, 131072)


@given(st.integers(0, 3 * pattern.PERIOD_BYTES), st.integers(0, 5000))
def test_pattern_is_the_same_at_any_offset(offset: int, length: int) -> None:
    whole = PATTERN.at(offset, length)
    assert len(whole) == length
    half = length // 2
    assert PATTERN.at(offset, half) + PATTERN.at(offset + half, length - half) == whole
    assert PATTERN.wrong_bytes(offset, whole) == 0


PATTERN = pattern.Pattern(7)


@given(st.integers(0, 10**7), st.data())
def test_every_wrong_byte_is_counted(offset: int, data: st.DataObject) -> None:
    right = bytearray(PATTERN.at(offset, 500))
    places = data.draw(st.sets(st.integers(0, 499)))
    for place in places:
        right[place] ^= data.draw(st.integers(1, 255))
    assert PATTERN.wrong_bytes(offset, bytes(right)) == len(places)


def test_swapped_packets_do_not_pass() -> None:
    first, second = PATTERN.at(0, 528), PATTERN.at(528, 528)
    assert PATTERN.wrong_bytes(0, second + first) > 900


def test_long_deliveries_are_checked_to_their_end() -> None:
    period = pattern.PERIOD_BYTES
    long = bytearray(PATTERN.at(5, period) + PATTERN.at(5 + period, 1000))
    assert PATTERN.wrong_bytes(5, bytes(long)) == 0
    long[-1] ^= 1
    assert PATTERN.wrong_bytes(5, bytes(long)) == 1


def test_pattern_depends_on_seed_and_number() -> None:
    assert pattern.Pattern(8).at(0, 100) != PATTERN.at(0, 100)
    assert len({PATTERN.of(number).at(0, 100) for number in range(1000)}) == 1000
    with pytest.raises(ValueError, match="asked of a pattern"):
        PATTERN.at(0, pattern.PERIOD_BYTES + 1)


def test_configurations_survive_the_file(tmp_path: Path) -> None:
    sources = [source_config(tmp_path, 5, Cbr()), source_config(tmp_path, 6, REQUESTS, number=1)]
    config.save(tmp_path / "sources.json", sources)
    assert config.load_sources(tmp_path / "sources.json") == sources
    sinks = [sink_config(tmp_path, 5, REQUESTS)]
    config.save(tmp_path / "sinks.json", sinks)
    assert config.load_sinks(tmp_path / "sinks.json") == sinks
    assert len({config.flow_seed(run, number) for run in range(5) for number in range(100)}) == 500


REQUESTS = Requests(per_s=100.0, sizes=ExponentialSize(mean_bytes=3000))


def common(folder: Path, port: int, workload: Workload, number: int, run_seed: int) -> dict[str, Any]:
    name = str(number + 1)
    return {
        "flow": name,
        "number": number,
        "run_seed": run_seed,
        "host": "127.0.0.1",
        "port": port,
        "protocol": "ospf",
        "connection": {"paths": [[["a", "s", "b"], 1e6]]},
        "workload": workload,
        "packet_bytes": 590,
        "overhead_bytes": 54,
        "header_bytes": 0,
        "sockets": SOCKETS,
        "timing": config.Timing(),
    }


def source_config(
    folder: Path, port: int, workload: Workload, number: int = 0, rate_bps: float = 4e6
) -> config.SourceConfig:
    return config.SourceConfig(
        **common(folder, port, workload, number, run_seed=3),
        log=str(folder / f"source-{number + 1}.npz"),
        rate_bps=rate_bps,
        sample_s=0.1,
        drain_s=20,
    )


def sink_config(
    folder: Path, port: int, workload: Workload, number: int = 0, run_seed: int = 3
) -> config.SinkConfig:
    return config.SinkConfig(
        **common(folder, port, workload, number, run_seed), log=str(folder / f"sink-{number + 1}.npz")
    )


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    with ExitStack() as stack:

        def child(kind: str, configs: Sequence[config.SourceConfig | config.SinkConfig]) -> Child:
            log, path = tmp_path / f"{kind}.log", tmp_path / f"{kind}.json"
            config.save(path, configs)
            with log.open("wb") as log_file:
                process = subprocess.Popen(
                    [sys.executable, "-m", f"experiments.apps.{kind}", str(path)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log_file,
                    cwd=ROOT,
                )
            made = Child(f"the {kind}", process, log)
            stack.callback(made.stop)
            return made

        yield child


Reports = dict[str, dict[str, Any]]


def transfer(
    start: Any,
    folder: Path,
    ports: Sequence[int],
    workloads: Sequence[Workload],
    *,
    sink_seed: int = 3,
    rate_bps: float | None = None,
    seconds: float = 0.5,
) -> tuple[Reports, Reports, int]:
    """Run flows between one source and one sink; returns their reports and the time of the start."""
    numbered = list(enumerate(zip(ports, workloads, strict=True)))
    sink = start("sink", [sink_config(folder, port, w, number, sink_seed) for number, (port, w) in numbered])
    sink.expect("listening", TIMEOUT_S)
    source = start("source", [source_config(folder, port, w, number) for number, (port, w) in numbered])
    for number, _ in numbered:
        source.tell({"order": "connect", "flow": str(number + 1)})
        connected = source.expect("connected", TIMEOUT_S)
        assert connected["flow"] == str(number + 1)
        assert [stream["congestion_control"] for stream in connected["streams"]] == ["reno"]
    sink.expect("accepted", TIMEOUT_S)
    begin = time.monotonic_ns() + 100_000_000
    times = {"start_ns": begin, "stop_ns": begin + round(seconds * 1e9), "rate_bps": rate_bps}
    order = {"order": "start", "flows": {str(number + 1): times for number, _ in numbered}}
    source.tell(order)
    sink.tell(order)
    return source.expect("done", TIMEOUT_S)["flows"], sink.expect("done", TIMEOUT_S)["flows"], begin


def check_whole(sent: Reports, received: Reports) -> None:
    assert sent.keys() == received.keys()
    for name, report in sent.items():
        assert report["drained"]
        assert received[name]["bytes_read"] == report["bytes_written"] > 0
        assert received[name]["bytes_wrong"] == 0
        assert received[name]["congestion_control"] == ["reno"]


def test_a_transfer_arrives_whole_and_is_logged(start: Any, tmp_path: Path) -> None:
    sent, received, _ = transfer(start, tmp_path, free_ports(1), [Cbr()])
    check_whole(sent, received)
    with np.load(tmp_path / "source-1.npz") as writes, np.load(tmp_path / "sink-1.npz") as reads:
        assert writes["offset"][-1] == reads["offset"][-1] == sent["1"]["bytes_written"]
        payload = int(writes["offset"][0])
        # Written ones by their bytes: a tick that finds little room takes more than one write.
        ticks = sent["1"]["bytes_written"] / payload + sent["1"]["ticks_skipped"]
        assert ticks == -(-4e6 * 0.5 // (payload * 8))
        assert np.all(np.diff(writes["time_ns"]) >= 0)
        assert writes["stream_bytes"][-1].sum() <= sent["1"]["bytes_written"]


def test_what_a_stream_has_carried_is_what_has_arrived_at_its_peer() -> None:
    near, far = connected()
    with near, far:
        near.setblocking(False)
        written = 0
        with suppress(BlockingIOError):
            while True:
                written += near.send(bytes(1 << 16))

        def arrived() -> int:
            (count,) = struct.unpack("i", fcntl.ioctl(far, termios.FIONREAD, bytes(4)))
            return int(count)

        wait_until(
            lambda: stream_progress.by_stream([near])[0].arrived_bytes == arrived() and arrived() > 0,
            "the counts to agree",
        )
        assert arrived() < written


def test_every_workload_arrives_whole_beside_the_others(start: Any, tmp_path: Path) -> None:
    closed = Requests(users=3, think_s=0.01, sizes=FixedSize(size_bytes=30_000), request_bytes=7)
    workloads: list[Workload] = [
        Bulk(size_bytes=3_000_001),
        OnOff(on_s=0.1, off_s=0.1, lengths="fixed"),
        REQUESTS,
        closed,
    ]
    sent, received, begin = transfer(start, tmp_path, free_ports(4), workloads, seconds=2.0)
    check_whole(sent, received)
    # A file is sent to its last byte and no further.
    assert sent["1"]["bytes_written"] == 3_000_001
    # Half of the ticks that a constant rate of 4 Mbit/s would have.
    with np.load(tmp_path / "source-2.npz") as writes:
        payload = int(writes["offset"][0])
        ticks = sent["2"]["bytes_written"] / payload + sent["2"]["ticks_skipped"]
        assert ticks == pytest.approx(4e6 / 8 / payload, abs=11)
    # Just as many requests as the seed has before the end, with sizes that add up.
    with np.load(tmp_path / "sink-3.npz") as log:
        wanted = list(
            itertools.takewhile(lambda each: each.time_s < 2.0, REQUESTS.decisions(0, 0, 3 * 1_000_003 + 2))
        )
        assert log["asked_ns"] == pytest.approx([begin + each.time_s * 1e9 for each in wanted], abs=1)
        assert np.diff(log["end_offset"], prepend=0).tolist() == [each.size_bytes for each in wanted]
    # In a closed loop no more than its users ask at once.
    with np.load(tmp_path / "sink-4.npz") as log:
        asked, ends = log["asked_ns"], log["end_offset"]
        read_ns = log["time_ns"][np.minimum(np.searchsorted(log["offset"], ends), len(log["offset"]) - 1)]
        answered = ends <= log["offset"][-1]
        for number in range(3, len(asked)):
            assert answered[number - 3]
            assert asked[number] >= read_ns[number - 3]
        assert len(asked) > 3
    for name in ("3", "4"):
        assert sent[name]["request_bytes_read"] == received[name]["request_bytes_written"] > 0
        assert sent[name]["request_bytes_wrong"] == 0


def test_a_bulk_source_keeps_to_the_rate_that_it_was_given(start: Any, tmp_path: Path) -> None:
    bulk = Bulk(size_bytes=10_000_000)
    sent, received, _ = transfer(start, tmp_path, free_ports(1), [bulk], rate_bps=2e6, seconds=2.0)
    check_whole(sent, received)
    # At the stop the file is cut off. What was written never passes the rate, but by a payload.
    assert sent["1"]["bytes_written"] <= 2e6 / 8 * 2 + 536  # bytes


def test_bytes_other_than_expected_are_seen(start: Any, tmp_path: Path) -> None:
    sent, received, _ = transfer(start, tmp_path, free_ports(2), [Cbr(), REQUESTS], sink_seed=4)
    for name in ("1", "2"):
        assert received[name]["bytes_read"] == sent[name]["bytes_written"]
        assert received[name]["bytes_wrong"] > 0.9 * received[name]["bytes_read"]
    assert sent["2"]["request_bytes_wrong"] > 0.9 * sent["2"]["request_bytes_read"] > 0


def test_a_failure_is_told_with_its_reason(start: Any, tmp_path: Path) -> None:
    source = start("source", [source_config(tmp_path, free_ports(1)[0], Cbr())])
    source.tell({"order": "connect", "flow": "1"})
    with pytest.raises(ChildFailed, match="the source: cannot connect to"):
        source.expect("connected", TIMEOUT_S)


def test_a_child_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "import time; time.sleep(60)"]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child = Child("The sleeper", process, tmp_path / "none.log")
    with pytest.raises(ChildFailed, match=r"The sleeper did not come to 'ready' within 0.1 s"):
        child.expect("ready", 0.1)
    child.check_alive()
    process.kill()
    process.wait()
    with pytest.raises(ChildFailed, match=r"The sleeper ended with status -9"):
        child.check_alive()
    child.stop()
