"""A private Open vSwitch: daemons, database and sockets of its own in one folder.

The machine's own Open vSwitch is neither asked nor touched. A datapath belongs to a network namespace and
serves one instance there, so a private one wants a namespace of its own; where another has it already,
`start` refuses instead of taking its ports away.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from switch import af_xdp, packet_sockets
from switch.datapath import DATAPATH_DEVICES, Datapath, choose_datapath, require_free
from switch.errors import CommandFailed, DaemonFailed, SwitchUnavailable
from switch.processes import end_process

PortKind = Literal["packet", "af_xdp"]
"""How the userspace datapath reads its ports: by packet sockets, or by AF_XDP (`switch.af_xdp`)."""

SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
INSTALL = "apt-get install openvswitch-switch"
START_TIMEOUT_S = 20.0
COMMAND_TIMEOUT_S = 30.0
LOG_TAIL_LINES = 15
_REMOVAL_GROUP = 0x6F767364
"""The group that interfaces are put into to be removed."""
RECONNECT_MS = 1000
"""Longest pause between two attempts to reach the controller; Open vSwitch's own is 8 s."""


@dataclass(frozen=True)
class Port:
    """A port of a bridge: an interface and the OpenFlow number that it is to have."""

    interface: str
    number: int


@dataclass(frozen=True)
class Bridge:
    """A bridge that does what an OpenFlow 1.3 controller says and nothing else.

    Attributes:
        name: of the bridge and of its internal port; at most 15 characters.
        datapath_id: OpenFlow datapath id.
        ports: its ports; each gets just the number asked for.
        controllers: IPv4 address and TCP port of each controller.
    """

    name: str
    datapath_id: int
    ports: Sequence[Port] = ()
    controllers: Sequence[tuple[str, int]] = ()


class PrivateInstance:
    """Runs ovsdb-server and ovs-vswitchd in a folder of their own; a context manager.

    Args:
        run_dir: folder for database, sockets, pid files and logs; made if missing. The logs stay after
            `stop`.
        datapath: `system` (kernel module), `netdev` (userspace), or `auto`: `system` where the module is
            there.
        realtime_priority: SCHED_FIFO priority (1-99) of ovs-vswitchd, which forwards in userspace; None
            leaves it to the ordinary scheduler. A userspace datapath delays packets by 10 ms and more when
            the cores are busy.
        ports: `packet` or `af_xdp` for the userspace datapath, or `auto`: `af_xdp` where Open vSwitch and the
            kernel have it and there is memory for it. XDP programs of one's own, and tools that listen at a
            switch's port, want `packet`.

    Raises:
        SwitchUnavailable: by `start`, when Open vSwitch or the datapath is not on the machine, or another
            instance has it in this namespace.
    """

    def __init__(
        self,
        run_dir: str | os.PathLike[str],
        *,
        datapath: Literal["auto", "system", "netdev"] = "auto",
        realtime_priority: int | None = None,
        ports: Literal["auto", "packet", "af_xdp"] = "packet",
    ) -> None:
        if realtime_priority is not None and not 1 <= realtime_priority <= 99:
            raise ValueError(f"realtime_priority must be 1 to 99, not {realtime_priority}")
        # Absolute: the daemons and every child process with `environment` may work in another folder.
        self.run_dir = Path(run_dir).absolute()
        self._asked = datapath
        self._priority = realtime_priority
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._datapath: Datapath | None = None
        self._ports_asked = ports
        self._port_kind: PortKind | None = None
        self._devices: set[str] = set()
        self._is_stopping = False
        self._changes = 0
        self._roomy: set[str] = set()

    def __enter__(self) -> PrivateInstance:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def datapath(self) -> Datapath:
        """The datapath type of the bridges: `system` or `netdev`."""
        if self._datapath is None:
            self._datapath = choose_datapath(self._asked)
        return self._datapath

    @property
    def port_kind(self) -> PortKind | None:
        """How ports are read; None before there is one, and where the kernel forwards."""
        return self._port_kind

    @property
    def environment(self) -> dict[str, str]:
        """Variables that make ovs-vsctl and friends, started with them, talk to this instance."""
        folder = str(self.run_dir)
        return {"OVS_RUNDIR": folder, "OVS_DBDIR": folder, "OVS_LOGDIR": folder, "OVS_SYSCONFDIR": folder}

    @property
    def running(self) -> bool:
        """Whether both daemons run."""
        return len(self._daemons) == 2 and all(daemon.poll() is None for daemon in self._daemons.values())

    def start(self) -> None:
        """Start both daemons and return when they serve. Does nothing if they run already.

        Raises:
            SwitchUnavailable: Open vSwitch or the datapath is not there, or not free.
            DaemonFailed: a daemon did not come up; with the end of its log.
        """
        if self.running:
            return
        _require_installed()
        self.run_dir.mkdir(parents=True, exist_ok=True)
        if self._database_answers():
            raise DaemonFailed("ovsdb-server", f"runs in {self.run_dir} already: choose another folder", "")
        require_free(self.datapath)
        try:
            self._start_database()
            self._devices.add(DATAPATH_DEVICES[self.datapath])
            self._start_forwarder()
        except BaseException:
            self.stop()
            raise

    def begin_stop(self) -> None:
        """Kill ovs-vswitchd without waiting, so that it ends while other things do; `stop` does the rest.

        No bridge works from then on. In the userspace datapath it would take down one port after the other,
        each with a pause for readers in the kernel: 0.3 s for 18 ports, 0.8 s with AF_XDP. Where the kernel
        forwards this does nothing.
        """
        daemon = self._daemons.get("ovs-vswitchd")
        if daemon is not None and self.datapath == "netdev":
            daemon.kill()
            self._is_stopping = True

    def stop(self) -> None:
        """Remove the bridges and end both daemons, by their own process ids.

        Never fails on what is gone already.
        """
        if self.running and not self._is_stopping:
            self._remove_bridges()
        for name in ("ovs-vswitchd", "ovsdb-server"):
            daemon = self._daemons.pop(name, None)
            if daemon is not None:
                end_process(daemon)
        self._remove_leftovers()

    def restart_forwarder(self) -> None:
        """Kill ovs-vswitchd and start it again: bridges and ports stay, rules and connections do not.

        Raises:
            DaemonFailed: it does not start again.
        """
        former = self._daemons["ovs-vswitchd"]
        former.kill()
        # The kernel closes its ports for 0.3 s; the next one starts meanwhile, and waits until they are free.
        (self.run_dir / "ovs-vswitchd.pid").unlink(missing_ok=True)
        self._start_forwarder()
        former.wait()
        self._attend_ports()

    def vsctl(self, *args: str) -> str:
        """Run ovs-vsctl on this instance, wait until the change is in force, and return what it printed.

        Raises:
            CommandFailed: with what it said.
        """
        return self._run(
            "ovs-vsctl", f"--timeout={int(COMMAND_TIMEOUT_S)}", f"--db={self._database_socket}", *args
        )

    def ofctl(self, *args: str) -> str:
        """Run ovs-ofctl with OpenFlow 1.3 on this instance and return what it printed.

        Raises:
            CommandFailed: with what it said.
        """
        return self._run("ovs-ofctl", "--protocols=OpenFlow13", *args)

    def appctl(self, *args: str) -> str:
        """Run ovs-appctl on ovs-vswitchd and return what it printed.

        Raises:
            CommandFailed: with what it said.
        """
        return self._run("ovs-appctl", f"--timeout={int(COMMAND_TIMEOUT_S)}", *args)

    def add_bridge(
        self,
        name: str,
        *,
        datapath_id: int,
        ports: Sequence[Port] = (),
        controllers: Sequence[tuple[str, int]] = (),
    ) -> None:
        """Make one bridge (`Bridge`, `add_bridges`)."""
        self.add_bridges([Bridge(name, datapath_id, ports, controllers)])

    def add_bridges(self, bridges: Sequence[Bridge]) -> None:
        """Make bridges, all in one transaction.

        Raises:
            CommandFailed: a bridge or a port could not be made, or got another number. Nothing remains of
                them.
        """
        self.begin_bridges(bridges)
        self.finish_bridges(bridges)

    def begin_bridges(self, bridges: Sequence[Bridge]) -> None:
        """Let bridges be made without waiting; `finish_bridges` has to follow.

        Raises:
            CommandFailed: there is already such a bridge; none is made then.
        """
        self._devices.update(bridge.name for bridge in bridges)
        if self.datapath == "netdev" and self._port_kind is None:
            self._port_kind = self._choose_ports(sum(len(bridge.ports) for bridge in bridges))
        self._order_bridges(bridges)

    def finish_bridges(self, bridges: Sequence[Bridge]) -> None:
        """Wait for the bridges that `begin_bridges` was given.

        Raises:
            CommandFailed: as by `add_bridges`.
        """
        try:
            try:
                self._check_bridges(bridges)
            except CommandFailed:
                if self._port_kind != "af_xdp" or self._ports_asked != "auto":
                    raise
                # What was probed works, and yet this machine refuses some step of it.
                self.remove_bridge(*(bridge.name for bridge in bridges))
                self._port_kind = "packet"
                self._order_bridges(bridges)
                self._check_bridges(bridges)
        except BaseException:
            self.remove_bridge(*(bridge.name for bridge in bridges))
            raise

    def _order_bridges(self, bridges: Sequence[Bridge]) -> None:
        commands = [word for bridge in bridges for word in self._bridge_commands(bridge)]
        if self._port_kind == "af_xdp":
            commands += ["--", "set", "Open_vSwitch", ".", *af_xdp.instance_settings()]
        self.vsctl("--no-wait", *commands)

    def _check_bridges(self, bridges: Sequence[Bridge]) -> None:
        # ovs-vsctl waits for ovs-vswitchd only where it changes something.
        self._changes += 1
        self.vsctl("set", "Open_vSwitch", ".", f"external-ids:changes={self._changes}")
        ports = [(bridge.name, port) for bridge in bridges for port in bridge.ports]
        self._check_ports(ports, [bridge.name for bridge in bridges])
        self._attend_ports()

    def _choose_ports(self, count: int) -> PortKind:
        if self._ports_asked != "auto":
            return self._ports_asked
        if not af_xdp.has_memory_for(count):
            return "packet"
        types = self.vsctl("get", "Open_vSwitch", ".", "iface_types").strip("[]\n").split(", ")
        return "packet" if af_xdp.problem(types, self.appctl("version")) else "af_xdp"

    def set_controllers(self, bridges: Sequence[str], controllers: Sequence[tuple[str, int]]) -> None:
        """Give bridges these controllers (IPv4 address and TCP port) instead of those that they have."""
        self.vsctl(*[word for name in bridges for word in _controller_commands(name, controllers)][1:])

    def remove_bridge(self, *names: str) -> None:
        """Remove bridges, those that are there, all at once; `stop` does it for all after `begin_stop`."""
        if names and not self._is_stopping:
            self.vsctl(*[word for name in names for word in ("--", "--if-exists", "del-br", name)][1:])

    @property
    def forwarder_pid(self) -> int | None:
        """Process id of ovs-vswitchd while it runs; in the userspace datapath all packets pass it."""
        daemon = self._daemons.get("ovs-vswitchd")
        return daemon.pid if daemon is not None else None

    def add_ports(self, bridge: str, ports: Sequence[Port]) -> None:
        """Add ports to a bridge, with just the numbers asked for.

        Raises:
            CommandFailed: a port could not be added, or got another number.
        """
        self.vsctl(*[word for port in ports for word in self._port_commands(bridge, port)][1:])
        self._check_ports([(bridge, port) for port in ports])
        self._attend_ports()

    def _attend_ports(self) -> None:
        """Let the userspace datapath be late without losing packets, where the kernel allows it."""
        forwarder = self._daemons.get("ovs-vswitchd")
        if forwarder is None:
            return
        if self._port_kind == "af_xdp":
            af_xdp.unpin(forwarder.pid)
        elif self.datapath == "netdev":
            # Without it nothing fails: fewer packets fit in, and a run that loses any is not valid.
            with contextlib.suppress(OSError):
                packet_sockets.widen(forwarder.pid, self._roomy)

    def _bridge_commands(self, bridge: Bridge) -> list[str]:
        name = bridge.name
        commands = ["--", "add-br", name, "--", "set", "bridge", name]
        commands += [f"datapath_type={self.datapath}", "fail_mode=secure", "protocols=OpenFlow13"]
        commands.append(f"other-config:datapath-id={bridge.datapath_id:016x}")
        commands.append("other-config:disable-in-band=true")
        for port in bridge.ports:
            commands += self._port_commands(name, port)
        if bridge.controllers:
            commands += _controller_commands(name, bridge.controllers)
        return commands

    def _port_commands(self, bridge: str, port: Port) -> list[str]:
        commands = ["--", "add-port", bridge, port.interface]
        commands += ["--", "set", "Interface", port.interface, f"ofport_request={port.number}"]
        return [*commands, *(af_xdp.port_settings() if self._port_kind == "af_xdp" else ())]

    def _check_ports(self, ports: Sequence[tuple[str, Port]], bridges: Sequence[str] = ()) -> None:
        """Read ports back, and the internal ports of bridges, which are named as these."""
        asked: list[tuple[str, int | None, list[str]]] = [
            (name, None, ["ovs-vsctl", "add-br", name]) for name in bridges
        ]
        asked += [
            (port.interface, port.number, ["ovs-vsctl", "add-port", bridge, port.interface])
            for bridge, port in ports
        ]
        columns = [
            word for name, _, _ in asked for word in ("--", "get", "Interface", name, "ofport", "error")
        ]
        answers = self.vsctl(*columns[1:]).split("\n") if asked else []
        for (name, number, command), given, problem in zip(asked, answers[::2], answers[1::2], strict=False):
            if number is None and problem != "[]":
                raise CommandFailed(command, problem)
            if number is not None and given != str(number):
                reason = f"{name} got port number {given} instead of {number} ({problem})"
                raise CommandFailed(command, reason)

    @property
    def _database_socket(self) -> str:
        return f"unix:{self.run_dir / 'db.sock'}"

    def _database_answers(self) -> bool:
        # Through the folder's descriptor, since the path may be longer than a socket's address can be.
        folder = os.open(self.run_dir, os.O_RDONLY)
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(f"/proc/self/fd/{folder}/db.sock")
        except OSError:
            return False
        finally:
            os.close(folder)
        return True

    def _start_database(self) -> None:
        database = self.run_dir / "conf.db"
        database.unlink(missing_ok=True)
        (self.run_dir / "db.sock").unlink(missing_ok=True)
        self._run("ovsdb-tool", "create", str(database), str(SCHEMA))
        command = ["ovsdb-server", str(database), f"--remote=p{self._database_socket}"]
        self._launch("ovsdb-server", command)
        self._wait("ovsdb-server", self._database_answers)
        self.vsctl("--no-wait", "init", "--", "set", "Open_vSwitch", ".", "external-ids:system-id=private")

    def _start_forwarder(self) -> None:
        command = ["ovs-vswitchd", self._database_socket]
        if self._priority is not None:
            command = ["chrt", "--fifo", str(self._priority), *command]
        self._roomy.clear()
        self._launch("ovs-vswitchd", command)
        # One change to the configuration, so that there is something to take.
        change = self._configuration("next_cfg") + 1
        self.vsctl("--no-wait", "set", "Open_vSwitch", ".", f"next_cfg={change}")
        self._wait("ovs-vswitchd", lambda: self._configuration("cur_cfg") >= change)

    def _configuration(self, column: Literal["next_cfg", "cur_cfg"]) -> int:
        """Return how many changes were made, or how many of them ovs-vswitchd has taken."""
        return int(self.vsctl("--no-wait", "get", "Open_vSwitch", ".", column))

    def _launch(self, name: str, command: Sequence[str]) -> None:
        log = self.run_dir / f"{name}.log"
        options = ["-vconsole:warn", f"--log-file={log}", f"--pidfile={self.run_dir / name}.pid"]
        with (self.run_dir / f"{name}.stderr").open("wb") as stderr:
            self._daemons[name] = subprocess.Popen(
                [*command, *options],
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                # Ctrl-C ends the run in order, bridges first; the daemons must not be gone by then.
                start_new_session=True,
            )

    def _wait(self, name: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not ready():
            code = self._daemons[name].poll()
            if code is not None:
                raise DaemonFailed(name, f"ended at once with status {code}", self._log_tail(name))
            if time.monotonic() > deadline:
                raise DaemonFailed(name, f"did not serve within {START_TIMEOUT_S:g} s", self._log_tail(name))
            time.sleep(0.01)

    def _log_tail(self, name: str) -> str:
        for suffix in ("log", "stderr"):
            path = self.run_dir / f"{name}.{suffix}"
            lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
            if lines:
                return "\n".join(lines[-LOG_TAIL_LINES:])
        return ""

    def _remove_bridges(self) -> None:
        try:
            self.remove_bridge(*self.vsctl("list-br").split())
        except CommandFailed:
            # The daemons are ended all the same; their interfaces go with them.
            return

    def _remove_leftovers(self) -> None:
        """Remove the devices that an ovs-vswitchd that died could not: it makes them persistent."""
        left = self._devices & {name for _, name in socket.if_nameindex()}
        if left:
            # As a group they go together: the kernel waits for its readers once, not for each.
            lines = [f"link set dev {device} group {_REMOVAL_GROUP}" for device in sorted(left)]
            lines.append(f"link del group {_REMOVAL_GROUP}")
            _checked(["ip", "-batch", "-"], os.environ, "\n".join(lines))
        self._devices.clear()
        self._is_stopping = False

    def _run(self, *command: str) -> str:
        if not self.running and command[0] != "ovsdb-tool":
            self._raise_if_dead()
        return _checked(command, {**os.environ, **self.environment})

    def _raise_if_dead(self) -> None:
        for name, daemon in self._daemons.items():
            if daemon.poll() is not None:
                raise DaemonFailed(name, f"ended with status {daemon.returncode}", self._log_tail(name))
        if not self._daemons:
            raise DaemonFailed("ovsdb-server", "is not running: call start() first", "")


def _require_installed() -> None:
    for program in ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl"):
        if shutil.which(program) is None:
            raise SwitchUnavailable(f"{program} of Open vSwitch is not installed", INSTALL)
    if not SCHEMA.exists():
        raise SwitchUnavailable(f"{SCHEMA} of Open vSwitch is not installed", INSTALL)


def _controller_commands(bridge: str, controllers: Sequence[tuple[str, int]]) -> list[str]:
    # By their own rows: a bridge with several controllers names none of them.
    names = [f"@{bridge}-{number}" for number in range(len(controllers))]
    commands = []
    for name, (address, port) in zip(names, controllers, strict=True):
        commands += ["--", f"--id={name}", "create", "controller", f'target="tcp:{address}:{port}"']
        commands += [f"max_backoff={RECONNECT_MS}"]
    return [*commands, "--", "set", "bridge", bridge, f"controller=[{','.join(names)}]"]


def _checked(command: Sequence[str], environment: Mapping[str, str], standard_input: str = "") -> str:
    try:
        done = subprocess.run(
            command,
            input=standard_input,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S + 5,
        )
    except subprocess.TimeoutExpired:
        raise CommandFailed(command, f"it gave no answer within {COMMAND_TIMEOUT_S + 5:g} s") from None
    # ovs-vsctl reports a port that cannot be opened on standard error, with status 0.
    if done.returncode or "Error detected while setting up" in done.stderr:
        raise CommandFailed(command, done.stderr)
    return done.stdout
