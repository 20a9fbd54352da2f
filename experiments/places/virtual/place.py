"""Makes each run of a job in a virtual machine of its own, several at once, each on a core of its own."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

from experiments.engines.base import Engine
from experiments.engines.thread_pool import run_together
from experiments.errors import OutputError, RunFailed, reason_of
from experiments.model.events import (
    Event,
    InRun,
    OutputRefused,
    Report,
    RunBroken,
    RunFinished,
    RunsBegun,
    WorkFailed,
    WorkFinished,
    from_line,
)
from experiments.model.job import Job
from experiments.model.plan import RunPlan
from experiments.places.base import WorkerEvents
from experiments.places.virtual import machine
from experiments.places.virtual.bytecode import compile_all
from experiments.places.virtual.machine import Machine, Order, guest_path, guest_python


class VirtualKernel:
    """A place whose clock is virtual: a run is the same whatever else the machine does.

    Every run has a boot of its own, so that none depends on those before it.
    """

    def __init__(self) -> None:
        self._machines: set[Machine] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def check(self) -> None:
        """Refuse where the kernel cannot run."""
        machine.require()

    def run(self, job: Job, engine: Engine, report: Report) -> None:
        """Make the pending runs; each machine's console goes to the folder of the run's logs.

        Raises:
            OutputError: the results could not be written.
            KeyboardInterrupt: the user stopped; no machine runs any more by then.
        """
        del engine
        compile_all()
        pending = job.pending()
        workers = min(job.parallel or len(os.sched_getaffinity(0)), len(pending))
        if workers > 1:
            self._run_together(job, pending, workers, report)
            return
        for number, plan in pending:
            self._run_one(job, number, plan, report)

    def _run_together(
        self, job: Job, pending: list[tuple[int, RunPlan]], workers: int, report: Report
    ) -> None:
        report(RunsBegun(planned=len(pending)))

        def run_one(numbered: tuple[int, RunPlan]) -> list[Event]:
            """Return how the run ended; what it reports on the way is told with its number."""
            number, plan = numbered
            ends: list[Event] = []

            def hear(event: Event) -> None:
                if isinstance(event, RunFinished | RunBroken):
                    ends.append(event)
                elif not isinstance(event, RunsBegun | OutputRefused | WorkFailed | WorkFinished | InRun):
                    report(InRun(number=number, told=event))

            self._run_one(job, number, plan, hear)
            return ends

        with run_together(pending, run_one, workers=workers, stop=self._stop) as ending:
            for _, _, future in ending:
                for event in future.result():
                    report(event)

    def _run_one(self, job: Job, number: int, plan: RunPlan, report: Report) -> None:
        """Boot a machine for one run; one that fails is reported, and the others are made all the same."""
        logs = job.out / "logs" / plan.slug
        try:
            logs.mkdir(parents=True, exist_ok=True)
            self._boot(job.model_copy(update={"only": number}), plan, logs, report)
        except RunFailed as error:
            report(RunBroken(run=plan.label, reason=str(error)))
        except OSError as error:
            raise OutputError(error.filename or str(logs), error.strerror or reason_of(error)) from error

    def _boot(self, job: Job, plan: RunPlan, logs: Path, report: Report) -> None:
        with tempfile.TemporaryDirectory(prefix="mstcp-lab-") as name:
            asked, told = "job.json", "events"
            # A machine has empty folders of its own over some of the host's: extensions may lie there.
            folders = {f"extension-{index}": file.parent for index, file in enumerate(job.extensions, 1)}
            extensions = tuple(
                guest_path(folder) / file.name for folder, file in zip(folders, job.extensions, strict=True)
            )
            inside = job.model_copy(update={"out": guest_path("out"), "extensions": extensions})
            Path(name, asked).write_text(inside.model_dump_json())
            Path(name, told).touch()
            files = [str(guest_path("job") / file) for file in (asked, told)]
            order = Order(
                argv=[guest_python(), "-m", "experiments.places.virtual.worker", *files],
                seed=plan.seed,
                console=logs / "console.log",
                writable={"out": job.out, "job": Path(name)},
                readable=folders,
                memory_mib=job.scenario.virtual.memory_mib,
            )
            with Path(name, told).open("rb") as lines, Machine(order) as booted:
                self._watch(booted)
                events = WorkerEvents(report)
                pending = b""

                def look() -> bool:
                    nonlocal pending
                    heard = lines.read()
                    *whole, pending = (pending + heard).split(b"\n")
                    for line in whole:
                        events.take(_with_host_paths(from_line(line), order))
                    return bool(heard)

                try:
                    status = booted.wait(look)
                finally:
                    self._forget(booted)
        if not events.finished:
            reason = events.why_not_finished(status, booted.last_line())
            raise RunFailed(plan.title, _host_paths(reason, order), str(logs))

    def _watch(self, booted: Machine) -> None:
        with self._lock:
            self._machines.add(booted)
            stopped = self._stopped
        if stopped:
            booted.kill()

    def _forget(self, booted: Machine) -> None:
        with self._lock:
            self._machines.discard(booted)

    def _stop(self) -> None:
        with self._lock:
            self._stopped = True
            running = list(self._machines)
        for booted in running:
            booted.kill()


def _with_host_paths(event: Event, order: Order) -> Event:
    """Return an event that names the host's folders where the machine's are named."""
    if isinstance(event, RunBroken):
        return event.model_copy(update={"reason": _host_paths(event.reason, order)})
    if isinstance(event, OutputRefused):
        return event.model_copy(update={"path": _host_paths(event.path, order)})
    return event


def _host_paths(text: str, order: Order) -> str:
    folders = {**order.writable, **order.readable}
    for name in sorted(folders, key=len, reverse=True):  # `extension-12` before `extension-1`
        text = text.replace(str(guest_path(name)), str(folders[name]))
    return text
