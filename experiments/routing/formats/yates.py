"""The demands of YATES: a traffic matrix on each line, its rows one after another, in bit/s."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from experiments.errors import ScenarioError
from experiments.routing.formats.reading import Context, ReadDemands, of_matrix, order_of
from topologies.formats.raw import text_of

NAME = "YATES"
_HEAD_BYTES = 1 << 20


def recognises(path: Path, content: bytes) -> bool:
    """Return whether each line is a whole matrix: a square number of numbers, and not as many lines."""
    del path
    lines = [line.split() for line in text_of(content[:_HEAD_BYTES]).splitlines() if line.strip()]
    if not lines or math.isqrt(len(lines[0])) ** 2 != len(lines[0]) or len(lines[0]) < 4:
        return False
    try:
        [float(word) for word in lines[0]]
    except ValueError:
        return False
    return len(lines) != len(lines[0])


def read(file: str, content: bytes, context: Context) -> ReadDemands:
    """Return the matrix of a file that is asked for (ScenarioError: it cannot be used)."""
    lines = [line.split() for line in text_of(content).splitlines() if line.strip()]
    if context.matrix > len(lines):
        raise ScenarioError("--matrix", "", f"there is no matrix {context.matrix}: {file} holds {len(lines)}")
    words, nodes = lines[context.matrix - 1], math.isqrt(len(lines[0]))
    try:
        matrix = np.array([float(word) for word in words]).reshape(nodes, nodes)
    except ValueError:
        reason = f"is no matrix of {nodes} x {nodes} numbers"
        raise ScenarioError(file, f"matrix {context.matrix}", reason) from None
    unit_bps = context.rate_unit_bps or 1.0
    made = of_matrix(matrix, order_of(nodes, context, file), unit_bps, file)
    said = (f"matrix {context.matrix} of {len(lines)} is read (--matrix)",) if len(lines) > 1 else ()
    return ReadDemands(made.demands, (*made.notes, *said, *context.unit_notes()))
