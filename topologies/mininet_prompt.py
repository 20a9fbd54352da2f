"""Mininet's own commands, at its prompt or from lines of text."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from topologies.errors import EmulationError
from topologies.mininet_path import make_importable

make_importable()

from mininet.cli import CLI
from mininet.log import lg, setLogLevel


def prompt(net: Any) -> None:
    """Hand the terminal to Mininet's command line until the user leaves it."""
    setLogLevel("output")  # what commands print
    _Prompt(net)


def run_commands(net: Any, lines: Iterable[str]) -> None:
    """Run commands, each to its end, until there are no more or one is `exit`.

    What they print goes to standard output.

    Raises:
        EmulationError: there is no such command; those before it were run.
    """
    setLogLevel("output")
    lg.ch.setStream(_PlainLines(sys.stdout))
    _Script(net, lines)


class _PlainLines(io.TextIOBase):
    """Writes on with plain ends of lines: in hosts programs write to terminals, which make CR LF of them.

    Mininet looks for these itself, so that the terminals have to stay as they are.
    """

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._held = ""

    def write(self, text: str) -> int:
        """Write text; a CR at its end waits for what follows."""
        whole = self._held + text
        self._held = "\r" if whole.endswith("\r") else ""
        self._output.write(whole.removesuffix("\r").replace("\r\n", "\n"))
        return len(text)

    def flush(self) -> None:
        """Flush what was written."""
        self._output.flush()


class _Prompt(CLI):  # type: ignore[misc]
    """Mininet's command line, whose background programs start without a word.

    The shell of a host tells the number of a job. Mininet drops that line where it reads all of it at once,
    and prints it else.
    """

    def default(self, line: str) -> None:
        """Run a program in a host."""
        first, program = [*line.split(maxsplit=1), ""][:2]
        if first in self.mn and program.endswith("&"):
            # The shell tells it on the standard error that the program itself does not have.
            line = f"{first} {{ {{ {program[:-1]} ; }} 2>&3 3>&- & }} 3>&2 2>/dev/null"
        super().default(line)


class _Script(_Prompt):
    """Mininet's command line for lines that nobody types.

    Args:
        net: the network.
        lines: the commands.
    """

    def __init__(self, net: Any, lines: Iterable[str]) -> None:
        self._lines = lines
        # Mininet hands whatever can be read from here to the program that runs in a host: nothing ever can.
        reading, writing = os.pipe()
        with os.fdopen(reading) as nothing, os.fdopen(writing, "w"):
            super().__init__(net, stdin=nothing)

    @classmethod
    def initReadline(cls) -> None:
        """Keep no history."""

    def run(self) -> None:
        """Run the lines."""
        for number, line in enumerate(self._lines, start=1):
            self._place = f"line {number}"
            if self.onecmd(self.precmd(line).strip()):
                return

    def default(self, line: str) -> None:
        """Run a program in a host, or refuse what is neither a command nor a host."""
        first, program = [*line.split(maxsplit=1), ""][:2]
        if first not in self.mn:
            raise EmulationError(f"{self._place}: there is no command and no host or switch {first!r}")
        # At the prompt a program may wait for what is typed.
        alone = program.endswith("&") or not program
        super().default(line if alone else f"{first} {{ {program} ; }} < /dev/null")
