"""REST: what happens, as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timezone
from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent

from controller.api.event_history import HISTORY_LOST, EventHistory, HistoryLost
from controller.api.problems import problem_responses
from controller.api.rest_common import Reader, TheApi
from controller.model.client_events import ClientEvent, ClientEventKind

router = APIRouter(tags=["events"])

_RETRY_MS = 1000

_DESCRIPTION = f"""Follow what happens as server-sent events: `id`, `event` (the kind) and `data`, a JSON
object `{{"kind", "time", "time_s", "text", "data"}}`.

Who sends `Last-Event-ID` (browsers do so by themselves) gets what happened since, from any replica and after
a restart. Only the last events are kept: where some that the client has not seen are gone, or the controller
has another store, the first event is `{HISTORY_LOST}` with `missed` (null: unknown), and the client should
look at everything again. Answers of `GET /v1/flows`, `/v1/links` and `/v1/switches` carry `Last-Event-ID`
too: who resumes after it misses nothing.

Kinds: {", ".join(f"`{kind.value}`" for kind in ClientEventKind)}. The `data` of flows has `flow`, `owner`,
`source`, `destination`, rates and paths; of `flow_replanned` and `flow_restored` also `recovery_s`, the
seconds since the link was lost, of `flow_streams_added` and `flow_streams_removed` the `source_ports`.
"""


@router.get(
    "/v1/events",
    response_class=EventSourceResponse,
    description=_DESCRIPTION,
    responses=problem_responses(422),
)
async def events(
    api: TheApi,
    _: Reader,
    header_id: Annotated[
        str | None, Header(alias="Last-Event-ID", max_length=64, description="The last event seen.")
    ] = None,
    query_id: Annotated[
        str | None,
        Query(alias="last_event_id", max_length=64, description="The same, for who cannot send the header."),
    ] = None,
    history: Annotated[
        int, Query(ge=0, le=10_000, description="Past events that come first, where no id is given.")
    ] = 0,
) -> AsyncIterator[ServerSentEvent]:
    """Yield what happens."""
    yield ServerSentEvent(comment="events follow", retry=_RETRY_MS)
    past = api.service.history
    async for event in past.follow(header_id or query_id, history, api.longest_stream_s):
        yield _sent(past, event)


def _sent(history: EventHistory, event: ClientEvent | HistoryLost) -> ServerSentEvent:
    if isinstance(event, HistoryLost):
        text = "events were lost: look at everything again"
        lost = {"kind": HISTORY_LOST, "text": text, "missed": event.missed}
        return ServerSentEvent(event=HISTORY_LOST, data=lost)
    moment = datetime.fromtimestamp(event.time_s, timezone.utc).isoformat(timespec="milliseconds")
    data = {
        "kind": event.kind,
        "time": moment,
        "time_s": event.time_s,
        "text": event.text,
        "data": dict(event.data),
    }
    return ServerSentEvent(event=event.kind, id=history.id_of(event), data=data)
