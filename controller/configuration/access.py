"""Who may do what: bearer tokens with roles."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field

from controller.errors import Forbidden, Unauthenticated
from controller.model.callers import UNRESTRICTED, Caller


class AccessRole(IntEnum):
    """What a token allows; each role allows all that those before it do."""

    READ = 1  # look at everything, and at what would happen if
    REQUEST = 2  # request flows; change and release one's own
    ADMINISTER = 3  # change everybody's flows, and links


def _role(name: object) -> object:
    """Return the role that a configuration names."""
    roles = {role.name.lower(): role for role in AccessRole}
    if not isinstance(name, str) or name not in roles:
        raise ValueError(f"must be {', '.join(map(repr, roles))}, not {name!r}")
    return roles[name]


@dataclass(frozen=True)
class Token:
    """A token that clients may have, of which only the digest is known; flows belong to its name."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=64)]
    role: Annotated[AccessRole, BeforeValidator(_role)]
    sha256: Annotated[str, Field(pattern="^[0-9a-fA-F]{64}$")]  # of the token, in hexadecimal


def digest_of(token: str) -> str:
    """Return the SHA-256 of a token in hexadecimal."""
    return hashlib.sha256(token.encode()).hexdigest()


class Access:
    """Finds out who a client is and whether it may.

    Without tokens everybody may do everything.
    """

    def __init__(self, tokens: Iterable[Token] = ()) -> None:
        self._tokens: Mapping[str, Token] = {}
        self.replace(tokens)

    @property
    def is_required(self) -> bool:
        """Whether clients need a token."""
        return bool(self._tokens)

    def replace(self, tokens: Iterable[Token]) -> None:
        """Know these tokens from now on, and no others."""
        self._tokens = {token.sha256.lower(): token for token in tokens}

    def caller(self, authorization: str | None, needed: AccessRole, address: str = "") -> Caller:
        """Return who sends `Authorization: Bearer <token>` from an address.

        Raises:
            Unauthenticated: there is no token, or it is unknown.
            Forbidden: its role does not allow what is needed.
        """
        if not self._tokens:
            return replace(UNRESTRICTED, address=address)
        scheme, _, secret = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise Unauthenticated("Authorization", "a token is needed: send 'Authorization: Bearer <token>'")
        # The table's keys are digests, so that how long a look-up takes says nothing about tokens.
        token = self._tokens.get(digest_of(secret.strip()))
        if token is None:
            raise Unauthenticated("Authorization", "this token is not known to the controller")
        if token.role < needed:
            raise Forbidden(
                "Authorization",
                f"the token of {token.name} has the role {token.role.name.lower()}; this needs "
                f"{needed.name.lower()}",
            )
        return Caller(token.name, token.role >= AccessRole.ADMINISTER, address)
