"""Runs the programs of a scenario in their hosts, and notes what became of them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from experiments.model.plan import RunPlan
from experiments.model.programs import Program
from experiments.model.results import CommandResult
from topologies.interface_names import InterfaceNames
from topologies.mininet_builder import Emulation

EXIT_PORT = 7077
"""Where hosts turn MSTCP connections of programs into connections to their own servers."""
MSTCP = (sys.executable, "-m", "mstcp.tools.cli")
OUTPUT_CHARACTERS = 4000
"""What is kept of a program's output: its end."""
END_S = 5.0
"""For a program to end when it is asked to."""
BEGIN_S = 0.5
"""For servers to listen."""


@dataclass
class _Started:
    """A process: `ended` is set by the thread that waits for it."""

    program: Program
    process: subprocess.Popen[str]
    started_ns: int
    carried_before: tuple[int, int]
    ended_ns: int = 0
    carried: tuple[int, int] = (0, 0)
    output: str = ""
    errors: str = ""
    was_ended: bool = False
    waiting: threading.Thread = field(default_factory=threading.Thread)


class Programs:
    """The programs of a run; a context manager that ends them."""

    def __init__(self, plan: RunPlan, emulation: Emulation, controller: str) -> None:
        self._plan = plan
        self._emulation = emulation
        self._controller = controller
        self._names = InterfaceNames(plan.network)
        self._addresses = {host: emulation.host_ip(host) for host in plan.network.hosts}
        self._started: list[_Started] = []
        self._exits: list[subprocess.Popen[str]] = []
        self._due: list[tuple[float, Program]] = sorted(
            (
                (at_s, program)
                for program in plan.programs
                if not program.server
                for at_s in program.starts_s(plan.duration_s)
            ),
            key=lambda due: due[0],
        )

    def __enter__(self) -> Programs:
        return self

    def __exit__(self, *_: object) -> None:
        self._end(each for each in self._started if not each.ended_ns)
        for process in self._exits:
            process.kill()
            process.wait()

    def start_servers(self) -> None:
        """Start the servers, and what brings programs over MSTCP to them."""
        servers = [program for program in self._plan.programs if program.server]
        if any(program.over == "mstcp" for program in self._plan.programs):
            for host in dict.fromkeys(program.host for program in servers):
                argv = [*MSTCP, "proxy", "exit", f"0.0.0.0:{EXIT_PORT}"]
                self._exits.append(self._popen(host, argv, subprocess.DEVNULL))
        for program in servers:
            self._start(program)
        if servers:
            time.sleep(BEGIN_S)

    def advance(self, elapsed_s: float) -> float | None:
        """Start and end what is due, `elapsed_s` after the start of the measurement; returns when to next."""
        while self._due and self._due[0][0] <= elapsed_s:
            self._start(self._due.pop(0)[1])
        now_ns = time.monotonic_ns()
        ends = [
            (each, each.started_ns + round(each.program.for_s * 1e9))
            for each in self._started
            if each.program.for_s is not None and not each.ended_ns
        ]
        self._end(each for each, end_ns in ends if end_ns <= now_ns)
        pending = [elapsed_s + (end_ns - now_ns) * 1e-9 for _, end_ns in ends if end_ns > now_ns]
        return min([*pending, *(at_s for at_s, _ in self._due[:1])], default=None)

    def finish(self) -> None:
        """End what still runs: the measurement is over."""
        self._end(each for each in self._started if not each.ended_ns)

    def results(self, start_ns: int) -> list[CommandResult]:
        """Return what became of each, with times from the start of the measurement."""
        return [
            CommandResult(
                program=each.program.name,
                host=each.program.host,
                server=each.program.server,
                started_s=round((each.started_ns - start_ns) * 1e-9, 6),
                ended_s=round((each.ended_ns - start_ns) * 1e-9, 6),
                exit_status=None if each.was_ended else each.process.returncode,
                output=each.output[-OUTPUT_CHARACTERS:],
                errors=each.errors[-OUTPUT_CHARACTERS:],
                bytes_sent=each.carried[0] - each.carried_before[0],
                bytes_received=each.carried[1] - each.carried_before[1],
            )
            for each in self._started
        ]

    def _start(self, program: Program) -> None:
        argv = [*self._prefix(program), *program.words(self._addresses)]
        process = self._popen(program.host, argv, subprocess.PIPE)
        started = _Started(program, process, time.monotonic_ns(), self._carried(program.host))
        started.waiting = threading.Thread(target=self._wait, args=(started,), daemon=True)
        started.waiting.start()
        self._started.append(started)

    def _prefix(self, program: Program) -> list[str]:
        if program.over == "mptcp":
            return ["mptcpize", "run"]
        if program.over == "tcp" or program.server:
            return []
        rate = (
            ["--streams", "2"]
            if program.rate_bps is None
            else ["--controller", self._controller, "--rate", f"{program.rate_bps:g}"]
        )
        return [*MSTCP, "run", "--via", f":{EXIT_PORT}", *rate, "--"]

    def _popen(self, host: str, argv: list[str], output: int | IO[str]) -> subprocess.Popen[str]:
        return self._emulation.popen(
            host, argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, text=True, errors="replace"
        )

    def _wait(self, started: _Started) -> None:
        started.output, started.errors = started.process.communicate()
        started.carried = self._carried(started.program.host)
        started.ended_ns = time.monotonic_ns()

    def _end(self, those: Iterable[_Started]) -> None:
        ending = list(those)
        stop: Callable[[_Started], None]
        for stop in (lambda each: each.process.terminate(), lambda each: each.process.kill()):
            for each in ending:
                if each.process.poll() is None:
                    each.was_ended = True
                    stop(each)
            for each in ending:
                each.waiting.join(END_S)

    def _carried(self, host: str) -> tuple[int, int]:
        """Return the bytes that the links of a host have brought from it and to it."""
        counted = Path(f"/proc/{self._emulation.host(host).pid}/net/dev").read_text().splitlines()
        columns = {name.strip(): text.split() for name, _, text in (row.partition(":") for row in counted)}
        ports = [
            self._names.port(host, arc.tail_port) for arc in self._plan.network.arcs() if arc.tail == host
        ]
        sent, received = (sum(int(columns[port][column]) for port in ports) for column in (8, 0))
        return sent, received
