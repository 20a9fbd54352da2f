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
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

from experiments import protocols
from experiments.apps.config import SourceConfig, load_sources
from experiments.apps.pattern import Pattern
from experiments.apps.process import emit, emit_if_there_is_room, order, run, selector_for
from experiments.apps.senders import BacklogSource, Source, TickSource
from experiments.apps.transports import SharedClients
from experiments.errors import reason_of


async def main(configs: list[SourceConfig]) -> None:
    """Connect as told, send from start to stop, and see that the peers have read everything."""
    by_name = {config.flow: config for config in configs}
    pattern = Pattern(configs[0].run_seed)
    sources: dict[str, Source] = {}
    async with AsyncExitStack() as stack:
        session = SharedClients(stack)
        while (told := await order())["order"] == "connect":
            config = by_name[told["flow"]]
            protocol = protocols.get(config.protocol)
            transport = await protocol.client(config, told.get("source_ports", []), session)
            kind = TickSource if config.workload.writes == "ticks" else BacklogSource
            source = sources[config.flow] = kind(config, transport, pattern)
            source.on_sample = partial(emit_if_there_is_room, "sampled", flow=config.flow)
            emit("connected", **source.describe())
        reports = await asyncio.gather(
            *(_send(source, told["flows"][name], by_name[name]) for name, source in sources.items())
        )
    emit("done", flows=dict(zip(sources, reports, strict=True)))


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


def serve(config: Path) -> int:
    """Be the source that a file describes, to its end, and return the exit status."""
    told = load_sources(config)
    return run(lambda: main(told), selector_for(told[0].timing, 0))


if __name__ == "__main__":
    sys.exit(serve(Path(sys.argv[1])))
