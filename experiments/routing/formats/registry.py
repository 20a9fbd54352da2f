"""All formats of files of demands, and which one a file is in."""

from __future__ import annotations

from pathlib import Path

from experiments.errors import ScenarioError
from experiments.routing.formats import csv_text, json_text, numpy_arrays, pickled, repetita, sndlib, yates
from experiments.routing.formats.reading import Context, DemandFormat, ReadDemands

FORMATS: tuple[DemandFormat, ...] = (numpy_arrays, pickled, sndlib, repetita, json_text, yates, csv_text)
"""The first that recognises a file reads it; any text may be CSV."""


def read_demands(path: Path, context: Context, models: str = "gravity, uniform, bimodal") -> ReadDemands:
    """Return the demands of a file in any format; `models` may be given in place of one, says the error.

    Raises:
        ScenarioError: It cannot be read or used; the text names the place.
    """
    file = str(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        reason = f"cannot be read: {error.strerror}; give {models} or a file of demands"
        raise ScenarioError(file, "", reason) from None
    for known in FORMATS:
        if known.recognises(path, content):
            return known.read(file, content, context)
    names = ", ".join(known.NAME for known in FORMATS)
    raise ScenarioError(file, "", f"is in no format of demands that is known: {names}")
