"""What the seeds' intervals say of a sentence.

A sentence is a set of comparisons, all of which must hold: a mean over runs, the ratio of two or their
difference lies between limits, which are the paper's own numbers. How far a figure is from its limit has an
interval: Student's of one figure or of two of the same runs, else Welch's; of trimmed means where the study
trims. The sentence is

- reproduced if each 95 % interval lies on the right side of its limit. All must, so that a sentence which is
  wrong passes in 2.5 % of all cases at most (Berger's intersection-union test, Technometrics 24, 1982);
- not reproduced if one lies on the wrong side. Any of m limits may by chance, so these intervals are those of
  1 - 5 %/m (Bonferroni);
- undecided otherwise: the seeds cannot tell. A single run has no interval.

A figure equals a printed number if it would be printed so, which is two limits. Nothing else is tolerated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from experiments.analysis.statistics import CONFIDENCE, Difference, Estimate, estimate_of, welch
from experiments.studies.document import Judgement, Verdict
from experiments.studies.figures import with_interval
from experiments.studies.schema import ABOVE, BELOW, ClaimedRelation, Side

Figures = Callable[[Side], Sequence[float]]
"""Returns a figure of each seed."""
SIGNS = {ABOVE: ">", BELOW: "<"}
MARKS: dict[Verdict, str] = {"reproduced": "", "not_reproduced": " (no)", "undecided": " (cannot be told)"}


@dataclass(frozen=True)
class Judge:
    """Judges sentences by the runs of a study; `trim` is the study's."""

    figures: Figures
    trim: float = 0.0

    def sentence(self, by: str, comparisons: Sequence[ClaimedRelation]) -> Judgement | None:
        """Return the verdict on comparisons by a metric, with the figures as evidence; None without any."""
        if not comparisons:
            return None
        limits = sum(len(comparison.limits) for comparison in comparisons)
        verdicts = [self._comparison(comparison, 1 - (1 - CONFIDENCE) / limits) for comparison in comparisons]
        evidence = [
            self._text(comparison, by) + MARKS[verdict]
            for comparison, verdict in zip(comparisons, verdicts, strict=True)
        ]
        return Judgement(by=by, status=_all(verdicts), evidence="; ".join(evidence))

    def _comparison(self, comparison: ClaimedRelation, confidence: float) -> Verdict:
        verdicts: list[Verdict] = []
        for side, limit in comparison.limits.items():
            near, far = (self._distance(comparison, limit, level) for level in (CONFIDENCE, confidence))
            if near.half_width is None or far.half_width is None:
                verdicts.append("undecided")
            elif side * near.value > near.half_width:
                verdicts.append("reproduced")
            else:
                verdicts.append("not_reproduced" if side * far.value <= -far.half_width else "undecided")
        return _all(verdicts)

    def _distance(self, comparison: ClaimedRelation, limit: float, confidence: float) -> Difference:
        """Return how far above its limit the left side is."""
        left, right = self.figures(comparison.left), comparison.right
        factor, shift = (limit, 0.0) if comparison.relation == "of" else (1.0, limit)
        others = [0.0] * len(left) if right is None else [factor * value for value in self.figures(right)]
        if right is None or right.cases == comparison.left.cases:  # figures of the same runs: pairs
            mean = self.mean([a - b for a, b in zip(left, others, strict=True)], confidence)
            return Difference(mean.mean - shift, mean.half_width)
        difference = welch(others, left, confidence, trim=self.trim)
        assert difference is not None, "every case has been run with a seed at least"
        return Difference(difference.value - shift, difference.half_width)

    def mean(self, values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
        """Return the mean of at least one run, trimmed as the study does, with its interval."""
        return estimate_of(values, confidence, trim=self.trim)

    def _text(self, comparison: ClaimedRelation, by: str) -> str:
        """Return a comparison with its figures; metrics are named where they are not that of the sentence."""
        left = self._figure(comparison.left, by)
        right = "" if comparison.right is None else self._figure(comparison.right, by)
        if comparison.relation == "minus":
            left, right = f"{left} - {right}", ""
        limits = (f"{SIGNS[side]} {_limit(limit, right)}" for side, limit in comparison.limits.items())
        return f"{left} {' and '.join(limits)}"

    def _figure(self, side: Side, by: str) -> str:
        mean = self.mean(self.figures(side))
        name = " + ".join(side.cases) if side.metric == by else str(side)
        return f"{name} {with_interval(mean.mean, mean.half_width)}"


def _limit(limit: float, right: str) -> str:
    if not right:
        return f"{limit:g}"
    return right if limit == 1 else f"{limit:g} x {right}"


def _all(verdicts: Sequence[Verdict]) -> Verdict:
    if "not_reproduced" in verdicts:
        return "not_reproduced"
    return "undecided" if "undecided" in verdicts else "reproduced"
