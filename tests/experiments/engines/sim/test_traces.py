"""Traces of simulated runs: rows that agree with the counters, captures that a strict reader takes."""

from __future__ import annotations

import csv
import itertools
import struct
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from experiments.engines.sim.engine import SimEngine
from experiments.engines.sim.traces import TraceFiles, TraceNotWritten
from experiments.errors import MissingRequirement
from experiments.model.results import RunResult
from tests.experiments.engines.sim.sim_plans import plan_of
from tests.fakes.lab import Lab


@dataclass
class Packet:
    """What a strict reader finds in a record of a capture."""

    time_ns: int
    source: tuple[str, int]
    destination: tuple[str, int]
    sequence: int
    acknowledgement: int
    flags: int
    window: int
    payload_bytes: int
    options: bytes


def word_sum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total >> 16) + (total & 0xFFFF)
    return total


def read_pcap(path: Path) -> list[Packet]:
    data = path.read_bytes()
    assert struct.unpack_from("<IHHiIII", data) == (0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
    packets, at = [], 24
    while at < len(data):
        seconds, nanoseconds, kept, whole = struct.unpack_from("<IIII", data, at)
        frame = data[at + 16 : at + 16 + kept]
        assert len(frame) == kept
        assert nanoseconds < 10**9
        packets.append(read_frame(frame, whole, seconds * 10**9 + nanoseconds))
        at += 16 + kept
    return packets


def read_frame(frame: bytes, whole: int, time_ns: int) -> Packet:
    assert frame[12:14] == b"\x08\x00"
    ip, tcp = frame[14:34], frame[34:]
    assert ip[0] == 0x45
    assert ip[9] == 6
    assert word_sum(ip) == 0xFFFF
    length = struct.unpack_from("!H", ip, 2)[0]
    assert length == whole - 14
    # The data that is cut off is zeros, which add nothing.
    assert word_sum(ip[12:20] + struct.pack("!HH", 6, length - 20) + tcp) == 0xFFFF
    source_port, port, sequence, acknowledgement, offset, flags, window = struct.unpack_from("!HHIIBBH", tcp)
    assert (offset >> 4) * 4 == len(tcp)
    source, destination = (".".join(map(str, ip[start : start + 4])) for start in (12, 16))
    return Packet(
        time_ns, (source, source_port), (destination, port), sequence, acknowledgement, flags, window,
        length - 20 - len(tcp), tcp[20:],
    )  # fmt: skip


def traced(folder: Path, protocol: str, formats: list[str], **sets: Any) -> RunResult:
    plan = plan_of(protocol, duration_s=2, warm_up_s=0.0, sim__trace=formats, **sets)
    return SimEngine().simulate(plan, folder)


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "packets.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_rows_agree_with_the_counters(tmp_path: Path) -> None:
    result = traced(tmp_path, "ppfs", ["csv"])
    rows = rows_of(tmp_path)
    packets = result.evidence.network
    assert len({row["packet"] for row in rows}) == packets["packets_sent"]
    assert {row["fate"] for row in rows} == {"arrives"}
    times = [float(row["time_s"]) for row in rows]
    assert times == sorted(times)
    for row in rows:
        assert float(row["arrival_s"]) > float(row["time_s"])
    for share in result.evidence.flows["1"].paths:
        link = f"{share.path[1]}->{share.path[2]}"
        count = sum(row["link"] == link and row["flow"] == "1" for row in rows)
        assert count == share.packets
    resent = sum(row["resent"] == "1" and row["link"] == "T0->S0" for row in rows)
    assert resent == result.evidence.flows["1"].connections[0].counters["retransmits"]


def test_a_full_queue_is_a_fate(tmp_path: Path) -> None:
    plan = plan_of("ospf", duration_s=2, warm_up_s=0.0, sim__trace=["csv"])
    links = [
        link.model_copy(update={"queue_packets": 5}) if link.name == "S0-S4" else link
        for link in plan.network.links
    ]
    plan = plan.model_copy(update={"network": plan.network.model_copy(update={"links": tuple(links)})})
    result = SimEngine().simulate(plan, tmp_path)
    dropped = [row for row in rows_of(tmp_path) if row["fate"] == "queue_full"]
    assert {row["link"] for row in dropped} == {"S0->S4"}
    assert len(dropped) == result.evidence.network["packets_dropped"] > 0
    assert {row["arrival_s"] for row in dropped} == {""}


@pytest.mark.parametrize("timestamps", [False, True])
def test_captures_are_what_hosts_saw(tmp_path: Path, timestamps: bool) -> None:
    result = traced(tmp_path, "mstcp", ["pcap"], tcp__timestamps=timestamps, tcp__sack=True)
    assert {path.name for path in tmp_path.iterdir()} == {"T0.pcap", "T1.pcap", "T2.pcap", "T3.pcap"}
    sender, receiver = read_pcap(tmp_path / "T0.pcap"), read_pcap(tmp_path / "T2.pcap")
    for packets in (sender, receiver):
        times = [packet.time_ns for packet in packets]
        assert times == sorted(times)
    connections = {packet.source for packet in sender if packet.destination[1] == 5001}
    assert len(connections) == 2
    assert {address for address, _ in connections} == {"10.0.0.1"}
    for source in connections:
        own = [packet for packet in sender if packet.source == source]
        assert own[0].flags == 0x02
        assert (b"\x08\x0a" in own[0].options) is timestamps
        assert own[1].sequence == own[0].sequence + 1
        data = [packet for packet in own if packet.payload_bytes]
        fresh = {packet.sequence: packet.payload_bytes for packet in data}
        following = sorted(fresh)
        assert all(at + fresh[at] == after for at, after in itertools.pairwise(following))
        arrived = [packet for packet in receiver if packet.source == source]
        assert len(arrived) <= len(own)
        assert arrived[5].time_ns > own[5].time_ns
    streams = result.evidence.flows["1"].connections
    sent = sum(packet.payload_bytes > 0 for packet in sender if packet.destination[1] == 5001)
    assert sent == sum(stream.counters["data_segments_sent"] for stream in streams)


def test_a_trace_changes_nothing(tmp_path: Path) -> None:
    with_trace = traced(tmp_path, "mstcp", ["csv", "pcap"])
    assert with_trace == SimEngine().simulate(plan_of("mstcp", duration_s=2, warm_up_s=0.0))


@pytest.mark.skipif(find_spec("pyarrow") is None, reason="pyarrow is missing")
def test_parquet_has_the_rows(tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    traced(tmp_path, "ospf", ["csv", "parquet"])
    table = parquet.read_table(tmp_path / "packets.parquet")
    rows = rows_of(tmp_path)
    assert table.num_rows == len(rows)
    assert table.column("sequence").to_pylist() == [int(row["sequence"]) for row in rows]


def test_parquet_without_pyarrow_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.engines.sim.engine.find_spec", lambda name: None)
    with pytest.raises(MissingRequirement, match="make setup"):
        SimEngine().check([plan_of("ospf", sim__trace=["parquet"])])


def test_a_disk_that_is_full_is_told_and_keeps_no_half_trace(tmp_path: Path) -> None:
    folder = tmp_path / "trace"
    folder.mkdir()
    (folder / "packets.csv").symlink_to("/dev/full")
    with pytest.raises(TraceNotWritten, match="No space left on device") as told, TraceFiles(folder) as files:
        files("packets.csv", bytes(1 << 20))
    assert str(folder) in str(told.value)
    assert not folder.exists()


def test_the_command_writes_traces_beside_the_results(tmp_path: Path, lab: Lab) -> None:
    run = ["run", "butterfly", "--engine", "sim", "--protocol", "ospf", "--case", "1", "--duration", "0.5"]
    run += ["--no-report"]
    lab(*run, "--trace", "csv", "--out", str(tmp_path))
    assert (tmp_path / "logs" / "1-ospf-s1" / "packets.csv").stat().st_size > 1000
    assert "sim.trace" in lab.refusal(*run, "--trace", "xml")
