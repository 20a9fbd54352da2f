"""Utilisation drawn on the network: two lines for each link, one for each direction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.patches import Circle, FancyArrow, Rectangle

from experiments.report import units
from experiments.report.canvas import POINTS_PER_INCH, WIDTH_IN, Plot, file_stem, finish, new_figure, style
from experiments.report.palette import FAINT, INK, MUTED, PAPER
from experiments.report.summary import ScenarioSummary, summarise_links
from topologies import Network, positions

COLOURS = "cividis"
MOST_LABELS = 40
MOST_NAMES = 60
CROWDED_RADIUS_PT = 2.0
CROWDED_LINE_PT = 1.5
LABEL_PT = 26.0
"""Length of line, and distance to the next label, that a label takes."""
SCALE_PT = 46.0
"""Room below the drawing for the colour scale."""
TITLE_PT = 18.0
CENTRED: dict[str, Any] = {"ha": "center", "va": "center", "rotation_mode": "anchor", "zorder": 4}

Point = tuple[float, float]
Shares = Mapping[str, float | None]
"""Utilisation by direction of a link."""


@dataclass(frozen=True)
class Canvas:
    """A drawing in points: its size, the places of the nodes and their radius."""

    width: float
    height: float
    places: dict[str, Point]
    radius: float

    @property
    def is_crowded(self) -> bool:
        """Whether there are too many nodes for text, so that colours alone speak."""
        return len(self.places) > MOST_NAMES

    @property
    def line(self) -> float:
        """Width of the line of one direction."""
        return max(CROWDED_LINE_PT, self.radius * 0.36)

    def length(self, a: str, b: str) -> float:
        """Distance between two nodes."""
        return math.dist(self.places[a], self.places[b])

    def middle(self, a: str, b: str) -> Point:
        """The point half-way between two nodes."""
        (ax, ay), (bx, by) = self.places[a], self.places[b]
        return (ax + bx) / 2, (ay + by) / 2


def plot_topology(scenario: ScenarioSummary, protocol: str, network: Network) -> Plot:
    """Draw the mean utilisation of each direction of each link, of one protocol in one scenario."""
    links = {link.link: link.utilisation for link in summarise_links(scenario.usable(protocol))}
    title = f"Link utilisation with {protocol}, scenario {scenario.name}"
    name = file_stem("links", scenario.name, protocol)
    return draw_network(network, links, name=name, heading=protocol, title=title)


def draw_network(network: Network, links: Shares, *, name: str, heading: str, title: str) -> Plot:
    """Draw the utilisation of each direction of each link.

    Args:
        network: The network.
        links: Utilisation by direction, as `S0->S4`; hatched where it is None or missing.
        name: Of the files.
        heading: Text above the drawing.
        title: What the drawing shows.
    """
    canvas = arrange(network)
    labelled = set() if canvas.is_crowded else labelled_links(network, links, canvas)
    with style():
        figure = new_figure(canvas.width / POINTS_PER_INCH, canvas.height / POINTS_PER_INCH)
        figure.set_layout_engine("none")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, canvas.width)
        axes.set_ylim(0, canvas.height)
        for link in network.links:
            _link(axes, canvas, link.ends, links, link.name in labelled, link.rate_bps)
        for node in network.nodes:
            _node(axes, canvas, node.name, host=node.kind == "host", named=not canvas.is_crowded)
        _scale(axes, canvas)
        axes.text(8, canvas.height - 13, heading, fontsize=9.5, fontweight="bold", va="center")
        return finish(figure, name, title, _caption(network, labelled))


def arrange(network: Network) -> Canvas:
    """Place the nodes on a page in points, both axes to the same scale where that leaves no thin strip."""
    crowd = max(1.0, math.sqrt(len(network.nodes) / 12))
    radius = CROWDED_RADIUS_PT if len(network.nodes) > MOST_NAMES else 11.0 / crowd
    margin = radius + 14
    width = min(WIDTH_IN * POINTS_PER_INCH * math.sqrt(crowd), 900.0)
    found = positions(network)
    xs, ys = [x for x, _ in found.values()], [y for _, y in found.values()]
    span_x, span_y = max(xs) - min(xs), max(ys) - min(ys)
    inner_width = width - 2 * margin
    ratio = span_y / span_x if span_x else 1.0
    inner_height = 0.0 if span_y == 0 else inner_width * min(max(ratio, 0.25), 1.0)
    scale_x = inner_width / span_x if span_x else 0.0
    scale_y = inner_height / span_y if span_y else 0.0
    left = margin if span_x else width / 2
    places = {
        name: (left + (x - min(xs)) * scale_x, SCALE_PT + margin + (y - min(ys)) * scale_y)
        for name, (x, y) in found.items()
    }
    return Canvas(width, inner_height + 2 * margin + SCALE_PT + TITLE_PT, places, radius)


def labelled_links(network: Network, links: Shares, canvas: Canvas) -> set[str]:
    """Return the names of the links to label: the most used ones of those with room for it."""

    def most_used(ends: tuple[str, str]) -> float:
        both = (links.get(f"{a}->{b}") for a, b in (ends, ends[::-1]))
        return max(found or 0.0 for found in both)

    roomy = [link for link in network.links if canvas.length(*link.ends) >= LABEL_PT + 2 * canvas.radius]
    kept: dict[str, Point] = {}
    for link in sorted(roomy, key=lambda link: most_used(link.ends), reverse=True):
        middle = canvas.middle(*link.ends)
        if len(kept) < MOST_LABELS and all(math.dist(middle, other) >= LABEL_PT for other in kept.values()):
            kept[link.name] = middle
    return set(kept)


def colour_of(utilisation: float) -> Any:
    """Return the colour of a utilisation between 0 and 1 (more than 1 is drawn as 1)."""
    return mpl.colormaps[COLOURS](min(max(utilisation, 0.0), 1.0))


def _link(
    axes: Any,
    canvas: Canvas,
    ends: tuple[str, str],
    links: Shares,
    labelled: bool,
    rate_bps: float,
) -> None:
    for tail, head in (ends, ends[::-1]):
        _direction(axes, canvas, tail, head, links.get(f"{tail}->{head}"), labelled)
    if labelled:
        (ax, ay), (bx, by) = canvas.places[ends[0]], canvas.places[ends[1]]
        axes.text(
            *canvas.middle(*ends),
            units.rate_label(rate_bps),
            rotation=_upright(bx - ax, by - ay),
            fontsize=7.5,
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.8},
            **CENTRED,
        )


def _direction(
    axes: Any, canvas: Canvas, tail: str, head: str, utilisation: float | None, labelled: bool
) -> None:
    """Draw one direction on the right of its way, with an arrow head at its end."""
    (ax, ay), (bx, by) = canvas.places[tail], canvas.places[head]
    length = canvas.length(tail, head)
    if length <= 2 * canvas.radius:
        return
    ux, uy = (bx - ax) / length, (by - ay) / length
    aside = canvas.line
    right = (uy, -ux)
    start = (ax + ux * canvas.radius + right[0] * aside, ay + uy * canvas.radius + right[1] * aside)
    reach = length - 2 * canvas.radius - 1
    fill: dict[str, Any] = {"facecolor": FAINT, "hatch": "////"}
    if utilisation is not None:
        fill = {"facecolor": colour_of(utilisation)}
    arrow = FancyArrow(
        *start, ux * reach, uy * reach, width=canvas.line, length_includes_head=True,
        head_width=canvas.line * 1.9, head_length=min(canvas.line * 2, reach / 2),
        linewidth=canvas.line * 0.15, edgecolor=INK, zorder=2 + (utilisation or 0.0) * 0.5, **fill,
    )  # fmt: skip
    axes.add_patch(arrow)
    if not labelled:
        return
    text = units.MISSING if utilisation is None else f"{units.percent(utilisation, 0)} %"
    beside = aside + canvas.line + 6
    x, y = canvas.middle(tail, head)
    axes.text(
        x + right[0] * beside, y + right[1] * beside, text, rotation=_upright(ux, uy), fontsize=8, **CENTRED
    )


def _upright(dx: float, dy: float) -> float:
    """Return the angle of a line in degrees, turned so that text along it is never upside down."""
    angle = math.degrees(math.atan2(dy, dx))
    return angle - 180 if angle > 90 else angle + 180 if angle <= -90 else angle


def _node(axes: Any, canvas: Canvas, name: str, *, host: bool, named: bool) -> None:
    x, y = canvas.places[name]
    r = canvas.radius
    outline = 0.5 if canvas.is_crowded else 1.0
    look: dict[str, Any] = {"facecolor": PAPER, "edgecolor": INK, "linewidth": outline, "zorder": 3}
    axes.add_patch(Rectangle((x - r, y - r), 2 * r, 2 * r, **look) if host else Circle((x, y), r, **look))
    if named:
        size = min(8.0, max(4.0, 3.4 * r / max(2, len(name))))
        axes.text(x, y, name, ha="center", va="center", fontsize=size, zorder=5, fontweight="bold")


def _scale(axes: Any, canvas: Canvas) -> None:
    """Draw the colour scale as steps of 5 %, below the network."""
    steps, width, height = 20, 200.0, 8.0
    left, bottom = (canvas.width - width) / 2, 20.0
    for step in range(steps):
        colour = colour_of((step + 0.5) / steps)
        place = (left + step * width / steps, bottom)
        axes.add_patch(
            Rectangle(place, width / steps, height, facecolor=colour, edgecolor=colour, linewidth=0.3)
        )
    axes.add_patch(Rectangle((left, bottom), width, height, fill=False, edgecolor=INK, linewidth=0.6))
    for share in (0, 25, 50, 75, 100):
        axes.text(
            left + width * share / 100,
            bottom - 5,
            f"{share} %",
            ha="center",
            va="top",
            fontsize=7.5,
            color=MUTED,
        )


def _caption(network: Network, labelled: set[str]) -> str:
    if len(network.nodes) > MOST_NAMES:
        return "Each line is one direction of a link, on the right of its way; the table has the numbers."
    text = (
        "Beside each line the utilisation of that direction (on the right of its way), on the link its rate."
    )
    if len(labelled) < len(network.links):
        text += f" {len(labelled)} of {len(network.links)} links have room for labels; the table has all."
    return text
