"""Sources and sinks: their timing and payload, and the processes themselves over loopback."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.apps import config, pattern
from experiments.apps.cbr import Ticks
from experiments.engines.live.child import Child, ChildFailed

SOCKETS = config.SocketSettings("reno", 131072, 131072)
START_S = 30.0
ROOT = Path(__file__).parents[2]


@given(
    rate=st.floats(1e3, 1e9),
    payload=st.integers(1, 9000),
    duration_ns=st.integers(0, 10**8),
    steps=st.lists(st.integers(0, 10**7), max_size=50),
)
def test_ticks_are_all_served_once_and_never_early(
    rate: float, payload: int, duration_ns: int, steps: list[int]
) -> None:
    start = 10**12
    ticks = Ticks(rate, payload, start, start + duration_ns)
    now, done = start - 5, 0
    for step in [*steps, 2 * 10**8]:
        now += step
        done += ticks.due(now)
        interval_ns = payload * 8e9 / rate
        reach = min(now, start + duration_ns - 1) - start
        # A tick's time is rounded to whole nanoseconds.
        assert done <= max(0, (reach + 1) / interval_ns + 1)
        assert ticks.done == done
    # Tick k is at k intervals; those before the end are served, and no more.
    interval_ns = payload * 8e9 / rate
    assert abs(done - duration_ns / interval_ns) <= 1 + 1 / interval_ns
    assert ticks.due(now + 10**9) == 0
    assert ticks.next_ns(now, 0) is None


def test_next_tick_is_no_sooner_than_the_gap() -> None:
    ticks = Ticks(8e6, 1000, 0, 10**9)  # a tick each millisecond
    assert ticks.due(0) == 1
    assert ticks.next_ns(0, 0) == 10**6
    assert ticks.next_ns(0, 3 * 10**6) == 3 * 10**6
    assert ticks.due(3 * 10**6) == 3


@given(st.integers(0, 3 * pattern.PERIOD_BYTES), st.integers(0, 5000))
def test_pattern_is_the_same_at_any_offset(offset: int, length: int) -> None:
    whole = PATTERN.at(offset, length)
    assert len(whole) == length
    half = length // 2
    assert PATTERN.at(offset, half) + PATTERN.at(offset + half, length - half) == whole
    assert PATTERN.wrong_bytes(offset, whole) == 0


PATTERN = pattern.Pattern(7, 5000)


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


def test_pattern_depends_on_its_seed() -> None:
    assert pattern.Pattern(8, 100).at(0, 100) != PATTERN.at(0, 100)
    with pytest.raises(ValueError, match="made for 5000"):
        PATTERN.at(0, 5001)


def test_configurations_survive_the_command_line(tmp_path: Path) -> None:
    source = source_config(tmp_path, 5, rate_bps=1e6)
    assert config.SourceConfig.from_json(config.to_json(source)) == source
    sink = config.SinkConfig("1", "127.0.0.1", 5, "tcp", SOCKETS, 3, "x")
    assert config.SinkConfig.from_json(config.to_json(sink)) == sink


def source_config(folder: Path, port: int, rate_bps: float, seed: int = 3) -> config.SourceConfig:
    connection = config.Connection(paths=(config.RequestedPath(("a", "s", "b"), 1e6),))
    return config.SourceConfig(
        flow="1",
        host="127.0.0.1",
        port=port,
        rate_bps=rate_bps,
        packet_bytes=590,
        overhead_bytes=54,
        header_bytes=0,
        connection=connection,
        sockets=SOCKETS,
        seed=seed,
        sample_s=0.1,
        drain_s=20,
        log=str(folder / "source.npz"),
    )


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    with ExitStack() as stack:

        def child(name: str, configuration: config.SourceConfig | config.SinkConfig) -> Child:
            log = tmp_path / f"{name}.log"
            with log.open("wb") as log_file:
                process = subprocess.Popen(
                    [sys.executable, "-m", f"experiments.apps.{name}", config.to_json(configuration)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log_file,
                    cwd=ROOT,
                )
            made = Child(name, process, log)
            stack.callback(made.stop)
            return made

        yield child


def transfer(start: Any, tmp_path: Path, port: int, rate_bps: float, sink_seed: int) -> tuple[Any, Any]:
    sink = start(
        "cbr_sink",
        config.SinkConfig("1", "127.0.0.1", port, "tcp", SOCKETS, sink_seed, str(tmp_path / "sink.npz")),
    )
    sink.expect("listening", START_S)
    source = start("cbr_source", source_config(tmp_path, port, rate_bps))
    source.tell({"order": "connect"})
    connected = source.expect("connected", START_S)
    assert [stream["congestion_control"] for stream in connected["streams"]] == ["reno"]
    begin = time.monotonic_ns() + 50_000_000
    source.tell({"order": "send", "start_ns": begin, "stop_ns": begin + 500_000_000, "rate_bps": rate_bps})
    return source.expect("done", START_S), sink.expect("done", START_S)


def test_a_transfer_arrives_whole_and_is_logged(start: Any, tmp_path: Path, free_port: int) -> None:
    sent, received = transfer(start, tmp_path, free_port, 4e6, sink_seed=3)
    assert sent["drained"]
    assert received["bytes_read"] == sent["bytes_written"] > 0
    assert received["bytes_wrong"] == 0
    assert received["congestion_control"] == ["reno"]
    with np.load(tmp_path / "source.npz") as writes, np.load(tmp_path / "sink.npz") as reads:
        assert writes["offset"][-1] == reads["offset"][-1] == sent["bytes_written"]
        ticks = len(writes["offset"]) + sent["ticks_skipped"]
        payload = int(writes["offset"][0])
        assert ticks == -(-4e6 * 0.5 // (payload * 8))
        assert np.all(np.diff(writes["time_ns"]) >= 0)
        assert writes["stream_bytes"][-1].sum() <= sent["bytes_written"]


def test_bytes_other_than_expected_are_seen(start: Any, tmp_path: Path, free_port: int) -> None:
    sent, received = transfer(start, tmp_path, free_port, 1e6, sink_seed=4)
    assert received["bytes_read"] == sent["bytes_written"]
    assert received["bytes_wrong"] > 0.9 * received["bytes_read"]


def test_a_failure_is_told_with_its_reason(start: Any, tmp_path: Path, free_port: int) -> None:
    source = start("cbr_source", source_config(tmp_path, free_port, 1e6))
    source.tell({"order": "connect"})
    with pytest.raises(ChildFailed, match=r"cbr_source: .*\[Errno 111\]"):
        source.expect("connected", START_S)


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
