"""Runs a test's function as root in a virtual kernel, where time is exact and whatever it makes ends with it.

    def build() -> dict[str, float]:          # at module level; runs in the kernel
        ...

    def test_build() -> None:
        assert run_in_virtual_kernel(build)["delay_ms"] == 10.0

The function's imports, arguments and result travel by name and JSON; what it prints is shown when it fails.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from experiments.places.virtual.machine import Machine, Order, guest_path, guest_project_path, guest_python

Result = TypeVar("Result")

_CHILD = """
import importlib.util, json, pathlib, sys
file, name, arguments, answer = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), sys.argv[4]
spec = importlib.util.spec_from_file_location("in_virtual_kernel", file)
module = importlib.util.module_from_spec(spec)
sys.modules["in_virtual_kernel"] = module
spec.loader.exec_module(module)
pathlib.Path(answer).write_text(json.dumps(getattr(module, name)(*arguments)))
"""


def run_in_virtual_kernel(function: Callable[..., Result], *arguments: Any, seed: int = 1) -> Result:
    """Run a function of a test module in a kernel of its own and return its result.

    Args:
        function: at module level; takes and returns what JSON can hold.
        arguments: for it.
        seed: of the kernel's random numbers.
    """
    with tempfile.TemporaryDirectory(prefix="virtual-") as name:
        answer, console = Path(name, "answer.json"), Path(name, "console.log")
        module = guest_project_path(Path(function.__code__.co_filename))
        argv = [guest_python(), "-c", _CHILD, str(module), function.__name__]
        order = Order(
            argv=[*argv, json.dumps(arguments), str(guest_path("answer") / answer.name)],
            seed=seed,
            console=console,
            writable={"answer": Path(name)},
        )
        with Machine(order) as machine:
            status = machine.wait(lambda: True)
        if status:
            pytest.fail(f"{function.__name__} ended with status {status}\n{console.read_text()}")
        result: Result = json.loads(answer.read_text())
        return result
