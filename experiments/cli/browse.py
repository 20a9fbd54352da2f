"""`mstcp-lab browse RESULTS`: results in a browser, from a server on this machine."""

from __future__ import annotations

import argparse
from pathlib import Path

from experiments.cli.argument_types import port
from experiments.cli.messages import say

NAME = "browse"
HELP = "show results in a browser: filter, compare, replay and export them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `browse` to a parser."""
    parser.add_argument(
        "results",
        nargs="+",
        type=Path,
        metavar="RESULTS",
        help="folders with results (of run, sweep, …), or the documents themselves",
    )
    parser.add_argument(
        "--port",
        type=port,
        default=0,
        metavar="PORT",
        help="port of the page on 127.0.0.1 (default: a free one)",
    )


def main(args: argparse.Namespace) -> int:
    """Serve results until Ctrl-C; returns the exit status.

    Raises:
        ScenarioError: what cannot be read.
        PortTaken: the port cannot be used.
    """
    # FastAPI takes half a second to import.
    from experiments.web.app import Content
    from experiments.web.opening import open_documents
    from experiments.web.server import PageServer

    documents = [document for path in args.results for document in open_documents(path)]
    with PageServer(Content(documents), args.port) as server:
        say(f"Open {server.address}\nCtrl-C ends it.")
        try:
            server.wait()
        except KeyboardInterrupt:
            say("Stopped.")
    return 0
