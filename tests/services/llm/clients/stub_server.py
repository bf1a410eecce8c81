"""An OpenAI-compatible server on loopback that behaves as badly as a test wants.

A behaviour says what the server does with one request. The given behaviours are used in order; the
last one is used for all further requests.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Barrier, BrokenBarrierError, Event, Thread
from time import monotonic, sleep
from typing import Any, Self

from tests.services.net.handover import PATIENCE_SECONDS

CHATS = ("/chat/completions", "/messages", "/embeddings")
"""The paths that the server knows."""

Behaviour = Callable[["_Handler"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512  # The queue is long, because many clients ask at the same time.

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing, because clients that disconnect are what the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    stub: "StubServer"
    seen: Seen

    def handle(self) -> None:
        self.stub.busy.append(self)
        try:
            super().handle()
        finally:
            self.stub.busy.remove(self)

    def do_GET(self) -> None:
        self.reply(b"404 page not found", status=404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.path.endswith(CHATS):  # Answer a question about the kind of server.
            self.reply(b"404 page not found", status=404)
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.seen = Seen(path=self.path, headers=headers, body=json.loads(body))
        self.stub.requests.append(self.seen)
        self.stub.next_behaviour()(self)

    def reply(
        self,
        body: bytes,
        *,
        status: int = 200,
        headers: dict[str, str] | None = None,
        length: int | None = None,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def begin(self, content_type: str = "text/event-stream") -> None:
        """Send headers for a body that ends when the connection closes."""
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.end_headers()

    def send(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()

    def is_left(self, within_seconds: float) -> bool:
        """True if the client closes the connection before the time is over."""
        self.connection.settimeout(within_seconds)
        try:
            return not self.connection.recv(1)
        except TimeoutError:
            return False
        except OSError:
            return True

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


class StubServer:
    """A server that listens from the start. `requests` has what arrived."""

    def __init__(self) -> None:
        self.requests: list[Seen] = []
        self.released = Event()
        self.left = Event()
        self.busy: list[_Handler] = []
        self._behaviours: list[Behaviour] = [answers("Hello.")]
        self._listen(port=0)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def behaves(self, *behaviours: Behaviour) -> Self:
        self._behaviours = list(behaviours)
        return self

    def next_behaviour(self) -> Behaviour:
        return self._behaviours.pop(0) if len(self._behaviours) > 1 else self._behaviours[0]

    def wait_for_requests(self, count: int, within_seconds: float = PATIENCE_SECONDS) -> None:
        ends = monotonic() + within_seconds
        while len(self.requests) < count:
            assert monotonic() < ends, f"only {len(self.requests)} requests came"
            sleep(0.005)

    def wait_until_idle(self, within_seconds: float = PATIENCE_SECONDS) -> None:
        ends = monotonic() + within_seconds
        while self.busy:
            assert monotonic() < ends, f"{len(self.busy)} connections are still served"
            sleep(0.02)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Refuse connections inside a block, as if no server were running."""
        port = self._server.server_port
        self._stop_listening()
        yield
        self._listen(port=port)

    def close(self) -> None:
        self.released.set()
        self._stop_listening()

    def _listen(self, *, port: int) -> None:
        self._server = _Server(("127.0.0.1", port), type("Handler", (_Handler,), {"stub": self}))
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def _stop_listening(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def completion(text: Any = "Hello.", **more: Any) -> dict[str, Any]:
    """Return a faultless answer. `more` replaces or adds fields."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "1", "object": "chat.completion", "model": "tiny", "choices": [choice], **more}


def answers(text: Any = "Hello.", **more: Any) -> Behaviour:
    return sends(json.dumps(completion(text, **more)).encode())


def calls(name: str, arguments: str) -> Behaviour:
    """Answer with a tool call."""
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return sends(json.dumps({"choices": [{"message": message}]}).encode())


def answers_after(seconds: float, text: str = "Hello.") -> Behaviour:
    def behave(handler: _Handler) -> None:
        handler.stub.released.wait(seconds)
        answers(text)(handler)

    return behave


def answers_together(count: int) -> Behaviour:
    """Answer when `count` requests are there at the same time, else with status 500."""
    all_here = Barrier(count)

    def behave(handler: _Handler) -> None:
        try:
            all_here.wait(2)
        except BrokenBarrierError:
            fails(500, "not all came")(handler)
        else:
            answers()(handler)

    return behave


def sends(body: bytes) -> Behaviour:
    return lambda handler: handler.reply(body)


def fails(status: int, message: str = "out of order", **headers: str) -> Behaviour:
    body = json.dumps({"error": {"message": message}}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler: handler.reply(body, status=status, headers=named)


def event(data: dict[str, Any] | str) -> bytes:
    return f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def delta(text: Any = None, *, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """Return one fragment of a stream."""
    said = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": {**said, **more}, "finish_reason": finish}
    return {"id": "1", "object": "chat.completion.chunk", "model": "tiny", "choices": [choice]}


USAGE = {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}}


def streamed(*texts: str) -> list[bytes]:
    """Return the events of a faultless stream."""
    ended = [delta(finish="stop"), {"choices": [], "model": "tiny", "usage": USAGE}, "[DONE]"]
    return [event(piece) for piece in [*(delta(text) for text in texts), *ended]]


def streams(*events: bytes, pause: float = 0.0) -> Behaviour:
    """Send events one by one, then close the connection."""

    def behave(handler: _Handler) -> None:
        handler.begin()
        for one in events:
            handler.send(one)
            handler.stub.released.wait(pause)

    return behave


def streams_and_stalls(*events: bytes) -> Behaviour:
    """Send events and then nothing. `left` is set when the client closes the connection."""

    def behave(handler: _Handler) -> None:
        handler.begin()
        handler.send(b"".join(events))
        if handler.is_left(within_seconds=10):
            handler.stub.left.set()

    return behave


def drips(data: bytes, *, pause: float, content_type: str = "application/json") -> Behaviour:
    """Send one byte at a time."""

    def behave(handler: _Handler) -> None:
        handler.begin(content_type)
        for at in range(len(data)):
            handler.send(data[at : at + 1])
            if handler.stub.released.wait(pause):
                return

    return behave


def stalls_until_left(handler: _Handler) -> None:
    """Send nothing. `left` is set when the client closes the connection."""
    if handler.is_left(within_seconds=10):
        handler.stub.left.set()


def stalls(handler: _Handler) -> None:
    """Accept the request and send nothing."""
    handler.stub.released.wait(10)


def stalls_in_the_body(handler: _Handler) -> None:
    """Begin an answer and never continue."""
    handler.reply(b'{"choices": [', length=1000)
    handler.wfile.flush()
    handler.is_left(within_seconds=10)


def closes_early(handler: _Handler) -> None:
    """Announce more bytes than are sent."""
    handler.reply(b'{"choices": [', length=1000)


def hangs_up(handler: _Handler) -> None:
    """Close the connection without an answer."""
    handler.close_connection = True
