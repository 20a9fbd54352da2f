"""Runs the REST and gRPC servers in one asyncio loop, in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Sequence

import grpc.aio
import uvicorn

from controller.address import Address
from controller.api.grpc_server import make_server
from controller.api.rest import make_app
from controller.api.rest_common import Api
from controller.errors import ConfigError

__all__ = ["ServiceThread"]

LOG = logging.getLogger("controller.api")

_GRACE_S = 0.5
"""How long running answers may take once the controller stops."""


class ServiceThread:
    """REST and gRPC for a service.

    Args:
        api: What they offer.
        rest: Listening sockets.
        grpc_addresses: gRPC binds its addresses itself.
    """

    def __init__(self, api: Api, rest: Sequence[socket.socket], grpc_addresses: Sequence[Address]) -> None:
        self.grpc_addresses: tuple[Address, ...] = ()
        self._api = api
        self._service = api.service
        self._rest = list(rest)
        self._wanted = tuple(grpc_addresses)
        self._started = threading.Event()
        self._failure: Exception | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="controller-services", daemon=True)

    def start(self) -> None:
        """Start both; returns when they serve.

        Raises:
            ConfigError: an address cannot be used.
        """
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Answer who waits that the controller is stopping, and end."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=10 * _GRACE_S)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:
            if self._started.is_set():
                LOG.exception("the services failed")
            self._failure = error
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._service.bind(self._loop)
        grpc_server = make_server(self._service, self._api.access)
        self.grpc_addresses = tuple(_bind_grpc(grpc_server, address) for address in self._wanted)
        await grpc_server.start()
        config = uvicorn.Config(
            make_app(self._api),
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        rest = uvicorn.Server(config)
        # uvicorn takes signals in the main thread only; here it leaves them alone.
        rest_task = asyncio.create_task(rest.serve(sockets=self._rest))
        while not rest.started and not rest_task.done():
            await asyncio.sleep(0.01)
        self._started.set()
        await self._stop.wait()
        self._service.close()
        rest.should_exit = True
        await grpc_server.stop(_GRACE_S)
        await rest_task


def _bind_grpc(server: grpc.aio.Server, address: Address) -> Address:
    try:
        port = server.add_insecure_port(str(address))
    except RuntimeError:
        port = 0
    if port == 0:
        raise ConfigError(
            "--grpc", f"cannot listen on {address}: is the address in use? Choose another port."
        )
    return Address(address.host, port)
