"""Who may import whom within the controller; the rules are in pyproject.toml ([tool.importlinter])."""

import subprocess
import sys
from pathlib import Path

from tests.paths import ROOT


def test_imports_keep_to_the_rules() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert checked.returncode == 0, checked.stdout + checked.stderr
