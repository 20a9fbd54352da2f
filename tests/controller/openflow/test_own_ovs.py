"""docs/own-ovs.md, run as it stands on real Open vSwitch."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from switch.ovs import PrivateInstance
from tests.paths import ROOT
from tests.sandbox import run_in_sandbox

PAGE = ROOT / "docs" / "own-ovs.md"


def follow_the_page(folder: str) -> dict[str, Any]:
    """Save its file, run its commands one after the other, and return what came out."""
    text = PAGE.read_text()
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    (document,) = [block for kind, block in blocks if kind == "toml"]
    Path(folder, "own.toml").write_text(document)
    script = "set -eu\n" + "".join(block for kind, block in blocks if kind == "sh")
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    with PrivateInstance(Path(folder, "ovs"), datapath="netdev") as ovs:
        tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = os.environ | ovs.environment | {"PATH": tools, "PYTHONPATH": str(ROOT)}
        ended = subprocess.run(
            ["bash", "-c", script + "kill %1\n"],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
    log = Path(folder, "controller.log")
    assert ended.returncode == 0, ended.stdout + ended.stderr + (log.read_text() if log.exists() else "")
    return {"said": ended.stdout, "flow": json.loads(Path(folder, "flow.json").read_text())}


@pytest.mark.root
@pytest.mark.timeout(600)
def test_the_page_works_as_written(tmp_path: Path) -> None:
    seen = run_in_sandbox(follow_the_page, str(tmp_path), timeout=180.0)
    # Open vSwitch's cache may drop for half a second more what had no rule before.
    assert re.search(r"\b[23] received", seen["said"]), seen["said"]
    paths = [stream["path"] for stream in seen["flow"]["streams"]]
    assert paths == [["host1", "left", "right", "host2"], ["host1", "left", "top", "right", "host2"]]
    assert seen["flow"]["rate_bps"] == 150e6
    assert seen["said"].count("tp_src=") == 2, "one rule a stream"
