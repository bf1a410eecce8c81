"""A body is closed where it is left."""

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, cast

import pytest

from evennia_ai.services.net.http import LONGEST_REASON_BYTES, TooLarge, reason_of, receive

if TYPE_CHECKING:
    from httpx2 import Response


class Body:
    """Stands for an answer of httpx2 with a body in chunks; `is_closed` tells how it was left."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = chunks
        self.is_closed = False

    async def aiter_bytes(self) -> AsyncGenerator[bytes]:
        try:
            for chunk in self._chunks:
                yield chunk
        finally:
            self.is_closed = True


def test_a_body_that_is_too_large_is_closed_before_anybody_is_told() -> None:
    body = Body(b"one", b"two")

    async def read() -> None:
        with pytest.raises(TooLarge):
            await receive(cast("Response", body), lambda _: None, limit_bytes=2)
        assert body.is_closed

    asyncio.run(read())


def test_a_long_reason_is_closed_where_it_is_left() -> None:
    body = Body(b"x" * LONGEST_REASON_BYTES, b"two")

    async def read() -> None:
        assert len(await reason_of(cast("Response", body))) == LONGEST_REASON_BYTES
        assert body.is_closed

    asyncio.run(read())
