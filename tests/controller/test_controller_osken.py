"""The whole controller with real os-ken and real Open vSwitch (see ring_scenario.py)."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCENARIO = Path(__file__).parent / "ring_scenario.py"
NAMESPACES = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    for tool in ("ovs-vswitchd", "unshare", "ip", "ethtool", "ping"):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")
    folder = tmp_path_factory.mktemp("ring")
    ended = subprocess.run(
        [*NAMESPACES, sys.executable, str(SCENARIO), str(folder)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    log = folder / "controller.log"
    assert ended.returncode == 0, ended.stderr + (log.read_text() if log.exists() else "")
    result = json.loads(ended.stdout)
    assert isinstance(result, dict)
    return result


def test_discovery_finds_the_ring_and_default_routes_carry_pings(seen: dict[str, Any]) -> None:
    assert seen["ping"] is True


def test_a_pinned_flow_takes_its_path(seen: dict[str, Any]) -> None:
    assert seen["rules_installed"] == {"A": 2, "B": 2, "C": 2}, "one a direction and switch"
    assert seen["bytes_over_pinned_path"] == 100_000
    for switch, packets in seen["pinned_packets"].items():
        assert all(count > 2 for count in packets), f"{switch}: data one way, acknowledgements the other"


def test_release_brings_traffic_back_to_the_default_route(seen: dict[str, Any]) -> None:
    assert seen["bytes_over_default_route"] == 100_000


def test_every_loss_is_noticed(seen: dict[str, Any]) -> None:
    for event in ("port_down", "port_up", "silent_loss", "switch_loss"):
        assert f"{event}_noticed_after_s" in seen
    assert seen["ping_around_the_loss"] is True


def test_it_stops_on_sigterm(seen: dict[str, Any]) -> None:
    assert seen["exit_status"] == 0
