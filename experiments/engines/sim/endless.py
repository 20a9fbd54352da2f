"""Ends calls of Python methods of one's own that do not return: a simulation would stand still for ever."""

from __future__ import annotations

import ctypes
import sys
import threading
from types import FrameType

CALL_S = 60.0
"""How long one call may take; thousands of them make a second of a run."""
LOOKS = 20
"""Polls that see the same call before it is ended; a machine that was asleep meanwhile counts one."""


class DoesNotReturn(BaseException):
    """Raised within such a call. No Exception: a loop may catch those and go on."""

    def __str__(self) -> str:
        return f"it has not returned for {CALL_S:g} s"


class EndlessCalls:
    """Ends calls that are made from the frame in which this context is entered, and do not return.

    What waits in C, as `time.sleep` does, is ended when it comes back. Calls of functions in the file
    `except_in` may take as long as they want.
    """

    def __init__(self, except_in: str | None = None) -> None:
        self._except_in = except_in

    def __enter__(self) -> None:
        self._thread_id = threading.get_ident()
        self._caller: FrameType | None = sys._getframe(1)
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="endless calls", daemon=True)
        self._watcher.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watcher.join()
        self._caller = None  # it holds this object

    def _watch(self) -> None:
        seen, looks = None, 0
        while not self._ended.wait(CALL_S / LOOKS):
            call = self._call()  # kept until the next look, so that no other can be the same object
            looks = looks + 1 if call is seen and call is not None else 0
            seen = call
            if looks >= LOOKS:
                end = ctypes.pythonapi.PyThreadState_SetAsyncExc
                end(ctypes.c_ulong(self._thread_id), ctypes.py_object(DoesNotReturn))

    def _call(self) -> FrameType | None:
        """Return the frame that was called, None between calls."""
        frame = sys._current_frames().get(self._thread_id)
        while frame is not None and frame.f_back is not self._caller:
            frame = frame.f_back
        return None if frame is None or frame.f_code.co_filename == self._except_in else frame
