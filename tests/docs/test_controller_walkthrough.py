"""The walk through the controller's code names what is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.paths import ROOT

PAGE = ROOT / "docs" / "controller-walkthrough.md"
PLACES = re.findall(r"`([a-z_/]+\.py): ([\w.]+)`", PAGE.read_text())


def _defined(tree: ast.AST, prefix: str = "") -> set[str]:
    names: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names |= {prefix + node.name, *_defined(node, f"{prefix}{node.name}.")}
    return names


def _folder(file: str) -> Path:
    return ROOT / "crates" / "gomr-py" if file.startswith("gomr/") else ROOT / "controller"


def test_each_place_that_the_page_names_is_there() -> None:
    assert len(PLACES) > 40
    missing = [
        f"{file}: {name}"
        for file, name in PLACES
        if name not in _defined(ast.parse((_folder(file) / file).read_text()))
    ]
    assert not missing
