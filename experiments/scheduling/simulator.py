"""What makes simulations: any place that takes a description and gives back what was found."""

from __future__ import annotations

from typing import Any, Protocol

from experiments.engines.sim.process import Processes, SimulatorOutput


class Simulator(Protocol):
    """Makes simulations, for any number of threads."""

    at_once: int
    """How many it can make at once."""

    def run(self, description: dict[str, Any], *traces: str) -> SimulatorOutput:
        """Make one and wait for it (SimulationFailed: with the reason)."""

    def stop(self) -> None:
        """End all that are made, and begin no other."""


def simulator(address: str | None) -> Simulator:
    """Return the processes of this machine, or the workers of the Dask cluster at an address.

    Raises:
        MissingRequirement: Dask is not installed.
        ClusterUnreachable: the cluster does not answer, has no workers, or they simulate otherwise.
    """
    if address is None:
        return Processes()
    # Dask takes half a second to import.
    from experiments.scheduling.cluster import Cluster

    return Cluster(address)
