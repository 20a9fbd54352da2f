"""Events of scenarios: times by the seed, what is undone, and what cannot be."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import topologies
from experiments.errors import ScenarioError
from experiments.model import scenario
from experiments.model.dynamics import Event, LinkTrace, changes_of
from experiments.traces.base import SETTINGS

BUTTERFLY = topologies.load("butterfly")
CUT = {"link": "S4-S0", "up": False}


def changes(*events: dict[str, Any], case: str = "1", seed: int = 1, duration_s: float = 10.0) -> list[Any]:
    parsed = [Event.model_validate(event) for event in events]
    return [
        (change.time_s, change.link, change.up, change.silent, change.settings)
        for change in changes_of(parsed, (), BUTTERFLY, case, seed, duration_s)
    ]


def test_a_cut_is_undone_and_a_change_has_its_old_values_again() -> None:
    link = BUTTERFLY.link("S0-S4")
    assert changes(
        {"at_s": 2, "for_s": 3, **CUT},
        {"at_s": 1, "link": "S0-S4", "rate_bps": 4e6, "loss": 0.1, "for_s": 2.5},
        {"at_s": 11, **CUT},
    ) == [
        (1.0, link.name, None, False, {"rate_bps": 4e6, "loss": 0.1}),
        (2.0, link.name, False, False, {}),
        (3.5, link.name, None, False, {"rate_bps": link.rate_bps, "loss": link.loss}),
        (5.0, link.name, True, False, {}),
    ]


def test_a_host_is_away_with_all_its_links() -> None:
    of_host = [link.name for link in BUTTERFLY.links if "T1" in link.ends]
    assert [row[:3] for row in changes({"at_s": 1, "host": "T1", "up": False})] == [
        (1.0, name, False) for name in of_host
    ]


@given(st.integers(0, 1000), st.floats(0, 5), st.floats(0, 5))
def test_a_drawn_time_is_the_seeds_and_within_its_bounds(seed: int, start_s: float, length_s: float) -> None:
    event = {"between_s": [start_s, start_s + length_s], **CUT}
    (drawn,) = changes(event, seed=seed, duration_s=math.inf)
    assert start_s - 1e-6 <= drawn[0] <= start_s + length_s + 1e-6
    assert changes(event, seed=seed, duration_s=math.inf) == [drawn]
    assert len(
        {changes(event, {**event}, seed=each, duration_s=math.inf)[0][0] for each in range(9)}
    ) > 1 or (length_s < 1e-3)


def test_an_event_of_one_case_is_not_in_the_others() -> None:
    event = {"at_s": 1, "cases": ["2"], **CUT}
    assert changes(event, case="1") == []
    assert len(changes(event, case="2")) == 1


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        (CUT, "an event has a time"),
        ({"at_s": 1, "between_s": [1, 2], **CUT}, "an event has a time"),
        ({"between_s": [2, 1], **CUT}, "begins before it ends"),
        ({"at_s": 1, "up": False}, "of a link or of a host"),
        ({"at_s": 1, "link": "S0-S4", "host": "T0", "up": True}, "of a link or of a host"),
        ({"at_s": 1, "link": "S0-S4"}, f"changes something: up, {SETTINGS[0]}"),
        ({"at_s": 1, "link": "S0-S4", "up": True, "silent": True}, "silent goes with up = false"),
        ({"at_s": 1, "link": "S0-S4", "rate_bps": 0}, "greater than 0"),
        ({"at_s": 1, "link": "S0-S4", "rates_bps": 1e6}, "rates_bps"),
    ],
)
def test_what_is_no_event_is_told(event: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        Event.model_validate(event)


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        ({"at_s": 1, "link": "S0-S9", "up": False}, r"events\.0\.link: the network has no link 'S0-S9'"),
        ({"at_s": 1, "host": "T9", "up": False}, r"events\.0\.host: the network has no host 'T9'"),
        ({"at_s": 1, "cases": ["3"], **CUT}, r"events\.0\.cases: there is no case '3'; its cases are 1, 2"),
    ],
)
def test_names_are_checked_before_anything_runs(event: dict[str, Any], sentence: str) -> None:
    butterfly = scenario.load("butterfly").model_copy(update={"events": (Event.model_validate(event),)})
    with pytest.raises(ScenarioError, match=sentence):
        scenario.check_network(butterfly, ["1"], BUTTERFLY)


def traced(tmp_path: Path, text: str, **trace: Any) -> list[tuple[float, dict[str, Any]]]:
    """The changes of a link in 1 s, by a trace whose file has a text."""
    (tmp_path / "trace").write_text(text)
    parsed = LinkTrace.model_validate({"link": "S4-S0", "trace": {"file": "trace", **trace}})
    read = parsed.model_copy(update={"trace": parsed.trace.read(tmp_path)})
    again = LinkTrace.model_validate_json(read.model_dump_json())
    assert again == read, "results stand alone: the file is not needed again"
    made = changes_of((), (read,), BUTTERFLY, "1", 1, 1.0)
    assert {change.link for change in made} == {BUTTERFLY.link("S0-S4").name}
    return [(change.time_s, change.settings) for change in made]


def test_a_trace_of_mahimahi_carries_its_packets_and_begins_again(tmp_path: Path) -> None:
    steps = traced(tmp_path, "5\n50\n100\n310\n\n", kind="mahimahi")
    ends = [time_s for time_s, _ in steps[1:]] + [1.0]
    bits = sum(
        settings["rate_bps"] * (end_s - time_s) for (time_s, settings), end_s in zip(steps, ends, strict=True)
    )
    # 2, 1, none and 1 packets in 0.4 s, two and a half times; an interval without one has one all the same.
    assert bits == pytest.approx((2 * 5 + 3) * 1504 * 8)


def test_a_trace_of_a_table_sets_what_its_columns_say(tmp_path: Path) -> None:
    text = "# a comment\ntime_s,rate_bps,loss\n0,4e6,\n0.3,,0.5\n"
    expected = [(0.0, {"rate_bps": 4e6}), (0.3, {"loss": 0.5})]
    assert traced(tmp_path, text, kind="csv") == expected
    repeated = traced(tmp_path, text, kind="csv", repeat_s=0.5)
    assert repeated == expected + [(0.5 + time_s, settings) for time_s, settings in expected]


@pytest.mark.parametrize(
    ("kind", "text", "sentence"),
    [
        ("mahimahi", "5\nx\n", "line 2: 'x' is no time in whole milliseconds"),
        ("mahimahi", "", "is no trace of mahimahi: it has no line"),
        ("csv", "time_s,rate\n0,1\n", "row 2, rate: there is no such column; columns are time_s, rate_bps"),
        ("csv", "time_s,loss\n0,2\n", "row 2, loss: "),
        ("csv", "time_s,loss\n1,0\n0,0\n", "it needs rows whose time_s rise"),
    ],
)
def test_a_file_that_is_no_trace_is_told(tmp_path: Path, kind: str, text: str, sentence: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        traced(tmp_path, text, kind=kind)
    assert sentence in str(raised.value)
