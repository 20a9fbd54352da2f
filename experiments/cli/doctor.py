"""`mstcp-lab doctor`: what this machine can run, and how to fix what is missing."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from experiments.cli.arguments import JSON, Arguments
from experiments.doctor import Check, can_run_live, examine

NAME = "doctor"
HELP = "check what this machine can run, and print how to fix what is missing"


ARGUMENTS: Arguments = (JSON,)


def main(args: argparse.Namespace) -> int:
    """Probe the machine and print what was found; returns 0 if the live engine can run, else 1."""
    checks = examine()
    if args.json:
        document = {"live": can_run_live(checks), "checks": [dataclasses.asdict(check) for check in checks]}
        sys.stdout.write(json.dumps(document, indent=1) + "\n")
    else:
        print_checks(checks, Console())
    return 0 if can_run_live(checks) else 1


def print_checks(checks: list[Check], console: Console) -> None:
    """Print the findings as a table, then what to do; in plain ASCII where the console is no terminal."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for column in ("capability", "state", "details"):
        table.add_column(column, overflow="fold")
    colours = {"ok": "green", "degraded": "yellow", "missing": "red", "unknown": "yellow"}
    for check in checks:
        table.add_row(check.name, Text(check.state, style=colours[check.state]), Text(_finding(check)))
    console.print(table)
    remedies: dict[str, list[str]] = {}
    for check in checks:
        if check.remedy:
            remedies.setdefault(check.remedy, []).append(check.name)
    if remedies:
        console.print("\nTo fix it:")
        for remedy, names in remedies.items():
            console.print(
                f"  {escape(', '.join(names))}: [bold]{escape(remedy)}[/bold]",
                highlight=False,
                soft_wrap=True,
            )
    blocking = [check.name for check in checks if check.blocks]
    verdict = f"cannot run here: {', '.join(blocking)}" if blocking else "can run here"
    console.print(f"\nThe live engine {verdict}.", highlight=False, soft_wrap=True)


def _finding(check: Check) -> str:
    if check.state == "ok" or not check.meaning:
        return check.detail
    return f"{check.detail}; {'if it is missing, ' if check.state == 'unknown' else ''}{check.meaning}"
