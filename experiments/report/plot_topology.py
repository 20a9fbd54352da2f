"""Utilisation drawn on the network: two lines for each link, one for each direction."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Circle, FancyArrow, Rectangle
from matplotlib.textpath import text_to_path

from experiments.report import units
from experiments.report.canvas import (
    POINTS_PER_INCH,
    WIDTH_IN,
    Plot,
    file_stem,
    finish,
    new_figure,
    plot_context,
)
from experiments.report.map_labels import Array, Point, are_crossed, around, place_names
from experiments.report.palette import FAINT, INK, MUTED, PAPER
from experiments.report.summary import CaseSummary, summarise_links
from topologies import Link, Network, positions

COLOURS = "cividis"
MAX_LABELS = 40
MAX_NAMES = 60
CROWDED_RADIUS_PT = 2.2
CROWDED_WIDTH_PT = 1600.0
BESIDE_RADIUS_PT = 5.0
"""Of nodes whose names stand beside them."""
MIN_INSIDE_PT = 5.5
"""Names that would have to be smaller within their node stand beside it."""
BESIDE_PT = 8.5
CROWDED_PT = 6.5
MAX_SIDE_PT = 80.0
TEXT_ROOM = 1.1
"""Factor on a text's measured width: the reader's font may be wider."""
CROWDED_LINE_PT = 1.5
LABEL_PT = 26.0
"""Length of line, and distance to the next label, that a label takes."""
LABEL_ASIDE_PT = 6.0
"""Distance of a direction's label from its line."""
SCALE_PT = 46.0
"""Room below the drawing for the colour scale."""
TITLE_PT = 18.0
CENTRED: dict[str, Any] = {"ha": "center", "va": "center", "rotation_mode": "anchor", "zorder": 4}

Shares = Mapping[str, float | None]
"""Utilisation by direction of a link."""


@dataclass(frozen=True)
class Canvas:
    """A drawing in points: its size, the places of the nodes and their radius."""

    width: float
    height: float
    places: dict[str, Point]
    radius: float
    names_inside: bool = True

    @property
    def is_crowded(self) -> bool:
        """Whether there are too many nodes for text, so that colours alone speak."""
        return len(self.places) > MAX_NAMES

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


def plot_topology(case: CaseSummary, protocol: str, network: Network) -> Plot:
    """Draw the mean utilisation of each direction of each link, of one protocol in one case."""
    links = {link.link: link.utilisation for link in summarise_links(case.usable(protocol))}
    title = f"Link utilisation with {protocol}, case {case.name}"
    name = file_stem("links", case.name, protocol)
    return draw_network(network, links, name=name, heading=protocol, title=title)


def draw_network(
    network: Network,
    links: Shares,
    *,
    name: str,
    heading: str,
    title: str,
    full_scale: float = 1.0,
    nodes: Mapping[str, float] | None = None,
    caption: str | None = None,
) -> Plot:
    """Draw the utilisation of each direction of each link, as `S0->S4`; hatched where it is None or missing.

    `full_scale` is the share that the last colour stands for. With `nodes` these have colours too. The
    caption says what the shares are, if not utilisation.
    """
    canvas = arrange(network)
    labelled = set() if canvas.is_crowded else labelled_links(network, links, canvas)
    beside = {} if canvas.names_inside else names_beside(network, links, canvas, labelled)
    with plot_context():
        figure = new_figure(canvas.width / POINTS_PER_INCH, canvas.height / POINTS_PER_INCH)
        figure.set_layout_engine("none")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, canvas.width)
        axes.set_ylim(0, canvas.height)
        for link in network.links:
            has_label = link.name in labelled
            _link(axes, canvas, link, links, has_label, full_scale)
        for node in network.nodes:
            share = (nodes or {}).get(node.name)
            fill = PAPER if share is None else colour_of(share / full_scale)
            _node(axes, canvas, node.name, fill, host=node.kind == "host")
        for node_name, (left, bottom, right, top) in beside.items():
            size = CROWDED_PT if canvas.is_crowded else BESIDE_PT
            axes.text(
                (left + right) / 2, (bottom + top) / 2, node_name,
                fontsize=size, zorder=5, ha="center", va="center",
                bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.3, "alpha": 0.75},
            )  # fmt: skip
        _scale(axes, canvas, full_scale)
        axes.text(8, canvas.height - 13, heading, fontsize=9.5, fontweight="bold", va="center")
        named = len(network.nodes) if canvas.names_inside else len(beside)
        plot = finish(figure, name, title, caption or _caption(network, labelled, named))
    plot = replace(plot, svg=with_tooltips(plot.svg, _tooltips(network, links)))
    return (
        replace(plot, min_width_px=round(canvas.width / POINTS_PER_INCH * 96)) if canvas.is_crowded else plot
    )


def arrange(network: Network) -> Canvas:
    """Place the nodes on a page in points, both axes to the same scale where that leaves no thin strip."""
    crowd = max(1.0, math.sqrt(len(network.nodes) / 12))
    is_crowded = len(network.nodes) > MAX_NAMES
    radius = CROWDED_RADIUS_PT if is_crowded else 11.0 / crowd
    longest = max(len(node.name) for node in network.nodes)
    inside = not is_crowded and _size_inside(radius, longest) >= MIN_INSIDE_PT
    width = min(WIDTH_IN * POINTS_PER_INCH * math.sqrt(crowd), 900.0)
    if is_crowded:
        width = CROWDED_WIDTH_PT
    elif not inside:
        radius, width = min(radius, BESIDE_RADIUS_PT), width * 2
    margin = radius + 14
    # Names beside the nodes at the edge need their room; a few long ones can go elsewhere.
    side = margin if inside else radius + min(14 + text_size("n" * longest, BESIDE_PT)[0], MAX_SIDE_PT)
    coordinates = positions(network)
    xs, ys = [x for x, _ in coordinates.values()], [y for _, y in coordinates.values()]
    span_x, span_y = max(xs) - min(xs), max(ys) - min(ys)
    inner_width = width - 2 * side
    ratio = span_y / span_x if span_x else 1.0
    inner_height = 0.0 if span_y == 0 else inner_width * min(max(ratio, 0.25), 1.0)
    scale_x = inner_width / span_x if span_x else 0.0
    scale_y = inner_height / span_y if span_y else 0.0
    left = side if span_x else width / 2
    places = {
        name: (left + (x - min(xs)) * scale_x, SCALE_PT + margin + (y - min(ys)) * scale_y)
        for name, (x, y) in coordinates.items()
    }
    return Canvas(width, inner_height + 2 * margin + SCALE_PT + TITLE_PT, places, radius, inside)


def names_beside(network: Network, links: Shares, canvas: Canvas, labelled: set[str]) -> dict[str, Array]:
    """Return the boxes of names beside their nodes: of a crowd the ends of the busiest links first."""
    busy: dict[str, float] = dict.fromkeys(canvas.places, 0.0)
    for link in network.links:
        used = max(links.get(f"{a}->{b}") or 0.0 for a, b in (link.ends, link.ends[::-1]))
        for end in link.ends:
            busy[end] += used
    size = CROWDED_PT if canvas.is_crowded else BESIDE_PT
    return place_names(
        sorted(busy, key=lambda name: (-busy[name], name)),
        canvas.places,
        [(canvas.places[a], canvas.places[b]) for a, b in (link.ends for link in network.links)],
        (2, SCALE_PT, canvas.width - 2, canvas.height - TITLE_PT - 4),
        lambda name: text_size(name, size),
        radius=canvas.radius + canvas.line,
        taken=[
            around(place, LABEL_PT * 0.42)
            for link in network.links
            if link.name in labelled
            for place in _label_places(canvas, link.ends)
        ],
        rings=2 if canvas.is_crowded else 12,
    )


def _label_places(canvas: Canvas, ends: tuple[str, str]) -> list[Point]:
    """Return where the labels of a link stand: its rate in the middle, its use on both sides."""
    (ax, ay), (bx, by) = (canvas.places[end] for end in ends)
    x, y = canvas.middle(*ends)
    aside = (2 * canvas.line + LABEL_ASIDE_PT) / canvas.length(*ends)
    dx, dy = (by - ay) * aside, (ax - bx) * aside
    return [(x, y), (x + dx, y + dy), (x - dx, y - dy)]


def text_size(text: str, size_pt: float) -> tuple[float, float]:
    """Return the width and height of a text in points, with room for other fonts."""
    font = FontProperties(size=size_pt)
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width) * TEXT_ROOM + 1.0, size_pt * 1.15


def with_tooltips(svg: str, texts: Mapping[str, str]) -> str:
    """Return a drawing whose groups show a text under the mouse, by the groups' ids."""

    def titled(match: re.Match[str]) -> str:
        text = texts.get(html.unescape(match[1]))
        return match[0] if text is None else f"{match[0]}<title>{html.escape(text)}</title>"

    return re.sub(r'<g id="([^"]*)">', titled, svg)


def _tooltips(network: Network, links: Shares) -> dict[str, str]:
    texts = {f"node {node.name}": node.name for node in network.nodes}
    for link in network.links:
        for tail, head in (link.ends, link.ends[::-1]):
            share = links.get(f"{tail}->{head}")
            used = units.MISSING if share is None else f"{units.percent(share, 1)} %"
            texts[f"link {tail}->{head}"] = f"{tail} to {head}: {used} used"
    return texts


def _size_inside(radius: float, letters: int) -> float:
    """Return the largest size in points of a name within its node."""
    return min(8.0, 3.4 * radius / max(2, letters))


def labelled_links(network: Network, links: Shares, canvas: Canvas) -> set[str]:
    """Return the names of the links to label: the most used ones of those with room for it."""

    def most_used(ends: tuple[str, str]) -> float:
        both = (links.get(f"{a}->{b}") for a, b in (ends, ends[::-1]))
        return max(share or 0.0 for share in both)

    roomy = [link for link in network.links if canvas.length(*link.ends) >= LABEL_PT + 2 * canvas.radius]
    kept: dict[str, Point] = {}
    if not canvas.names_inside:
        roomy = [link for link in roomy if not _is_crowded_in(network, link, canvas)]
    for link in sorted(roomy, key=lambda link: most_used(link.ends), reverse=True):
        middle = canvas.middle(*link.ends)
        if len(kept) < MAX_LABELS and all(math.dist(middle, other) >= LABEL_PT for other in kept.values()):
            kept[link.name] = middle
    return set(kept)


def _is_crowded_in(network: Network, link: Link, canvas: Canvas) -> bool:
    """Return whether another link passes where the labels of a link would stand."""
    boxes = around(_label_places(canvas, link.ends), LABEL_PT * 0.3)
    others = [[canvas.places[end] for end in other.ends] for other in network.links if other is not link]
    return bool(are_crossed(boxes[:, None], np.reshape(others, (-1, 2, 2))).any())


def colour_of(utilisation: float) -> Any:
    """Return the colour of a utilisation between 0 and 1 (more than 1 is drawn as 1)."""
    return mpl.colormaps[COLOURS](min(max(utilisation, 0.0), 1.0))


def _link(axes: Any, canvas: Canvas, link: Link, links: Shares, labelled: bool, full_scale: float) -> None:
    ends = link.ends
    for tail, head in [ends] if link.one_way else [ends, ends[::-1]]:
        _direction(axes, canvas, tail, head, links.get(f"{tail}->{head}"), labelled, full_scale)
    if labelled:
        (ax, ay), (bx, by) = canvas.places[ends[0]], canvas.places[ends[1]]
        axes.text(
            *canvas.middle(*ends),
            _rates(link),
            rotation=_upright(bx - ax, by - ay),
            fontsize=7.5,
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.8},
            **CENTRED,
        )


def _direction(
    axes: Any,
    canvas: Canvas,
    tail: str,
    head: str,
    utilisation: float | None,
    labelled: bool,
    full_scale: float,
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
        fill = {"facecolor": colour_of(utilisation / full_scale)}
    arrow = FancyArrow(
        *start, ux * reach, uy * reach, width=canvas.line, length_includes_head=True,
        head_width=canvas.line * 1.9, head_length=min(canvas.line * 2, reach / 2),
        linewidth=canvas.line * 0.15, edgecolor=INK, zorder=2 + (utilisation or 0.0) / full_scale * 0.5,
        gid=f"link {tail}->{head}", **fill,
    )  # fmt: skip
    axes.add_artist(arrow)  # unlike add_patch this leaves the limits alone, which are set
    if not labelled:
        return
    text = units.MISSING if utilisation is None else f"{units.percent(utilisation, 0)} %"
    beside = aside + canvas.line + LABEL_ASIDE_PT
    x, y = canvas.middle(tail, head)
    axes.text(
        x + right[0] * beside, y + right[1] * beside, text, rotation=_upright(ux, uy), fontsize=8, **CENTRED
    )


def _upright(dx: float, dy: float) -> float:
    """Return the angle of a line in degrees, turned so that text along it is never upside down."""
    angle = math.degrees(math.atan2(dy, dx))
    return angle - 180 if angle > 90 else angle + 180 if angle <= -90 else angle


def _rates(link: Link) -> str:
    """Return the rate of a link, or those of its two directions."""
    forth = units.rate_label(link.rate_bps)
    back = units.rate_label(link.reverse_rate_bps or link.rate_bps)
    return forth if forth == back else f"{forth} / {back}"


def _node(axes: Any, canvas: Canvas, name: str, fill: Any, *, host: bool) -> None:
    x, y = canvas.places[name]
    r = canvas.radius
    outline = 0.5 if canvas.is_crowded else 1.0
    look: dict[str, Any] = {
        "facecolor": fill, "edgecolor": INK, "linewidth": outline, "zorder": 3, "gid": f"node {name}"
    }  # fmt: skip
    axes.add_artist(Rectangle((x - r, y - r), 2 * r, 2 * r, **look) if host else Circle((x, y), r, **look))
    if canvas.names_inside:
        size = max(4.0, _size_inside(r, len(name)))
        axes.text(x, y, name, ha="center", va="center", fontsize=size, zorder=5, fontweight="bold")


def _scale(axes: Any, canvas: Canvas, full_scale: float) -> None:
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
            f"{share * full_scale:.3g} %",
            ha="center",
            va="top",
            fontsize=7.5,
            color=MUTED,
        )


def _caption(network: Network, labelled: set[str], named: int) -> str:
    if len(network.nodes) > MAX_NAMES:
        return (
            "Each line is one direction of a link, on the right of its way; the mouse shows its use, and the "
            f"name of every node. {named} of {len(network.nodes)} names have room, the busiest first."
        )
    text = (
        "Beside each line the utilisation of that direction (on the right of its way), on the link its rate."
    )
    if len(labelled) < len(network.links):
        text += f" {len(labelled)} of {len(network.links)} links have room for labels; the table has all."
    return text
