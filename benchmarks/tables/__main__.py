"""Renews the simulated tables of docs/ or of the pages named: python -m benchmarks.tables [PAGE ...]."""

from __future__ import annotations

import sys
import time

from benchmarks.pages import renew

from . import mptcp, networks, ppfs, schedulers, table1

MODULES = (mptcp, networks, ppfs, schedulers, table1)


def main(pages: list[str]) -> int:
    """Renew the tables; returns the exit status."""
    known = [module.PAGE for module in MODULES]
    if unknown := set(pages) - set(known):
        print(f"tables: no page {', '.join(sorted(unknown))}: there are {', '.join(known)}", file=sys.stderr)
        return 2
    for module in MODULES:
        for name, lines in module.TABLES.items() if module.PAGE in (pages or known) else ():
            begun = time.monotonic()
            renew(module.PAGE, name, lines())
            print(f"tables: docs/{module.PAGE}, {name}: {time.monotonic() - begun:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
