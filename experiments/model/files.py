"""What a scenario has in files beside its own: demands and traces, read so that a job stands alone."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from experiments.model import demands
from experiments.model.scenario import Scenario


def with_files(scenario: Scenario, folder: Path, hosts: Collection[str], cases: Collection[str]) -> Scenario:
    """Return the scenario with the demands of some cases as flows, and with what its traces' files hold.

    Raises:
        ScenarioError: a file that cannot be read, or a row that is wrong; it names the file and the row.
    """
    traces = tuple(each.model_copy(update={"trace": each.trace.read(folder)}) for each in scenario.traces)
    return demands.expand(scenario.model_copy(update={"traces": traces}), folder, hosts, cases)
