"""Traces of mahimahi: a line for each packet that a link could carry, with its time in milliseconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from experiments.errors import ScenarioError
from experiments.traces.base import Step, TraceBase, register, repeated

PACKET_BITS = 1504 * 8
"""What one line stands for, by mahimahi's documentation."""


@register
class Mahimahi(TraceBase):
    """The rate of a link as the mean over intervals of `every_s`; the file begins again at its end.

    An interval without a line has the rate of one packet, so that what is being sent gets through.
    """

    kind: Literal["mahimahi"] = "mahimahi"
    file: str = Field(min_length=1)
    every_s: Annotated[float, Field(ge=0.01, le=60)] = 0.1
    packets: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """Lines of each interval, once the file is read."""

    def read(self, folder: Path) -> TraceBase:
        """Count the file's lines by interval."""
        if self.packets:
            return self
        source = folder / self.file
        counts: Counter[int] = Counter()
        try:
            for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), start=1):
                if line.strip():
                    counts[int(_milliseconds(line, source, number) / 1e3 / self.every_s)] += 1
        except (OSError, UnicodeDecodeError) as error:
            raise ScenarioError(str(source), "", f"cannot be read as a trace: {error}") from None
        if not counts:
            raise ScenarioError(str(source), "", "is no trace of mahimahi: it has no line")
        packets = tuple(counts[interval] for interval in range(max(counts) + 1))
        return self.model_copy(update={"packets": packets})

    def steps(self, seed: int) -> Iterator[Step]:
        """Yield the rate of each interval."""
        del seed
        steps = [
            Step(number * self.every_s, {"rate_bps": max(count, 1) * PACKET_BITS / self.every_s})
            for number, count in enumerate(self.packets)
        ]
        return repeated(steps, len(steps) * self.every_s)


def _milliseconds(line: str, source: Path, number: int) -> int:
    if not line.strip().isdigit():
        reason = f"{line.strip()!r} is no time in whole milliseconds"
        raise ScenarioError(str(source), f"line {number}", reason)
    return int(line)
