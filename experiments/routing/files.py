"""The folder that `mstcp-lab solve --out` writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from experiments.errors import OutputError
from experiments.routing.document import Solved, allocation_csv, allocation_document, summary


def to_json(document: dict[str, Any]) -> str:
    """Return a document as text; numbers that JSON does not have are an error."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def write_files(solved: Solved, described: str, folder: Path) -> None:
    """Write summary.json, allocation.json, allocation.csv, network.svg and network.png.

    Raises:
        OutputError: A file cannot be written.
    """
    # Matplotlib takes a second to import, which only those should wait for who get a drawing.
    from experiments.report.plot_topology import draw_network

    loads_bps = solved.loads_bps()
    used = {
        edge.id: loads_bps[edge.id] / edge.capacity_bps
        for edge in solved.problem.edges
        if edge.capacity_bps > 0
    }
    title = f"{solved.network.name}, {described}"
    plot = draw_network(
        solved.network, used, name="network", heading=title, title=f"Link utilisation: {title}"
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "summary.json").write_text(to_json(summary(solved)), encoding="utf-8")
        (folder / "allocation.json").write_text(to_json(allocation_document(solved)), encoding="utf-8")
        (folder / "allocation.csv").write_text(allocation_csv(solved), encoding="utf-8")
        (folder / "network.svg").write_text(plot.svg, encoding="utf-8")
        (folder / "network.png").write_bytes(plot.png)
    except OSError as error:
        raise OutputError(str(folder), error.strerror or str(error)) from None
