"""The parser of all commands, and what their failures are to a shell."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Protocol

from gomr.errors import InvalidProblem, SolverError

from experiments.cli import (
    browse,
    compare,
    completion,
    demo,
    doctor,
    export,
    listing,
    methods,
    plot,
    report,
    reproduce,
    rerun,
    resume,
    run,
    shell,
    solve,
    sweep,
)
from experiments.cli.arguments import Arguments, repeatable
from experiments.cli.messages import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, complain
from experiments.errors import (
    DISK_IS_FULL,
    ExperimentError,
    ExtensionError,
    Interrupted,
    ScenarioError,
    UnknownName,
    reason_of,
)
from experiments.registry import extend
from topologies import TopologyError


class Command(Protocol):
    """A module that is a command."""

    NAME: str
    HELP: str
    ARGUMENTS: Arguments

    def main(self, args: argparse.Namespace) -> int:
        """Run it; returns the exit status."""


COMMANDS: tuple[Command, ...] = (
    listing,
    doctor,
    run,
    resume,
    rerun,
    shell,
    report,
    browse,
    compare,
    plot,
    export,
    reproduce,
    methods,
    solve,
    demo,
    sweep,
    completion,
)
"""In the order of the help."""
EXTEND = repeatable(
    "--extend",
    "PATH",
    "a Python file that adds protocols, workloads, metrics or engines, or a folder of such files",
)
ALLOCATIONS_BETWEEN_COLLECTIONS = 50_000
"""Python's own 700 take a fifth of the time of a report."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    gc.freeze()  # what was imported stays
    gc.set_threshold(ALLOCATIONS_BETWEEN_COLLECTIONS)
    try:
        extensions, rest = _extensions(sys.argv[1:] if argv is None else argv)
        extend(extensions)
        args = make_parser().parse_args(rest)
        args.given = sys.argv[1:] if argv is None else argv
        status: int = args.command(args)
        sys.stdout.flush()  # at the exit of the interpreter nobody could say that it failed
    except Interrupted as error:
        return complain(error, EXIT_INTERRUPTED)
    except KeyboardInterrupt:
        return complain("Stopped.", EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone, as `head` does; the interpreter would complain at its end.
        _discard_output()
        return EXIT_FAILED
    except OSError as error:
        if error.errno not in DISK_IS_FULL:
            raise
        _discard_output()  # what is left of it would fail again
        return complain(f"Cannot write the output: {reason_of(error)}", EXIT_FAILED)
    except (ScenarioError, ExtensionError, UnknownName, TopologyError, InvalidProblem) as error:
        return complain(error, EXIT_USAGE)
    except (ExperimentError, SolverError) as error:
        return complain(error, EXIT_FAILED)
    return status


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="mstcp-lab",
        description="Experiments with globally optimal multipath routing and Multi-Stream TCP.",
    )
    parser.add_argument("--version", action="version", version=f"mstcp-lab {version('mstcp-lab')}")
    parser.add_argument(EXTEND[0], **EXTEND[1])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        description = f"{command.HELP[0].upper()}{command.HELP[1:]}."
        own = commands.add_parser(command.NAME, help=command.HELP, description=description)
        for name, told in command.ARGUMENTS:
            own.add_argument(name, **told)
        own.set_defaults(command=command.main)
    return parser


def _extensions(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Part `--extend PATH`, wherever it stands, from the others: it adds names that these may have."""
    parser = argparse.ArgumentParser(prog="mstcp-lab", add_help=False, allow_abbrev=False)
    parser.add_argument(EXTEND[0], **EXTEND[1])
    known, rest = parser.parse_known_args(argv)
    return known.extend, rest
