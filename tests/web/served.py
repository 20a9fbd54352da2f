"""A controller with REST on a socket; its switches are fakes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from controller.address import Address, listen
from controller.api.rest_common import Api
from controller.api.servers import ServiceThread
from controller.configuration.access import Access
from controller.model.events import PortCameUp, PortWentDown
from tests.fakes.requests import FIRST as REQUEST
from tests.fakes.served_controller import Controller


@dataclass
class Served:
    """A controller that answers at an address."""

    controller: Controller
    address: str
    services: ServiceThread
    client: httpx.Client

    def stop(self) -> None:
        """End REST, as when the process ends."""
        self.services.stop()

    def post(self, path: str, body: Any, **headers: str) -> Any:
        answer = self.client.post(path, json=body, headers=headers)
        assert answer.is_success, answer.text
        return answer.json()

    def get(self, path: str) -> Any:
        return self.client.get(path).json()

    def request(self, **fields: Any) -> Any:
        return self.post("/v1/flows", REQUEST | fields)

    def set_link(self, link: str, up: bool) -> None:
        """Let both ports of a link go down or up."""
        network = self.controller.switches.network
        event = PortCameUp if up else PortWentDown
        for arc in network.arcs():
            if arc.link == link and arc.tail in network.switches:
                self.controller.loop.post(event(network.datapath_id(arc.tail), arc.tail_port))


@contextmanager
def serve(controller: Controller, access: Access | None = None, arrive: bool = True) -> Iterator[Served]:
    """Start a controller and its REST interface; its switches `arrive` at once, or not at all."""
    listener, bound = listen("--rest", Address("127.0.0.1", 0))
    services = ServiceThread(Api(controller.service, access or Access()), [listener], [])
    if arrive:
        controller.start()
    else:
        controller.loop.start()
    services.start()
    address = f"http://{bound}"
    try:
        with httpx.Client(base_url=address, timeout=60) as client:
            yield Served(controller, address, services, client)
    finally:
        services.stop()
        controller.loop.stop()
