"""Errors of the experiments.

    ExperimentError
    ├── ScenarioError          a scenario file that is not one
    │   ├── OverrideError      a `--set` that fits no key or value of the schema
    │   └── DemandError        a file of demands with a row that is none
    ├── ExtensionError         a module that adds a protocol, workload or the like and cannot be loaded
    ├── UnknownName            a scenario, case, protocol or engine that does not exist
    ├── MissingRequirement     the machine lacks something that the run needs
    ├── ClusterUnreachable     a cluster that does not answer, or cannot make the runs
    ├── OutputError            the results cannot be written where they were asked for
    ├── RunFailed              a run that did not come to its end
    └── Interrupted            the user stopped the runs

Every message is a sentence that says what is wrong and what to do.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

DISK_IS_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
"""Error numbers after which whatever is written next would fail too."""


def reason_of(error: BaseException) -> str:
    """Return what an exception says, with the file that it is about; one that says nothing is named."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error).strip() or f"{type(error).__name__}, which says nothing more"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the question whether the nearest of what is known was meant; empty where none is near."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {near[0]}?" if near else ""


@dataclass(eq=False)
class ExperimentError(Exception):
    """Root of the package's errors; their fields are what they were made with, and pickled by."""


@dataclass(eq=False)
class ScenarioError(ExperimentError):
    """A scenario file that is not one; `source` is the file, `place` the key."""

    source: str
    place: str
    reason: str

    def __str__(self) -> str:
        where = f"{self.source}: {self.place}" if self.place else self.source
        return f"{where}: {self.reason}"


class OverrideError(ScenarioError):
    """An option or a `--set KEY=VALUE` that fits no key or value of the schema; `place` is the key."""

    OPTIONS: ClassVar[Mapping[str, str]] = {
        "allocation": "--allocation",
        "duration_s": "--duration",
        "live.capture": "--capture",
        "sim.trace": "--trace",
        "variant": "--variant",
        "workload": "--workload",
    }
    """Keys that have an option of their own, which errors name."""

    def __str__(self) -> str:
        return f"{self.OPTIONS.get(self.place, f'--set {self.place}')}: {self.reason}"


class DemandError(ScenarioError):
    """A file of demands with a row that is none; `source` is the file, `place` the row."""


@dataclass(eq=False)
class ExtensionError(ExperimentError):
    """A module that was to add something; `source` is its file or the thing's name."""

    source: str
    reason: str

    def __str__(self) -> str:
        return f"The extension {self.source} is not used: {self.reason}. Correct it, or leave it out."


@dataclass(eq=False)
class UnknownName(ExperimentError):
    """A name that is not in its list; the text offers the nearest ones and the whole list."""

    kind: str
    name: str
    known: Iterable[str]

    def __post_init__(self) -> None:
        self.known = tuple(self.known)

    def __str__(self) -> str:
        hint = nearest(self.name, self.known)
        return f"There is no {self.kind} called {self.name!r}.{hint} Known: {', '.join(self.known)}."


@dataclass(eq=False)
class MissingRequirement(ExperimentError):
    """The machine lacks something; `remedy` is what to do about it."""

    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what} {self.remedy}"


@dataclass(eq=False)
class ClusterUnreachable(ExperimentError):
    """A cluster that does not answer, or cannot make the runs."""

    address: str
    reason: str

    def __str__(self) -> str:
        remedy = "Start `dask scheduler` and `dask worker ADDRESS`, or leave --scheduler out."
        return f"--scheduler {self.address}: {self.reason}. {remedy}"


@dataclass(eq=False)
class OutputError(ExperimentError):
    """The results cannot be written where they were asked for; `option` says where that is."""

    path: str
    reason: str
    option: str = "--out"

    def __str__(self) -> str:
        cannot = f"Cannot write the results to {self.path}: {self.reason}."
        return f"{cannot} Choose another folder with {self.option}."


@dataclass(eq=False)
class RunFailed(ExperimentError):
    """A run did not come to its end; `run` names it, `log` is the folder with its logs, if there is one."""

    run: str
    reason: str
    log: str | None = None

    def __post_init__(self) -> None:
        self.reason = self.reason.strip() or "nothing is known of the reason"

    def __str__(self) -> str:
        failed = f"{self.run} failed: {self.reason}"
        if not self.log:
            return failed
        return f"{failed}{'' if failed.endswith(('.', '!', '?')) else '.'} Its logs are in {self.log}."


@dataclass(eq=False)
class Interrupted(ExperimentError):
    """The user stopped the runs; `finished` of `planned` were complete by then, `resume` makes the others."""

    finished: int
    planned: int
    resume: str | None = None

    def __str__(self) -> str:
        stopped = f"Stopped; {self.finished} of {self.planned} runs are complete and kept."
        return f"{stopped} `{self.resume}` makes the others." if self.resume else stopped
