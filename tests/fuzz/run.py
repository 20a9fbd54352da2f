"""Run one fuzz target by atheris: `python -m tests.fuzz.run TARGET [libFuzzer options]`.

`make fuzz` runs all of them, with those of crates/mstcp-proto/fuzz.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

try:
    import atheris
except ImportError:
    sys.exit("atheris is not installed: pip install atheris")

with atheris.instrument_imports(include=["mstcp", "controller", "experiments", "topologies", "tomllib"]):
    from tests.fuzz.targets import TARGETS, seeds


def main() -> None:
    """Fuzz the target that the command line names."""
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"name a target: {', '.join(TARGETS)}")
    name = sys.argv.pop(1)
    with tempfile.TemporaryDirectory(prefix="mstcp-corpus-") as corpus:
        for number, seed in enumerate(seeds(name)):
            (Path(corpus) / str(number)).write_bytes(seed)
        atheris.Setup([*sys.argv, corpus], TARGETS[name])
        atheris.Fuzz()


if __name__ == "__main__":
    main()
