"""The published JSON Schema of results is that of the model, and older documents are still read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from experiments.model.results import Results
from tests.fakes.results import make_results

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "docs" / "results-2.schema.json"
FIRST_FIELDS = {"scenario", "engine", "variant", "overrides", "network", "environment", "runs"}
"""Those that the first documents of format 2 had: all others must have defaults."""
FORMAT_1_EVIDENCE: dict[str, Any] = {
    "split": {
        "1": {
            "by": "packets",
            "paths": [["A", "S", "B"], ["A", "T", "B"]],
            "asked": [0.75, 0.25],
            "forwarded_packets": [30, 9],
            "acks": "shortest",
            "ack_path": ["B", "S", "A"],
            "splitter": {"interface": "s0-eth1", "mode": "native", "packets": [30, 10]},
            "realised": [0.75, 0.25],
        }
    },
    "taken": {"2": [{"path": ["A", "S", "B"], "packets": 8}]},
    "sockets": {"1": [{"source_ip": "10.0.0.1", "source_port": 4, "options": ["sack"], "bytes_sent": 9}]},
    "kernel_counters": {"A": {"TcpExtTCPTimeouts": 2}},
    "unverified": ["2"],
    "packets": {"packets_sent": 40},
    "streams": {"1": "of somebody else"},
}


def of_format_1() -> dict[str, Any]:
    """Return a document as the last program of format 1 wrote it."""
    document = make_results(("ppfs",)).model_dump(mode="json")
    document["format"] = 1
    document["environment"]["why"] = ["scenario 1 with ppfs, seed 1: it was busy"]
    document["environment"]["simulations"] = [
        {"protocol": "ppfs", "scenario": "1", "seed": 1, "events": 9, "wall_s": 1.0, "peak_rss_bytes": 5}
    ]
    for run in document["runs"]:
        run["scenario"] = run.pop("case")
        del run["evidence"]
        run["protocol_evidence"] = FORMAT_1_EVIDENCE
        for flow in run["flows"]:
            del flow["metrics"]
    return document


def test_the_published_schema_is_current() -> None:
    current = json.dumps(Results.model_json_schema(), indent=1) + "\n"
    assert PUBLISHED.read_text() == current, "renew it: make schemas"


def test_no_field_of_format_2_became_required() -> None:
    schema = json.loads(PUBLISHED.read_text())
    assert set(schema["required"]) <= FIRST_FIELDS
    run = schema["$defs"]["RunResult"]
    assert not {"programs", "environment", "charged_s", "digest", "evidence"} & set(run["required"])


def test_documents_of_format_1_are_read_with_nothing_lost(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(of_format_1()))
    results = Results.read(path)
    assert results.format == 2
    assert results.environment.simulations[0].case == "1"
    assert results.environment.why == ["case 1 with ppfs, seed 1: it was busy"]
    run = results.runs[0]
    assert run.case == make_results(("ppfs",)).runs[0].case
    first, second = run.evidence.flows["1"], run.evidence.flows["2"]
    assert [(path.asked, path.realised, path.packets, path.forwarded_packets) for path in first.paths] == [
        (0.75, 0.75, 30, 30),
        (0.25, 0.25, 10, 9),
    ]
    assert (first.split_by, first.splitter) == ("packets", "s0-eth1 native")
    assert (first.ack_rule, first.ack_path) == ("shortest", ["B", "S", "A"])
    (connection,) = first.connections
    assert (connection.source_ip, connection.options, connection.counters) == (
        "10.0.0.1",
        ["sack"],
        {"bytes_sent": 9},
    )
    assert [(path.packets, path.realised) for path in second.paths] == [(8, 1.0)]
    assert (first.is_verified, second.is_verified) == (True, False)
    assert run.evidence.hosts == {"A": {"TcpExtTCPTimeouts": 2}}
    assert run.evidence.network == {"packets_sent": 40}
    assert run.evidence.further == {"streams": {"1": "of somebody else"}}
    assert Results.model_validate_json(results.to_json()) == results


def test_a_newer_format_is_refused_with_a_sentence() -> None:
    document = make_results(("ospf",)).model_dump(mode="json") | {"format": 3}
    with pytest.raises(ValidationError, match="it has format 3; this version of mstcp-lab reads"):
        Results.model_validate(document)
