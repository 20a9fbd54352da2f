"""The simulator as Python sees it: refused descriptions, results, determinism, other threads, Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import netsim_native as sim
import pytest


def description(**changes: Any) -> dict[str, Any]:
    """Describe a flow of 1 Mbit/s over a link of 2 Mbit/s and one of 10."""
    return {
        "format": 1,
        "seed": 1,
        "duration_s": 5.0,
        "packet_overhead_bytes": 22,
        "links": [
            {"ends": ["A", "S"], "rate_bps": 10e6, "delay_us": 1000},
            {"ends": ["S", "B"], "rate_bps": 2e6, "delay_us": 4000, "queue_packets": 100},
        ],
        "tcp": {"profile": "ns3", "sack": False},
        "flows": [
            {
                "name": "1",
                "src": "A",
                "dst": "B",
                "protocol": "tcp",
                "traffic": {"kind": "cbr", "rate_bps": 1e6},
            }
        ],
        **changes,
    }


def run(**changes: Any) -> dict[str, Any]:
    results: dict[str, Any] = json.loads(sim.run(json.dumps(description(**changes))))
    return results


def test_an_idle_path_has_its_propagation_and_serialisation_delay() -> None:
    flow = run(series_interval_s=0.5)["flows"][0]
    expected = 0.005 + 590 * 8 * (1 / 10e6 + 1 / 2e6)
    # While the window is small, segments leave in pairs: only the least delay is exact.
    assert flow["delay_cdf_s"][0] == pytest.approx(expected, rel=0.005)
    assert flow["goodput_bps"] == pytest.approx(1e6, rel=0.01)
    assert flow["ticks_skipped"] == 0
    assert len(flow["series"]["time_s"]) == 9
    assert flow["series"]["time_s"][0] == 0.5


def test_packets_are_conserved_and_links_tell_what_they_carried() -> None:
    results = run()
    counters = results["counters"]
    ends = counters["packets_delivered"] + counters["packets_dropped"] + counters["packets_in_flight"]
    assert counters["packets_sent"] == ends
    links = {link["link"]: link for link in results["links"]}
    assert set(links) == {"A->S", "S->A", "S->B", "B->S"}
    assert links["S->B"]["utilisation"] == pytest.approx(590 / 536 * 1e6 / 2e6, rel=0.01)


def test_the_same_description_gives_the_same_bytes() -> None:
    text = json.dumps(description(duration_s=2.0))
    assert sim.run(text) == sim.run(text)


def changed(path: str, value: Any) -> dict[str, Any]:
    """Describe a run in which one value is another; `path` as in `flows.0.paths`."""
    document = description()
    *parents, last = path.split(".")
    place: Any = document
    for key in parents:
        place = place[int(key) if isinstance(place, list) else key]
    place[last] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "place", "words"),
    [
        ("format", 2, "format", "format 1"),
        ("colour", "red", "", "colour"),
        ("tcp.sacks", True, "", "sacks"),
        ("duration_s", 0, "duration_s", "time"),
        ("flows", [], "flows", "at least one"),
        ("links.0.rate_bps", 0, "links[0].rate_bps", "between"),
        ("links.1.ends", ["A", "S"], "links[1].ends", "already"),
        ("links.1.loss", 1.0, "links[1].loss", "between"),
        ("flows.0.dst", "C", "flows[0].paths[0]", "node C"),
        ("flows.0.paths", [{"path": ["A", "B"]}], "flows[0].paths[0]", "no link joins"),
        ("flows.0.paths", [{"path": ["A", "S"]}], "flows[0].paths[0]", "from A to B"),
        ("flows.0.paths", [{"path": "fast"}], "", "ecmp"),
        ("flows.0.paths", [], "flows[0].paths", "needs a path"),
        ("flows.0.traffic", {"kind": "cbr"}, "", "rate_bps"),
        ("flows.0.protocol", "quic", "", "quic"),
        ("tcp.mss_bytes", 0, "tcp", "mss_bytes"),
    ],
)
def test_what_cannot_be_is_refused_by_name(path: str, value: Any, place: str, words: str) -> None:
    with pytest.raises(sim.InvalidDescription) as refusal:
        sim.check(json.dumps(changed(path, value)))
    assert refusal.value.args[0] == place
    assert words in refusal.value.args[1]


def test_a_scheduler_that_does_not_exist_is_refused() -> None:
    document = description()
    document["flows"][0].update(
        protocol="mstcp",
        paths=[{"path": "shortest"}, {"path": "shortest"}],
        mstcp={"scheduler": "luck"},
    )
    with pytest.raises(sim.InvalidDescription, match="luck"):
        sim.check(json.dumps(document))


def test_two_flows_of_one_name_and_a_path_with_a_loop_are_refused() -> None:
    document = description()
    document["flows"].append(document["flows"][0])
    with pytest.raises(sim.InvalidDescription, match=r"flows\[0\] is called 1 too") as refused:
        sim.check(json.dumps(document))
    assert refused.value.args[0] == "flows[1].name"
    document = description()
    document["flows"][0]["paths"] = [{"path": ["A", "S", "A", "S", "B"], "rate_bps": 1e6}]
    with pytest.raises(sim.InvalidDescription, match="the path passes A twice"):
        sim.check(json.dumps(document))


def test_a_source_of_a_terabit_costs_no_more_than_what_it_gets_through() -> None:
    document = description(duration_s=2.0)
    document["flows"][0]["traffic"] = {"kind": "cbr", "rate_bps": 1e12}
    started = time.process_time()
    flow = json.loads(sim.run(json.dumps(document)))["flows"][0]
    # 2e12 bits in writes of one segment: one by one they took minutes.
    assert time.process_time() - started < 10
    written = flow["bytes_written"] / flow["ticks_skipped"]
    assert flow["ticks"] > 1e8
    assert flow["ticks"] - flow["ticks_skipped"] < 1e4 and written < 0.1


@pytest.mark.parametrize(("warm_up_s", "counts"), [(0.0, True), (3.0, False)])
def test_drops_of_the_warm_up_are_not_of_the_measurement(warm_up_s: float, counts: bool) -> None:
    document = description(warm_up_s=warm_up_s)
    document["links"][1]["queue_packets"] = 5
    document["flows"][0] |= {"traffic": {"kind": "cbr", "rate_bps": 4e6}, "stop_s": 2.0}
    link = {link["link"]: link for link in json.loads(sim.run(json.dumps(document)))["links"]}["S->B"]
    assert link["dropped_queue"] > 10
    assert link["packets_dropped"] == (link["dropped_queue"] if counts else 0)


def test_other_threads_go_on() -> None:
    running = threading.Thread(target=sim.run, args=(json.dumps(description(duration_s=2000.0)),))
    running.start()
    turns = 0
    while running.is_alive():
        turns += 1
        time.sleep(0.001)
    assert turns > 10


def test_ctrl_c_ends_a_run() -> None:
    program = f"""
import json, signal
import netsim_native as sim
# A test run that was put into the background ignores the signal, and so would its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
print("running", flush=True)
sim.run({json.dumps(json.dumps(description(duration_s=1e7)))})
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert b"KeyboardInterrupt" in errors
