"""The sources of a host: `python -m experiments.apps.source CONFIG`.

Each flow has a connection of its own; all share one session with the controller. What a flow writes and when,
its workload decides; each write is stamped with CLOCK_MONOTONIC and its offset in the stream.

| from the engine | to the engine |
|---|---|
| {"order": "connect", "flow": ...}, perhaps with "source_ports" | {"event": "connected", ...} |
| {"order": "start", "flows": {flow: {"start_ns": ..., "stop_ns": ...,
  "rate_bps": to keep to, or null}}} | |
| | {"event": "sampled", "flow": ..., "time_ns": ..., "streams": [bytes carried, ...],
  "subflows": {port: bytes carried}} now and then |
| | {"event": "done", "flows": {flow: ...}} when the sinks have all |
| | {"event": "failed", "reason": ...} when something went wrong |
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import mstcp
from experiments.apps import carried, kernel_mptcp
from experiments.apps.config import SourceConfig, load_sources
from experiments.apps.pattern import Pattern
from experiments.apps.process import emit, emit_if_there_is_room, order, run, selector_for
from experiments.apps.writing import BacklogSource, Source, TickSource
from experiments.errors import reason_of
from mstcp.control import ControllerClient
from mstcp.transport import SCHEDULER

STREAMS_S = 0.25
"""How long all streams are waited for once the first is open."""


async def main(configs: list[SourceConfig]) -> None:
    """Connect as told, send from start to stop, and see that the peers have read everything."""
    by_name = {config.flow: config for config in configs}
    pattern = Pattern(configs[0].run_seed)
    sources: dict[str, Source] = {}
    async with AsyncExitStack() as stack:
        controllers = {
            address: await stack.enter_async_context(ControllerClient(address))
            for address in {config.connection.controller for config in configs}
            if address is not None
        }
        while (told := await order())["order"] == "connect":
            config = by_name[told["flow"]]
            _, writer = await _connect(config, told.get("source_ports", []), controllers)
            kind = TickSource if config.workload.writes == "ticks" else BacklogSource
            source = sources[config.flow] = kind(config, writer, pattern, _subflows(config, writer))
            source.on_sample = partial(emit_if_there_is_room, "sampled", flow=config.flow)
            emit("connected", **source.describe())
        reports = await asyncio.gather(
            *(_send(source, told["flows"][name], by_name[name]) for name, source in sources.items())
        )
    emit("done", flows=dict(zip(sources, reports, strict=True)))


def _subflows(config: SourceConfig, writer: Any) -> Callable[[], Mapping[int, int]] | None:
    """Return what reads the bytes that a connection's subflows have carried; None where it has none."""
    if config.connection.kernel != "mptcp":
        return None
    return partial(carried.by_port, writer.get_extra_info("socket"))


async def _send(source: Source, times: dict[str, Any], config: SourceConfig) -> dict[str, Any]:
    """Send one flow to its end; returns what is to be reported."""
    try:
        source.begin(times["start_ns"], times["stop_ns"], times["rate_bps"])
        await source.finished()
        drained = await source.drained(config.drain_s)
        await source.close(drained)
    except Exception as error:
        raise RuntimeError(f"flow {config.flow}: {reason_of(error)}") from error
    source.save(config.log)
    return {**source.report(), "drained": drained}


async def _connect(
    config: SourceConfig, source_ports: list[int], controllers: Mapping[str, ControllerClient]
) -> tuple[asyncio.StreamReader, Any]:
    if config.connection.kernel == "mptcp":
        payload_bytes = config.packet_bytes - config.overhead_bytes - config.header_bytes
        return await kernel_mptcp.open_connection(
            (config.host, config.port), source_ports, config.sockets, payload_bytes
        )
    options: dict[str, Any] = {
        "packet_bytes": config.packet_bytes,
        "congestion_control": config.sockets.congestion_control,
        "send_buffer_bytes": config.sockets.send_buffer_bytes,
        "receive_buffer_bytes": config.sockets.receive_buffer_bytes,
        "seed": config.seed,
    }
    connection = config.connection
    if connection.controller is None:
        streams = [mstcp.StreamSpec(source_port=port) for port in source_ports or [0]]
        # Whatever the protocol, the flow begins when its streams are there.
        return await mstcp.open_connection(
            config.host, config.port, streams=streams, join_timeout=STREAMS_S, **options
        )
    from mstcp.allocation import RequestedPath

    paths = [RequestedPath(path.nodes, path.rate_bps) for path in connection.paths]
    return await mstcp.open_connection(
        config.host,
        config.port,
        rate=config.rate_bps,
        controller=controllers[connection.controller],
        objective=connection.objective,
        paths=paths or None,
        scheduler=connection.scheduler or SCHEDULER,
        **options,
    )


def serve(config: Path) -> int:
    """Be the source that a file describes, to its end, and return the exit status."""
    told = load_sources(config)
    return run(lambda: main(told), selector_for(told[0].timing, 0))


if __name__ == "__main__":
    sys.exit(serve(Path(sys.argv[1])))
