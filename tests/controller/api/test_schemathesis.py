"""schemathesis, with every check, against the REST interface: a real server, whose switches are fakes."""

from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import schemathesis
from schemathesis.config import SchemathesisConfig

from controller.address import Address, listen
from controller.api.rest import make_app
from controller.api.rest_common import Api
from controller.api.servers import ServiceThread
from controller.configuration.access import Access, AccessRole, Token, digest_of
from tests.fakes.served_controller import Controller

EXAMPLES = 8
TOKEN = "a token for the tests"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    controller = Controller(confirm_timeout_s=5.0, lease_s=0.5)
    listener, bound = listen("--rest", Address("127.0.0.1", 0))
    services = ServiceThread(api_of(controller), [listener], [])
    controller.start()
    services.start()
    yield f"http://{bound}"
    services.stop()
    controller.loop.stop()


def api_of(controller: Controller) -> Api:
    access = Access([Token("tester", AccessRole.ADMINISTER, digest_of(TOKEN))])
    return Api(controller.service, access, longest_stream_s=0.05)


# What depends on how things are: what is named is not there, or is another's.
STATE = ["2xx", "401", "403", "404", "409"]


def operation(name: str, *statuses: str) -> dict[str, Any]:
    """Return what one operation alone may answer to a request that keeps to the schema.

    422: rules between fields (a rate or paths, not both) are beyond JSON Schema. 504: a client that gives its
    request no time (Request-Timeout) is told so. 412: the flow has another revision (If-Match).
    """
    return {
        "include-name": name,
        "checks": {
            "positive_data_acceptance": {"expected-statuses": [*STATE, *statuses]},
            "not_a_server_error": {
                "expected-statuses": ["2xx", "4xx", *(each for each in statuses if each == "504")]
            },
        },
    }


CONFIG = SchemathesisConfig.from_dict(
    {
        # HTTP lets a client send any header; unknown query parameters and fields are tested below.
        "generation": {"allow-extra-parameters": False},
        "checks": {
            "positive_data_acceptance": {"expected-statuses": STATE},
        },
        "operations": [
            operation("POST /v1/flows", "422", "504"),
            operation("POST /v1/preview", "422"),
            operation("PATCH /v1/flows/{flow_id}", "412", "504"),
            operation("DELETE /v1/flows/{flow_id}", "412"),
            operation("PATCH /v1/links/{link_id}", "412"),
        ],
    }
)
schema = schemathesis.openapi.from_dict(make_app(api_of(Controller())).openapi(), config=CONFIG)


@schema.parametrize()
@hypothesis.settings(
    max_examples=EXAMPLES,
    suppress_health_check=list(hypothesis.HealthCheck),
)
def test_the_interface_keeps_what_it_promises(case: Any, address: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    case.call_and_validate(base_url=address, headers=headers, timeout=30)
