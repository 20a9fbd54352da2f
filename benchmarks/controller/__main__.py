"""The controller under load, over model switches that speak OpenFlow.

.venv/bin/python -m benchmarks.controller            # 200 switches, 5,000 flows: some minutes
.venv/bin/python -m benchmarks.controller --quick --json
.venv/bin/python -m benchmarks.controller --switches 1000 --flows 500

The controller is `mstcp-controller` itself, in a process of its own; the switches and the clients share
another. Flows of one rate run between random hosts by the default objective. Measured are:

- the first and the last 100 of them, 16 requests under way at once (`installs_per_s_*`);
- what one request waits while no other is under way (`request_*_ms`);
- as many paths again, all asked for at once (`batch_paths_per_s`);
- the link with most flows, filled up with small ones to 1,000 (100 with `--quick`), fails: from then until
  the switches had confirmed the last rule of the new paths (`replan_confirmed_ms`), and until the owner of
  the last flow on it heard of its own (`replan_ms`, `replanned_flows`);
- how long the controller took to know all switches and links (`discovery_s`), and to have all its rules
  confirmed (`ready_s`); the most memory it had in use (`peak_memory_mib`);
- how many rules a switch has at the end, on average, that name none of the hosts behind it
  (`core_rules_per_switch`).

Networks are Waxman graphs with a host at each switch; above 500 switches with three links a switch.

Names with `cpu` are processor time: of the controller (`*_cpu_ms`, `controller_cpu_s`), and of this process,
in which clients and switches are (`*_beside_cpu_ms`). They say more on a machine that is shared.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import topologies
from benchmarks.command_line import command_line, show
from benchmarks.controller.load import Load, Result
from benchmarks.controller.process import controller
from benchmarks.controller.sizes import spec_of
from tests.fakes.model_network import fleet_of


def main() -> int:
    """Parse the command line, measure, and print."""
    parser = command_line(__doc__, with_json=True)
    parser.add_argument("--quick", action="store_true", help="50 switches, 500 flows: under a minute")
    parser.add_argument("--switches", type=int, help="200 of them, unless this says otherwise")
    parser.add_argument("--flows", type=int, help="5,000 of them, unless this says otherwise")
    parser.add_argument("--rate", type=float, default=1e6, help="goodput that each flow asks for, bit/s")
    parser.add_argument("--link-rate", type=float, default=100e6, help="of each link between switches, bit/s")
    parser.add_argument("--seed", type=int, default=1, help="of the network and of the flows' ends")
    options = parser.parse_args()
    switches = options.switches or (50 if options.quick else 200)
    flows = options.flows or (500 if options.quick else 5000)
    network = spec_of(switches, options.seed, options.link_rate)
    result = asyncio.run(_measure(network, flows, options.rate, options.seed))
    show(result, options.json)
    return 0


async def _measure(spec: str, flows: int, rate_bps: float, seed: int) -> Result:
    network = topologies.load(spec)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "controller.log")
        try:
            async with (
                controller(spec, log, "--lease", "600") as running,
                fleet_of(network, running.openflow) as fleet,
            ):
                load = Load(network, running, fleet, rate_bps, seed)
                return await load.run(flows, on_link=min(1000, flows // 5))
        except BaseException:
            sys.stderr.write("".join(log.read_text().splitlines(keepends=True)[-20:]))
            raise


if __name__ == "__main__":
    sys.exit(main())
