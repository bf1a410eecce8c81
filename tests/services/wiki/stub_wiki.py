"""A wiki's API on loopback that answers from a dictionary, or behaves as badly as a test wants.

A behaviour says what the server does with one request. The given behaviours are used in order; then
it answers from its pages again.
"""

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

Behaviour = Callable[["Handler"], None]

NAMESPACES = {
    0: "",
    1: "Talk",
    2: "User",
    8: "MediaWiki",
    14: "Category",
    3000: "Instructions",
    3001: "Instructions talk",
    3002: "Sources",
    3003: "Sources talk",
}
PASSWORD = "very-secret-4711"


class Handler(BaseHTTPRequestHandler):
    stub: "StubWiki"
    asked: dict[str, str]

    def do_GET(self) -> None:
        self._serve(urlsplit(self.path).query)

    def do_POST(self) -> None:
        self._serve(self.rfile.read(int(self.headers["Content-Length"])).decode())

    def reply(self, body: bytes, *, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Log nothing."""

    def _serve(self, query: str) -> None:
        self.asked = dict(parse_qsl(query, keep_blank_values=True))
        self.stub.requests.append(self.asked)
        self.stub.agents.append(self.headers["User-Agent"])
        self.stub.next_behaviour()(self)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing, because clients that disconnect are what the tests are about."""


class StubWiki:
    """The stub of a wiki. `requests` has the parameters that arrived, `texts` its pages."""

    def __init__(self) -> None:
        self.requests: list[dict[str, str]] = []
        self.agents: list[str] = []
        self.texts: dict[str, str] = {}
        self.redirects: dict[str, str] = {}
        self.found: list[str] = []
        self.pages_there = 1_000
        self.released = Event()
        self._behaviours: list[Behaviour] = []
        self._server = _Server(("127.0.0.1", 0), type("Bound", (Handler,), {"stub": self}))
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def api(self) -> str:
        return f"http://{self.host}/w/api.php"

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    def behaves(self, *behaviours: Behaviour) -> Self:
        self._behaviours = list(behaviours)
        return self

    def next_behaviour(self) -> Behaviour:
        return self._behaviours.pop(0) if self._behaviours else usual

    def asked_for(self, **wanted: str) -> list[dict[str, str]]:
        """Return the requests that had these parameters."""
        return [one for one in self.requests if wanted.items() <= one.items()]

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def usual(handler: Handler) -> None:
    """Answer like a real wiki."""
    answers(_answer(handler.stub, handler.asked))(handler)


def answers(answer: Any, **headers: str) -> Behaviour:
    return sends(json.dumps(answer).encode(), **headers)


def refuses(code: str, info: str = "Not now.", **headers: str) -> Behaviour:
    """Answer with an error in the API's format, with the status of success."""
    return answers({"error": {"code": code, "info": info}}, **headers)


def sends(body: bytes, *, status: int = 200, **headers: str) -> Behaviour:
    return lambda handler: handler.reply(body, status=status, **headers)


def stalls(handler: Handler) -> None:
    """Accept the request and send nothing."""
    handler.stub.released.wait(10)


def hangs_up(handler: Handler) -> None:
    """Close the connection without an answer."""
    handler.close_connection = True


def _answer(stub: StubWiki, asked: dict[str, str]) -> dict[str, Any]:
    if asked["action"] == "login":
        good = asked["lgpassword"] == PASSWORD
        return {"login": {"result": "Success" if good else "Failed", "reason": "Wrong password."}}
    if asked["action"] == "edit":
        stub.texts[asked["title"]] = asked["text"]
        return {"edit": {"result": "Success"}}
    if asked.get("meta") == "tokens":
        return {"query": {"tokens": {"csrftoken": "a+\\", "logintoken": "b+\\"}}}
    if asked.get("meta") == "siteinfo":
        known = {str(number): {"id": number, "name": name} for number, name in NAMESPACES.items()}
        return {"query": {"namespaces": known, "statistics": {"pages": stub.pages_there}}}
    if asked.get("list") == "search":
        return {"query": {"search": [_told(stub, title) for title in stub.found]}}
    if asked.get("generator") == "allpages":
        pages = [_told(stub, title) for title in stub.texts]
        return {
            "query": {"pages": [one for one in pages if str(one["ns"]) == asked["gapnamespace"]]}
        }
    if "revids" in asked:
        return {"query": {"pages": [_text(stub, int(one)) for one in asked["revids"].split("|")]}}
    return {"query": _pages(stub, asked)}


def _pages(stub: StubWiki, asked: dict[str, str]) -> dict[str, Any]:
    titles = [title for title in asked["titles"].split("\x1f") if title]
    moved = [{"from": title, "to": to} for title, to in stub.redirects.items() if title in titles]
    there = [stub.redirects.get(title, title) for title in titles]
    return {"pages": [_told(stub, title) for title in there], "redirects": moved}


def _told(stub: StubWiki, title: str) -> dict[str, Any]:
    prefix = title.partition(":")[0] if ":" in title else ""
    number = next((one for one, name in NAMESPACES.items() if name == prefix), 0)
    if title not in stub.texts:
        return {"ns": number, "title": title, "missing": True}
    page = list(stub.texts).index(title) + 1
    size = len(stub.texts[title].encode())
    return {"ns": number, "title": title, "pageid": page, "lastrevid": 100 + page, "length": size}


def _text(stub: StubWiki, revision: int) -> dict[str, Any]:
    title = list(stub.texts)[revision - 101]
    content = {"slots": {"main": {"content": stub.texts[title]}}}
    return {**_told(stub, title), "revisions": [{"revid": revision, **content}]}
