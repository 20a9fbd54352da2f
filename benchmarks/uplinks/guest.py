"""Seeds in a virtual kernel (docs/virtual.md): `-m benchmarks.uplinks.guest TOLD SEED ...` runs there.

TOLD gets a line for each seed.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

from benchmarks.uplinks.hosts import UPLINKS, build, move_uplinks, unshare_network

RATES_MBPS = (4.0, 60.0)
DELAYS_MS = (1.0, 60.0)
QUEUES_MS = (20.0, 200.0)
RESTS_S = (0.0, 2.0)
PACKET_BITS = 1514 * 8


def series(seed: int) -> dict[str, Any]:
    """Draw uplinks and times, and move both uplinks once; return the case and what it cost."""
    draw = random.Random(seed)
    uplinks, shapes = [], []
    for _ in UPLINKS:
        rate_mbps, delay_ms = round(draw.uniform(*RATES_MBPS), 1), round(draw.uniform(*DELAYS_MS), 1)
        packets = rate_mbps * 1e3 * (delay_ms + draw.uniform(*QUEUES_MS)) / PACKET_BITS
        uplinks.append(f"{rate_mbps:g}@{delay_ms:g}")
        shapes.append(f"rate {rate_mbps}mbit delay {delay_ms}ms limit {packets + 10:.0f}")
    echoes = draw.random() < 0.5
    order = draw.sample(UPLINKS, len(UPLINKS))
    rest_s = [draw.uniform(*RESTS_S) for _ in range(4)]
    case = {"seed": seed, "uplinks": uplinks, "direction": "both" if echoes else "down"}
    server = build(shapes)
    try:
        return case | asyncio.run(move_uplinks(echoes, order=order, rest_s=rest_s))
    except RuntimeError as error:
        return case | {"error": str(error)}
    finally:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)


def main(told: Path, seeds: list[int]) -> None:
    """Run each seed in a process, and a network, of its own."""
    for seed in seeds:
        process = os.fork()
        if process == 0:
            status = 1
            try:
                unshare_network()
                with told.open("a") as file:
                    print(json.dumps(series(seed)), file=file)
                status = 0
            finally:
                sys.stderr.flush()
                os._exit(status)
        if os.waitpid(process, 0)[1]:
            raise SystemExit(f"seed {seed} came to no end")


if __name__ == "__main__":
    main(Path(sys.argv[1]), list(map(int, sys.argv[2:])))
