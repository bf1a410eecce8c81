"""Test that an unread body is closed."""

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, cast

import pytest

from evennia_ai.services.net.http import (
    LONGEST_REASON_BYTES,
    TooLarge,
    json_value,
    reason_of,
    receive_body,
    text_in,
)

if TYPE_CHECKING:
    from httpx2 import Response


class Body:
    """A substitute for a response of httpx2 with a body in chunks.

    `is_closed` says how it ended.
    """

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = chunks
        self.is_closed = False

    async def aiter_bytes(self) -> AsyncGenerator[bytes]:
        try:
            for chunk in self._chunks:
                yield chunk
        finally:
            self.is_closed = True


def test_oversized_body_is_closed_before_the_error() -> None:
    body = Body(b"one", b"two")

    async def read() -> None:
        with pytest.raises(TooLarge):
            await receive_body(cast("Response", body), lambda _: None, limit_bytes=2)
        assert body.is_closed

    asyncio.run(read())


def test_long_error_body_is_closed_at_the_limit() -> None:
    body = Body(b"x" * LONGEST_REASON_BYTES, b"two")

    async def read() -> None:
        assert len(await reason_of(cast("Response", body))) == LONGEST_REASON_BYTES
        assert body.is_closed

    asyncio.run(read())


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("Grüße 🚢".encode(), "Grüße 🚢"),
        ("Grüße".encode("latin-1"), "Grüße"),
        ("„Grüße“ – 5 €".encode("cp1252"), "„Grüße“ – 5 €"),
        (b"a \x81", "a \ufffd"),  # This byte is no character of Windows-1252 either.
        ("Grüße ".encode() + b"\xe9", "Grüße \ufffd"),
        ("a \ufffd".encode(), "a \ufffd"),
    ],
)
def test_text_that_is_no_utf_8_is_read_as_windows_1252(body: bytes, text: str) -> None:
    assert text_in(body) == text
    assert json_value(b'"' + body + b'"') == text
