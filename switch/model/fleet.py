"""A network of model switches in one asyncio loop, connected to controllers over TCP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence

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
        controllers: Addresses; `controllers` may be changed, for connections that begin afterwards.
    """

    def __init__(
        self,
        switches: Mapping[str, ModelSwitch],
        links: Mapping[tuple[str, int], tuple[str, int]],
        controllers: Sequence[tuple[str, int]],
    ) -> None:
        self.switches = dict(switches)
        self.controllers = list(controllers)
        self.silent: set[tuple[str, int]] = set()
        """Ports whose frames are lost on the link, while both ends stay up."""
        self._links = dict(links)
        self._writers: dict[str, dict[int, asyncio.StreamWriter]] = {name: {} for name in self.switches}
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}
        for name, switch in self.switches.items():
            switch.send_out = lambda port, frame, name=name: self._deliver(name, port, frame)  # type: ignore[misc]

    async def __aenter__(self) -> Fleet:
        for name in self.switches:
            self.start(name)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(self.stop(name) for name in list(self._tasks)))

    def start(self, name: str) -> None:
        """Let a switch connect."""
        create = asyncio.get_running_loop().create_task
        self._tasks[name] = [create(self._run(name, number)) for number in range(len(self.controllers))]

    async def stop(self, name: str) -> None:
        """End a switch's connections for good; `start` begins new ones. Its rules stay."""
        tasks = self._tasks.pop(name)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def disconnect(self, name: str) -> None:
        """Break a switch's connections; it connects again."""
        for writer in self._writers[name].values():
            writer.close()

    def set_port(self, name: str, port: int, up: bool) -> None:
        """Let a port, and the other end of its link, go down or up."""
        for end in ((name, port), self._links.get((name, port))):
            if end is not None and end[0] in self.switches:
                switch = self.switches[end[0]]
                self._write(end[0], switch.set_port(end[1], up), switch.is_ready)

    def frame_arrived(self, name: str, port: int, frame: bytes) -> None:
        """Let a frame arrive from outside, as from a host."""
        switch = self.switches[name]
        self._write(name, switch.frame_arrived(port, frame), switch.hears_packets)

    def _deliver(self, name: str, port: int, frame: bytes) -> None:
        end = self._links.get((name, port))
        if end is None or (name, port) in self.silent or end[1] in self.switches[end[0]].down:
            return
        self.frame_arrived(*end, frame)

    def _write(self, name: str, data: bytes, hears: Callable[[int], bool]) -> None:
        if self.switches[name].faults.stalled:
            return
        for number, writer in self._writers[name].items():
            if hears(number) and writer.transport.get_write_buffer_size() < _FULL_BYTES:
                writer.write(data)

    async def _run(self, name: str, number: int) -> None:
        while True:
            with contextlib.suppress(OSError):
                await self._serve(name, number)
            await asyncio.sleep(_RECONNECT_S)

    async def _serve(self, name: str, number: int) -> None:
        switch = self.switches[name]
        reader, writer = await asyncio.open_connection(*self.controllers[number])
        self._writers[name][number] = writer
        try:
            writer.write(switch.connect(number))
            while True:
                while switch.faults.stalled:
                    await asyncio.sleep(0.01)
                data = await reader.read(_READ_BYTES)
                if not data:
                    return
                while switch.faults.stalled:  # since it began to read
                    await asyncio.sleep(0.01)
                answer = switch.receive(data, number)
                if answer:
                    writer.write(answer)
        finally:
            del self._writers[name][number]
            switch.disconnect(number)
            writer.close()
