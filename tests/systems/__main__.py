"""Tries a clone of HEAD, or a release, in fresh roots of Debian and Ubuntu, as root and as a plain user.

    sudo python3 -m tests.systems bookworm trixie testing                      (`make test-systems`)
    sudo python3 -m tests.systems --release dist bookworm trixie jammy noble   (`make test-release`)

Each user has a root of its own, made by debootstrap, and enters it by pivot_root. Packages come from wherever
this machine has them from. All of it lies in one folder, and runs in namespaces that end with this program.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from tests.systems import host_settings

ROOT = Path(__file__).parents[2]
ENTER = Path(__file__).with_name("enter.sh")
# Whatever ends this program ends these namespaces, with all that is mounted and runs there.
IN_NAMESPACES = (
    "setpriv",
    "--pdeathsig",
    "KILL",
    "--",
    "unshare",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--",
)
USERS = {"root": Path("/root"), "plain": Path("/home/plain")}
VISIBLE_LINES = 30
LIMIT_S = 3600.0
"""For one step."""
REMOVAL_LIMIT_S = 30.0
VERSIONS = (
    '. /etc/os-release; echo "$PRETTY_NAME"; python3 --version; '
    "dpkg-query -W -f '${Package} ${Version}\\n' util-linux iproute2 openvswitch-switch mininet"
)
NOT_ASKED_FOR = "openvswitch-switch mininet nodejs npm chromium openssh-server"
"""Packages that a user of the simulator need not have."""
OF_CLONE = {
    "set-up": "cd mstcp && make setup",
    "simulator": "cd mstcp && .venv/bin/mstcp-lab run butterfly --engine sim --duration 5 && "
    f"! dpkg-query -W -f '${{db:Status-Status}}\n' {NOT_ASKED_FOR} 2>/dev/null | grep -x installed",
    "emulation": "cd mstcp && make setup-emulation",
    "doctor": "cd mstcp && .venv/bin/mstcp-lab doctor --json || true",
    "demo": "cd mstcp && make demo PROTOCOLS=mstcp,ospf DURATION=1",
    "ring": "cd mstcp && .venv/bin/mstcp-lab run ring --engine virtual --protocol ospf --case 1 --duration 2 "
    "--json",
    "live": "cd mstcp && .venv/bin/mstcp-lab run butterfly --protocol mstcp,ospf --case 1 --duration 1",
}
OF_RELEASE = {
    "install": "python3 -m venv lab && lab/bin/pip install --quiet /srv/given/*_$(uname -m).whl",
    "library": "lab/bin/mstcp bench --seconds 1",
    "solver": "lab/bin/mstcp-lab solve butterfly",
    "simulator": "lab/bin/mstcp-lab run butterfly --engine sim --duration 5",
    "virtual": "lab/bin/mstcp-lab run ring --engine virtual --protocol ospf --case 1 --duration 2 --json",
}
NEEDS_ROOT = ("live",)
BY_ROOT = {
    "virtual": "apt-get update --quiet && apt-get install --quiet --yes --no-install-recommends "
    "openvswitch-switch mininet iproute2 ethtool procps"
}
"""What root does before a step of any user."""
BY_ADMINISTRATOR = {
    "set-up": "cd mstcp && scripts/install-packages && scripts/find-cargo",
    "emulation": "cd mstcp && scripts/install-packages --emulation",
}
"""What root does before a step, in the folder of a user who may not install packages."""
UBUNTU = ("jammy", "noble")


@dataclasses.dataclass
class Step:
    """One command in a root: whether it did what it should, and what that took."""

    name: str
    problem: str | None
    wall_s: float
    cpu_s: float
    printed: str
    note: str = ""

    @property
    def cell(self) -> str:
        """The step as a cell of the table."""
        state = self.note or "ok" if self.problem is None else f"FAILED: {self.problem}"
        return f"{state}, {self.wall_s:.0f} s ({self.cpu_s:.0f})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the systems and print the table; returns 0 if all steps of all did what they should."""
    parser = argparse.ArgumentParser(
        prog="make test-systems", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument(
        "systems", nargs="+", metavar="SUITE", help="a suite of Debian or Ubuntu, as debootstrap names it"
    )
    parser.add_argument("--release", type=Path, metavar="FOLDER", help="install the wheels of this folder")
    parser.add_argument("--user", choices=USERS, help="the user to try (default: both)")
    args = parser.parse_args(arguments)
    if os.geteuid() != 0:
        sys.exit("test-systems: it makes root file systems and needs root: sudo make test-systems")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    rows: list[list[Step | str]] = []
    folder = Path(tempfile.mkdtemp(prefix="mstcp-systems-", dir="/var/tmp"))
    try:
        folder.chmod(0o755)
        given = folder / "given"
        if args.release:
            shutil.copytree(args.release, given)
        else:
            given.mkdir()
            _checked(
                ["git", "-C", str(ROOT), "bundle", "create", "--quiet", str(given / "tree.bundle"), "HEAD"]
            )
        steps, packages = (OF_RELEASE, "python3-venv") if args.release else (OF_CLONE, "git,make")
        for suite in args.systems:
            base = folder / suite
            bootstrap = _timed("debootstrap", functools.partial(_bootstrap, base, suite, packages))
            print(f"{suite}: debootstrap {bootstrap.cell}", flush=True)
            if bootstrap.problem is not None:
                rows.append([suite, bootstrap.cell, bootstrap])
                continue
            users = [args.user] if args.user else USERS
            rows += [_try_user(folder, base, suite, user, steps) for user in users]
            shutil.rmtree(base)
    except KeyboardInterrupt:
        print("Stopped; what is printed is what was tried.", flush=True)
        return 130
    finally:
        _remove(folder)
    _print_table(rows, steps)
    return int(any(step.problem is not None for row in rows for step in row if isinstance(step, Step)))


def _remove(folder: Path) -> None:
    """Remove what lies in a folder; programs that were killed a moment ago may still write there."""
    deadline_s = time.monotonic() + REMOVAL_LIMIT_S
    while folder.exists() and time.monotonic() < deadline_s:
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        print(f"test-systems: remove {folder} by hand", flush=True)


def _bootstrap(base: Path, suite: str, packages: str) -> str | None:
    """Make a root file system of a suite with what a reader of the README has, and where its packages are."""
    options = ["--variant=minbase", f"--include=ca-certificates,{packages}"]
    if suite in UBUNTU:
        # Debian has no keys of Ubuntu's. One script of debootstrap's knows all of its suites, newer ones too.
        mirrors: dict[str, str] = {}
        options, source = [*options, "--components=main,universe", "--no-check-gpg"], ["", "gutsy"]
    else:
        mirrors = host_settings.mirrors()
        source = [mirrors["main"]] if "main" in mirrors else []
    call = ["debootstrap", *options, suite, str(base), *source]
    problem, printed = _run([*IN_NAMESPACES, *call])
    if problem is not None:
        return f"{problem}\n{printed}"
    sources = base / "etc/apt/sources.list"
    # Where debootstrap writes another file, that suffices.
    lines = sources.read_text().splitlines() if sources.exists() else []
    lines += [line.replace(suite, f"{suite}-updates") for line in lines]
    if "security" in mirrors:
        lines.append(f"deb {mirrors['security']} {suite}-security main")
    sources.write_text("\n".join(lines) + "\n")
    return None


def _try_user(folder: Path, base: Path, suite: str, user: str, tried: Mapping[str, str]) -> list[Step | str]:
    """Let a user of a fresh root do some steps; returns the row of the table."""
    root = folder / f"{suite}-{user}"
    _checked(["cp", "--archive", "--reflink=auto", str(base), str(root)])
    try:
        if user != "root":
            _checked(["chroot", str(root), "useradd", "--create-home", "--shell", "/bin/bash", user])
        host_settings.hand_over(root, list(USERS.values()))
        _checked(["chroot", str(root), "update-ca-certificates"])
        shutil.copytree(folder / "given", root / "srv" / "given")
        steps: list[Step] = []
        for name, command in tried.items():
            if user != "root" and name in NEEDS_ROOT:
                continue
            step = _step(root, user, name, command)
            steps.append(step)
            print(f"{suite}, {user}: {name} {step.cell}", flush=True)
            if step.problem is not None:
                print("\n".join(step.printed.splitlines()[-VISIBLE_LINES:]), flush=True)
                break
        _, versions = _in_root(root, user, VERSIONS)
        return ["; ".join(versions.splitlines()), user, *steps]
    finally:
        _remove(root)


def _step(root: Path, user: str, name: str, command: str) -> Step:
    printed: list[str] = []

    def run() -> str | None:
        for who, what in [*_preparations(user, name), (user, command)]:
            problem, text = _in_root(root, who, what)
            printed.append(text)
            if problem is not None:
                break
        return problem

    step = _timed(name, run)
    step.printed = "".join(printed)
    if step.problem is None:
        step.problem, step.note = CHECKS.get(name, _nothing)(step.printed)
    return step


def _preparations(user: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield what is done before a step, and who does it."""
    if name == "set-up":
        yield user, "git clone --quiet /srv/given/tree.bundle mstcp"
    if name in BY_ROOT:
        yield "root", BY_ROOT[name]
    if user != "root" and name in BY_ADMINISTRATOR:
        yield "root", f"cd {USERS[user]} && {BY_ADMINISTRATOR[name]}"


def _doctor(printed: str) -> tuple[str | None, str]:
    """Return what the doctor said of the kernel of the virtual engine, which is to boot, and of live runs."""
    document = _document(printed)
    states = {check["name"]: check["state"] for check in document["checks"]}
    unwell = [
        name for name in ("virtual-kernel", "programs", "mininet", "links") if states[name] == "missing"
    ]
    return ", ".join(unwell) or None, "live too" if document["live"] else "virtual"


def _demo(printed: str) -> tuple[str | None, str]:
    return None, "virtual" if "in virtual time" in printed.lower() else "live"


def _ring(printed: str) -> tuple[str | None, str]:
    """Return the goodput of the ring, whose one flow fills a link of 10 Mbit/s: 9.56 of it are goodput."""
    (run,) = _document(printed)["runs"]
    goodput_bps = run["flows"][0]["goodput_bps"]
    problem = None if 9.5e6 < goodput_bps < 9.6e6 else "not the goodput of a full link"
    return problem, f"{goodput_bps / 1e6:.2f} Mbit/s"


def _document(printed: str) -> dict[str, Any]:
    """Return the JSON that a command printed between messages."""
    document, _ = json.JSONDecoder().raw_decode(printed[printed.index("{") :])
    return dict(document)


def _nothing(printed: str) -> tuple[str | None, str]:
    del printed
    return None, ""


CHECKS: dict[str, Callable[[str], tuple[str | None, str]]] = {
    "doctor": _doctor,
    "demo": _demo,
    "ring": _ring,
    "virtual": _ring,
}


def _in_root(root: Path, user: str, command: str) -> tuple[str | None, str]:
    call = [*IN_NAMESPACES, "sh", str(ENTER), str(root), user, command, *host_settings.shared_folders()]
    return _run(call)


def _run(call: Sequence[str]) -> tuple[str | None, str]:
    """Run a command to its end; returns why it failed, if it did, and what it printed."""
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output,
        subprocess.Popen(
            call, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        ) as process,
    ):
        try:
            status = process.wait(LIMIT_S)
            problem = f"status {status}" if status else None
        except subprocess.TimeoutExpired:
            problem = f"not done within {LIMIT_S:g} s"
        finally:
            process.kill()
            process.wait()
        output.seek(0)
        return problem, output.read()


def _timed(name: str, run: Callable[[], str | None]) -> Step:
    wall_s, cpu_s = time.monotonic(), _cpu_s()
    problem = run()
    return Step(name, problem, time.monotonic() - wall_s, _cpu_s() - cpu_s, "")


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _checked(call: Sequence[str]) -> None:
    problem, printed = _run(call)
    if problem is not None:
        raise SystemExit(f"test-systems: {' '.join(call)}: {problem}\n{printed}")


def _print_table(rows: Sequence[Sequence[Step | str]], steps: Collection[str]) -> None:
    print("\n| system | user | " + " | ".join(steps) + " |\n|" + "---|" * (2 + len(steps)))
    for row in rows:
        cells = {each.name: each.cell for each in row if isinstance(each, Step)}
        texts = [each for each in row if not isinstance(each, Step)]
        print("| " + " | ".join(texts + [cells.get(name, "") for name in steps]) + " |")
    print("Each cell: what came of it, wall seconds (and processor seconds).")


def _interrupt(number: int, frame: object) -> NoReturn:
    del number, frame
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
