"""A controller whose switches are fakes, and a client of its REST interface."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from controller.api.rest import make_app
from controller.api.rest_common import Api
from tests.fakes.served_controller import Controller


@pytest.fixture
def controller() -> Iterator[Controller]:
    running = Controller()
    running.start()
    yield running
    running.loop.stop()


@pytest.fixture
async def client(controller: Controller) -> AsyncIterator[httpx.AsyncClient]:
    controller.service.bind(asyncio.get_running_loop())
    transport = httpx.ASGITransport(make_app(Api(controller.service, longest_stream_s=0.05)))
    async with httpx.AsyncClient(transport=transport, base_url="http://controller") as connected:
        yield connected
