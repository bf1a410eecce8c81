"""Floods that a malicious server may send, each beyond one of the limits on replies.

Each is made only when it is sent, because together they have tens of megabytes.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tests.services.llm.clients.stub_server import Behaviour, delta, event, sends, streams

MANY: Final = 300_000
DRIPS: Final = "100000 chunks"
"""The possible errors for a stream in small chunks.

On a busy machine its time limit may come first.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flood:
    """A flood: how it is sent, whether as a stream, and why it is refused."""

    sent: Callable[[], Behaviour]
    reason: str
    heard: bool = False
    looked_at: int = 1
    """The most bodies and events that may be read as JSON before the flood is refused."""


def in_chunks(body: bytes, *, of: int, content_type: str = "text/event-stream") -> Behaviour:
    """Send a body in HTTP chunks of a given size."""

    def behave(handler: Any) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        handler.send_header("Content-Type", content_type)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        pieces = (body[at : at + of] for at in range(0, len(body), of))
        handler.send(b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in pieces) + b"0\r\n\r\n")

    return behave


def whole(**message: Any) -> Behaviour:
    """Send one message in one body."""
    return sends(json.dumps({"choices": [{"message": message}]}, separators=(",", ":")).encode())


def calls(count: int) -> bytes:
    """Return an event with a number of empty tool calls."""
    return event(delta(tool_calls=[{}] * count))


def block_start(index: int) -> bytes:
    """Return the start of a tool call as Anthropic streams it."""
    block = {"type": "tool_use", "name": "look"}
    return event({"type": "content_block_start", "index": index, "content_block": block})


def _arguments() -> bytes:
    return event(delta(tool_calls=[{"function": {"arguments": "x" * 2_000}}]))


def _more_arguments() -> bytes:
    piece = {"partial_json": "x" * 2_000}
    return event({"type": "content_block_delta", "index": 0, "delta": piece})


OPENAI: Final[dict[str, Flood]] = {
    "calls in one body": Flood(sent=lambda: whole(tool_calls=[{}] * MANY), reason="64 tool calls"),
    "calls in one event": Flood(
        sent=lambda: streams(calls(MANY // 2)), heard=True, reason="64 tool calls"
    ),
    "calls in one event without an end": Flood(
        sent=lambda: streams(calls(65).rstrip()), heard=True, reason="64 tool calls"
    ),
    "calls in events of their own": Flood(
        sent=lambda: streams(
            b"".join(event(delta(tool_calls=[{"index": n}])) for n in range(60_000))
        ),
        heard=True,
        reason="64 tool calls",
        looked_at=65,
    ),
    "calls again and again": Flood(
        sent=lambda: streams(calls(64) * 30_000),
        heard=True,
        reason="100000 pieces",
        looked_at=1_563,
    ),
    "arguments letter by letter": Flood(
        sent=lambda: streams(_arguments() * 60),
        heard=True,
        reason="100000 characters of arguments",
        looked_at=51,
    ),
    "parts of a message": Flood(
        sent=lambda: whole(content=[{"type": "text"}] * 30_000), reason="1024 parts of a message"
    ),
    "choices": Flood(
        sent=lambda: sends(b'{"choices":[' + b"{}," * MANY + b"{}]}"), reason="1024 choices"
    ),
    "empty events": Flood(
        sent=lambda: streams(b"data:{}\n\n" * 1_000_000),
        heard=True,
        reason="100000 events",
        looked_at=100_000,
    ),
    "comments": Flood(
        sent=lambda: streams(b":\n" * 5_000_000), heard=True, reason="400000 lines", looked_at=0
    ),
    "a large event": Flood(
        sent=lambda: streams(b"data:[" + b"[]," * 3_000_000 + b"[]]\n\n"),
        heard=True,
        reason="larger than 1000000 bytes",
        looked_at=0,
    ),
    "a body byte by byte": Flood(
        sent=lambda: in_chunks(b" " * 300_000, of=1, content_type="application/json"),
        reason="chunks of less than 32 bytes",
        looked_at=0,
    ),
    "a stream byte by byte": Flood(
        sent=lambda: in_chunks(b":" + b" " * 300_000, of=1),
        heard=True,
        reason="chunks of less than 32 bytes",
        looked_at=0,
    ),
    "a stream in small chunks": Flood(
        sent=lambda: in_chunks((b":" + b" " * 30 + b"\n\n") * 121_000, of=33),
        heard=True,
        reason=DRIPS,
        looked_at=0,
    ),
}
ANTHROPIC: Final[dict[str, Flood]] = {
    "blocks in one body": Flood(
        sent=lambda: sends(b'{"content":[' + b"{}," * MANY + b"{}]}"), reason="1024 blocks"
    ),
    "calls in one body": Flood(
        sent=lambda: sends(json.dumps({"content": [{"type": "tool_use"}] * 1_000}).encode()),
        reason="64 tool calls",
    ),
    "calls in events": Flood(
        sent=lambda: streams(b"".join(map(block_start, range(60_000)))),
        heard=True,
        reason="64 tool calls",
        looked_at=65,
    ),
    "arguments in pieces": Flood(
        sent=lambda: streams(block_start(0), _more_arguments() * 60),
        heard=True,
        reason="100000 characters of arguments",
        looked_at=52,
    ),
}
