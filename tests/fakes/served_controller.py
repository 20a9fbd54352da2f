"""Everything of a controller but os-ken and sockets, for tests of its interfaces."""

from __future__ import annotations

import time
from typing import Any

import topologies
from controller.api.service import Service
from controller.core import Core
from controller.loop import ControllerLoop
from controller.model.messages import DatapathMessage
from controller.model.settings import Counters, Settings
from tests.fakes.openflow_table import FakeSwitches


class Controller:
    """The real core, loop and service layer; the switches are fakes. `silent`: they confirm nothing.

    Counters are not read unless the settings say so: views then stay as they are.
    """

    def __init__(self, topology: str = "butterfly", **settings: Any) -> None:
        network = topologies.load(topology)
        self.silent = False
        self.switches = FakeSwitches(network)
        quiet: dict[str, Any] = {"confirm_timeout_s": 0.05, "counters": Counters(interval_s=0.0)}
        self.core = Core(network, Settings(**quiet | settings))
        self.service: Service
        self.loop = ControllerLoop(self.core, self.send, lambda *messages: self.service.deliver(*messages))
        self.service = Service(self.loop.post)

    def send(self, message: DatapathMessage) -> None:
        barrier = self.switches.carry_out(message, time.monotonic())
        if barrier is not None and not self.silent:
            self.loop.post(barrier)

    def start(self) -> None:
        self.loop.start()
        for event in self.switches.arrivals():
            self.loop.post(event)
