"""Reads whole collections of network files and tells what it did with each.

    python -m benchmarks.network_files FOLDER ... [--solve]

For each file a line: its nodes and links, the notes on what was assumed or left out, or the sentence with
which it was refused. `--solve` routes 100 flows at a load of 1.1 over each and tells the certificate.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from gomr import GomrError, solve

from benchmarks.command_line import command_line
from experiments.errors import ExperimentError
from experiments.routing.case import make_case
from topologies.errors import TopologyError
from topologies.formats.registry import format_of
from topologies.routable import Routable, load_routable

_HEAD_BYTES = 1 << 20
_FLOWS, _LOAD = 100, 1.1
_EXACT = 1e-9


def files_of(folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the files below some folders that are in a format of networks."""
    for folder in folders:
        below = sorted(folder.rglob("*")) if folder.is_dir() else [folder]
        for path in below:
            if path.is_file():
                with path.open("rb") as file:
                    if format_of(path, file.read(_HEAD_BYTES)) is not None:
                        yield path


def check(path: Path, *, solving: bool) -> tuple[str, str]:
    """Return what became of a file, in a word and in a line."""
    try:
        routable = load_routable(path)
        told = f"{len(routable.network.nodes)} nodes, {len(routable.network.links)} links"
        notes = [f"    {note}" for note in routable.notes]
        if solving:
            told += f"; {_solved(routable)}"
    except (TopologyError, ExperimentError, GomrError) as error:
        return "refused", f"{path}: refused: {error}"
    return "read", "\n".join([f"{path}: {told}", *notes])


def _solved(routable: Routable) -> str:
    started = time.process_time()
    case = make_case(routable, "gravity", flows=_FLOWS, load=_LOAD, seed=1)
    solution = solve(case.problem())
    share = solution.admitted_bps / solution.requested_bps
    state = "optimal" if solution.gap <= _EXACT else f"GAP {solution.gap:.1e}"
    return f"{share:.1%} admitted, {state}, {time.process_time() - started:.2f} s"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 1 where a file was refused."""
    parser = command_line(__doc__)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--solve", action="store_true", help="route over each network too")
    args = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    for path in files_of(args.folders):
        state, line = check(path, solving=args.solve)
        counts[state] += 1
        print(line, flush=True)
    print(", ".join(f"{count} {state}" for state, count in counts.items()) or "no file of networks")
    return 1 if counts["refused"] or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
