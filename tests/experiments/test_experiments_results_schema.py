"""The published JSON Schema of results is that of the model, and older documents are still read."""

from __future__ import annotations

import json
from pathlib import Path

from experiments.results import Results

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "docs" / "results-1.schema.json"
FIRST_FIELDS = {"format", "scenario", "engine", "variant", "overrides", "network", "environment", "runs"}
"""Those that the first documents of format 1 had: all others must have defaults."""


def test_the_published_schema_is_current() -> None:
    current = json.dumps(Results.model_json_schema(), indent=1) + "\n"
    assert PUBLISHED.read_text() == current, "renew it: make schemas"


def test_no_field_of_format_1_became_required() -> None:
    schema = json.loads(PUBLISHED.read_text())
    assert set(schema["required"]) <= FIRST_FIELDS
    run = schema["$defs"]["RunResult"]
    added = {"programs", "environment", "charged_s", "digest", "protocol_evidence", "earlier_attempts"}
    assert not added & set(run["required"])
