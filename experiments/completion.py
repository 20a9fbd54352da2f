"""`mstcp-lab completion bash|zsh`: the script by which a shell completes commands, options and files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

SHELLS = ("bash", "zsh")


def add_arguments(parser: argparse.ArgumentParser, whole: Callable[[], argparse.ArgumentParser]) -> None:
    """Add the arguments of `completion` to a parser.

    Args:
        parser: of the command.
        whole: returns the parser of all commands.
    """
    parser.add_argument("shell", choices=SHELLS, help="the shell that the script is for")
    parser.set_defaults(command=lambda args: _main(args.shell, whole()))


def _main(shell: str, parser: argparse.ArgumentParser) -> int:
    import shtab  # only this command needs it

    for action in _actions(parser):
        if action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    sys.stdout.write(f"{shtab.complete(parser, shell)}\n")
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in dict.fromkeys(action.choices.values()):
                yield from _actions(command)
