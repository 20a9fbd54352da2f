"""A comparison as a JSON document, for programs. Rates are bit/s, times seconds, missing values null."""

from __future__ import annotations

import json
from dataclasses import asdict

from experiments.analysis.statistics import CONFIDENCE
from experiments.report.comparison import Comparison, Pair, Quantity

FORMAT = 1


def to_json(comparison: Comparison) -> str:
    """Return the comparison as JSON text, one trailing newline."""
    document = {
        "format": FORMAT,
        "confidence": CONFIDENCE,
        "documents": [
            {
                "letter": entry.letter,
                "name": entry.name,
                "scenario": entry.results.scenario,
                "engine": entry.results.engine,
                "runs": len(entry.results.runs),
            }
            for entry in comparison.documents
        ],
        "warnings": comparison.warnings,
        "settings": [asdict(setting) for setting in comparison.settings],
        "comparisons": [_pair(pair) for pair in comparison.pairs],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _pair(pair: Pair) -> dict[str, object]:
    rows = [
        {
            "case": row.case,
            "flow": row.flow,
            "protocol": row.protocol,
            "valid": row.valid,
            **{name: _quantity(quantity) for name, quantity in row.quantities.items()},
        }
        for row in pair.rows
    ]
    return {"first": pair.first.letter, "other": pair.other.letter, "rows": rows, "only_one_has": pair.lonely}


def _quantity(quantity: Quantity) -> dict[str, object]:
    difference = quantity.difference
    return {
        "first": asdict(quantity.first) if quantity.first else None,
        "other": asdict(quantity.other) if quantity.other else None,
        "difference": asdict(difference) if difference else None,
        "significant": difference.significant if difference else None,
        "relative": quantity.relative,
    }
