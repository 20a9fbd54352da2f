"""Events that clients are notified of: flows, refusals, changes of the topology file."""

from __future__ import annotations

from controller.errors import AnyFailure, RequestError, Unavailable
from controller.install.outbox import Outbox
from controller.model.client_events import ClientEventKind
from controller.state.flow import Flow
from topologies.model import Network


def flow_fields(flow: Flow) -> dict[str, object]:
    """Return a flow's owner, ends, rates (bit/s of goodput) and paths as the fields of an event."""
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
    """Answer a request with an error and return that error; the solver's are reported as `Unavailable`."""
    if not isinstance(error, RequestError):
        outbox.report("error", f"a request failed: {error}")
        error = Unavailable("", f"the routes could not be computed: {error}")
    outbox.answer(token, error)
    return error


def notify_refused(outbox: Outbox, source: str, destination: str, error: RequestError, owner: str) -> None:
    """Notify clients that a request for a flow was refused, and why."""
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
    """Notify clients of the switches, hosts and links that the topology file has gained and lost."""
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
