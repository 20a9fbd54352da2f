"""Every built-in scenario, and a network of each generator, runs in virtual time, whatever its delays are."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

import topologies
from experiments.model import scenario
from experiments.model.results import Results
from tests.experiments.engines.virtual import golden
from tests.experiments.stream_rates import check_streams
from tests.paths import EXTENSIONS
from topologies.generators import GENERATORS

pytestmark = pytest.mark.timeout(900)

BRIEF = ("--case", "1", "--set", "warm_up_s=0", "--duration", "0.2", "--set", "live.sample_s=0.05")
"""Send buffers fill within the measurement: what is written is not what is sent."""
ELSEWHERE = {"butterfly": "test_golden.py", "parallel4": "test_runs.py"}


def is_wired(name: str) -> bool:
    return all(link.wifi is None for link in topologies.load(scenario.load(name).network).links)


WIRED = [name for name in scenario.available() if is_wired(name)]
OTHER_GENERATED = ["line:3", "waxman:8:seed=2"]
"""Networks of the generators that no scenario uses."""
EXTENSION = EXTENSIONS / "longest.py"


def check(results: Results) -> None:
    (run,) = results.runs
    assert results.environment.link_backend == "netem"
    assert run.valid, run.why_invalid
    assert any(flow.bytes_read == flow.bytes_written > 0 for flow in run.flows)
    check_streams(results)


@pytest.mark.parametrize("name", [name for name in WIRED if name not in ELSEWHERE])
def test_a_built_in_scenario(name: str, tmp_path: Path) -> None:
    check(golden.run(tmp_path / "out", "--protocol", "ospf", *BRIEF, scenario=name))


def test_one_full_path_of_two_has_no_standing_delay(tmp_path: Path) -> None:
    """The rates leave the short way round nothing to spare: what waits once, waits for ever."""
    options = ("--protocol", "mstcp", "--case", "1", "--set", "warm_up_s=0", "--duration", "1")
    delays_s = []
    for engine in ("virtual", "sim"):
        results = golden.run(tmp_path / engine, *options, scenario="ring", engine=engine)
        check_streams(results)
        ((flow,),) = (run.flows for run in results.runs)
        assert flow.delay_s is not None
        means_s = [mean_s for mean_s in flow.series.delay_mean_s if mean_s is not None]
        assert max(means_s) < 1.05 * min(means_s)
        delays_s.append(flow.delay_s.mean)
    kernel, ours = delays_s
    assert ours == pytest.approx(kernel, rel=0.03)


IPV6_PAYLOAD_BYTES = {"mstcp": 590 - 74 - 8, "mptcp-sdn": 590 - 74 - 28}
"""Beside headers, and identifiers or data sequence signals."""


def test_the_butterfly_over_ipv6(tmp_path: Path) -> None:
    """Hosts ask for each other, flows are pinned, split and hashed, and subflows joined, as over IPv4."""
    names = ("mstcp", "ppfs", "ecmp", "mptcp-sdn")
    options = ("--protocol", ",".join(names), "--case", "1", "--duration", "1", "--set", "ip_version=6")
    for run in golden.run(tmp_path / "out", *options).runs:
        assert run.valid, run.why_invalid
        for flow in run.flows:
            assert flow.bytes_read == flow.bytes_written > 0
            if run.protocol in IPV6_PAYLOAD_BYTES:
                # Flow 1 has 10 Mbit/s of packets of 590 bytes.
                most_bps = 10e6 * IPV6_PAYLOAD_BYTES[run.protocol] / 590
                asked_bps = min(flow.requested_bps, most_bps)
                assert flow.goodput_bps == pytest.approx(asked_bps, rel=0.01), run.protocol
                assert len(flow.allocated) == 2


SCENARIO = """
format = 1
name = "generated"
network = "{network}"
duration_s = 0.2
tcp.congestion_control = "cubic"
cases.1.description = "One flow"
cases.1.flows.1 = {{ src = "{src}", dst = "{dst}", requested_bps = 1e6 }}
"""


@pytest.mark.parametrize("network", OTHER_GENERATED)
def test_a_generated_network(network: str, tmp_path: Path) -> None:
    """With a protocol from a file in a folder that the machine has an empty one of its own over."""
    src, *_, dst = topologies.load(network).hosts
    file = tmp_path / "generated.toml"
    file.write_text(SCENARIO.format(network=network, src=src, dst=dst))
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        shutil.copy(EXTENSION, folder)
        extend = ("--extend", f"{folder}/{EXTENSION.name}", "--protocol", "longest")
        check(golden.run(tmp_path / "out", *extend, *BRIEF, scenario=str(file)))


def test_links_that_an_extension_changes_are_in_the_results_or_make_the_run_invalid(tmp_path: Path) -> None:
    file = tmp_path / "line.toml"
    file.write_text(SCENARIO.format(network="line:3", src="h1", dst="h3"))
    extend = ("--extend", str(EXTENSION.with_name("meddling.py")), "--protocol", "meddling")
    (run,) = golden.run(tmp_path / "out", *extend, *BRIEF, scenario=str(file)).runs
    assert [(change.link, change.settings) for change in run.link_changes] == [("s1-s2", {"delay_us": 2000})]
    assert not run.valid
    (reason,) = run.why_invalid
    assert "changed past `Emulation.set_link`" in reason
    assert "s2-eth" in reason


def test_no_generator_is_left_out() -> None:
    networks = [scenario.load(name).network for name in WIRED] + OTHER_GENERATED
    assert {network.partition(":")[0] for network in networks} >= set(GENERATORS)
