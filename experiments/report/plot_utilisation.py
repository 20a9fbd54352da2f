"""How many directions of links are used how much: a histogram in steps of 5 %."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.report.canvas import WIDTH_IN, Plot, finish, new_figure, plot_context
from experiments.report.palette import INK, PAPER, PLOT_STYLES

STEPS = 20
HEIGHT_IN = 2.6


def plot_utilisations(utilisations: Sequence[float]) -> Plot:
    """Draw the distribution of the utilisation of links."""
    counts = [0] * STEPS
    for used in utilisations:
        counts[min(STEPS - 1, max(0, int(used * STEPS + 1e-9)))] += 1
    with plot_context():
        figure = new_figure(WIDTH_IN, HEIGHT_IN)
        axes = figure.subplots()
        lefts = [step * 100 / STEPS for step in range(STEPS)]
        axes.bar(
            lefts,
            counts,
            width=100 / STEPS,
            align="edge",
            color=PLOT_STYLES[0].colour,
            edgecolor=PAPER,
            linewidth=0.8,
        )
        for left, count in zip(lefts, counts, strict=True):
            if count:
                place = (left + 50 / STEPS, count)
                axes.annotate(
                    str(count), place, (0, 2), textcoords="offset points", ha="center", fontsize=7.5
                )
        axes.set_xlim(0, 100)
        axes.set_ylim(0, max(counts, default=1) * 1.12 or 1)
        axes.set_xlabel("utilisation in %", color=INK)
        axes.set_ylabel("directions of links")
        return finish(
            figure,
            "utilisation",
            "Distribution of link utilisation",
            "Directions of links by their utilisation, in steps of 5 %; the last holds those that are full.",
        )
