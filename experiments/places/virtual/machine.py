"""One boot of the virtual kernel: a program in it, run to its end, on one core of the host.

The machine sees the host's files read-only, with empty folders of its own over those that programs write to;
the folders that are named as writable are the host's. Nothing else connects it to the host: no terminal, no
network and no pipe, since whatever came at a time of the host's would make runs differ.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from experiments import environment
from experiments.errors import MissingRequirement, RunFailed
from experiments.installation import ROOT
from experiments.places.virtual import kernel_image
from experiments.places.virtual.init import SPARE_FOLDERS, WRITABLE

START_NS = 1_767_225_600 * 10**9
"""What every machine's clock says when it starts: 2026-01-01, so that files and results have one time."""
MEMORY_MIB = 2048
"""At most; the host gives what is used."""
SILENCE_LIMIT_S = 900.0
"""A machine that is silent for this time, on the host's clock, is in a loop that never waits."""
BOOT_LIMIT_S = 120.0
"""For a machine that has nothing to do, on the host's clock: an idle host takes less than a second."""
POLL_S = 0.05
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TEMPORARY = "/tmp"  # noqa: S108 (of the guest; and of the host, since the kernel sees this path)
SAME_ARITHMETIC = {
    # Which instructions a sum is made with depends on the processor, and its last bits on that.
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR AVX2 FMA3 AVX512F AVX512CD AVX512_SKX",
    "OPENBLAS_CORETYPE": "Prescott",
    "OPENBLAS_NUM_THREADS": "1",
}
MOUNT_AT_ONCE = "LIBMOUNT_FORCE_MOUNT2=always"
"""Has `mount` use mount(2): fsconfig(2), its default from util-linux 2.41 on, takes no path for hostfs."""
LIBRARY_LIST, LIBRARY_PATH = "/etc/ld.so.cache", "/usr/local/lib"
"""A machine has no list of the host's shared libraries: they are in the system's folders, or here."""
GUEST_FOLDER = Path("/run/mstcp-lab")
"""Where a machine sees the project, its Python and what it may write to, wherever they lie on the host: what
programs read and say has paths in it."""
_CONTROL, _PROJECT, _PYTHON = "control", "project", "python"
_KERNELS_OWN = ("Failed to initialize ubd", "reboot: ")
"""How lines of the console begin that the kernel writes around what programs say."""
PROGRAMS = {"taskset": "util-linux", "setpriv": "util-linux"}


@dataclass(frozen=True)
class Order:
    """What a machine is to do; its console goes to a file.

    Folders of the host that it may write to and read are given by their names below GUEST_FOLDER; the seed is
    that of the kernel's random numbers.
    """

    argv: Sequence[str]
    seed: int
    console: Path
    writable: Mapping[str, Path] = field(default_factory=dict)
    readable: Mapping[str, Path] = field(default_factory=dict)
    memory_mib: int = MEMORY_MIB


def require() -> None:
    """Refuse where no machine can be started (MissingRequirement: with the remedy)."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        packages = " ".join(sorted({PROGRAMS[name] for name in missing}))
        raise MissingRequirement(
            f"The virtual engine needs {', '.join(missing)}.", f"apt-get install {packages}"
        )
    kernel_image.kernel()


def require_boot() -> None:
    """Boot a machine that does nothing, for about a second (MissingRequirement: none comes up, and why)."""
    require()
    with tempfile.TemporaryDirectory(prefix="mstcp-lab-") as folder:
        console = Path(folder, "console.log")
        order = Order(argv=["true"], seed=1, console=console)
        try:
            with Machine(order) as booted:
                booted.wait(lambda: False, BOOT_LIMIT_S)
        except RunFailed as error:
            what = f"The kernel of the virtual engine does not boot: {error.reason}."
            raise MissingRequirement(what, "Use --engine live or --engine sim here.") from None


class Machine:
    """A booted machine; a context manager that ends it, whatever state it is in."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._folder = Path(tempfile.mkdtemp(prefix="mstcp-lab-vm-", dir=TEMPORARY))
        self._process: subprocess.Popen[bytes] | None = None
        self._console_begin = order.console.stat().st_size if order.console.exists() else 0

    def __enter__(self) -> Machine:
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
            core = stack.enter_context(claimed_core())
            self._write_order()
            self._write_init()
            with self._order.console.open("ab") as console:
                self._process = subprocess.Popen(
                    self._command(core),
                    stdin=subprocess.DEVNULL,
                    stdout=console,
                    stderr=console,
                    env={"UML_SEED": str(self._order.seed), "PATH": PATH, "HOME": str(self._folder)},
                    cwd=self._folder,
                    start_new_session=True,  # Ctrl-C on the terminal is the parent's alone
                )
            self._ending = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._ending.close()

    def wait(self, look: Callable[[], bool], silence_limit_s: float | None = None) -> int:
        """Wait for the program's end and return its exit status.

        `look` is called often and says whether anything was heard from the machine since the last time; the
        limit is for how long nothing may be, SILENCE_LIMIT_S without one.

        Raises:
            RunFailed: the machine ended before the program, or nothing was heard for too long.
        """
        assert self._process is not None
        limit_s = SILENCE_LIMIT_S if silence_limit_s is None else silence_limit_s
        heard_s = time.monotonic()
        while True:
            try:
                self._process.wait(POLL_S)
            except subprocess.TimeoutExpired:
                if look():
                    heard_s = time.monotonic()
                elif time.monotonic() - heard_s > limit_s:
                    self.kill()
                    raise self._failed(f"nothing was heard from it for {limit_s:g} s") from None
                continue
            look()
            status = self._folder / "status"
            if not status.exists():
                raise self._failed("it ended before its program")
            return int(status.read_text())

    def kill(self) -> None:
        """End the machine and all of its processes at once. Does nothing to one that has ended."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _write_order(self) -> None:
        order = self._order
        variables = {
            "PATH": PATH,
            "HOME": TEMPORARY,
            "LD_LIBRARY_PATH": LIBRARY_PATH,
            "TMPDIR": TEMPORARY,
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(guest_path(_PROJECT)),
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            **SAME_ARITHMETIC,
            # Found there it would take 10,000 system calls.
            environment.REVISION: environment.git_revision() or "",
        }
        document = {
            "argv": list(order.argv),
            "folder": str(guest_path(_PROJECT)),
            "environment": variables,
            "writable": {str(guest_path(name)): str(host) for name, host in order.writable.items()},
            "readable": {str(guest_path(name)): str(host) for name, host in order.readable.items()}
            | {folder: folder for folder in _hidden(sys.base_prefix, *_linked_folders())},
        }
        (self._folder / "order.json").write_text(json.dumps(document))

    def _write_init(self) -> None:
        """Write the script that becomes process 1; it alone has what differs between hosts."""
        folders = {_CONTROL: self._folder, _PROJECT: ROOT, _PYTHON: Path(sys.prefix)}
        libraries = f"LD_LIBRARY_PATH={LIBRARY_PATH}"
        lines = ["#!/bin/sh -e", f"export {MOUNT_AT_ONCE} {libraries}", "mount -t tmpfs tmpfs /run"]
        # Its size, which unrelated packages change, moves all that the dynamic linker maps after it.
        lines.append(f"[ ! -e {LIBRARY_LIST} ] || mount --bind /dev/null {LIBRARY_LIST}")
        lines.append(f"mkdir {GUEST_FOLDER}")
        for name, host in folders.items():
            mode = WRITABLE if name == _CONTROL else "ro"
            lines.append(f"mkdir {guest_path(name)}")
            lines.append(f"mount -t hostfs -o {mode},{shlex.quote(str(host))} hostfs {guest_path(name)}")
        lines += self._moved_links()
        process_1 = guest_project_path(Path(__file__).with_name("init.py"))
        lines.append(f"exec {guest_python()} {process_1} {guest_path(_CONTROL) / 'order.json'}")
        script = self._folder / "init"
        script.write_text("\n".join(lines) + "\n")
        script.chmod(0o755)

    def _moved_links(self) -> list[str]:
        """Return commands that let packages which are installed as links lead to the project's path there."""
        lines = []
        for link, words in _links():
            moved = [str(guest_path(_PROJECT)) if _is_project(word) else word for word in words]
            if moved != words:
                (self._folder / link.name).write_text("\n".join(moved) + "\n")
                inside = guest_path(_PYTHON) / link.relative_to(sys.prefix)
                lines.append(f"mount --bind {guest_path(_CONTROL) / link.name} {inside}")
        return lines

    def _command(self, core: int) -> list[str]:
        order = self._order
        return [
            *("setpriv", "--pdeathsig", "KILL", "--", "taskset", "--cpu-list", str(core)),
            str(kernel_image.kernel()),
            # The kernel's random numbers begin with these words: they must be the same for every machine. The
            # host's /proc is seen until process 1 mounts its own, and leads to this process's folder.
            *(
                "rootfstype=hostfs",
                "ro",
                "quiet",
                "norandmaps",
                f"mem={order.memory_mib}M",
                "init=/proc/self/cwd/init",
            ),
            *("con=null", "con0=fd:0,fd:1", "umid=machine", "seccomp=auto"),
            *("time-travel=inf-cpu", f"time-travel-start={START_NS}"),
        ]

    def last_line(self) -> str:
        """Return the last line on the console that a program wrote before it, or the kernel, ended."""
        with self._order.console.open(errors="replace") as console:
            console.seek(self._console_begin)
            heard, panic, reason = console.read().partition("Kernel panic")
        lines = [line.strip() for line in heard.splitlines()]
        said = [line for line in lines if line and not line.startswith(_KERNELS_OWN)]
        if panic and not said:
            return panic + reason.partition("\n")[0]
        return said[-1] if said else "it wrote nothing on its console"

    def _failed(self, reason: str) -> RunFailed:
        folder = str(self._order.console.parent)
        return RunFailed("The virtual machine", f"{reason}: {self.last_line()}", folder)


@contextmanager
def claimed_core() -> Iterator[int]:
    """Yield the core that the fewest machines of this user are on, of all commands that run at once."""
    folder = kernel_image.cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    allowed = sorted(os.sched_getaffinity(0))
    for place, core in ((place, core) for place in itertools.count() for core in allowed):
        with (folder / f"core-{core}-{place}.lock").open("w") as claim:
            try:
                fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield core
            return


def guest_path(name: str) -> Path:
    """Return where a machine sees a writable folder of the host."""
    return GUEST_FOLDER / name


def guest_project_path(file: Path) -> Path:
    """Return where a machine sees a file of the project, wherever that lies on the host."""
    return guest_path(_PROJECT) / file.relative_to(ROOT)


def guest_python() -> str:
    """Return this interpreter's path as a machine sees it: that of its environment, wherever that lies."""
    return str(guest_path(_PYTHON) / Path(sys.executable).relative_to(sys.prefix))


def _links() -> Iterator[tuple[Path, list[str]]]:
    """Return the .pth files of this Python's environment, each with its lines."""
    packages = Path(sysconfig.get_path("purelib"))
    if packages.is_relative_to(sys.prefix):
        for link in sorted(packages.glob("*.pth")):
            yield link, link.read_text(errors="replace").splitlines()


def _linked_folders() -> list[str]:
    """Return the folders with packages that are installed as links, but for the project's own."""
    words = [word for _, lines in _links() for word in lines]
    return [word for word in words if word.startswith("/") and Path(word).is_dir() and not _is_project(word)]


def _hidden(*folders: str) -> list[str]:
    """Return those of the host's folders that a machine would have an empty one over."""
    below = [folder for folder in folders if any(folder.startswith(f"{each}/") for each in SPARE_FOLDERS)]
    return sorted(set(below))


def _is_project(word: str) -> bool:
    """Whether a line of a .pth file is a folder with this project, here or where it was installed from."""
    return word.startswith("/") and Path(word, Path(__file__).relative_to(ROOT)).exists()
