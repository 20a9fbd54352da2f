"""The workers of a Dask cluster (https://distributed.dask.org) as a place for simulations.

A run whose worker dies is made by another one: the cluster sees to that. What a run gives is taken once, when
the cluster says that it is finished.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
from concurrent.futures import CancelledError
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from experiments.engines.sim.methods import absolute_names
from experiments.engines.sim.process import SimulationFailed, SimulatorOutput
from experiments.errors import ClusterUnreachable, MissingRequirement
from experiments.installation import extra_command
from experiments.scheduling import remote

ANSWER_S = 5.0
"""How long an address has to answer."""
WORKERS_S = 10.0
"""How long to wait for the first worker, and how long runs wait while there is none."""
POLL_S = 1.0
RUNS_A_THREAD = 2
"""One that is made and one that waits there already."""
MIN_AT_ONCE = 64
"""Enough for workers that join later."""


class Cluster:
    """Makes simulations on the workers that are joined by a scheduler."""

    def __init__(self, address: str) -> None:
        """Join.

        Raises:
            MissingRequirement: Dask is not installed.
            ClusterUnreachable: nothing answers there, or nothing that could make the runs.
        """
        if find_spec("distributed") is None:
            raise MissingRequirement(
                "A cluster needs Dask, which is not installed.",
                f"Install it ({extra_command('cluster')}), or leave --scheduler out.",
            )
        _check_answer(address)
        import distributed

        # What it would warn of on standard error comes as an exception too.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        self._address = address
        self._stopped = threading.Event()
        try:
            self._client = distributed.Client(
                address, timeout=ANSWER_S, set_as_default=False, name="mstcp-lab"
            )
        except (OSError, ValueError, distributed.TimeoutError) as error:
            raise ClusterUnreachable(address, str(error) or "it does not answer") from None
        try:
            self.at_once = self._join(distributed.TimeoutError)
        except ClusterUnreachable:
            self._client.close()
            raise

    def _join(self, timed_out: type[Exception]) -> int:
        try:
            self._client.wait_for_workers(1, timeout=WORKERS_S)
            probes: dict[str, str] = self._client.run(remote.probe)
        except timed_out:
            raise ClusterUnreachable(self._address, "no worker has joined it") from None
        except Exception as error:
            reason = f"its workers cannot simulate ({error}); they need this project's packages"
            raise ClusterUnreachable(self._address, reason) from None
        ours = remote.probe()
        others = sorted(worker for worker, digest in probes.items() if digest != ours)
        if others:
            reason = f"the simulator of worker {others[0]} is of another version; results would differ"
            raise ClusterUnreachable(self._address, reason)
        threads: dict[str, int] = self._client.nthreads()
        return max(MIN_AT_ONCE, RUNS_A_THREAD * sum(threads.values()))

    def wait_for(self, workers: int) -> None:
        """Wait until this many workers have joined; ClusterUnreachable if they do not."""
        import distributed

        try:
            self._client.wait_for_workers(workers, timeout=6 * WORKERS_S)
        except distributed.TimeoutError:
            raise ClusterUnreachable(self._address, f"fewer than {workers} workers joined it") from None

    def run(self, description: dict[str, Any], *traces: str) -> SimulatorOutput:
        """Make a simulation on some worker and wait for it; SimulationFailed says why it has no result."""
        if traces:
            raise SimulationFailed("traces are files of this machine: leave --trace or --scheduler out")
        future = self._client.submit(remote.simulate, json.dumps(absolute_names(description)), pure=False)
        try:
            refused, document, wall_s, peak_rss_bytes = self._wait(future)
        finally:
            future.release()  # `cancel` would wait for ever once the client is closed
        if refused is not None:
            raise SimulationFailed(refused)
        return SimulatorOutput(document=json.loads(document), wall_s=wall_s, peak_rss_bytes=peak_rss_bytes)

    def _wait(self, future: Any) -> tuple[str | None, str, float, int]:
        import distributed

        alone_s = 0.0
        while not self._stopped.is_set():
            try:
                result: tuple[str | None, str, float, int] = future.result(timeout=POLL_S)
                return result
            except distributed.TimeoutError:
                pass
            except distributed.KilledWorker as error:
                raise SimulationFailed(f"every worker that made it died ({error})") from None
            except CancelledError:
                raise self._gone() from None
            except Exception as error:
                if future.status == "error":
                    raise SimulationFailed(f"the cluster gave it up: {error}") from None
                # Something died while the result was on its way: it is made again, if there is who makes it.
                self._stopped.wait(POLL_S)
            alone_s = 0.0 if self._client.scheduler_info()["workers"] else alone_s + POLL_S
            if self._client.status != "running" or alone_s >= WORKERS_S:
                raise self._gone()
        raise SimulationFailed("it was stopped")

    def _gone(self) -> SimulationFailed:
        return SimulationFailed(f"the cluster at {self._address} is gone")

    def stop(self) -> None:
        """Give up what is made; workers end the run that they are at."""
        self._stopped.set()
        self._client.close(timeout=ANSWER_S)


def _check_answer(address: str) -> None:
    """Check that something listens at an address and speaks first, as a scheduler does.

    Dask's own client waits for minutes where something takes the connection and says nothing.
    """
    try:
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        place = (parts.hostname, parts.port)
    except ValueError:
        place = (None, None)
    host, port = place
    if host is None or port is None:
        raise ClusterUnreachable(address, "it is no address; one is tcp://127.0.0.1:8786")
    try:
        with socket.create_connection((host, port), timeout=ANSWER_S) as connection:
            spoken = parts.scheme != "tcp" or connection.recv(1)
    except TimeoutError:
        spoken = b""
    except OSError as error:
        raise ClusterUnreachable(address, f"nothing answers there ({error.strerror or error})") from None
    if not spoken:
        raise ClusterUnreachable(address, f"no scheduler of Dask answers there within {ANSWER_S:g} s")
