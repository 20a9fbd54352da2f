"""The fuzz targets of the Python parsers for a bounded number of inputs; `make fuzz` runs them by atheris."""

from __future__ import annotations

import os
import random

import pytest

from tests.fuzz.targets import TARGETS, seeds

INPUTS = int(os.environ.get("MSTCP_FUZZ_INPUTS", "300"))
LONGEST = 4096
_WORDS = [b"\0", b"\xff", b"0", b"-1", b"1e400", b"nan", b"9" * 40, b'"', b"[", b"]", b"{", b"}", b"\n", b"="]


def changed(data: bytes, rng: random.Random, pool: list[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    match rng.randrange(6):
        case 0:
            return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        case 1:
            return data[:at]
        case 2:
            return data[:at] + data[at + rng.randrange(1, 40) :]
        case 3:
            other = rng.choice(pool)
            return (data[:at] + other[rng.randrange(len(other) + 1) :])[:LONGEST]
        case 4:
            return data[:at] + rng.choice(_WORDS) * rng.choice([1, 1, 1, 2000]) + data[at:]
        case _:
            return data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at:]


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_is_answered_by_another_error(name: str) -> None:
    rng = random.Random(name)
    pool = [b"", *seeds(name)]
    for data in pool:
        TARGETS[name](data)
    for _ in range(INPUTS):
        data = rng.choice(pool)
        for _ in range(rng.randrange(1, 5)):
            data = changed(data, rng, pool)
        TARGETS[name](data)
        if rng.random() < 0.05 and len(pool) < 200:
            pool.append(data)
