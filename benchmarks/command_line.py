"""What every benchmark does with its command line: its help, and its results on the terminal."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

from experiments.errors import ExperimentError
from topologies.errors import TopologyError


def command_line(description: str | None, *, with_json: bool = False) -> argparse.ArgumentParser:
    """Return the parser of the module that runs; its help is the module's text as it stands."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(f"python -m {_name()}", description=description, formatter_class=raw)
    if with_json:
        parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    return parser


def _name() -> str:
    spec = sys.modules["__main__"].__spec__
    return spec.name.removesuffix(".__main__") if spec is not None else "benchmark"


def exit_status(run: Callable[[], int]) -> int:
    """Run a benchmark; return its exit status, or that of its failure, which is told."""
    try:
        return run()
    except KeyboardInterrupt:
        return 130
    except (ExperimentError, TopologyError, RuntimeError, OSError, subprocess.SubprocessError) as error:
        print(f"{_name()}: {error}", file=sys.stderr)
        return 1


def show(result: Mapping[str, Any], as_json: bool) -> None:
    """Print a result: as JSON and nothing else, or a line for each figure."""
    if as_json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        shown = "-" if value is None else f"{value:.6g}" if isinstance(value, float) else value
        print(f"{name:32} {shown}")
