"""Studies with a kernel beside the simulator: which cases it is asked, and what their documents say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments import cli
from experiments.studies import kernel, schema

pytestmark = pytest.mark.timeout(900)

STUDY = """
format = 1
name = "two-paths"
title = "MPTCP over two paths"
source = "section 1"
duration_s = 2.0

[otherwise_in_kernels]
"tcp.delayed_ack_segments" = "Linux acknowledges as it finds best."

[base]
tcp = { profile = "linux", mss_bytes = 1420, congestion_control = "reno", delayed_ack_segments = 2 }
links = [
    { ends = ["S", "A"], rate_bps = 8e6, delay_us = 2000, queue_packets = 40 },
    { ends = ["A", "D"], rate_bps = 1e9, delay_us = 10 },
    { ends = ["S", "B"], rate_bps = 4e6, delay_us = 4000, queue_packets = 40 },
    { ends = ["B", "D"], rate_bps = 1e9, delay_us = 10 },
]

[[base.flows]]
name = "both"
src = "S"
dst = "D"
protocol = "mptcp"
traffic = { kind = "bulk" }
paths = [{ path = ["S", "A", "D"] }, { path = ["S", "B", "D"] }]
mptcp = { congestion_control = "lia", send_buffer_bytes = 300000, receive_buffer_bytes = 1000000 }

[[axes]]
name = "second path"
levels = [
    { name = "wired" },
    { name = "wireless", set = { "links.S-B" = { ends = ["S", "B"], wifi = WIFI } } },
]

[metrics]
goodput_mbps = { of = "flows.both.goodput_bps", scale = 1e-6 }

[metrics.second_mbps]
of = "flows.both.streams.1.throughput_bps"
scale = 1e-6
kernel = "flows.both.series.streams.1.rate_bps"

[metrics.penalties]
of = "flows.both.mptcp.penalties"

[[tables]]
table = "Throughput"
columns = { "Mbit/s" = "{}: goodput_mbps" }
rows.wired = [11.0]
rows.wireless = [20.0]

[[claims]]
claim = "Two wires carry more than one."
source = "section 1"
by = "goodput_mbps"
holds = [{ case = "wired", above = 8 }]

[[claims]]
claim = "The second path carries what it can."
source = "section 1"
by = "second_mbps"
holds = [{ case = "wired", above = 2, below = 4.5 }]

[[claims]]
claim = "Wi-Fi carries more than a wire."
source = "section 2"
by = "goodput_mbps"
holds = [{ case = "wireless", minus = "wired", above = 0 }]

[[claims]]
claim = "Nothing is penalised."
source = "section 3"
by = "penalties"
holds = [{ case = "wired", below = 1 }]
"""
WIFI = '{ standard = "802.11g", phy_rate_bps = 54e6, distance_m = 5 }'


def test_each_case_of_the_papers_is_asked_of_a_kernel_or_has_its_reason(tmp_path: Path) -> None:
    asked = {}
    for name in schema.available():
        made, reasons = kernel.jobs(schema.load(name), 1, tmp_path)
        assert not set(made) & set(reasons)
        for job in made.values():
            buffer_bytes = job.scenario.mptcp.send_buffer_bytes or 0
            slowest_bps = min(link.rate_bps for link in job.network.links)
            # Wi-Fi has a tenth of its rate where frames are lost.
            assert job.scenario.drain_s > 10 * 8 * buffer_bytes / slowest_bps
        asked[name] = len(made), len(reasons), set(reasons.values())
    assert {name: counts[:2] for name, counts in asked.items() if counts[0]} == {
        "alheid-2014": (13, 3),
        "alheid-2016-ict": (30, 35),
        "alheid-2016-wd": (92, 19),
        "kato-cc": (4, 4),
        "kato-flow": (12, 0),
        "table1": (6, 0),
    }
    found = {reason for _, _, each in asked.values() for reason in each}
    assert "initial_ssthresh_bytes (flows) is the simulator's alone" in found
    assert "door is a congestion control to a kernel, and so is lia" in found
    changed = (
        STUDY.replace("WIFI", WIFI)
        .replace("[otherwise_in_kernels]", "[dependences]")
        .replace('"tcp.delayed_ack_segments" = "Linux acknowledges as it finds best."', "")
    )
    _, reasons_by_case = kernel.jobs(schema.parse(changed, "changed"), 1, tmp_path)
    assert set(reasons_by_case.values()) == {"delayed_ack_segments (tcp) is the simulator's alone"}


def test_paper_simulator_and_kernel_stand_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "two-paths.toml").write_text(STUDY.replace("WIFI", WIFI))
    out = tmp_path / "out"
    simulated = ["reproduce", str(tmp_path / "two-paths.toml"), "--seeds", "2", "--json"]
    call = [*simulated, "--engine", "virtual", "--out", str(out)]
    assert cli.main(call) == 0
    document = json.loads(capsys.readouterr().out)
    claims = document["kernel"]["claims"]
    first, second, wireless, penalised = claims
    assert first["judgement"]["status"] == "reproduced" == document["claims"][0]["status"]
    assert second["judgement"]["status"] == "reproduced"
    assert wireless["judgement"]["status"] == "reproduced"
    assert penalised["why_not"] == "a kernel does not count penalties"
    cells = {cell["row"]: cell["ours"] for cell in document["kernel"]["cells"]}
    assert 8 < cells["wired"] < 12 < 20 < cells["wireless"]
    assert document["kernel"]["otherwise"] == ["Linux acknowledges as it finds best."]
    text = (out / "study.md").read_text()
    assert "|".join(f" Mbit/s (goodput_mbps): {whose} " for whose in ("paper", "ours", "kernel")) in text
    assert "Not possible on a kernel, because a kernel does not count penalties" in text
    assert "## Otherwise in the kernel\n\n- Linux acknowledges as it finds best." in text
    assert "By the kernel reproduced" in (out / "study.html").read_text()
    # What is finished is kept, and the simulator alone says no word of a kernel.
    assert cli.main([*call, "--resume"]) == 0
    assert json.loads(capsys.readouterr().out) == document
    assert cli.main(simulated) == 0
    assert "kernel" not in json.loads(capsys.readouterr().out)
