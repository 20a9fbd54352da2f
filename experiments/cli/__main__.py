"""`python -m experiments.cli`: the same as `mstcp-lab`."""

from __future__ import annotations

import sys

from experiments.cli import main

if __name__ == "__main__":
    sys.exit(main())
