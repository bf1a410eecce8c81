"""A slow model for the load benchmark: an OpenAI-compatible server that answers after a delay.

Each utterance of a player contains a unique token, and the answer repeats it, so that answers can
be matched with utterances. The logarithms of the delays are evenly distributed.
"""

import asyncio
import json
import math
import random
import re
from collections import Counter
from typing import Any, Final

TOKEN: Final = re.compile(r"U\d{6}")


class LateModel:
    """A server on a free port of loopback.

    `asked` counts the requests by the token that they contain.
    """

    def __init__(self, *, least_seconds: float, most_seconds: float, seed: int) -> None:
        self.asked: Counter[str] = Counter()
        self.running = self.most_running = 0
        self._latencies = (math.log(least_seconds), math.log(most_seconds))
        self._random = random.Random(seed)
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        """Start the server, and return its base address."""
        self._server = await asyncio.start_server(self._served, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}/v1"

    def close(self) -> None:
        assert self._server is not None
        self._server.close()

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle one connection, which is kept alive."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: *(\d+)", head.lower())
                body = await reader.readexactly(int(length[1]) if length else 0)
                await self._answer(json.loads(body), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except asyncio.CancelledError:  # the run has ended; Python 3.11 would report each
            pass
        finally:
            writer.close()

    async def _answer(self, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        said = " ".join(str(message["content"]) for message in request["messages"][-1:])
        token = next(iter(TOKEN.findall(said)), "nothing")
        self.asked[token] += 1
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        await asyncio.sleep(math.exp(self._random.uniform(*self._latencies)))
        self.running -= 1
        text = f"That is {token}, as everybody here knows."
        usage = {"prompt_tokens": 900, "completion_tokens": 12, "total_tokens": 912}
        if request.get("stream"):
            await _streamed(text, usage, writer)
        else:
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            whole = {"id": "1", "object": "chat.completion", "created": 1, "model": "late"}
            _send(writer, json.dumps({**whole, "choices": [choice], "usage": usage}).encode())
        await writer.drain()


async def _streamed(text: str, usage: dict[str, int], writer: asyncio.StreamWriter) -> None:
    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "late"}
    parts = [text[at : at + 16] for at in range(0, len(text), 16)]
    events: list[dict[str, Any]] = [
        {**chunk, "choices": [{"index": 0, "delta": {"content": part}, "finish_reason": None}]}
        for part in parts
    ]
    events.append({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    events.append({**chunk, "choices": [], "usage": usage})
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    _send(writer, "".join([*lines, "data: [DONE]\n\n"]).encode(), kind="text/event-stream")


def _send(writer: asyncio.StreamWriter, body: bytes, *, kind: str = "application/json") -> None:
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        "Connection: keep-alive\r\n\r\n"
    )
    writer.write(head.encode() + body)
