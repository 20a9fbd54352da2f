"""A network of model switches in one asyncio loop, connected to a controller over TCP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping

from switch.model.switch import ModelSwitch

__all__ = ["Fleet"]

_READ_BYTES = 1 << 16
_RECONNECT_S = 0.1
_FULL_BYTES = 1 << 20  # unread by the controller: further frames for it are dropped, as a switch does


class Fleet:
    """Many switches; what one sends out of a port arrives at the other end of the link.

    Args:
        switches: By name.
        links: Where each (switch, port) leads; both directions.
        controller: Address of the controller.
        reconnect: Whether a switch that lost its connection tries again.
    """

    def __init__(
        self,
        switches: Mapping[str, ModelSwitch],
        links: Mapping[tuple[str, int], tuple[str, int]],
        controller: tuple[str, int],
        reconnect: bool = True,
    ) -> None:
        self.switches = dict(switches)
        self.controller = controller
        self.silent: set[tuple[str, int]] = set()
        """Ports whose frames are lost on the link, while both ends stay up."""
        self._links = dict(links)
        self._reconnect = reconnect
        self._writers: dict[str, asyncio.StreamWriter] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        for name, switch in self.switches.items():
            switch.send_out = lambda port, frame, name=name: self._deliver(name, port, frame)  # type: ignore[misc]

    async def __aenter__(self) -> Fleet:
        for name in self.switches:
            self.start(name)
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def start(self, name: str) -> None:
        """Let a switch connect."""
        self._tasks[name] = asyncio.get_running_loop().create_task(self._run(name))

    async def stop(self, name: str) -> None:
        """End a switch's connection for good; `start` begins a new one. Its rules stay."""
        task = self._tasks.pop(name)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def disconnect(self, name: str) -> None:
        """Break a switch's connection; it connects again if the fleet does."""
        writer = self._writers.get(name)
        if writer is not None:
            writer.close()

    def set_port(self, name: str, port: int, up: bool) -> None:
        """Let a port, and the other end of its link, go down or up."""
        for end in ((name, port), self._links.get((name, port))):
            if end is not None and end[0] in self.switches:
                self._write(end[0], self.switches[end[0]].set_port(end[1], up))

    def frame_arrived(self, name: str, port: int, frame: bytes) -> None:
        """Let a frame arrive from outside, as from a host."""
        self._write(name, self.switches[name].frame_arrived(port, frame))

    def _deliver(self, name: str, port: int, frame: bytes) -> None:
        end = self._links.get((name, port))
        if end is None or (name, port) in self.silent or end[1] in self.switches[end[0]].down:
            return
        self._write(end[0], self.switches[end[0]].frame_arrived(end[1], frame))

    def _write(self, name: str, data: bytes) -> None:
        writer = self._writers.get(name)
        if writer is None or not self.switches[name].is_ready or self.switches[name].faults.stalled:
            return
        if writer.transport.get_write_buffer_size() < _FULL_BYTES:
            writer.write(data)

    async def _run(self, name: str) -> None:
        while True:
            with contextlib.suppress(OSError):
                await self._serve(name)
            if not self._reconnect:
                return
            await asyncio.sleep(_RECONNECT_S)

    async def _serve(self, name: str) -> None:
        switch = self.switches[name]
        reader, writer = await asyncio.open_connection(*self.controller)
        self._writers[name] = writer
        try:
            writer.write(switch.connect())
            while True:
                while switch.faults.stalled:
                    await asyncio.sleep(0.01)
                data = await reader.read(_READ_BYTES)
                if not data:
                    return
                while switch.faults.stalled:  # since it began to read
                    await asyncio.sleep(0.01)
                answer = switch.receive(data)
                if answer:
                    writer.write(answer)
        finally:
            del self._writers[name]
            switch.is_ready = False
            writer.close()
