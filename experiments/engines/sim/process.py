"""Starts the processes that simulate, waits for them, and ends them when the user stops."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import Any

from experiments.engines.sim.methods import absolute_names
from experiments.engines.sim.worker import REFUSED
from experiments.installation import ROOT

REASON_CHARACTERS = 500


class SimulationFailed(Exception):
    """A simulation that left no result; the text says why."""


@dataclass(frozen=True)
class SimulatorOutput:
    """What a process made and took: `document` is the simulator's."""

    document: dict[str, Any]
    wall_s: float
    peak_rss_bytes: int


class Processes:
    """Runs simulations, from any number of threads at once; `at_once` has one for each core."""

    def __init__(self) -> None:
        self.at_once = len(os.sched_getaffinity(0))
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, description: dict[str, Any], *traces: str) -> SimulatorOutput:
        """Simulate a description in a process of its own (SimulationFailed: with the reason)."""
        with self._lock:
            if self._stopped:
                raise SimulationFailed("it was stopped")
            process = subprocess.Popen(
                [sys.executable, "-m", "experiments.engines.sim.worker", *traces],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
            self._running.add(process)
        try:
            output, errors = process.communicate(json.dumps(absolute_names(description)))
        finally:
            process.kill()
            process.wait()
            with self._lock:
                self._running.discard(process)
        if process.returncode not in (0, REFUSED):
            raise SimulationFailed(errors.strip()[-REASON_CHARACTERS:] or _how(process.returncode))
        sys.stderr.write(errors)  # what a method of one's own prints
        if process.returncode == REFUSED:
            raise SimulationFailed(output.strip() or _how(process.returncode))
        cost, _, document = output.partition("\n")
        return SimulatorOutput(document=json.loads(document), **json.loads(cost))

    def stop(self) -> None:
        """End all simulations that run, and begin no other."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for process in running:
            process.kill()


def _how(status: int) -> str:
    """Return in words how a process ended that said nothing."""
    if status >= 0:
        return f"its process ended with status {status}"
    name = signal.Signals(-status).name
    memory = ", as the kernel does when memory is short" if name == "SIGKILL" else ""
    return f"its process was ended by {name}{memory}"
