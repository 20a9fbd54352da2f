"""One run, planned: what an engine is given."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from experiments.model.dynamics import NetworkChange, changes_of
from experiments.model.scenario import Case, Scenario
from topologies.model import Network


class RunPlan(BaseModel):
    """One run: a case of a scenario on its network with one protocol and one seed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scenario: Scenario
    network: Network
    case_name: str
    protocol: str
    seed: Annotated[int, Field(ge=0, lt=1 << 32)]
    duration_s: Annotated[float, Field(gt=0)]

    @property
    def case(self) -> Case:
        """The case that is run."""
        return self.scenario.case(self.case_name)

    @property
    def changes(self) -> tuple[NetworkChange, ...]:
        """What happens to the network, in the order of time."""
        return changes_of(self.scenario.events, self.network, self.case_name, self.seed, self.duration_s)

    @property
    def label(self) -> str:
        """The run's name in sentences, as `case 1 with mstcp, seed 1`."""
        return f"case {self.case_name} with {self.protocol}, seed {self.seed}"

    @property
    def title(self) -> str:
        """The run's name where a sentence begins."""
        return self.label[0].upper() + self.label[1:]

    @property
    def slug(self) -> str:
        """The run's name in file names, as `1-mstcp-s1`."""
        return f"{self.case_name}-{self.protocol}-s{self.seed}"
