"""`mstcp-lab completion bash|zsh`: the script by which a shell completes commands, options and files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from experiments.cli.arguments import Arguments, argument

NAME = "completion"
HELP = "print the completion script for a shell"

SHELLS = ("bash", "zsh")


ARGUMENTS: Arguments = (
    argument("shell", "SHELL", 'bash or zsh: eval "$(mstcp-lab completion bash)"', choices=SHELLS),
)


def main(args: argparse.Namespace) -> int:
    """Print the script; returns the exit status."""
    import shtab  # only this command needs it

    from experiments.cli.command_line import make_parser  # it imports this module

    parser = make_parser()
    for action in _actions(parser):
        if action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    sys.stdout.write(f"{shtab.complete(parser, args.shell)}\n")
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in dict.fromkeys(action.choices.values()):
                yield from _actions(command)
