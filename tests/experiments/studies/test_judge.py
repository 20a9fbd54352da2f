"""What the seeds' intervals say of a sentence."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from experiments.studies.document import Verdict
from experiments.studies.judge import Judge
from experiments.studies.schema import BELOW, ClaimedRelation, Holds, Side, side


def judged(runs: Mapping[str, Sequence[float]], **holds: object) -> Verdict:
    """Judge one comparison by the metric `m`."""
    comparisons = list(Holds.model_validate(holds).comparisons("m", ""))
    judgement = Judge(lambda side: runs[side.cases[0]]).sentence("m", comparisons)
    assert judgement is not None
    return judgement.status


RUNS = {"low": [4.0, 4.1, 3.9, 4.0], "high": [8.0, 8.2, 7.8, 8.0], "wide": [1.0, 9.0, 3.0, 7.0], "one": [4.0]}


@pytest.mark.parametrize(
    ("holds", "status"),
    [
        ({"case": "high", "of": "low", "above": 1}, "reproduced"),
        ({"case": "low", "of": "high", "above": 1}, "not_reproduced"),
        ({"case": "wide", "of": "low", "above": 1}, "undecided"),
        ({"case": "low", "of": "low", "above": 1}, "not_reproduced"),
        ({"case": "high", "of": "low", "above": 1.5, "below": 2.5}, "reproduced"),
        ({"case": "high", "of": "low", "is": "2"}, "reproduced"),
        ({"case": "high", "of": "low", "is": "2.2"}, "not_reproduced"),
        ({"case": "high", "minus": "low", "is": "4"}, "reproduced"),
        ({"case": "high", "minus": "low", "below": 3}, "not_reproduced"),
        ({"case": "low", "is": "4"}, "reproduced"),
        ({"case": "low", "is": "4.00"}, "undecided"),
        ({"case": "high", "is": "1e1"}, "reproduced"),
        ({"case": "high", "below": 7.9}, "undecided"),
        ({"case": "one", "below": 7.9}, "undecided"),
    ],
)
def test_a_comparison_holds_fails_or_cannot_be_told(holds: dict[str, object], status: Verdict) -> None:
    assert judged(RUNS, **holds) == status


def test_two_figures_of_the_same_runs_are_pairs() -> None:
    # What one flow gains the other loses: the pairs differ in all runs, the means do not seem to.
    runs = {Side(("a",), "x"): [1.0, 5.0, 9.0], Side(("a",), "y"): [2.0, 6.1, 9.9]}
    judgement = Judge(runs.__getitem__).sentence(
        "x", [ClaimedRelation(side("a: x"), "of", side("a: y"), {BELOW: 1.0})]
    )
    assert judgement is not None
    assert judgement.status == "reproduced"
    assert judgement.evidence.startswith("a 5.000 ± 9.937 < a: y 6.000 ± ")


def test_sentences_without_a_difference_pass_as_seldom_as_they_should() -> None:
    """At most 2.5 % are reproduced, and 2.5 % are not, where there is nothing but chance."""
    draw = random.Random(1)
    statuses = [
        judged(
            {case: [draw.gauss(0, spread) for _ in range(10)] for case, spread in (("a", 1), ("b", 3))},
            case="a",
            of="b",
            above=1,
        )
        for _ in range(250)
    ]
    assert statuses.count("reproduced") < 0.06 * 250
    assert statuses.count("not_reproduced") < 0.06 * 250
