"""`--set KEY=VALUE`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.errors import OverrideError
from experiments.model import overrides, scenario

BUTTERFLY = scenario.load("butterfly")


def applied(*assignments: str, cases: tuple[str, ...] = ("1", "2")) -> scenario.Scenario:
    parsed = overrides.parse_assignments(assignments)
    return overrides.apply(BUTTERFLY, parsed.scenario, cases)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=true", True),
        ("a=8e6", 8e6),
        ('a="cubic"', "cubic"),
        ("a=cubic", "cubic"),
        ("a=802.11b", "802.11b"),
        ("a=1.2.3", None),
        ("a = 3 ", 3),
        ("a={ x = 1 }", {"x": 1}),
        ("a==", None),
        ("a=1\nb=2", None),
        ("a", None),
        ("=1", None),
        ("a=", None),
    ],
)
def test_values_are_toml_or_words(text: str, value: Any) -> None:
    if value is None:
        with pytest.raises(OverrideError):
            overrides.parse_assignments([text])
    else:
        assert overrides.parse_assignments([text]).scenario == {"a": value}


@given(st.floats(min_value=1, max_value=1e12) | st.integers(min_value=1, max_value=10**12))
def test_any_rate_arrives_as_it_was_written(rate: float) -> None:
    changed = applied(f"flows.1.requested_bps={rate!r}")
    assert changed.cases["1"].flows["1"].requested_bps == rate
    assert changed.cases["2"].flows["1"].requested_for("mstcp") == rate
    assert changed.cases["1"].flows["2"] == BUTTERFLY.cases["1"].flows["2"]


def test_short_keys_mean_the_cases_that_are_run() -> None:
    changed = applied("flows.1.start_s=2.5", "allocation=paper", cases=("2",))
    assert changed.cases["1"] == BUTTERFLY.cases["1"]
    assert changed.cases["2"].flows["1"].start_s == 2.5
    assert changed.cases["2"].allocation == "paper"


def test_one_protocols_rate_leaves_the_others() -> None:
    changed = applied("flows.1.requested_bps.mstcp=3e6")
    for case in ("1", "2"):
        before, after = BUTTERFLY.cases[case].flows["1"], changed.cases[case].flows["1"]
        assert after.requested_for("mstcp") == 3e6
        assert after.requested_for("ospf") == before.requested_for("ospf")


def test_overrides_that_are_right_together_only() -> None:
    changed = applied("cases.1.flows.1.src=T2", "cases.1.flows.1.dst=T0", "cases.1.flows.1.given={}")
    assert (changed.cases["1"].flows["1"].src, changed.cases["1"].flows["1"].dst) == ("T2", "T0")


def test_network_keys_are_set_apart_and_all_are_recorded() -> None:
    parsed = overrides.parse_assignments(["links.S0-S4.rate_bps=8e6", "tcp.sack=true"])
    assert parsed.network == {"links.S0-S4.rate_bps": 8e6}
    assert parsed.scenario == {"tcp.sack": True}
    assert parsed.recorded() == {"links.S0-S4.rate_bps": 8e6, "tcp.sack": True}


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("tcp.sak=true", "--set tcp.sak: there is no such key; the nearest are tcp.sack"),
        ("flows.1.requested_bp=1", "the nearest are flows.1.requested_bps"),
        ("flows.9.src=T0", "there is no such key"),
        ("zzz=1", "known are allocation, cases"),
        ("network=line:2", "there is no such key"),
        ("tcp.sack=maybe", "--set tcp.sack: must be true or false"),
        ("packet_bytes=10", "--set packet_bytes: must be at least 200"),
        ("flows.1.requested_bps=0", "--set flows.1.requested_bps: must be greater than 0"),
        ("flows.1.dst=T0", "--set flows.1.dst: src and dst are both T0"),
        ("allocation=unfair", "'unfair' is not given for flow 1, 2; known: even_split, fair, max_min, "),
    ],
)
def test_a_wrong_override_is_refused_by_name(assignment: str, message: str) -> None:
    with pytest.raises(OverrideError) as caught:
        applied(assignment)
    assert message in str(caught.value)
