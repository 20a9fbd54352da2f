"""Requests for flows in the paper's butterfly that many tests make, as JSON has them."""

from __future__ import annotations

from typing import Any

FIRST: dict[str, Any] = {
    "source": "T0",
    "destination": "T2",
    "destination_port": 5001,
    "rate_bps": 8.5e6,
    "packet_bytes": 590,
}
"""The first flow of the paper's scenarios, which takes two paths."""

WITH_PORTS = FIRST | {"source_ports": [40001, 40002]}

OF_CLIENT: dict[str, Any] = {
    "source": "T0",
    "destination": "T2",
    "destination_port": 5001,
    "source_ports": [40001],
    "rate_bps": 1e6,
}
"""What the end-host library asks for over one path."""
