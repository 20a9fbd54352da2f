"""Studies as data: files, cases, ranks, sentences, and the document that others read."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from experiments.errors import ScenarioError
from experiments.scheduling.simulator import simulator
from experiments.studies import schema
from experiments.studies.cases import cases
from experiments.studies.document import StudyDocument
from experiments.studies.evaluate import evaluate, together
from experiments.studies.measure import Measured, run
from tests.fakes.lab import LAB_COMMAND, Lab
from tests.fakes.simulations import stop_simulating

SMALL = """
format = 1
name = "small"
title = "One TCP over one link"
source = "section 1"
duration_s = 2.0

[base]
tcp = { mss_bytes = 1000 }
links = [{ ends = ["A", "B"], rate_bps = 10e6, delay_us = 1000 }]
flows = [{ name = "one", src = "A", dst = "B", protocol = "tcp", traffic = { kind = "bulk" } }]

[[axes]]
name = "rate"
levels = [
    { name = "slow", set = { "links.A-B.rate_bps" = 1e6, "flows.one.start_s" = 0.1 } },
    { name = "fast", set = { "links.0.rate_bps" = 20e6 } },
]

[metrics]
goodput_mbps = { of = "flows.one.goodput_bps", scale = 1e-6 }
segments = { of = "flows.one.streams.*.data_segments_sent" }

[[tables]]
table = "1"
columns = { goodput = "{}: goodput_mbps" }
rows.slow = [1.0]
rows.fast = [20.0]

[[claims]]
claim = "The fast link carries more."
source = "section 1"
by = "goodput_mbps"
holds = [{ case = "fast", of = "slow", above = 10 }]

[[claims]]
claim = "The slow link carries 2 Mbit/s."
source = "section 2"
by = "goodput_mbps"
holds = [{ case = "slow", is = "2.0" }]

[[claims]]
claim = "Both."
source = "section 3"
by = "segments"
contradiction = "Table 1 has it otherwise"
"""


def small(*changes: tuple[str, str]) -> schema.Study:
    text = SMALL
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return schema.parse(text, "small.toml")


def measured(study: schema.Study, seeds: int) -> Measured:
    return run([study], seeds, simulator(None))[0]


@pytest.fixture(scope="module")
def document() -> StudyDocument:
    study = small()
    return evaluate(study, measured(study, 2))


def test_the_names_are_those_of_the_papers() -> None:
    alheid = {"alheid-2014", "alheid-2016-wd", "alheid-2016-ict"}
    assert alheid | {"table1", "kato-flow", "kato-cc"} <= set(schema.available())


@pytest.mark.parametrize("name", schema.available())
def test_each_file_is_a_study_whose_cases_can_be_made(name: str) -> None:
    study = schema.load(name)
    assert study.name == name
    assert all(case["format"] == 1 for case in cases(study).values())


def test_levels_change_what_they_name() -> None:
    made = cases(small())
    assert list(made) == ["slow", "fast"]
    assert [case["links"][0]["rate_bps"] for case in made.values()] == [1e6, 20e6]
    assert made["slow"]["flows"][0]["start_s"] == 0.1
    assert "start_s" not in made["fast"]["flows"][0]


def test_a_study_may_make_some_of_the_cases_alone() -> None:
    fast = ("[base]", 'only = ["f*"]\n[base]')
    with pytest.raises(ScenarioError, match="there is no case 'slow'"):
        cases(small(fast))
    study = small(fast).model_copy(update={"claims": (), "tables": ()})
    assert list(cases(study)) == ["fast"]


def test_figures_stand_beside_the_papers(document: StudyDocument) -> None:
    slow, fast = document.cells
    assert (slow.paper, fast.paper) == (1.0, 20.0)
    assert 0.8 < slow.ours < 1.0
    assert 15.0 < fast.ours < 20.0
    assert slow.interval is not None
    assert slow.interval[0] <= slow.ours <= slow.interval[1]
    assert (document.columns.ranked_alike, document.columns.of) == (1, 1)


def test_sentences_are_checked_with_their_figures(document: StudyDocument) -> None:
    assert [claim.status for claim in document.claims] == ["reproduced", "not_reproduced", "contradictory"]
    assert "> 10 x slow 0.8" in document.claims[0].evidence
    assert document.claims[1].evidence.endswith("> 1.95 and < 2.05 (no)")
    assert document.claims[2].evidence == "Table 1 has it otherwise"
    assert [claim.by for claim in document.claims] == ["goodput_mbps", "goodput_mbps", "segments"]
    assert all(claim.beside is None and claim.without is None for claim in document.claims)


NOISY = {"slow": [1.0, 3.0, 2.0], "fast": [40.0, 80.0, 60.0]}


def test_what_seeds_do_not_tell_apart_is_undecided() -> None:
    study = small(("above = 10 }", "above = 20 }"))
    noisy = {(case, metric): runs for case, runs in NOISY.items() for metric in study.metrics}
    checked = evaluate(study, noisy).claims[0]
    assert checked.status == "undecided"
    assert checked.evidence == "fast 60.00 ± 49.68 > 20 x slow 2.000 ± 2.484 (cannot be told)"


def test_a_sentence_is_checked_by_the_measure_beside_and_without_its_assumption() -> None:
    study = small(
        ('goodput_mbps = { of = "flows.one.goodput_bps"', 'goodput_mbps = { beside = "segments", of = "f"'),
        ("above = 10 }]", 'above = 10 }]\ndepends_on = "rate"'),
        ("[base]", '[dependences.rate]\nassumption = "It is fast."\nwithout = { fast = "slow" }\n\n[base]'),
    )
    exact = {"slow": [1.0, 1.1, 0.9], "fast": [40.0, 40.1, 39.9]}
    measured = {(case, "goodput_mbps"): runs for case, runs in exact.items()}
    measured |= {(case, "segments"): runs[::-1] for case, runs in NOISY.items()}
    measured["slow", "segments"] = NOISY["fast"]
    claim = evaluate(study, measured).claims[0]
    assert (claim.status, claim.by, claim.depends_on) == ("reproduced", "goodput_mbps", "It is fast.")
    assert claim.beside is not None
    assert claim.without is not None
    assert (claim.beside.status, claim.beside.by) == ("not_reproduced", "segments")
    assert claim.without.status == "not_reproduced"
    assert claim.without.evidence.startswith("slow 1.000 ± ")


def test_a_figure_may_be_the_mean_of_several_cases() -> None:
    study = small(
        ('holds = [{ case = "slow", is = "2.0" }]', 'holds = [{ case = "slow + fast", is = "3e1" }]')
    )
    exact = {"slow": [10.0, 10.1, 9.9], "fast": [50.0, 50.1, 49.9]}
    measured = {(case, metric): runs for case, runs in exact.items() for metric in study.metrics}
    claim = evaluate(study, measured).claims[1]
    assert (claim.status, claim.evidence) == ("reproduced", "slow + fast 30.00 ± 0.25 > 25 and < 35")


TRIMMED = ("duration_s = 2.0", "duration_s = 2.0\ntrim = 0.2")


def outliers(study: schema.Study) -> Measured:
    """Five runs a case, of which one has gone another way."""
    figures = {"slow": [1.0, 2.0, 3.0, 4.0, 100.0], "fast": [200.0, 201.0, 202.0, 203.0, 0.0]}
    return {(case, metric): figures[case] for case in figures for metric in study.metrics}


def test_a_study_that_trims_leaves_out_its_share_at_each_end() -> None:
    study = small(TRIMMED)
    document = evaluate(study, outliers(study))
    slow, fast = document.cells
    assert (slow.ours, fast.ours) == (3.0, 201.0)
    # Tukey and McLaughlin: 2, 2, 3, 4, 4 have a variance of 1, the mean 4 / (3 * 2) of it; t(2) is 4.3027.
    assert slow.interval == pytest.approx((3 - 3.5131, 3 + 3.5131), abs=1e-3)
    assert document.claims[0].status == "reproduced"
    assert "201" in document.claims[0].evidence
    assert document.columns.pairs_alike == 1


def test_without_it_all_runs_count() -> None:
    study = small()
    document = evaluate(study, outliers(study))
    assert [cell.ours for cell in document.cells] == [22.0, 161.2]
    assert document.claims[0].status == "undecided"


def test_few_runs_are_not_trimmed() -> None:
    # A fifth of four is none.
    study = small(TRIMMED)
    four = {place: figures[:4] for place, figures in outliers(study).items()}
    assert evaluate(study, four) == evaluate(small(), four)


@pytest.mark.parametrize("share", ["0.5", "-0.1"])
def test_a_study_cannot_trim_all_or_less_than_nothing(share: str) -> None:
    with pytest.raises(ScenarioError, match="trim: must be"):
        small(("duration_s = 2.0", f"duration_s = 2.0\ntrim = {share}"))


def test_a_metric_that_only_some_protocols_have_is_0_for_the_others_if_it_is_optional() -> None:
    windows = 'of = "flows.one.mptcp.window_rates_bps.*"'
    optional = small(('of = "flows.one.streams.*.data_segments_sent"', f"{windows}, optional = true"))
    assert measured(optional, 1)["slow", "segments"] == [0.0]
    assert measured(optional, 1)["slow", "goodput_mbps"][0] > 0.8
    required = small(('of = "flows.one.streams.*.data_segments_sent"', windows))
    with pytest.raises(ScenarioError, match="metrics.segments: the results have no flows.one.mptcp"):
        measured(required, 1)


def test_the_same_seeds_give_the_same_document(document: StudyDocument) -> None:
    study = small()
    assert evaluate(study, measured(study, 2)).model_dump_json() == document.model_dump_json()


def test_a_single_seed_has_no_interval_and_tells_nothing() -> None:
    study = small()
    document = evaluate(study, measured(study, 1))
    assert all(cell.interval is None for cell in document.cells)
    assert [claim.status for claim in document.claims] == ["undecided", "undecided", "contradictory"]
    assert (document.columns.consistent, document.columns.pairs_open) == (1, 1)


def test_several_studies_are_one_document(document: StudyDocument) -> None:
    both = together("all", [document, document])
    assert both.study == "all"
    assert (both.columns.ranked_alike, len(both.claims), len(both.cells)) == (2, 6, 4)
    assert both.claims[0].source == "small: section 1"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("links.A-B.rate_bps", "links.A-C.rate_bps"), "level slow: links.A-C.rate_bps"),
        (("rows.fast", "rows.quick"), "there is no case 'quick'; cases: slow, fast"),
        (('case = "fast"', 'case = "quick"'), "claim 1: there is no case 'quick'; cases: slow, fast"),
        (('case = "fast"', 'case = "fast: speed"'), "claim 1: there is no metric 'speed'"),
        (('by = "segments"', 'by = "speed"'), "claim 3: there is no metric 'speed'"),
        (("[20.0]", "[20.0, 1.0]"), "row fast has 2 figures for 1 columns"),
        (('is = "2.0"', 'is = "two"'), "must be a number as the paper prints it, not 'two'"),
        (
            ('is = "2.0"', 'is = "2.0", above = 1'),
            "a comparison needs either `is` or one of `above` and `below`",
        ),
        (('is = "2.0"', 'is = "2.0", of = "slow", minus = "fast"'), "one of `of` and `minus`"),
        (('by = "segments"', 'by = "segments"\ndepends_on = "rate"'), "there is no dependence 'rate'"),
        (("duration_s = 2.0", "duration_s = 0"), "duration_s: must be greater than 0"),
        (('title = "One', 'titel = "One'), "title: must be given"),
        (('contradiction = "Table 1 has it otherwise"', ""), "a claim needs `holds`"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(change: tuple[str, str], sentence: str) -> None:
    with pytest.raises(ScenarioError) as refusal:
        cases(small(change))
    assert sentence in str(refusal.value)


def test_a_metric_that_is_not_there_and_a_description_that_is_wrong_are_refused() -> None:
    with pytest.raises(ScenarioError, match="the results have no flows.one.speed"):
        measured(small(("flows.one.goodput_bps", "flows.one.speed")), 1)
    with pytest.raises(ScenarioError, match="case slow: unknown field `mss_byte`"):
        measured(small(("mss_bytes = 1000", "mss_byte = 1000")), 1)


def test_the_command_prints_the_contract(lab: Lab) -> None:
    document: dict[str, Any] = lab.json("reproduce", "kato-cc", "--seeds", "4")
    assert {"study", "claims", "columns", "cells"} <= set(document)
    assert document["study"] == "kato-cc"
    keys = {"claim", "source", "status", "by", "evidence", "beside", "depends_on", "without"}
    assert all(set(claim) == keys and claim["by"] for claim in document["claims"])
    assert set(document["cells"][0]) == {"table", "row", "column", "paper", "ours", "interval"}
    # The paper: LIA takes the smaller part. It does with a kept threshold, which is our assumption, alone.
    weaker = [
        claim
        for claim in document["claims"]
        if "weaker" in claim["claim"] or "gets less than" in claim["claim"]
    ]
    assert [claim["status"] for claim in weaker] == ["reproduced"] * 4
    assert all("threshold" in claim["depends_on"] for claim in weaker)
    assert "not_reproduced" in {claim["without"]["status"] for claim in weaker}


def test_flow_control_is_the_papers(lab: Lab) -> None:
    printed = lab("reproduce", "kato-flow", "--seeds", "2")
    assert "reproduced by goodput_mbps: Throughput is above 100 Mbit/s only with" in printed
    assert "Assumed: Queues hold 1000 packets" in printed


def test_a_command_that_is_told_to_end_says_what_it_kept_and_how_to_go_on(tmp_path: Path) -> None:
    command = [*LAB_COMMAND, "reproduce", "alheid-2014"]
    command += ["--seeds", "2", "--duration", "86400", "--out", str(tmp_path)]
    status, errors = stop_simulating(command, signal.SIGTERM)
    assert status == 130
    assert "0 of 32 runs are complete" in errors
    given = f"reproduce alheid-2014 --seeds 2 --duration 86400 --out {tmp_path} --resume"
    assert f"`mstcp-lab {given}` makes the others." in errors
    assert "Traceback" not in errors
