"""The two connections of the web client refuse what is too large or malformed."""

from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest

LARGEST = 64 * 1024


class Socket:
    """An open websocket that keeps the frames it accepts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from evennia_ai.web.portal import OwnOriginsWebSocket

        self.played: list[dict[str, Any]] = []
        self.dropped: list[bool] = []
        self.logged: list[str] = []
        monkeypatch.setattr("evennia_ai.web.portal.logger.log_warn", self.logged.append)
        self.protocol = OwnOriginsWebSocket()
        self.protocol.peer = "tcp4:127.0.0.1:9"
        self.protocol.failedByMe = False
        self.protocol.sessionhandler = SimpleNamespace(
            data_in=lambda _, **sent: self.played.append(sent)
        )
        self.protocol.dropConnection = lambda abort=False: self.dropped.append(abort)


@pytest.fixture
def socket(db: None, monkeypatch: pytest.MonkeyPatch) -> Socket:
    return Socket(monkeypatch)


def test_valid_frame_is_accepted(socket: Socket) -> None:
    socket.protocol.onMessage(b'["text", ["look"], {}]', isBinary=False)
    assert (socket.played, socket.dropped) == ([{"text": [["look"], {}]}], [])


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{{{",
        b"null",
        b"7",
        b'"text"',
        b"[]",
        b'["text"]',
        b'["text", []]',
        b'["text", [], []]',
        b"[7, [], {}]",
        b'["text", [], {}, 1]',
        b"[" * 50_000,
        b'["text", ["\xc3\x28"], {}]',
    ],
)
def test_frame_of_a_wrong_form_closes_the_connection_with_one_line(
    socket: Socket, payload: bytes
) -> None:
    socket.protocol.onMessage(payload, isBinary=False)
    assert (socket.played, socket.dropped, len(socket.logged)) == ([], [True], 1)
    assert len(socket.logged[0]) < 200


def test_message_in_several_frames_is_limited_as_a_whole(socket: Socket) -> None:
    assert socket.protocol.maxFramePayloadSize == LARGEST
    socket.protocol.maxMessagePayloadSize = 0
    socket.protocol.onMessageBegin(isBinary=False)
    for _ in range(8):
        socket.protocol.onMessageFrameBegin(LARGEST // 8)
    assert socket.dropped == []
    socket.protocol.onMessageFrameBegin(1)
    assert socket.dropped == [True]


def test_endless_websocket_request_closes_the_connection(socket: Socket) -> None:
    socket.protocol.state = socket.protocol.STATE_CONNECTING
    socket.protocol.data = b"GET / HTTP/1.1\r\n" + b"x" * LARGEST
    socket.protocol.dataReceived(b"x")
    assert (socket.dropped, len(socket.logged)) == ([True], 1)


class Request:
    """A request of the Ajax client."""

    def __init__(self, *, size: int = 10, **args: bytes) -> None:
        self.content = BytesIO(b"x" * size)
        self.args = {name.encode(): [value] for name, value in args.items()}
        self.status = 200

    def getHeader(self, name: str) -> None:
        return None

    def setResponseCode(self, code: int) -> None:
        self.status = code


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (Request(mode=b"keepalive"), 400),
        (Request(mode=b"\xff"), 400),
        (Request(mode=b"input", csessid=b"x", cuid=b"1"), 400),
        (Request(mode=b"input", csessid=b"x", cuid=b"1", data=b"[" * 9_000), 400),
        (Request(mode=b"input", csessid=b"x", cuid=b"1", data=b"{"), 400),
        (Request(mode=b"keepalive", csessid=b"x", cuid=b"1"), 200),
        (Request(size=LARGEST + 1), 413),
        (Request(), 200),
    ],
)
def test_ajax_request_is_refused_without_an_error_if_it_is_wrong(
    db: None, request_: Request, status: int
) -> None:
    from evennia_ai.web.portal import OwnOriginsAjax

    client = OwnOriginsAjax()
    client.sessionhandler = SimpleNamespace(sessions_from_csessid=lambda _: [])
    assert isinstance(client.render_POST(request_), bytes)
    assert request_.status == status
