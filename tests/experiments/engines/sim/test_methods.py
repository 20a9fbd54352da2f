"""Methods of one's own: the classes of docs/own-methods.md beside the built-in ones, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import netsim_native as sim
import pytest

from experiments.cli.methods import HEADINGS
from experiments.engines.sim import endless
from experiments.engines.sim.methods import load
from experiments.engines.sim.worker import OwnMethodFailed, simulate
from experiments.installation import ROOT
from experiments.model.settings import RESPONSES
from tests.fakes.lab import Lab

SHORT = ("--seeds", "1", "--duration", "1")
DOCS = ROOT / "docs" / "own-methods.md"
TWO_PATHS: dict[str, Any] = {
    "format": 1,
    "duration_s": 2.0,
    "links": [
        {"ends": ["S", "D"], "rate_bps": 10e6, "delay_us": 5000, "queue_packets": 50},
        {"ends": ["S", "B"], "rate_bps": 5e6, "delay_us": 9000, "queue_packets": 50},
        {"ends": ["B", "D"], "rate_bps": 1e9, "delay_us": 10},
    ],
    "flows": [
        {
            "name": "1",
            "src": "S",
            "dst": "D",
            "protocol": "mptcp",
            "traffic": {"kind": "bulk"},
            "paths": [{"path": ["S", "D"]}, {"path": ["S", "B", "D"]}],
            "mptcp": {},
        }
    ],
}


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """The classes of the how-to page in one file."""
    path = tmp_path / "mine.py"
    path.write_text("\n\n".join(re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)))
    return path


@pytest.mark.parametrize(
    ("kind", "name", "built_in"),
    [
        ("schedulers", "LeastDelay", 6),
        ("congestion", "Scalable", 3),
        ("coupled", "EqualShares", 6),
        ("reordering", "TakeBack", 8),
    ],
)
def test_a_class_of_the_how_to_page_is_compared_with_all_built_in_ones(
    kind: str, name: str, built_in: int, mine: Path, lab: Lab
) -> None:
    own = f"{mine}:{name}"
    methods = lab.json("methods", kind, "--own", own, "--seeds", "1", "--duration", "2")["methods"]
    assert len(methods) == built_in + 1
    assert [method["name"] for method in methods if method["own"]] == [own]
    assert all(method["goodput_mbps"]["mean"] > 1.0 for method in methods)
    source = mine.read_text().split(f"class {name}:")[1].split("\nclass ")[0]
    assert len(source.strip().splitlines()) < 20


def described(**mptcp: Any) -> str:
    return json.dumps(TWO_PATHS | {"flows": [TWO_PATHS["flows"][0] | {"mptcp": mptcp}]})


def test_python_decides_as_rust_does(tmp_path: Path) -> None:
    path = tmp_path / "same.py"
    path.write_text(
        "class MinRtt:\n"
        "    def choose(self, view):\n"
        "        fits = [flow for flow in view.subflows if flow.has_room]\n"
        "        return min(fits, key=lambda flow: flow.srtt_s).index if fits else None\n"
        "class Reno:\n"
        "    def __init__(self):\n"
        "        self.credit = 0\n"
        "    def on_ack(self, window, acked):\n"
        "        if window.cwnd_bytes < window.ssthresh_bytes:\n"
        "            window.cwnd_bytes += min(acked.bytes, window.mss_bytes)\n"
        "            return\n"
        "        self.credit += acked.bytes\n"
        "        if self.credit >= window.cwnd_bytes:\n"
        "            self.credit -= int(window.cwnd_bytes)\n"
        "            window.cwnd_bytes += window.mss_bytes\n"
        "    def on_loss(self, window, now_s, flight_bytes):\n"
        "        self.credit = 0\n"
        "        window.ssthresh_bytes = max(flight_bytes // 2, 2 * window.mss_bytes)\n"
    )
    rust = sim.run(described(scheduler="minrtt", congestion_control="uncoupled"))
    own = described(scheduler=f"{path}:MinRtt", congestion_control=f"{path}:Reno")
    assert sim.run(own, methods=load) == rust


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("class Mine:\n    pass\n", "has no method choose, which a scheduler needs"),
        ("class Other:\n    pass\n", "has no class Mine that could be a scheduler"),
        ("class Mine(:\n", "cannot be loaded: SyntaxError"),
        ("class Mine:\n    def __init__(self, x):\n        pass\n", "missing 1 required positional"),
    ],
)
def test_what_is_no_method_is_refused_with_its_place_before_anything_runs(
    code: str, told: str, tmp_path: Path
) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(code)
    with pytest.raises(sim.InvalidDescription) as refused:
        sim.check(described(scheduler=f"{path}:Mine"), load)
    place, reason = refused.value.args
    assert place == "flows[0].mptcp.scheduler"
    assert told in reason


def test_an_exception_ends_the_run_and_says_where(tmp_path: Path, lab: Lab) -> None:
    path = tmp_path / "late.py"
    path.write_text("class Late:\n    def choose(self, view):\n        return view.subflows[7]\n")
    told = lab.refusal("methods", "schedulers", "--own", f"{path}:Late", *SHORT, status=1)
    assert f"IndexError in {path}, line 3, in choose" in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("return 7", "choose() returned 7: no subflow of this index has room"),
        ("return 0.5", "choose() returns the index of a subflow, or None"),
        ("raise SystemExit(0)", "SystemExit in {path}, line 3, in choose: 0"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt in {path}, line 3, in choose"),
        ("import os; os.kill(os.getpid(), 9)", "its process was ended by SIGKILL, as the kernel does"),
    ],
)
def test_whatever_a_method_does_ends_in_one_sentence(body: str, told: str, tmp_path: Path, lab: Lab) -> None:
    path = tmp_path / "odd.py"
    path.write_text(f"class Odd:\n    def choose(self, view):\n        {body}\n")
    options = ["--own", f"{path}:Odd", *SHORT]
    said = lab.refusal("methods", "schedulers", *options, status=1)
    assert f"{path}:Odd, seed 1 failed: {told.format(path=path)}" in said
    assert "Traceback" not in said


def test_what_a_method_prints_is_shown_and_disturbs_nothing(tmp_path: Path, lab: Lab) -> None:
    path = tmp_path / "loud.py"
    path.write_text(
        "class Loud:\n"
        "    def choose(self, view):\n"
        "        print('choosing among', len(view.subflows))\n"
        "        return next((flow.index for flow in view.subflows if flow.has_room), None)\n"
    )
    document = lab.json("methods", "schedulers", "--own", f"{path}:Loud", *SHORT)
    assert document["methods"][-1]["goodput_mbps"]["mean"] > 1.0
    assert "choosing among 2\n" in lab.err


@pytest.mark.parametrize("window", ["(float('nan'), 1e6)", "(1e6, -3)"])
def test_a_window_to_restore_is_a_number_of_bytes(window: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.py"
    path.write_text(
        "class Odd:\n"
        "    def on_reduction(self, window, now_s, timeout):\n"
        "        pass\n"
        "    def on_ack(self, ack):\n"
        f"        return {window}\n"
    )
    with pytest.raises(ValueError, match="of the window is .*: it is a number of bytes"):
        sim.run(json.dumps(TWO_PATHS | {"tcp": {"reordering": f"{path}:Odd"}}), methods=load)


@pytest.mark.parametrize("answer", ["7", "'first'", "-1"])
def test_an_answer_that_is_no_subflow_is_refused(answer: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.py"
    path.write_text(f"class Odd:\n    def choose(self, view):\n        return {answer}\n")
    with pytest.raises((ValueError, TypeError), match=r"choose\(\) return"):
        sim.run(described(scheduler=f"{path}:Odd"), methods=load)


def test_a_scenario_takes_one_too(mine: Path, tmp_path: Path, lab: Lab) -> None:
    options = ["run", "butterfly", "--engine", "sim", "--protocol", "mptcp-sdn", "--case", "1"]
    options += ["--duration", "1", "--no-report", "--set", f"sim.mptcp.scheduler={mine}:LeastDelay"]
    lab(*options, "--out", str(tmp_path / "out"))
    options[-1] = f"sim.mptcp.scheduler={mine}:Least"
    assert "sim.mptcp.scheduler" in lab.refusal(*options, "--out", str(tmp_path / "no"))
    options[-1] = "sim.mptcp.scheduler=best"
    assert "'best' is none of minrtt, roundrobin" in lab.refusal(*options, "--out", str(tmp_path / "no"))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["sim.reordering=dsack", "tcp.sack=false"], "sack must be on, since D-SACK reports"),
        (["sim.reordering=rack", "tcp.sack=false"], "sack must be on, since"),
        (["sim.reordering=eifel", "tcp.timestamps=false"], "timestamps must be on, since Eifel"),
        (["sim.reordering=door", "sim.spurious=frto"], "says what spurious says: give one of them"),
        (["sim.reordering=pr_r", "sim.recovery=prr"], "pr_r is a recovery itself: leave recovery out"),
        (["sim.reordering=nopr"], "'nopr' is none of none, dsack, eifel, frto, door, pr_r, tcp_pr, rack"),
    ],
)
def test_methods_that_a_protocol_cannot_have_are_refused_before_anything_runs(
    settings: list[str], told: str, tmp_path: Path, lab: Lab
) -> None:
    options = ["run", "butterfly", "--engine", "sim", "--case", "1", "--out", str(tmp_path / "out")]
    for setting in settings:
        options += ["--set", setting]
    assert told in lab.refusal(*options)
    assert not (tmp_path / "out" / "runs").exists()


@pytest.mark.parametrize("name", RESPONSES)
def test_a_scenario_that_names_its_recovery_takes_each_response(lab: Lab, name: str, tmp_path: Path) -> None:
    settings = [
        "--set",
        f"sim.reordering={name}",
        *(["--set", "sim.recovery=keep"] if name == "pr_r" else []),
    ]
    options = ["run", "wifi", "--engine", "sim", "--duration", "1", "--no-report", *settings]
    lab(*options, "--out", str(tmp_path / "out"))


@pytest.mark.parametrize(
    "loop",
    [
        "while True: pass",
        "\n".join(["while True:", "            try: len('x')", "            except Exception: pass"]),
    ],
)
def test_a_call_that_does_not_return_is_ended_and_said(
    loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endless, "CALL_S", 0.2)
    path = tmp_path / "endless.py"
    path.write_text(f"class Endless:\n    def choose(self, view):\n        {loop}\n")
    with pytest.raises(
        OwnMethodFailed, match=rf"DoesNotReturn in {path}, line \d, in choose: it has not returned"
    ):
        simulate(described(scheduler=f"{path}:Endless"))


@pytest.mark.parametrize("duration", ["nan", "inf", "0", "-1", "86401", "soon"])
def test_a_duration_that_is_none_is_refused(duration: str, lab: Lab) -> None:
    assert "is not a number of seconds above 0" in lab.refusal(
        "methods", "schedulers", "--duration", duration
    )


@pytest.mark.parametrize(
    ("own", "told"),
    [
        (["none.py:Mine"], "mstcp-lab: --own: none.py:Mine: there is no file none.py."),
        (["none.at_all:Mine"], "--own: none.at_all:Mine: none.at_all cannot be loaded: ModuleNotFoundError"),
        ([":Mine"], "--own: ':Mine' is no FILE.py:NAME"),
        (["{mine}:"], "is no FILE.py:NAME"),
        (["{mine}:Absent"], "mine.py has no class Absent that could be a scheduler"),
        (["minrtt"], "--own: 'minrtt' is no FILE.py:NAME or MODULE:NAME"),
        (["{mine}:LeastDelay", "{mine}:LeastDelay"], "is given twice"),
    ],
)
def test_methods_are_ones_own_and_each_is_given_once(own: list[str], told: str, mine: Path, lab: Lab) -> None:
    options = [option for name in own for option in ("--own", name.format(mine=mine))]
    assert told in lab.refusal("methods", "schedulers", *options, *SHORT)


def test_a_piped_table_has_whole_names_and_headings(mine: Path, tmp_path: Path, lab: Lab) -> None:
    other = tmp_path / "other" / "mine.py"
    other.parent.mkdir()
    other.write_text(mine.read_text())
    options = ["--own", f"{mine}:LeastDelay", "--own", f"{other}:LeastDelay"]
    printed = lab("methods", "schedulers", *options, *SHORT)
    names = "".join(line.partition("|")[0].strip() for line in printed.splitlines())
    assert f"{mine}:LeastDelay" in names
    assert f"{other}:LeastDelay" in names
    assert {word for heading in HEADINGS for word in heading.split()} <= set(printed.split())
