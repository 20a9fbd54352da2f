"""A controller whose switches are fakes, and clients of its interfaces."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import grpc.aio
import httpx
import pytest

from controller.api.grpc_server import make_server
from controller.api.rest import make_app
from controller.api.rest_common import Api
from controller.configuration.access import Access
from tests.fakes.served_controller import Controller


@pytest.fixture
def controller() -> Iterator[Controller]:
    running = Controller()
    running.start()
    yield running
    running.loop.stop()


@pytest.fixture
def access() -> Access:
    """Return who may do what: everybody everything."""
    return Access()


@pytest.fixture
async def client(controller: Controller, access: Access) -> AsyncIterator[httpx.AsyncClient]:
    controller.service.bind(asyncio.get_running_loop())
    transport = httpx.ASGITransport(make_app(Api(controller.service, access, longest_stream_s=0.05)))
    async with httpx.AsyncClient(transport=transport, base_url="http://controller") as connected:
        yield connected


@pytest.fixture
async def address(controller: Controller, access: Access) -> AsyncIterator[str]:
    """Return where gRPC is served."""
    controller.service.bind(asyncio.get_running_loop())
    server = make_server(controller.service, access)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(None)


@pytest.fixture
async def channel(address: str) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(address) as connected:
        yield connected
