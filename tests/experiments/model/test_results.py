"""The published JSON Schema of results is that of the model."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from experiments.model.results import Results
from tests.fakes.results import make_results
from tests.paths import ROOT

PUBLISHED = ROOT / "docs" / "results-2.schema.json"


def test_the_published_schema_is_current() -> None:
    current = json.dumps(Results.model_json_schema(), indent=1) + "\n"
    assert PUBLISHED.read_text() == current, "renew it: make schemas"


def test_another_format_is_refused_by_its_number() -> None:
    document = make_results(("ospf",)).model_dump(mode="json") | {"format": 3}
    with pytest.raises(ValidationError, match="format"):
        Results.model_validate(document)
