"""What clients are told of flows, as fields."""

from __future__ import annotations

from controller.errors import AnyFailure, RequestError, Unavailable
from controller.install.outbox import Outbox
from controller.model.client_events import ClientEventKind
from controller.state.flow import Flow
from topologies.model import Network


def flow_fields(flow: Flow) -> dict[str, object]:
    """Return whose a flow is, from where to where it leads, its rates and paths."""
    return {
        "flow": flow.id,
        "owner": flow.belongs_to or None,
        "source": flow.source.name,
        "destination": flow.destination.name,
        "requested_bps": flow.requested_bps,
        "rate_bps": flow.rate_bps,
        "paths": [list(stream.path) for stream in flow.streams],
        "rates_bps": [stream.rate_bps for stream in flow.streams],
    }


def refuse(outbox: Outbox, token: int, error: AnyFailure) -> RequestError:
    """Answer a client that it does not get what it asked for; returns what it is told."""
    if not isinstance(error, RequestError):
        outbox.report("error", f"a request failed: {error}")
        error = Unavailable("", f"the routes could not be computed: {error}")
    outbox.answer(token, error)
    return error


def notify_refused(outbox: Outbox, source: str, destination: str, error: RequestError, owner: str) -> None:
    """Tell that a request for a flow was refused, and why."""
    facts = {
        "source": source,
        "destination": destination,
        "owner": owner or None,
        "code": error.code.value,
        "field": error.field,
        "reason": error.reason,
    }
    text = f"a flow from {source} to {destination} is refused: {error}"
    outbox.tell(ClientEventKind.FLOW_REFUSED, text, facts)


def notify_topology_changed(outbox: Outbox, before: Network, after: Network) -> None:
    """Tell which switches, hosts and links the topology file has and had not, or has no more."""
    links = {link.name for link in before.links}, {link.name for link in after.links}
    parts = (
        ("switches", set(before.switches), set(after.switches)),
        ("hosts", set(before.hosts), set(after.hosts)),
        ("links", *links),
    )
    facts: dict[str, object] = {}
    for name, had, has in parts:
        facts |= {f"{name}_added": sorted(has - had), f"{name}_removed": sorted(had - has)}
    counts = [f"{len(has - had)} {name} came and {len(had - has)} went" for name, had, has in parts]
    outbox.tell(
        ClientEventKind.TOPOLOGY_CHANGED, f"the topology file has changed: {'; '.join(counts)}", facts
    )
