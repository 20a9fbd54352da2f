"""The table of faults in docs/controller.md: each test that it names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = {path.stem: path for path in (ROOT / "tests").rglob("test_*.py")}


def rows() -> list[tuple[str, list[str]]]:
    """Return each row's module, and the names in its last column."""
    text = (ROOT / "docs/controller.md").read_text()
    table = text.partition("| what goes wrong | module | test |\n")[2].partition("\n\n")[0]
    cells = [line.strip("|").split("|") for line in table.splitlines()[1:]]
    return [(module.strip().strip("`"), re.findall(r"`(\w+)`", names)) for _, module, names in cells]


def test_the_table_is_not_empty() -> None:
    assert len(rows()) > 20


@pytest.mark.parametrize(("module", "names"), rows())
def test_each_test_that_the_table_of_faults_names_is_there(module: str, names: list[str]) -> None:
    tree = ast.parse(MODULES[module].read_text())
    functions = {
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    tests = [name for name in names if name.startswith("test_") and name not in MODULES]
    assert set(tests) <= functions
