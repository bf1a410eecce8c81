"""Telnet that no browser can be made to type into (issue 14).

Evennia closes an HTTP connection only if the first line of the request arrives in one packet.
Otherwise it executes all lines. `tests/acceptance/test_foreign_pages.py` tests this with a real
server.
"""

from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.testing import StringTransport

HEAD = b"POST /a?b=c HTTP/1.1\r\nHost: localhost:4000\r\nOrigin: http://evil.example\r\n\r\n"
BODY = b"connect anna secret\r\nsay I was here\r\n"


class Line:
    """A telnet connection with our class, which keeps the lines that would be executed."""

    def __init__(self) -> None:
        from evennia_ai.web.telnet import TelnetWithoutHttp

        self.played: list[str] = []
        self.protocol = TelnetWithoutHttp()
        self.protocol.transport = StringTransport()
        self.protocol.line_buffer = b""
        self.protocol.address = "127.0.0.1"
        self.protocol.sessionhandler = SimpleNamespace(data_in=self._play)

    def comes(self, *pieces: bytes) -> list[str]:
        """Return the lines that are executed after these packets arrived."""
        for piece in pieces:
            self.protocol.dataReceived(piece)
        return self.played

    @property
    def is_closed(self) -> bool:
        return bool(self.protocol.transport.disconnecting)

    def _play(self, _: Any, *, text: bytes) -> None:
        self.played.append(text.decode().strip())


@pytest.fixture
def line(db: None) -> Line:
    return Line()


@pytest.mark.parametrize("method", [b"POST", b"GET", b"put", b"PROPFIND", b"CONNECT"])
def test_http_request_is_not_executed(line: Line, method: bytes) -> None:
    assert (line.comes(HEAD.replace(b"POST", method) + BODY), line.is_closed) == ([], True)


@pytest.mark.parametrize("size", [1, 3, 22, 64])
def test_http_request_in_several_packets_is_not_executed(line: Line, size: int) -> None:
    sent = HEAD + BODY
    pieces = [sent[at : at + size] for at in range(0, len(sent), size)]
    assert (line.comes(*pieces), line.is_closed) == ([], True)


def test_lines_after_an_http_request_are_not_executed(line: Line) -> None:
    assert line.comes(HEAD + b"x" * 65_000, BODY, b"\xff\xf1", BODY) == []


def test_http_request_with_a_long_address_and_line_feeds_only_is_not_executed(line: Line) -> None:
    sent = HEAD.replace(b"/a", b"/" + b"a" * 90_000).replace(b"\r\n", b"\n")
    assert (line.comes(b"\r\n" + sent + BODY), line.is_closed) == ([], True)


def test_invalid_telnet_closes_the_connection_with_one_log_line(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr("evennia_ai.web.telnet.logger.log_warn", told.append)
    empty_subnegotiation = b"\xff\xfa\xff\xf0"
    assert (line.comes(empty_subnegotiation * 9, b"look\r\n"), line.is_closed) == ([], True)
    (why,) = told
    assert "it sent what cannot be read: IndexError" in why


def test_typed_line_is_executed(line: Line) -> None:
    assert line.comes(b"connect an", b"na secret\r\nlook\r\n") == ["connect anna secret", "look"]


def test_line_about_http_is_executed_after_the_first_line(line: Line) -> None:
    played = line.comes(b"say hello\r\n", b"GET / HTTP/1.1\r\n")
    assert (played, line.is_closed) == (["say hello", "GET / HTTP/1.1"], False)


@pytest.mark.parametrize("typed", ["get lamp", "say GET / HTTP/1.1 x", "HTTP/1.1", ""])
def test_first_line_that_is_no_http_request_is_executed(line: Line, typed: str) -> None:
    assert line.comes(typed.encode() + b"\r\nlook\r\n")[-2:] == [typed, "look"]


SUBNEGOTIATION = b"\xff\xfa\xc9"
"""The first bytes of a GMCP frame."""


@pytest.mark.parametrize(
    ("piece", "times"),
    [
        (b"x" * 60_000, 3),
        (SUBNEGOTIATION + b"x" * 60_000, 2),
        (SUBNEGOTIATION + b"\xff\xff" * 40_000, 2),
        (SUBNEGOTIATION + b"Core.Hello " + b"x" * 9_000 + b"\xff\xf0", 1),
        (b"\xff\xfaE\x01X\x02" + b"\x03\x01X\x02" * 3_000 + b"\xff\xf0", 1),
    ],
)
def test_endless_or_too_large_data_closes_the_connection(
    line: Line, monkeypatch: pytest.MonkeyPatch, piece: bytes, times: int
) -> None:
    logged: list[str] = []
    monkeypatch.setattr("evennia_ai.web.telnet.logger.log_warn", logged.append)
    assert (line.comes(*[piece] * (times * 5), b"look\r\n"), line.is_closed) == ([], True)
    assert len(logged) == 1
    assert len(logged[0]) < 200


def test_small_frame_of_a_telnet_option_is_read(line: Line) -> None:
    read: list[bytes] = []
    line.protocol.negotiationMap[b"\xc9"] = lambda data: read.append(b"".join(data))
    line.comes(SUBNEGOTIATION + b"Core.Hello {}\xff\xf0look\r\n")
    assert (read, line.is_closed) == ([b"Core.Hello {}"], False)
