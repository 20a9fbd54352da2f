"""Where simulations are made, and how many at once: the one scheduler of `run`, `sweep` and `reproduce`.

`scheduler` makes many runs with a `Simulator`: processes of this machine (`engines.sim.process`) or the
workers of a Dask cluster (`cluster`, which has `remote` called there). `journal` keeps what is finished,
`progress` shows it.
"""

from __future__ import annotations

import argparse


def add_argument(parser: argparse.ArgumentParser) -> None:
    """Add `--scheduler` to a command's arguments."""
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="make the simulations on the Dask cluster there, as tcp://HOST:8786 (default: on this machine)",
    )
