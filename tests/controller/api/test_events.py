"""What clients are told of: kinds, ids, resuming, lost history."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from controller.api.event_history import EventHistory, HistoryLost
from controller.model.client_events import ClientEvent, ClientEventKind
from controller.model.event_log import EventLog
from controller.model.events import PortCameUp, PortWentDown, SwitchDisconnected
from controller.model.messages import Report
from controller.model.records import RecordChange
from tests.fakes.requests import FIRST as REQUEST
from tests.fakes.served_controller import Controller


async def told(client: httpx.AsyncClient, last_id: str = "", history: int = 10_000) -> list[dict[str, Any]]:
    """Return the events that a stream has, with their ids; the stream ends by itself."""
    headers = {"Last-Event-ID": last_id} if last_id else {}
    answer = await client.get("/v1/events", params={"history": history}, headers=headers)
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = []
    for block in answer.text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "data" in fields:
            data = json.loads(fields["data"])
            assert data["kind"] == fields["event"]
            events.append(data | {"id": fields.get("id")})
    return events


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["kind"] for event in events]


async def test_the_life_of_a_flow_is_told(client: httpx.AsyncClient) -> None:
    await client.get("/v1/health")
    (last,) = (await told(client, history=1))[-1:]
    where = (await client.post("/v1/flows", json=REQUEST)).headers["Location"]
    await client.patch(where, json={"rate_bps": 1e6})
    await client.post("/v1/flows", json=REQUEST | {"streams": 9})
    await client.delete(where)
    events = await told(client, last["id"])
    assert kinds(events) == ["flow_granted", "flow_changed", "flow_refused", "flow_released"]
    granted, _, refused, _ = events
    assert granted["data"]["flow"] == where.rpartition("/")[2]
    assert granted["data"]["rate_bps"] == 8.5e6
    assert (refused["data"]["code"], refused["data"]["field"]) == ("INFEASIBLE", "streams")
    assert refused["data"]["reason"] in refused["text"]


async def test_a_lost_link_and_how_long_recovery_took(
    client: httpx.AsyncClient, controller: Controller
) -> None:
    # Two links lead to T2's switch: with one down, 5 of 8.5 Mbit/s are left.
    await client.get("/v1/health")
    await client.post("/v1/flows", json=REQUEST)
    (last,) = await told(client, history=1)
    ports = controller.core._state.live.ports
    down = PortWentDown(4, ports["S3", "S4"])
    controller.loop.post(down)
    await client.get("/v1/health")
    events = await told(client, last["id"])
    assert kinds(events)[:2] == ["port_down", "link_down"]
    assert (events[0]["data"]["switch"], events[1]["data"]["link"]) == ("S3", "S3-S4")
    (replanned,) = [event for event in events if event["kind"] == "flow_replanned"]
    (degraded,) = [event for event in events if event["kind"] == "flow_degraded"]
    assert 0 <= replanned["data"]["recovery_s"] < 30
    assert degraded["data"]["rate_bps"] < 5e6 < degraded["data"]["had_bps"]
    controller.loop.post(PortCameUp(4, ports["S3", "S4"]))
    for event in controller.switches.discoveries():
        controller.loop.post(event)
    for _ in range(200):
        events = await told(client, last["id"])
        if "flow_restored" in kinds(events):
            break
    restored = events[kinds(events).index("flow_restored")]
    assert restored["data"]["rate_bps"] == pytest.approx(8.5e6)
    assert restored["data"]["recovery_s"] >= replanned["data"]["recovery_s"]
    assert events[kinds(events).index("link_up")]["data"]["down_s"] > 0


async def test_a_switch_that_goes_is_told_once(client: httpx.AsyncClient, controller: Controller) -> None:
    await client.get("/v1/health")
    (last,) = await told(client, history=1)
    controller.loop.post(SwitchDisconnected(3))
    await client.get("/v1/health")
    assert kinds(await told(client, last["id"])) == ["switch_down"]


async def test_who_resumes_after_an_answer_misses_nothing(client: httpx.AsyncClient) -> None:
    await client.get("/v1/health")
    for path in ("/v1/flows", "/v1/links", "/v1/switches"):
        seen = (await client.get(path)).headers["Last-Event-ID"]
        assert await told(client, seen) == []
        await client.post("/v1/flows", json=REQUEST | {"streams": 9})
        assert kinds(await told(client, seen)) == ["flow_refused"]


def event(number: int) -> ClientEvent:
    return ClientEvent(number, "link_up", 0.0, f"event {number}", {})


async def test_history_that_is_lost_is_said(client: httpx.AsyncClient, controller: Controller) -> None:
    controller.loop.stop()  # so that nothing else happens
    await asyncio.sleep(0)
    controller.service.history = EventHistory("boot", capacity=5)
    for number in range(1, 13):
        controller.service.history.append(event(number))
    events = await told(client, "boot-3")
    assert events[0]["kind"] == "history_lost"
    assert events[0]["missed"] == 4
    assert [event["id"] for event in events[1:]] == [f"boot-{number}" for number in range(8, 13)]
    assert [event["id"] for event in await told(client, "boot-10")] == ["boot-11", "boot-12"]
    for stranger in ("other-3", "boot", "boot-x", "-", "boot--1"):
        events = await told(client, stranger)
        assert (events[0]["kind"], events[0]["missed"]) == ("history_lost", None)
        assert len(events) == 6


async def test_a_follower_that_is_slow_loses_history_and_costs_no_memory() -> None:
    history = EventHistory("boot", capacity=100)
    follower = history.follow(None)
    first = asyncio.ensure_future(anext(follower))
    await asyncio.sleep(0)
    for number in range(1, 10_001):
        history.append(event(number))
    assert await first == HistoryLost(9900)
    following = await anext(follower)
    assert isinstance(following, ClientEvent)
    assert following.number == 9901
    assert len(history._events) == 100
    history.close()
    assert len([event async for event in follower]) == 99


async def test_followers_hear_at_once() -> None:
    history = EventHistory("boot")
    followers = [asyncio.ensure_future(anext(history.follow(None))) for _ in range(5)]
    await asyncio.sleep(0)
    history.append(event(1))
    assert await asyncio.gather(*followers) == [event(1)] * 5


async def test_events_are_told_once_whichever_way_they_come() -> None:
    history = EventHistory("boot")
    for number in (7, 8, 8, 7, 9):  # of a log whose first events are gone; some come twice
        history.append(event(number))
    for last_id, after in (("boot-7", [8, 9]), ("boot-9", []), ("boot-12", [])):
        seen = [each async for each in history.follow(last_id, until_s=0.01)]
        assert seen == [event(number) for number in after], "one that has not come yet is waited for"
    lost = [each async for each in history.follow("boot-3", until_s=0.01)]
    assert lost[0] == HistoryLost(3) and len(lost) == 4


def test_the_log_keeps_the_last_events_with_their_numbers() -> None:
    log, kept = EventLog(), dict[str, RecordChange]()
    follower, heard = EventLog(), list[ClientEvent]()
    for turn in range(700):
        reports = [Report("info", f"{turn}.{k}", {"k": k}, ClientEventKind.LINK_UP) for k in range(turn % 7)]
        told = log.numbered([Report("info", "no event"), *reports, Report("info", "no event")], 1.5)
        changes = json.loads(json.dumps([vars(each) for each in log.records(told)]))
        log.took(told)
        records = [RecordChange(**each) for each in changes]
        heard += follower.follow([*records, *records])
        kept |= {each.key: each for each in records}
    assert [each.number for each in heard] == list(range(1, 2101)), "each once, in order"
    restored = EventLog().follow(sorted(kept.values(), key=lambda each: (each.value or {})["number"]))
    tail = [each for each in restored if each.number > 2100 - 900]
    assert tail == heard[-900:], "a slot that was taken again leaves no gap in the last ones"
