"""A run made in ns-3 (runs.cc) and in the simulator."""

from __future__ import annotations

import json
import subprocess

import netsim_native

from .cases import Run
from .descriptions import lines
from .outcomes import Outcome
from .programs import FOLDER

LIBRARIES = ("internet", "point-to-point", "network", "core")


def in_ns3(run: Run) -> Outcome:
    """Make a run in ns-3."""
    text = "\n".join(lines(run.description))
    done = subprocess.run([str(FOLDER / "runs")], input=text, capture_output=True, text=True, check=True)
    return Outcome.of_ns3(done.stdout)


def ours(run: Run) -> Outcome:
    """Make a run in the simulator."""
    return Outcome.of_ours(json.loads(netsim_native.run(json.dumps(run.description))))
