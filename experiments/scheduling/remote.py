"""What the workers of a cluster do: one simulation, in the worker's own process.

The simulator gives the interpreter's lock up while it runs, so that the worker answers the cluster meanwhile.
"""

from __future__ import annotations

import hashlib
import json
import time

import netsim_native as sim

from experiments.engines.sim.worker import OwnMethodFailed, peak_rss_bytes
from experiments.engines.sim.worker import simulate as make_run

PROBE = {
    "format": 1,
    "seed": 1,
    "duration_s": 0.5,
    "links": [
        {"ends": ["A", "B"], "rate_bps": 2e6, "delay_us": 3000, "queue_packets": 8, "loss": 0.01},
        {"ends": ["A", "C"], "rate_bps": 1e6, "delay_us": 9000, "jitter_us": 700},
        {"ends": ["B", "C"], "rate_bps": 1e7, "delay_us": 10},
    ],
    "flows": [
        {
            "name": name,
            "src": "A",
            "dst": "B",
            "protocol": protocol,
            "traffic": {"kind": "bulk"},
            "paths": [{"path": ["A", "B"]}, {"path": ["A", "C", "B"]}],
        }
        for name, protocol in (("1", "mstcp"), ("2", "mptcp"), ("3", "tcp"))
    ],
}
"""A run of a few milliseconds that uses most of the simulator."""


def simulate(description: str) -> tuple[str | None, str, float, int]:
    """Simulate a description: why it was refused, the document, seconds and memory that it took."""
    started = time.perf_counter()
    try:
        simulated = make_run(description)
    except OwnMethodFailed as error:
        return str(error), "", 0.0, 0
    except sim.InvalidDescription as error:
        return ": ".join(filter(None, map(str, error.args))), "", 0.0, 0
    return None, simulated, time.perf_counter() - started, peak_rss_bytes()


def probe() -> str:
    """Return a digest of what the simulator of this process makes of a small run."""
    return hashlib.blake2b(sim.run(json.dumps(PROBE)).encode(), digest_size=16).hexdigest()
