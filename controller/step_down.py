"""`mstcp-controller step-down`: lets another replica lead."""

from __future__ import annotations

import argparse
import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Sequence

from controller.errors import ConfigError

_TIMEOUT_S = 10.0


def step_down(arguments: Sequence[str]) -> str:
    """Ask the leader to step down, by any replica; returns a sentence.

    Raises:
        ConfigError: it cannot be asked, or refuses.
    """
    made = argparse.ArgumentParser(
        prog="mstcp-controller step-down",
        description="Let another replica lead, as before a machine is taken down. Whichever replica is "
        "asked, the one that leads steps down. The token of an administrator, where tokens are needed, is "
        "taken from MSTCP_CONTROLLER_TOKEN.",
    )
    made.add_argument(
        "url",
        nargs="?",
        default="http://127.0.0.1:8080",
        metavar="URL,…",
        help="where a replica serves REST, or several do; one that answers is asked (default %(default)s)",
    )
    made.add_argument("--ca", metavar="FILE", help="PEM of the authority that has signed its certificate")
    options = made.parse_args(arguments)
    context = None if options.ca is None else ssl.create_default_context(cafile=options.ca)
    reason = ""
    for place in options.url.split(","):
        url = place.strip() if "://" in place else f"http://{place.strip()}"
        try:
            _post(f"{url.rstrip('/')}/v1/leader/step-down", context)
            return "The leader has stepped down; another replica takes over."
        except (OSError, ValueError) as error:
            reason = _reason(error)
    raise ConfigError(options.url, f"nobody has stepped down: {reason}")


def _post(url: str, context: ssl.SSLContext | None, may_be_sent_on: bool = True) -> None:
    token = os.environ.get("MSTCP_CONTROLLER_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers, method="POST")  # noqa: S310  # as the user gave it
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S, context=context):  # noqa: S310
            pass
    except urllib.error.HTTPError as error:
        if error.code != 307 or not may_be_sent_on:
            raise
        _post(error.headers["Location"], context, may_be_sent_on=False)


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        try:
            return str(json.load(error)["detail"])
        except (ValueError, KeyError):
            return f"it answers {error.code}"
    return str(error)
