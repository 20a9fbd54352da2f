"""`mstcp-lab shell`: a network with its controller, and Mininet's own prompt or a script in it.

Like a run, all of it lives in namespaces of its own, which end with this program, however that ends.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO

from experiments.cli.arguments import SET, Arguments, argument, between, mtu_bytes
from experiments.cli.messages import EXIT_FAILED, EXIT_INTERRUPTED, complain, say, stop_on
from experiments.engines.live import requirements
from experiments.engines.live.child import ChildFailed
from experiments.engines.live.controller_process import REST_PORT
from experiments.engines.live.replicas import Replicas
from experiments.errors import ScenarioError
from experiments.installation import ROOT
from experiments.model.overrides import parse_assignments
from experiments.places.namespaces import UNSHARE, require_namespaces
from experiments.places.namespaces_worker import prepare_namespaces
from switch.errors import SwitchError
from switch.ovs import PrivateInstance
from topologies import TopologyError
from topologies import load as load_network
from topologies.commands import IPV6_SETTINGS
from topologies.model import IpVersion, Network

NAME = "shell"
HELP = "start a network, and open Mininet's prompt in it or run its commands (needs root)"

SANDBOX = ("setpriv", "--pdeathsig", "KILL", "--", *UNSHARE)
"""Ends with this program even where that is killed."""
LOGS = Path("/run/mstcp-lab/shell")
"""In a /run of its own, which goes with it."""
WELCOME = """
Hosts: {hosts} (the first is 10.0.0.1 and, with IPv6, fd00::1). Switches: {switches}.
The controller is at http://10.255.0.1:{rest}/v1 from every host and at http://127.0.0.1:{rest}/v1 from `sh`;
programs in hosts ask it for rates by `--controller {grpc}`:
    T0 ping -c 3 T2          py net.hosts          sh curl -s 127.0.0.1:8080/v1/links
Leave with `exit` or Ctrl-D; nothing stays behind.
"""


ARGUMENTS: Arguments = (
    argument(
        "network", "NETWORK", "a built-in network, a .toml, .json or .graphml file, or a generator (ring:6)"
    ),
    argument("--variant", "V", "variant of the network"),
    argument(
        "--controllers",
        "N",
        "start N controllers that share an etcd server, of which one leads",
        between(1, 9),
        1,
    ),
    argument("--mtu", "BYTES", "MTU of the hosts", mtu_bytes, 1500),
    SET,
    argument(
        "--script",
        "FILE",
        "run the commands in a file, one a line, instead of a prompt; also what is on standard input, where "
        "that is no terminal",
    ),
)


def main(args: argparse.Namespace) -> int:
    """Check the network here, then bring it up in a sandbox that has this terminal."""
    overrides = parse_assignments(args.assignments).network or None
    network = load_network(args.network, variant=args.variant, overrides=overrides)
    require_namespaces()
    requirements.check()
    if sys.stdin is None:
        # It becomes standard input, as the lowest number that is free.
        os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)
    with ExitStack() as stack:
        commands = stack.enter_context(_opened(args.script)) if args.script else None
        description = stack.enter_context(tempfile.TemporaryFile())
        description.write(network.model_dump_json().encode())
        description.seek(0)
        if commands is None and os.isatty(0):
            # Ctrl-C belongs to what runs at the prompt.
            stack.callback(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.SIG_IGN))
            stack.enter_context(_terminal_restored())
        stop_on(signal.SIGTERM, signal.SIGHUP)
        done = subprocess.run(
            [
                *SANDBOX,
                sys.executable,
                "-m",
                "experiments.cli.shell",
                str(description.fileno()),
                str(args.mtu),
                str(args.controllers),
            ],
            stdin=commands,
            pass_fds=[description.fileno()],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
        )
    return done.returncode if done.returncode >= 0 else EXIT_FAILED


def _opened(script: str) -> BinaryIO:
    try:
        return Path(script).open("rb")
    except OSError as error:
        raise ScenarioError("--script", "", f"{script} cannot be read: {error.strerror}") from None


@contextmanager
def _terminal_restored() -> Iterator[None]:
    """Give the terminal back as it was: what ran at the prompt may have been killed."""
    before = termios.tcgetattr(0)
    try:
        yield
    finally:
        with suppress(termios.error):  # it may have been closed
            termios.tcsetattr(0, termios.TCSADRAIN, before)


def inside(network: Network, mtu: int, number: int) -> int:
    """Build the network in this namespace, show the prompt or run the commands, and take everything down."""
    # They need Mininet, which `requirements` has found by now.
    from topologies.mininet_builder import MIN_MTU, Emulation

    version: IpVersion = 6 if IPV6_SETTINGS.exists() and mtu >= MIN_MTU[6] else 4
    signal.signal(signal.SIGINT, signal.default_int_handler)
    lines = None if os.isatty(0) else _commands()
    prepare_namespaces(Path.cwd())
    LOGS.mkdir(parents=True)
    try:
        with ExitStack() as stack:
            controllers = stack.enter_context(Replicas(network, LOGS, number))
            ovs = stack.enter_context(PrivateInstance(requirements.OVS_FOLDER))
            emulation = stack.enter_context(
                Emulation(network, ovs=ovs, controller=None, mtu=mtu, ip_version=version)
            )
            say("waiting for the controller ...")
            controllers.wait_listening()
            emulation.connect_switches(*controllers.openflow)
            controllers.wait_ready()
            if lines is not None:
                emulation.run_commands(lines)
                return 0
            welcome = WELCOME.format(
                hosts=" ".join(network.hosts),
                switches=" ".join(network.switches),
                rest="/".join(str(REST_PORT + each) for each in range(number)),
                grpc=controllers.grpc_for_hosts,
            )
            print(welcome, flush=True)
            emulation.prompt()
    except (ChildFailed, SwitchError, TopologyError) as error:
        return complain(error, EXIT_FAILED)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return 0


def _commands() -> TextIO:
    """Return standard input, and leave nothing in its place for the programs that are started."""
    commands = os.fdopen(os.dup(0), encoding="utf-8", errors="replace")
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    return commands


if __name__ == "__main__":
    with os.fdopen(int(sys.argv[1]), encoding="utf-8") as description:
        described = Network.model_validate_json(description.read())
    sys.exit(inside(described, int(sys.argv[2]), int(sys.argv[3])))
