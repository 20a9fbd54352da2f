"""`mstcp-lab shell`: a network with its controller, and Mininet's own prompt in it.

Like a run, all of it lives in namespaces of its own and ends with the prompt.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from experiments.engines.live import requirements
from experiments.engines.live.child import ChildFailed
from experiments.engines.live.controller_process import ControllerProcess
from experiments.installation import ROOT
from experiments.model.overrides import parse_assignments
from experiments.places.namespaces import UNSHARE, require_root
from experiments.places.namespaces_worker import prepare_namespaces
from switch.errors import SwitchError
from switch.ovs import PrivateInstance
from topologies import TopologyError
from topologies import load as load_network
from topologies.model import Network

NAME = "shell"
HELP = "start a network and open Mininet's prompt in it (needs root)"

WELCOME = """
Hosts: {hosts} (each with its address on 10.0.0.0/16). Switches: {switches}.
The controller is at http://10.255.0.1:8080/v1 from every host and at http://127.0.0.1:8080/v1 from `sh`:
    T0 ping -c 3 T2          py net.hosts          sh curl -s 127.0.0.1:8080/v1/links
Leave with `exit` or Ctrl-D; nothing stays behind.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "network",
        metavar="NETWORK",
        help="a built-in network, a .toml, .json or .graphml file, or a generator (ring:6)",
    )
    parser.add_argument("--variant", metavar="V", help="variant of the network")
    parser.add_argument(
        "--mtu", type=int, default=1500, metavar="BYTES", help="MTU of the hosts (default 1500)"
    )
    parser.add_argument(
        "--set",
        dest="assignments",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a value of the network: links.S0-S4.rate_bps=8e6; repeatable",
    )
    parser.set_defaults(command=main)


def main(args: argparse.Namespace) -> int:
    """Check the network here, then bring it up in a sandbox that has this terminal."""
    overrides = parse_assignments(args.assignments).network or None
    network = load_network(args.network, variant=args.variant, overrides=overrides)
    require_root()
    requirements.check()
    with tempfile.TemporaryDirectory(prefix="mstcp-lab-") as folder:
        Path(folder, "network.json").write_text(network.model_dump_json())
        # Ctrl-C belongs to what runs at the prompt.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            done = subprocess.run(
                [*UNSHARE, sys.executable, "-m", "experiments.cli.shell", folder, str(args.mtu)],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                check=False,
            )
        finally:
            signal.signal(signal.SIGINT, before)
    return done.returncode


def inside(folder: Path, mtu: int) -> int:
    """Build the network in this namespace, show the prompt, and take everything down."""
    from topologies.mininet_builder import Emulation  # needs Mininet, which `requirements` has found by now

    signal.signal(signal.SIGINT, signal.default_int_handler)
    network = Network.model_validate_json((folder / "network.json").read_text())
    prepare_namespaces(folder)
    try:
        with ExitStack() as stack:
            controller = stack.enter_context(ControllerProcess(network, folder))
            ovs = stack.enter_context(PrivateInstance(requirements.OVS_FOLDER))
            emulation = stack.enter_context(
                Emulation(network, ovs=ovs, controller=controller.openflow, mtu=mtu)
            )
            print("waiting for the controller ...", flush=True)
            controller.wait_ready()
            print(
                WELCOME.format(hosts=" ".join(network.hosts), switches=" ".join(network.switches)), flush=True
            )
            emulation.prompt()
    except (ChildFailed, SwitchError, TopologyError) as error:
        print(f"mstcp-lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(inside(Path(sys.argv[1]), int(sys.argv[2])))
