"""Runs the REST and gRPC servers in one asyncio loop, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Sequence

import grpc
import grpc.aio
import uvicorn

from controller.address import Address
from controller.api.connections import RestServer, abort_connections, handle_exception
from controller.api.grpc_server import make_server
from controller.api.rest import make_app
from controller.api.rest_common import Api
from controller.configuration.tls import ServerTls
from controller.connection_limits import ServiceLimits
from controller.errors import ConfigError, CoreFailed

LOG = logging.getLogger("controller.api")

_GRACE_S = 0.5
"""How long running answers may take once the controller stops."""


class ServiceThread:
    """REST and gRPC for a service.

    gRPC binds its addresses itself. `fail` is called once, with a sentence, when they end by a fault.
    """

    def __init__(
        self,
        api: Api,
        rest: Sequence[socket.socket],
        grpc_addresses: Sequence[Address],
        tls: ServerTls | None = None,
        limits: ServiceLimits | None = None,
        fail: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.grpc_addresses: tuple[Address, ...] = ()
        self._api = api
        self._service = api.service
        self._rest = list(rest)
        self._tls = tls
        self._limits = limits or ServiceLimits.of()
        self._fail = fail
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
            CoreFailed: something else went wrong, a fault of ours.
        """
        self._thread.start()
        self._started.wait()
        if isinstance(self._failure, ConfigError):
            raise self._failure
        if self._failure is not None:
            raise CoreFailed(self._reason(self._failure)) from self._failure

    def stop(self) -> None:
        """Answer who waits that the controller is stopping, and end."""
        if self._loop is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=10 * _GRACE_S)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:
            if self._started.is_set():
                LOG.exception("the services failed")
                self._fail(self._reason(error))
            self._failure = error
            self._started.set()

    @staticmethod
    def _reason(error: Exception) -> str:
        return f"the thread of REST and gRPC ended: {type(error).__name__}: {error}"

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(handle_exception)
        self._stop = asyncio.Event()
        self._service.bind(self._loop)
        grpc_server = make_server(self._service, self._api.access, self._limits.grpc, self._api.replica)
        self.grpc_addresses = tuple(self._bind_grpc(grpc_server, address) for address in self._wanted)
        await grpc_server.start()
        config = uvicorn.Config(
            make_app(self._api),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=1,
        )
        rest = RestServer(config, self._limits.rest, None if self._tls is None else self._tls.context)
        # uvicorn takes signals in the main thread only; here it leaves them alone.
        rest_task = asyncio.create_task(rest.serve(sockets=self._rest))
        while not rest.started and not rest_task.done():
            await asyncio.sleep(0.01)
        self._started.set()
        stopping = asyncio.create_task(self._stop.wait())
        await asyncio.wait((stopping, rest_task), return_when=asyncio.FIRST_COMPLETED)
        if not stopping.done():
            stopping.cancel()
            await rest_task  # raises what ended it
            raise RuntimeError("the REST server ended by itself")
        self._service.close()
        rest.should_exit = True
        await grpc_server.stop(_GRACE_S)
        await rest_task
        await abort_connections(rest)

    def _bind_grpc(self, server: grpc.aio.Server, address: Address) -> Address:
        try:
            if self._tls is None:
                port = server.add_insecure_port(str(address))
            else:
                port = server.add_secure_port(str(address), self._tls.grpc_credentials())
        except RuntimeError:
            port = 0
        if port == 0:
            raise ConfigError(
                "--grpc", f"cannot listen on {address}: is the address in use? Choose another port."
            )
        return Address(address.host, port)
