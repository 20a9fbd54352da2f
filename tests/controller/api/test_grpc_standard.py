"""gRPC's standard services, who changed what, and the place in the events that answers carry."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import httpx
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

import topologies
from tests.fakes.controller_command import controlled
from tests.fakes.waiting import TIMEOUT_S

BUTTERFLY = topologies.load("butterfly")
SERVING, NOT_SERVING = 1, 2
REQUEST: dict[str, Any] = {
    "source": "T0",
    "destination": "T2",
    "destination_port": 5001,
    "rate_bps": 1e6,
    "packet_bytes": 590,
}


async def test_health_and_reflection_are_as_tools_expect(tmp_path: Path) -> None:
    async with controlled(BUTTERFLY, tmp_path) as (running, fleet):
        async with grpc.aio.insecure_channel(running.grpc) as channel:
            health = health_pb2_grpc.HealthStub(channel)

            async def status(name: str) -> int:
                request = health_pb2.HealthCheckRequest(service=name)
                return int((await health.Check(request, timeout=TIMEOUT_S)).status)

            assert [await status(name) for name in ("", "readiness")] == [SERVING, SERVING]
            with pytest.raises(grpc.aio.AioRpcError, match="there is no service 'another' here"):
                await status("another")
            fleet.set_port("S0", 2, up=False)
            while await status("readiness") == SERVING:
                await asyncio.sleep(0.02)
            assert await status("") == SERVING
            listed = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(
                iter([reflection_pb2.ServerReflectionRequest(list_services="")])
            )
            names = {s.name async for answer in listed for s in answer.list_services_response.service}
            for name in names - {"grpc.reflection.v1alpha.ServerReflection", "grpc.health.v1.Health"}:
                assert await status(name) == SERVING
            assert len(names) == 4


async def test_who_changed_what_is_told_and_answers_name_the_last_event(tmp_path: Path) -> None:
    async with controlled(BUTTERFLY, tmp_path) as (running, _):
        async with httpx.AsyncClient(base_url=f"http://{running.rest}", timeout=TIMEOUT_S) as client:
            key = {"Idempotency-Key": "one"}
            made = await client.post("/v1/flows", json=REQUEST, headers=key)
            path = made.headers["Location"]
            answers = [
                made,
                await client.get(path),
                await client.patch(path, json={"rate_bps": 2e6}),
                await client.post(f"{path}/renew"),
                await client.get("/v1/links/S0-S4"),
                await client.patch("/v1/links/S0-S4", json={"rate_bps": 5e6}),
                await client.delete(path),
            ]
            assert [answer.is_success for answer in answers] == [True] * 7
            places = [int(answer.headers["Last-Event-ID"].partition("-")[2]) for answer in answers]
            assert places == sorted(places)
            again = await client.post("/v1/flows", json=REQUEST, headers=key)
            assert again.headers["Last-Event-ID"] == made.headers["Last-Event-ID"], "as it was then"
            told = {}
            async with client.stream("GET", "/v1/events", params={"history": 100}) as events:
                kind = ""
                async for line in events.aiter_lines():
                    if line.startswith("event: "):
                        kind = line[7:]
                    elif line.startswith("data: "):
                        told[kind] = line
                    if kind == "flow_released" and line.startswith("data: "):
                        break
            for kind in ("flow_changed", "link_changed", "flow_released"):
                assert '"by_address":"127.0.0.1"' in told[kind].replace(" ", ""), told[kind]
    assert "link S0-S4 was changed by a client at 127.0.0.1" in (tmp_path / "controller.log").read_text()
