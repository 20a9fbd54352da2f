"""Runs a test's function as root in namespaces of its own, where whatever it makes ends with it.

    def build() -> dict[str, int]:            # at module level; runs in the sandbox
        ...

    @pytest.mark.root
    def test_build() -> None:
        assert run_in_sandbox(build)["left"] == 0

The function's imports, arguments and result travel by name and JSON; what it prints is shown when it fails.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.fakes.waiting import TIMEOUT_S
from tests.paths import ROOT

PROGRAMS = ("unshare", "ip", "ethtool", "ovs-vswitchd", "ovsdb-server", "mnexec", "ping")
Result = TypeVar("Result")

_CHILD = """
import importlib.util, json, os, subprocess, sys
file, name, arguments = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
results = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
spec = importlib.util.spec_from_file_location("sandboxed", file)
module = importlib.util.module_from_spec(spec)
sys.modules["sandboxed"] = module
spec.loader.exec_module(module)
with results:
    json.dump(getattr(module, name)(*arguments), results)
"""


def run_in_sandbox(function: Callable[..., Result], *arguments: Any, timeout: float = TIMEOUT_S) -> Result:
    """Run a function of a test module in new network, mount and PID namespaces and return its result.

    Args:
        function: at module level; takes and returns what JSON can hold.
        arguments: for it.
        timeout: in seconds; then everything in the sandbox is killed.
    """
    _skip_unless_possible()
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]
    command += [sys.executable, "-W", "error", "-c", _CHILD]
    command += [function.__code__.co_filename, function.__name__, json.dumps(arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        _, errors = process.communicate()
        pytest.fail(f"{function.__name__} did not end within {timeout:g} s\n{errors}")
    if process.returncode:
        pytest.fail(f"{function.__name__} failed in the sandbox (status {process.returncode})\n{errors}")
    result: Result = json.loads(output)
    return result


def snapshot() -> dict[str, list[str]]:
    """Return what exists in this sandbox: interfaces, network namespaces, processes and open descriptors."""
    links = subprocess.run(["ip", "-j", "link", "show"], check=True, capture_output=True, text=True).stdout
    processes = {}
    namespaces = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                processes[entry.name] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                namespaces.add(str((entry / "ns" / "net").readlink()))
            except OSError:
                processes.pop(entry.name, None)
    descriptors = []
    for entry in Path("/proc/self/fd").iterdir():
        # The descriptor of this very listing is closed by the time it is looked at.
        with contextlib.suppress(OSError):
            descriptors.append(str(entry.readlink()))
    return {
        "interfaces": sorted(entry["ifname"] for entry in json.loads(links)),
        "namespaces": sorted(namespaces),
        "processes": sorted(f"{pid} {command}" for pid, command in processes.items()),
        "descriptors": sorted(text for text in descriptors if not text.startswith("/proc")),
    }


def _skip_unless_possible() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
