"""`mstcp-lab browse RESULTS`: results in a browser, from a server on this machine."""

from __future__ import annotations

import argparse
from pathlib import Path

from experiments.cli.arguments import PORT, Arguments, argument
from experiments.cli.messages import say

NAME = "browse"
HELP = "show results in a browser: filter, compare, replay and export them"


ARGUMENTS: Arguments = (
    argument(
        "results",
        "RESULTS",
        "folders with results (of run, sweep, …), or the documents themselves",
        Path,
        nargs="+",
    ),
    argument("--port", "PORT", "port of the page on 127.0.0.1 (default: a free one)", PORT),
)


def main(args: argparse.Namespace) -> int:
    """Serve results until Ctrl-C; returns the exit status."""
    # FastAPI takes half a second to import.
    from experiments.web.app import Content
    from experiments.web.open_documents import open_documents
    from experiments.web.server import ANY_PORT, PageServer

    documents = [document for path in args.results for document in open_documents(path)]
    with PageServer(Content(documents), args.port or ANY_PORT) as server:
        say(f"Open {server.address}\nCtrl-C ends it.")
        try:
            server.wait()
        except KeyboardInterrupt:
            say("Stopped.")
    return 0
