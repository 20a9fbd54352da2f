"""Answers whose bodies are made, and compressed, once for many who ask."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Annotated

from fastapi import Header, Response

AcceptEncoding = Annotated[str, Header(include_in_schema=False)]

_GZIP = 16 + zlib.MAX_WBITS


@dataclass(frozen=True)
class CompressedBody:
    """A body, ready to be sent."""

    plain: bytes
    gzipped: bytes


def compress(plain: bytes, level: int) -> CompressedBody:
    """Return a body with its compressed form; the same bytes give the same."""
    packer = zlib.compressobj(level, zlib.DEFLATED, _GZIP)
    return CompressedBody(plain, packer.compress(plain) + packer.flush())


def send(packed: CompressedBody, media_type: str, accept_encoding: str, headers: dict[str, str]) -> Response:
    """Return the answer in the form that the client takes."""
    headers = headers | {"Vary": "Accept-Encoding"}
    if "gzip" not in accept_encoding.lower():
        return Response(packed.plain, media_type=media_type, headers=headers)
    return Response(packed.gzipped, media_type=media_type, headers=headers | {"Content-Encoding": "gzip"})
