"""Programs that are forked into hosts: their namespaces, pipes, logs, ends and names."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from experiments.engines.live.child import Child, ChildFailed
from experiments.engines.live.forked import ForkedProgram
from tests.sandbox import run_in_sandbox

PROGRAM = '''
"""A program that answers orders until it is told to end."""

import json
import os
import pathlib
import socket
import sys
import time

STARTED_AT = time.monotonic()


def serve(config):
    name = config.read_text()
    print(f"{name} is here", file=sys.stderr)
    for line in sys.stdin:
        order = json.loads(line)["order"]
        if order == "look":
            interfaces = [interface for _, interface in socket.if_nameindex()]
            comm = pathlib.Path("/proc/self/comm").read_text().strip()
            seen = {"interfaces": interfaces, "name": name, "comm": comm}
            seen.update({"event": "seen", "imported_at": STARTED_AT, "folder": os.getcwd()})
            print(json.dumps(seen), flush=True)
        elif order == "fail":
            raise RuntimeError("on order")
        else:
            return 7
    return 0
'''


def end_of(child: Child) -> str:
    try:
        return str(child.expect("seen", 60))
    except ChildFailed as failure:
        return str(failure)


def run_three() -> dict[str, Any]:
    """Fork programs into a namespace with an interface `here`; end one by order, signal and failure each."""
    folder = Path(tempfile.mkdtemp())
    (folder / "orders_program.py").write_text(PROGRAM)
    sys.path.insert(0, str(folder))
    script = "ip link add here type veth && echo && exec sleep 300"
    holder = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c", script], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    children = {}
    for name in ("one", "two", "a-third-with-a-long-name"):
        config, log = folder / f"{name}.txt", folder / f"{name}.log"
        config.write_text(name)
        program = ForkedProgram(
            name, "orders_program:serve", config, log=log, piped=True, host_pid=holder.pid
        )
        children[name] = Child(name, program, log)
    seen = {}
    for name, child in children.items():
        child.tell({"order": "look"})
        seen[name] = child.expect("seen", 60)
    one, two, three = children.values()
    outcome: dict[str, Any] = {
        "seen": seen,
        "folder": str(Path.cwd()),
        "own": [name for _, name in socket.if_nameindex()],
    }
    one.tell({"order": "end"})
    two.tell({"order": "fail"})
    os.kill(three.pid, signal.SIGTERM)
    outcome["ends"] = [end_of(child) for child in (one, two, three)]
    for child in children.values():
        child.stop()
    outcome["gone"] = [not Path(f"/proc/{child.pid}").exists() for child in children.values()]
    holder.kill()
    holder.wait()
    outcome["log"] = (folder / "one.log").read_text()
    return outcome


@pytest.mark.root
def test_forked_programs_are_what_started_ones_would_be() -> None:
    outcome = run_in_sandbox(run_three)
    names = ["one", "two", "a-third-with-a-long-name"]
    seen = [outcome["seen"][name] for name in names]
    assert [each["name"] for each in seen] == names
    assert [each["comm"] for each in seen] == [name[:15] for name in names]
    assert all("here" in each["interfaces"] for each in seen)
    assert "here" not in outcome["own"]
    assert all(each["folder"] == outcome["folder"] for each in seen)
    # All of one interpreter that imported once.
    assert len({each["imported_at"] for each in seen}) == 1
    one, two, three = outcome["ends"]
    assert one == "one ended with status 7. Its last words: one is here"
    assert two == "two ended with status 1. Its last words: RuntimeError: on order"
    assert three.startswith("a-third-with-a-long-name ended with status -15.")
    assert outcome["gone"] == [True, True, True]
    assert outcome["log"] == "one is here\n"
