"""What the process's main thread is told to do: by signals, and by threads that cannot go on."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections import deque
from enum import Enum, auto

from controller.errors import CoreFailed


class Instruction(Enum):
    """What a signal means."""

    STOP = auto()
    RELOAD = auto()


_MEANINGS = {
    signal.SIGTERM: Instruction.STOP,
    signal.SIGINT: Instruction.STOP,
    signal.SIGHUP: Instruction.RELOAD,
}

_FAILED = b"\0"  # no signal has this number


class Instructions:
    """Waits for signals and failures; entered as a context in the main thread.

    Linux delivers a signal of the process in any of its threads, and Python runs the handler in the main
    thread alone, without waking it from a wait for a lock or a queue. So the main thread waits at a socket,
    to which Python writes the signal's number in whichever thread it comes (`signal.set_wakeup_fd`).
    """

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._failures: deque[str] = deque()

    def __enter__(self) -> Instructions:
        # Where the socket is full the main thread has enough to do: a further signal changes nothing.
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for number in _MEANINGS:
            signal.signal(number, lambda *_: None)  # the number in the socket is what counts
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(-1)
        self._reader.close()
        self._writer.close()

    def fail(self, reason: str) -> None:
        """Say in a sentence, from any thread, why the process cannot go on; the first sentence is told."""
        self._failures.append(reason)
        with contextlib.suppress(OSError):  # it is full, or closed: the process ends anyway
            self._writer.send(_FAILED)

    def wait(self) -> Instruction:
        """Wait for the next instruction.

        Raises:
            CoreFailed: the process cannot go on.
        """
        while True:
            number = self._reader.recv(1)[0]
            if self._failures:
                raise CoreFailed(self._failures[0])
            if number in _MEANINGS:
                return _MEANINGS[signal.Signals(number)]
