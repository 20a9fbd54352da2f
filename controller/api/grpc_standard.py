"""The services that operators' tools expect of any gRPC server: health and reflection.

Neither needs a token: health says what `/healthz` and `/readyz` do, reflection what is in the .proto files.
"""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from controller.api.service import Service
from controller.errors import RequestError
from controller.model.requests import ViewName
from controller.model.views import HealthView
from mstcp.proto import control_pb2

READINESS = "readiness"
"""Name by which health says whether flows can be served; all others are about the server itself."""

_WATCH_S = 1.0
_SERVICES = tuple(service.full_name for service in control_pb2.DESCRIPTOR.services_by_name.values())
_HEALTH = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
_Status = health_pb2.HealthCheckResponse.ServingStatus


def add_standard_services(server: grpc.aio.Server, service: Service) -> None:
    """Offer health (grpc.health.v1) and reflection on a server that is not started yet."""
    health_pb2_grpc.add_HealthServicer_to_server(_Health(service), server)
    reflection.enable_server_reflection((*_SERVICES, _HEALTH, reflection.SERVICE_NAME), server)


class _Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # gRPC has no type information
    """Asks the core, so that one that does not answer does not serve."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def Check(
        self, request: health_pb2.HealthCheckRequest, context: Any
    ) -> health_pb2.HealthCheckResponse:
        """Tell how a service is."""
        if request.service not in ("", READINESS, *_SERVICES):
            names = ", ".join((READINESS, *_SERVICES))
            text = f"there is no service {request.service!r} here; there are {names}"
            await context.abort(grpc.StatusCode.NOT_FOUND, text)
        return health_pb2.HealthCheckResponse(status=await self._status(request.service))

    async def Watch(self, request: health_pb2.HealthCheckRequest, context: Any) -> None:
        """Tell how a service is, and when that changes."""
        known = request.service in ("", READINESS, *_SERVICES)
        told = None
        while True:
            status = await self._status(request.service) if known else _Status.SERVICE_UNKNOWN
            if status != told:
                told = status
                await context.write(health_pb2.HealthCheckResponse(status=status))
            await asyncio.sleep(_WATCH_S)

    async def _status(self, name: str) -> int:
        try:
            health, _ = await self._service.view(ViewName.HEALTH, HealthView)
        except RequestError:
            return int(_Status.NOT_SERVING)
        return int(_Status.SERVING if health.ready or name != READINESS else _Status.NOT_SERVING)
