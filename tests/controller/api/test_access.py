"""Who may do what: roles, owners of flows, over REST and gRPC."""

from typing import Any

import grpc.aio
import httpx
import pytest

from controller.api.rest import make_app
from controller.api.rest_common import Api
from controller.configuration.access import Access, AccessRole, Token, digest_of
from controller.model.events import FlowsRequested
from controller.model.requests import FlowQuery
from controller.model.views import FlowPage
from mstcp.control import ControllerClient
from mstcp.errors import ControllerError
from mstcp.proto import control_pb2, control_pb2_grpc
from tests.fakes.requests import FIRST as REQUEST
from tests.fakes.requests import OF_CLIENT
from tests.fakes.served_controller import Controller

ROLES = {
    "reader": AccessRole.READ,
    "alice": AccessRole.REQUEST,
    "bob": AccessRole.REQUEST,
    "root": AccessRole.ADMINISTER,
}
ACCESS = Access(Token(name, role, digest_of(f"token of {name}")) for name, role in ROLES.items())


def as_(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer token of {name}"}


@pytest.fixture
def access() -> Access:
    return ACCESS


async def test_nobody_without_a_known_token(client: httpx.AsyncClient) -> None:
    document = make_app(Api(Controller().service, ACCESS)).openapi()
    for path, operations in document["paths"].items():
        if path in ("/healthz", "/readyz"):
            continue
        for method, operation in operations.items():
            assert operation["security"] == [{"token": []}]
            for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": "Basic dG9rZW4="}):
                url = path.format(flow_id="x", link_id="S0-S4", switch="S0")
                answer = await client.request(method, url, headers=headers, json=REQUEST)
                assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHENTICATED"), (path, method)
                assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert (await client.get("/healthz")).status_code == 200


async def test_each_role_allows_what_those_before_it_do(client: httpx.AsyncClient) -> None:
    allowed = {"reader": 403, "alice": 201, "root": 201}
    for port, (name, status) in enumerate(allowed.items(), 6000):
        body = REQUEST | {"destination_port": port, "rate_bps": 1e5}
        assert (await client.post("/v1/flows", json=body, headers=as_(name))).status_code == status
    for name, status in {"reader": 403, "alice": 403, "root": 200}.items():
        answer = await client.patch("/v1/links/S0-S4", json={}, headers=as_(name))
        assert answer.status_code == status
    for path in ("/v1/flows", "/v1/links", "/v1/events", "/metrics", "/v1/switches/S0/rules"):
        assert (await client.get(path, headers=as_("reader"))).status_code == 200
    assert (await client.post("/v1/preview", json={}, headers=as_("reader"))).status_code == 200


async def test_a_flow_belongs_to_who_requested_it(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/flows", json=REQUEST, headers=as_("alice"))
    where = answer.headers["Location"]
    assert answer.json()["owner"] == "alice"
    for method, path, body in (
        ("PATCH", where, {"rate_bps": 1e6}),
        ("DELETE", where, None),
        ("POST", f"{where}/renew", None),
    ):
        refused = await client.request(method, path, json=body, headers=as_("bob"))
        assert (refused.status_code, refused.json()["code"]) == (403, "FORBIDDEN"), method
    assert (await client.patch(where, json={"rate_bps": 1e6}, headers=as_("alice"))).status_code == 200
    assert (await client.post(f"{where}/renew", headers=as_("root"))).status_code == 200
    assert (await client.delete(where, headers=as_("root"))).status_code == 204
    assert (await client.get("/v1/flows?owner=alice", headers=as_("bob"))).json() == []


async def test_the_same_over_grpc(address: str, controller: Controller) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        calls: Any = control_pb2_grpc.ControllerStub(channel)
        sessions: Any = control_pb2_grpc.FlowControlStub(channel)
        request = control_pb2.FlowRequest(**REQUEST | {"rate_bps": 1e6})

        def as_client(name: str) -> tuple[tuple[str, str], ...]:
            return (("authorization", f"Bearer token of {name}"),)

        for metadata, code in (
            ((), grpc.StatusCode.UNAUTHENTICATED),
            (as_client("stranger"), grpc.StatusCode.UNAUTHENTICATED),
            (as_client("reader"), grpc.StatusCode.PERMISSION_DENIED),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await calls.RequestFlow(request, metadata=metadata)
            assert refused.value.code() is code
            session = sessions.Session(metadata=metadata)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await session.read()
            assert refused.value.code() is code
        flow = await calls.RequestFlow(request, metadata=as_client("alice"))
        release = control_pb2.FlowRelease(flow_id=flow.flow_id)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await calls.ReleaseFlow(release, metadata=as_client("bob"))
        assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
        renewal = control_pb2.LeaseRenewal(flow_ids=[flow.flow_id])
        stranger = sessions.Session(metadata=as_client("bob"))
        await stranger.write(control_pb2.ClientMessage(renewal=renewal))
        assert "another client" in (await stranger.read()).ended.reason
        page, _ = await controller.service.ask(
            lambda token: FlowsRequested(token, FlowQuery(limit=9)), FlowPage
        )
        assert [view.owner for view in page.flows] == ["alice"]
        stranger.cancel()
        await calls.ReleaseFlow(release, metadata=as_client("alice"))


async def test_the_end_host_library_sends_its_token(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ControllerClient(address, token="token of alice") as client:
        allocation = await client.request(**OF_CLIENT)
        await client.release(allocation.flow_id)
    monkeypatch.setenv("MSTCP_CONTROLLER_TOKEN", "token of bob")
    async with ControllerClient(address) as client:
        assert (await client.request(**OF_CLIENT)).rate_bps == 1e6
    monkeypatch.setenv("MSTCP_CONTROLLER_TOKEN", "token of nobody")
    async with ControllerClient(address) as client:
        with pytest.raises(ControllerError, match="MSTCP_CONTROLLER_TOKEN"):
            await client.request(**OF_CLIENT)


async def test_tokens_may_change_while_it_runs(client: httpx.AsyncClient, controller: Controller) -> None:
    access = Access([Token("carol", AccessRole.READ, digest_of("token of carol"))])
    app = make_app(Api(controller.service, access))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://controller") as client:
        assert (await client.get("/v1/hosts", headers=as_("carol"))).status_code == 200
        access.replace([Token("dave", AccessRole.READ, digest_of("token of dave"))])
        assert (await client.get("/v1/hosts", headers=as_("carol"))).status_code == 401
        assert (await client.get("/v1/hosts", headers=as_("dave"))).status_code == 200


def test_the_description_follows_whether_tokens_are_asked_for() -> None:
    access = Access()
    app = make_app(Api(Controller().service, access))
    assert "securitySchemes" not in app.openapi()["components"]
    access.replace([Token("reader", AccessRole.READ, digest_of("secret"))])
    assert app.openapi()["paths"]["/v1/flows"]["get"]["security"] == [{"token": []}]
    access.replace([])
    assert "security" not in app.openapi()["paths"]["/v1/flows"]["get"]
    assert app.openapi() is app.openapi(), "each request looks into it"
