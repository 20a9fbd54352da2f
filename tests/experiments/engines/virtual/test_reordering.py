"""Responses to reordering by their names: what the kernel of a run is told, and does."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.model.settings import KERNEL_RESPONSES, RESPONSE_CONTROLS, Tcp
from tests.experiments.engines.virtual import golden

pytestmark = pytest.mark.timeout(900)
CONTRARY = {"sack": "false", "dsack": "true", "timestamps": "true", "frto": "1"}
"""Overridden by the response."""


@pytest.mark.parametrize("name", KERNEL_RESPONSES)
def test_a_response_stands_above_other_keys(name: str) -> None:
    tcp = Tcp(reordering=name, sack=False, dsack=True, timestamps=True, frto=1)  # type: ignore[arg-type]
    asked = tcp.sysctls()
    for key, value in KERNEL_RESPONSES[name].items():
        assert asked[f"net.ipv4.tcp_{key}"] == str(value)
    assert tcp.has_timestamps == (name == "eifel")
    assert tcp.kernel_control == (name if name in RESPONSE_CONTROLS else "reno")


@pytest.mark.parametrize("name", ["dsack", "door"])
def test_the_kernel_of_a_run_has_what_a_response_is(name: str, tmp_path: Path) -> None:
    settings = {"tcp.reordering": name, **{f"tcp.{key}": value for key, value in CONTRARY.items()}}
    options = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    results = golden.run(tmp_path / "out", "--protocol", "ospf", "--case", "1", "--duration", "1", *options)
    (run,) = results.runs
    assert run.valid, run.why_invalid
    for key, value in KERNEL_RESPONSES[name].items():
        assert run.sysctls[f"net.ipv4.tcp_{key}"] == str(value)
    control = name if name in RESPONSE_CONTROLS else "reno"
    assert {flow.congestion_control for flow in run.flows} == {control}
    for evidence in run.evidence.flows.values():
        (connection,) = evidence.connections
        assert connection.congestion_control == control
        assert "ts" not in connection.options, "timestamps would be Eifel's"
        assert ("sack" in connection.options) == (name == "dsack")
