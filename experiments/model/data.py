"""What everything that is read, sent or kept as data has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Data(BaseModel):
    """Checked data that does not change; unknown keys are refused by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)
