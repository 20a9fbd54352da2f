"""Names on maps: none lies over another, over a node or outside the page."""

from __future__ import annotations

import random

import numpy as np
import pytest

import topologies
from experiments.report.map_labels import are_crossed, are_within, around, distance, overlap, place_names
from experiments.report.plot_topology import arrange, draw_network, labelled_links, names_beside
from topologies import Link, Network, Node

ABILENE = {
    "New_York": (-74.0, 40.7), "Chicago": (-87.7, 41.9), "Washington_DC": (-77.0, 38.9),
    "Seattle": (-122.3, 47.6), "Sunnyvale": (-122.0, 37.4), "Los_Angeles": (-118.2, 34.1),
    "Denver": (-105.0, 39.7), "Kansas_City": (-94.6, 39.1), "Houston": (-95.4, 29.8),
    "Atlanta": (-84.4, 33.7), "Indianapolis": (-86.2, 39.8),
}  # fmt: skip
LINKS = (
    ("New_York", "Chicago"), ("New_York", "Washington_DC"), ("Chicago", "Indianapolis"),
    ("Washington_DC", "Atlanta"), ("Seattle", "Sunnyvale"), ("Seattle", "Denver"),
    ("Sunnyvale", "Los_Angeles"), ("Sunnyvale", "Denver"), ("Los_Angeles", "Houston"),
    ("Denver", "Kansas_City"), ("Kansas_City", "Houston"), ("Kansas_City", "Indianapolis"),
    ("Houston", "Atlanta"), ("Atlanta", "Indianapolis"),
)  # fmt: skip


@pytest.fixture
def abilene() -> Network:
    return Network(
        name="Abilene",
        nodes=tuple(Node(name=name, kind="switch", x=x, y=y) for name, (x, y) in ABILENE.items()),
        links=tuple(Link(ends=ends, rate_bps=1e9, delay_us=1000) for ends in LINKS),
    )


def test_every_name_of_a_network_of_eleven_cities_stands_free_beside_its_node(abilene: Network) -> None:
    canvas = arrange(abilene)
    assert not canvas.names_inside
    placed = names_beside(abilene, {}, canvas, set())
    assert set(placed) == set(ABILENE)
    boxes, places = np.array(list(placed.values())), np.array([canvas.places[name] for name in placed])
    assert are_within(boxes, np.array([0, 0, canvas.width, canvas.height])).all()
    assert not overlap(boxes[:, None], around(places, canvas.radius)).any()
    nearest = distance(boxes[:, None], places).argmin(-1)
    assert list(nearest) == list(range(len(places)))
    assert overlap(boxes[:, None], boxes).sum() == len(boxes), "over themselves alone"


def test_a_link_that_another_passes_closely_has_no_label(abilene: Network) -> None:
    canvas = arrange(abilene)
    labelled = labelled_links(abilene, {}, canvas)
    assert "New_York-Washington_DC" not in labelled
    assert len(labelled) >= 11


def test_a_crowd_has_as_many_names_as_there_is_room_for() -> None:
    rng = random.Random(1)
    places = {f"n{i}": (rng.uniform(0, 400), rng.uniform(0, 300)) for i in range(300)}
    page = (0, 0, 400, 300)
    placed = place_names(list(places), places, [], page, lambda name: (20.0, 8.0), radius=2.0, rings=2)
    assert 50 < len(placed) < 300
    boxes = np.array(list(placed.values()))
    assert overlap(boxes[:, None], boxes).sum() == len(boxes), "over themselves alone"
    assert next(iter(placed)) == "n0"
    assert not overlap(boxes[:, None], around(list(places.values()), 2.0)).any()


def test_short_names_stand_within_their_nodes() -> None:
    assert arrange(topologies.load("butterfly")).names_inside


def test_the_mouse_shows_what_there_is_no_room_for(abilene: Network) -> None:
    plot = draw_network(abilene, {"Chicago->Indianapolis": 0.5}, name="x", heading="x", title="x")
    assert "<title>Chicago to Indianapolis: 50.0 % used</title>" in plot.svg
    assert "<title>New_York</title>" in plot.svg


def test_a_box_knows_what_crosses_it() -> None:
    box = np.array([0.0, 0.0, 2.0, 1.0])
    through = [[(-1, -1), (3, 2)], [(1, -5), (1, 5)]]
    past = [[(-1, 2), (3, 2)], [(3, 0), (5, 1)]]
    assert list(are_crossed(box, np.array(through + past, dtype=float))) == [True, True, False, False]
    assert distance(box, np.array([5.0, 5.0])) == 5.0
