import logging
import threading

from controller.logs import LogWriter


class Blocked:
    """Standard error that nobody reads, until it is let go on."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.written: list[str] = []

    def write(self, records: list[logging.LogRecord]) -> None:
        assert self.go_on.wait(20)
        self.written += [record.getMessage() for record in records]


def test_nobody_waits_for_a_log_that_is_not_read() -> None:
    blocked = Blocked()
    writer = LogWriter(blocked.write, capacity=100)
    for number in range(1000):
        writer.handle(logging.LogRecord("x", logging.INFO, "", 0, "line %d", (number,), None))
    blocked.go_on.set()
    writer.stop()
    assert blocked.written[0] == "line 0"
    assert len(blocked.written) <= 100 + 256 + 3
    assert any("lines were dropped" in line for line in blocked.written)
