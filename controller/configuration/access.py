"""Who may do what: bearer tokens with roles."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

from controller.errors import Forbidden, Unauthenticated
from controller.model.callers import ANYBODY, Caller


class AccessRole(IntEnum):
    """What a token allows; each role allows all that those before it do."""

    READ = 1  # look at everything, and at what would happen if
    REQUEST = 2  # request flows; change and release one's own
    ADMINISTER = 3  # change everybody's flows, and links


@dataclass(frozen=True)
class Token:
    """A token, of which only the digest is known here.

    Attributes:
        name: Whose it is: flows belong to this name.
        role: What it allows.
        sha256: SHA-256 of the token, in hexadecimal.
    """

    name: str
    role: AccessRole
    sha256: str


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
            return replace(ANYBODY, address=address)
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
