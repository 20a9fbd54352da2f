"""Grouping over seeds, invalid runs, missing values, footnotes and the paper's rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from experiments.protocols import PROTOCOLS
from experiments.report import units
from experiments.report.comparison import compare
from experiments.report.notes import Notes, flow_notes, general_notes, validity_sentences
from experiments.report.palette import protocol_styles
from experiments.report.reference import load_reference
from experiments.report.summary import summarise, summarise_links
from tests.fakes.results import make_results


def test_means_are_over_the_seeds_of_one_protocol() -> None:
    results = make_results(("mstcp",), ("1",), seeds=4)
    flow = summarise(results)[0].flows["2"][0]
    expected = [run.flows[1].goodput_bps for run in results.runs]
    assert flow.goodput_bps.mean == pytest.approx(sum(expected) / 4)
    assert flow.goodput_bps.count == 4
    buffers = [run.flows[1].reorder_buffer_max_bytes or 0 for run in results.runs]
    assert flow.reorder_buffer_max_bytes == max(buffers)


def test_an_invalid_run_enters_no_figure_while_there_is_a_valid_one() -> None:
    results = make_results(("mstcp",), ("1",), seeds=3)
    results.runs[1].valid = False
    flow = summarise(results)[0].flows["1"][0]
    assert [run.seed for run in flow.runs] == [1, 3]
    assert flow.valid
    assert flow_notes(flow).row == "1 of 3 runs not valid and left out"


def test_runs_that_are_all_alike_are_one_measurement() -> None:
    results = make_results(("ospf",), ("1",), seeds=3)
    alike = [results.runs[0].model_copy(update={"seed": seed}) for seed in (1, 2, 3)]
    results = results.model_copy(update={"runs": alike})
    flow = summarise(results)[0].flows["1"][0]
    assert flow.goodput_bps.half_width is None
    assert "all 3 runs are alike: the seed changes nothing here, so n = 1" in (flow_notes(flow).row or "")
    others = [make_results(("ospf",), ("1",)).runs[0].model_copy(update={"seed": seed}) for seed in (1, 2)]
    others[0].flows[0].goodput_bps = others[1].flows[0].goodput_bps = flow.goodput_bps.mean + 1.0
    (pair,) = compare([("a", results), ("b", results.model_copy(update={"runs": others}))]).pairs
    assert [row.goodput_bps.difference.significant for row in pair.rows if row.goodput_bps.difference] == [
        None,
        None,
    ]


def test_where_no_run_is_valid_the_invalid_ones_are_shown_and_marked() -> None:
    results = make_results(("mstcp",), ("1",), seeds=2)
    for run in results.runs:
        run.valid = False
    flow = summarise(results)[0].flows["1"][0]
    assert len(flow.runs) == 2
    assert not flow.valid
    assert "no run was valid" in (flow_notes(flow).row or "")


def test_a_protocol_in_another_network_is_marked_beside_the_others() -> None:
    scenario = summarise(make_results(("mptcp", "mptcp-dualhomed")))[0]
    single, dual = scenario.flows["1"]
    assert flow_notes(single).row is None
    assert "another network: not counted where protocols are ranked" in (flow_notes(dual).row or "")


def test_missing_values_stay_missing_and_have_a_reason() -> None:
    results = make_results(("ospf",), ("1",), seeds=2)
    for run in results.runs:
        run.flows[0].delay_s = None
    flow = summarise(results)[0].flows["1"][0]
    assert flow.delay_mean_s is None
    assert flow.delay_quantile_s("p99") is None
    assert flow.out_of_order_ratio is None
    assert flow.reorder_buffer_max_bytes is None
    notes = flow_notes(flow)
    assert all((notes.delay, notes.out_of_order, notes.reorder_buffer, notes.allocated))


def test_the_delay_is_averaged_over_the_seeds_that_have_one() -> None:
    results = make_results(("ospf",), ("1",), seeds=3)
    results.runs[0].flows[0].delay_s = None
    delay = summarise(results)[0].flows["1"][0].delay_mean_s
    assert delay is not None
    assert delay.count == 2


def test_links_take_the_worst_lateness_and_the_mean_utilisation() -> None:
    results = make_results(("mstcp",), ("1",), seeds=2)
    first, second = (run.links[8] for run in results.runs)
    first.utilisation, second.utilisation = 0.2, 0.4
    first.lateness_max_us, second.lateness_max_us = 100.0, None
    first.packets_dropped, second.packets_dropped = 3, 4
    link = next(summary for summary in summarise_links(results.runs) if summary.link == first.link)
    assert link.utilisation == pytest.approx(0.3)
    assert link.lateness_max_us == 100.0
    assert link.packets_dropped == 7


def test_the_papers_rows_are_found_by_scenario_flow_and_protocol() -> None:
    flow = summarise(make_results(("ppfs", "mptcp")))[1].flows["2"]
    assert flow[0].paper is not None
    assert flow[0].paper.goodput_bps == 18.83e6
    assert flow[0].paper.delay_mean_s == 0.04994
    assert flow[1].paper is None


def test_another_scenario_file_has_no_paper() -> None:
    results = make_results(scenario="my-network")
    assert all(flow.paper is None for group in summarise(results)[0].flows.values() for flow in group)
    assert general_notes(results) == []


def test_the_reference_is_the_whole_table() -> None:
    reference = load_reference()
    cells = {(row.case, row.flow, row.protocol) for row in reference.row}
    assert cells == {(s, f, p) for s in "12" for f in "12" for p in ("mstcp", "ppfs", "ospf")}
    doubtful = {(row.case, row.flow, row.protocol) for row in reference.row if row.doubtful}
    assert doubtful == {("1", "2", "ppfs"), ("1", "2", "mstcp"), ("2", "2", "mstcp")}


def test_changed_settings_and_the_kernels_recovery_are_said() -> None:
    notes = general_notes(make_results(overrides={"tcp.sack": True}))
    assert "Linux kernel" in notes[0]
    assert "tcp.sack = True" in notes[1]
    simulated = make_results(engine="sim")
    simulated.environment.link_backend = None
    assert not any("Linux kernel" in note for note in general_notes(simulated))


def test_every_reason_not_to_trust_a_document_is_a_sentence() -> None:
    results = make_results()
    assert validity_sentences(results) == []
    results.environment.valid = False
    results.runs[0].valid, results.runs[0].why_invalid = False, ["98 % busy"]
    results.runs[1].flows[0].bytes_wrong = 7
    assert validity_sentences(results) == [
        "The results are not valid; no reason is recorded.",
        "ospf, case 1, seed 1 is not valid: 98 % busy.",
        "mstcp, case 1, seed 1 is not valid: 7 bytes of flow 1 arrived wrong.",
    ]


def test_a_runs_reason_that_the_document_repeats_is_said_once() -> None:
    results = make_results(("ospf",), ("1",))
    results.environment.valid = False
    results.environment.why = ["case 1 with ospf, seed 1: 98 % busy", "the clock was set"]
    results.runs[0].valid, results.runs[0].why_invalid = False, ["98 % busy"]
    assert validity_sentences(results) == [
        "The results are not valid: the clock was set.",
        "ospf, case 1, seed 1 is not valid: 98 % busy.",
    ]


def test_footnotes_are_lettered_in_order_and_each_text_once() -> None:
    notes = Notes()
    assert [notes.mark(f"text {i}") for i in range(28)][-3:] == ["z", "aa", "ab"]
    assert notes.mark("text 0") == "a"
    assert notes.mark(None) == ""
    assert len(notes.items()) == 28


def test_a_protocol_looks_alike_whatever_stands_beside_it() -> None:
    alone, among = protocol_styles(["mstcp"]), protocol_styles(["lia", "ospf", "mstcp", "olia"])
    assert alone["mstcp"] == among["mstcp"]
    many = protocol_styles(["ospf", "ecmp", "ppfs", "mstcp", "mptcp", "lia", "olia", "balia"])
    assert len({style.colour for style in many.values()}) == len(many) == 8
    assert (
        len({style.hatch for style in many.values()}) == len({style.marker for style in many.values()}) == 8
    )
    assert len(protocol_styles([f"p{i}" for i in range(30)])) == 30


# Machado, Oliveira and Fernandes (2009): severity 1, on linear RGB.
VISIONS = {
    "all cones": np.eye(3),
    "no red": np.array([[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]]),
    "no green": np.array([[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]]),
    "no blue": np.array([[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]]),
}
RGB_TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = RGB_TO_XYZ.sum(axis=1)


def seen(colour: str, vision: np.ndarray) -> np.ndarray:
    """Return a colour in CIELAB, where a distance of 2.3 is just noticeable, as it is seen."""
    coded = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    x, y, z = np.cbrt(np.maximum(RGB_TO_XYZ @ np.clip(vision @ linear, 0, 1) / WHITE, 1e-6))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISIONS)
def test_built_in_protocols_are_told_apart_without_colour_vision(vision: str) -> None:
    styles = protocol_styles(PROTOCOLS)
    colours = [seen(style.colour, VISIONS[vision]) for style in styles.values()]
    assert min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(colours, 2)) > 15
    assert len({style.marker for style in styles.values()}) == len({style.hatch for style in styles.values()})
    assert len({style.marker for style in styles.values()}) == len(PROTOCOLS)


@pytest.mark.parametrize(
    ("value", "text"),
    [(8.5e6, "8.50"), (0.0, "0.00"), (4400.0, "0.0044"), (99_000.0, "0.099"), (1e9, "1000.00")],
)
def test_small_rates_keep_two_digits(value: float, text: str) -> None:
    assert units.mbps(value) == text


def test_units_as_people_write_them() -> None:
    assert [units.rate_label(v) for v in (5e6, 2.5e9, 850e3, 12.0)] == ["5M", "2.5G", "850k", "12"]
    assert [units.size(v) for v in (12, 30_600, 2_000_000)] == ["12 B", "30.6 kB", "2.0 MB"]
    assert units.interval("8.50", 0.0123) == "0.01"
    assert units.percent(0.9986) == "99.86"
