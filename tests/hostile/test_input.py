"""Odd input: bytes that no client sends, lines that nobody types, frames that no page sends.

Everything except typed lines is sent over a separate connection. Afterwards a bystander looks
around. Nothing that acts on a terminal may have been shown, and no error logged.
"""

import json
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from server.client import Client
from server.ports import HOST
from server.steps import StepError
from server.telnet import DO, DONT, IAC, NAWS, SB, SE, WILL, WONT
from tests.hostile.audit import audit, errors_of_ours
from tests.hostile.harbour import PASSWORD, Harbour
from tests.hostile.test_output import lines_at
from tests.npc.hostile.plain import assert_plain

pytestmark = [pytest.mark.server, pytest.mark.minutes(2)]

COLOURS = re.compile(r"\x1b\[[0-9;]*m|<span class=[^>]*>|</span>")
"""The colours with which the game itself shows a room."""

TTYPE, MSSP, CHARSET, MSDP, MCCP, GMCP = 24, 70, 42, 69, 86, 201


def sub(option: int, data: bytes, *, ended: bool = True) -> bytes:
    """Return a telnet subnegotiation."""
    return bytes([IAC, SB, option]) + data + (bytes([IAC, SE]) if ended else b"")


def gmcp(text: str) -> bytes:
    return sub(GMCP, text.encode())


def typed(line: str) -> bytes:
    return line.encode("utf-8", "replace") + b"\r\n"


ALL_OPTIONS = bytes(range(240))
TELNET: dict[str, bytes] = {
    # The protocol
    "a command that is cut off": bytes([IAC]),
    "a command in the middle of a line": b"say a" + bytes([IAC, 241]) + b"b\r\n",
    "a doubled command byte": b"say a" + bytes([IAC, IAC]) + b"b\r\n",
    "unknown commands": bytes(b for one in range(1, 240) for b in (IAC, one)) + b"\r\n",
    "break, interrupt, abort, erase": bytes(b for one in range(243, 250) for b in (IAC, one)),
    "are you there, a thousand times": bytes([IAC, 246]) * 1000,
    "every option wanted": bytes(b for one in ALL_OPTIONS for b in (IAC, DO, one)),
    "every option offered": bytes(b for one in ALL_OPTIONS for b in (IAC, WILL, one)),
    "every option taken back": bytes(
        b for one in ALL_OPTIONS for b in (IAC, DONT, one, IAC, WONT, one)
    ),
    "an option on and off a thousand times": bytes([IAC, DO, 1, IAC, DONT, 1]) * 1000,
    "an end without a beginning": bytes([IAC, SE]) * 100,
    "a subnegotiation without an end": sub(GMCP, b"Core.Hello " + b"x" * 200_000, ended=False),
    "subnegotiations in one another": bytes([IAC, SB, GMCP]) * 500 + bytes([IAC, SE]),
    "an empty subnegotiation": bytes([IAC, SB, IAC, SE]),
    "a window without a size": sub(NAWS, b""),
    "a window of half a size": sub(NAWS, b"\0P\0"),
    "a window of nothing": sub(NAWS, b"\0\0\0\0") + typed("look"),
    "the largest window": sub(NAWS, b"\xff\xff\xff\xff" * 2) + typed("look"),
    "five thousand windows": sub(NAWS, b"\0P\0\x18") * 5000,
    "a terminal that nobody knows": sub(TTYPE, b"\0" + b"\x1b[31m" * 50) * 8,
    "terminals without end": sub(TTYPE, b"\0XTERM-256COLOR") * 2000,
    "a character set that is none": sub(CHARSET, b"\x01;no-such-set;utf-7;idna"),
    "status that the game is to tell": bytes([IAC, DO, MSSP]) * 20,
    "compression that is switched on and not used": bytes([IAC, DO, MCCP]) + typed("look"),
    "GMCP that is no JSON": gmcp("Core.Hello {{{{") + gmcp("Core.Hello [") + gmcp(""),
    "GMCP of deep JSON": gmcp("Core.Hello " + "[" * 20_000 + "]" * 20_000),
    "GMCP of a package without a name": gmcp("   ") + gmcp(".") + gmcp(" {}"),
    "GMCP that calls what is inside": gmcp('__class__ {"a": 1}') + gmcp('msdp_list ["x"]'),
    "a long frame of GMCP": gmcp('Core.Hello {"x": "' + "x" * 30_000 + '"}'),
    "a line by GMCP": gmcp('Core.Text ["say |lclook|ltclick|le"]'),
    "a long line by GMCP": gmcp('Core.TEXT ["say ' + "x" * 7_000 + '"]'),
    "many lines in one frame of MSDP": sub(
        MSDP, b"".join(b"\x01%s\x02look" % one for one in (b"text", b"Text", b"TEXT", b"tEXT"))
    ),
    "two megabytes of a subnegotiation": sub(MSDP, b"x" * 2_000_000, ended=False),
    "three megabytes without a line end": b"x" * 3_000_000,
    "GMCP by the thousand": gmcp('Core.Supports.Set ["Char 1"]') * 3000,
    "MSDP that is not closed": sub(MSDP, b"\x01LIST\x02\x05\x02\x05\x02\x05"),
    "MSDP of deep tables": sub(MSDP, b"\x01X\x02" + b"\x03\x01X\x02" * 3000),
    # Letters
    "a zero byte in a line": b"say a\0b\r\n",
    "zero bytes alone": b"\0" * 2000 + b"\r\n",
    "a letter that is cut off": b"say \xc3\r\n",
    "a letter with a wrong second byte": b"say \xc3\x28\r\n",
    "a letter that is longer than it need be": b"say \xc0\xaf\xe0\x80\xaf\r\n",
    "half letters as bytes": b"say \xed\xa0\x80\xed\xbf\xbf\r\n",
    "letters beyond the last": b"say \xf4\x90\x80\x80\xf8\x88\x80\x80\x80\r\n",
    "another encoding": "say \u00fc\u00f6".encode("utf-16") + b"\r\n",
    "every byte there is": b"say " + bytes(range(255)).replace(b"\n", b"") + b"\r\n",
    "controls of a terminal": b"say \x1b[2J\x1b]0;x\x07\x08\x08\x7f\x9b31m\r\n",
    "ends of text": b"\x03\x04\x1a\x1c\r\n",
    # Lines
    "no line at all": b"\r\n",
    "three thousand empty lines": b"\r\n" * 3000,
    "only spaces": b" " * 1400 + b"\r\n",
    "only tabs": b"\t" * 1400 + b"\r\n",
    "line ends of other systems": b"look\rlook\nlook\r\0look\n\r",
    "a line of ten thousand letters": typed("say " + "x" * 10_000),
    "a line of a hundred thousand letters": typed("say " + "x" * 100_000),
    "a megabyte in a line": typed("say " + "ferry " * 170_000),
    "a megabyte without a line end": b"x" * 1_000_000,
    "three hundred commands at once": b"look\r\n" * 300,
}
LINES: dict[str, str] = {
    "a command alone": "talk",
    "nothing on both sides": "talk = ",
    "nothing to say": "talk nim =",
    "nobody to talk to": "talk = hello",
    "a thousand equal signs": "talk " + "=" * 1000,
    "a thousand slashes": "talk" + "/" * 1000,
    "a thousand switches": "talk" + "/a" * 500,
    "a switch that is a way": "talk/../../etc/passwd nim = x",
    "a number as a person": "talk #1 = hello",
    "a number that is none": "talk #-1 = hello",
    "a large number": "talk #" + "9" * 300 + " = hello",
    "one of many": "talk 99999999999999999999-nim = hello",
    "an account": "talk *tamsin = hello",
    "a pattern": "talk (a+)+$ = hello",
    "everybody": "talk * = hello",
    "me and here": "talk me = hello;talk here = hello",
    "to show nothing": "show to nim",
    "to show everything": "show * to *",
    "to show what is a name of code": "show __class__ to nim",
    "to read nothing": "read",
    "to read a way": "read ../../server/conf/secret_settings.py",
    "a whisper to nobody": "whisper = ",
    "a whisper to many": "whisper " + "nim," * 300 + " = hello",
    "a pose of nothing": "pose",
    "a pose of functions": "pose $pad(x, 99999999) $space(99999999)",
    "a pose of nested functions": "pose " + "$clr(r," * 200 + "x" + ")" * 200,
    "words of functions": "say $eval(1+1) $space(99999999) $py(1)",
    "link markup without end": "say " + "|lc|lt" * 240,
    "link markup to the NPC": "talk nim = " + "|lc" * 230 + "|lt" * 230 + "|le",
    "link markup in a whisper": "whisper nim = " + "|lu|lt|le" * 160,
    "bars": "say " + "|" * 1400,
    "braces": "say " + "{" * 700 + "}" * 700,
    "brackets": "say " + "[(<" * 460,
    "accents": "talk pell = e" + "\u0301" * 340,
    "letters of four bytes": "talk pell = " + "\U0001f409" * 340,
    "quotes": "'\"'\"'\"'\"",
    "marks alone": "@",
    "two commands": "say a;py 1;;say b",
}


def frame(*parts: Any) -> bytes:
    return json.dumps(parts).encode()


FRAMES: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"{{{{",
    "null": b"null",
    "a number": b"7",
    "not a number": b"NaN",
    "a text": b'"text"',
    "an object": b'{"text": ["look"]}',
    "an empty list": b"[]",
    "a name alone": frame("text"),
    "no arguments": frame("text", [], {}),
    "arguments that are no list": frame("text", "look", {}),
    "options that are no object": frame("text", ["look"], [1, 2]),
    "a number as a name": frame(7, ["look"], {}),
    "null as a name": frame(None, ["look"], {}),
    "a list as a name": frame(["text"], ["look"], {}),
    "a name of code": frame("__class__", ["x"], {"__init__": 1}),
    "a name with a point": frame("text.__globals__", ["x"], {}),
    "an object as a line": frame("text", [{"a": 1}], {}),
    "null as a line": frame("text", [None], {}),
    "a number as a line": frame("text", [7], {}),
    "a list as a line": frame("text", [["look"]], {}),
    "true as a line": frame("text", [True], {}),
    "a hundred lines": frame("text", ["look"] * 100, {}),
    "a line with line ends": frame("text", ["say a\nsay b\r\nsay c"], {}),
    "half letters": b'["text", ["say \\ud800 \\udfff"], {}]',
    "zero bytes": b'["text", ["say \\u0000"], {}]',
    "controls": b'["text", ["say \\u001b[2J \\u009b31m \\u202e"], {}]',
    "deep lists": b"[" * 50_000 + b"]" * 50_000,
    "deep arguments": b'["text", ' + b"[" * 900 + b"]" * 900 + b", {}]",
    "a number of many digits": b'["text", [' + b"9" * 5000 + b"], {}]",
    "a line of a megabyte": frame("text", ["say " + "x" * 1_000_000], {}),
    "options of the game's own": frame("text", ["look"], {"session": 1, "cmdobj": "py"}),
    "what only the Server says": frame("logged_in", [], {}),
    "a login that is a list": frame("login", [["anna"], ["x"]], {}),
    "a login of nobody": frame("login", [], {}),
    "a bot": frame("bot_data_in", ["x"], {"type": "msg", "nick": "Tamsin"}),
    "a value of the insides": frame("get_value", ["__class__"], {"name": "__dict__"}),
    "a monitor of the insides": frame("monitor", [], {"name": "_protected_attrs"}),
    "a repeat without a pause": frame("repeat", [], {"callback": "py", "interval": 0}),
    "options of wrong types": frame("client_options", [], {"screenwidth": "x", "ansi": [1]}),
    "options of endless numbers": b'["client_options", [], {"screenwidth": {"0": 1e999}}]',
    "options by the thousand": frame("client_options", [], {f"o{n}": n for n in range(5000)}),
    "options of the page": frame("webclient_options", [7], {"x": [1, {"y": None}]}),
    "accents and tabs in a known frame": frame("client_options", [], {"x": "é\t" * 20_000}),
    "ten megabytes in a known frame": frame("client_options", [], {"x": "x" * 10_700_000}),
    "ten megabytes in an unknown frame": frame("foo", [], {"x": "x" * 10_700_000}),
    "sixty thousand letters in an unknown frame": frame("foo", [], {"x": "x" * 60_000}),
    "an unknown name of sixty thousand letters": frame("x" * 60_000, [], {}),
    "a long line in capitals": frame("TEXT", ["say " + "x" * 20_000], {}),
    "a long line between blanks": frame(" text ", ["say " + "x" * 20_000], {}),
    "links in capitals": frame("Text", ["say |lclook|ltclick|le"], {}),
    "links that unseen letters part": frame("text", ["say |\u200blclook|\u200bltx|\u200ble"], {}),
    "links that colours part": frame("text", ["say |||nlclook|||rltclick|l|ge"], {}),
    "links behind doubled bars": frame("text", ["say ||lclook||ltclick||le"], {}),
    "numbers by the thousand": frame("monitor", list(range(9000)), {}),
    "attributes of a command": frame("text", ["look"], {"raw_string": "py 1", "callertype": "x"}),
}
NICKS: dict[str, tuple[str, ...]] = {
    "a link out of a nick": ("nick q $1 $2 $3 = say |$1look|$2click|$3", "q lc lt le"),
    "a link out of letters": ("nick q $1 = say |l$1", "q clook|ltclick|le"),
    "an address out of a nick": (
        "nick q $1 $2 $3 = say |$1http://evil.example|$2x|$3",
        "q lu lt le",
    ),
    "a link behind doubled bars out of a nick": ("nick q $1 = say ||l$1", "q clook||ltclick||le"),
    "a link behind colours out of a nick": ("nick q $1 = say |||nl$1", "q clook|||nltx|||nle"),
    "a link in a pose out of a nick": ("nick q $1 = pose |l$1", "q clook|ltclick|le"),
    "a link in a whisper out of a nick": ("nick q $1 = whisper ben = |l$1", "q clook|ltx|le"),
    "a link on a page out of a nick": ("nick q $1 = page ben = |l$1", "q clook|ltclick|le"),
    "a link on a channel out of a nick": ("nick q $1 = channel public = |l$1", "q clook|ltx|le"),
    "marks of links by the hundred": ("nick z $1 $2 = say |$1|$1|$2", "z lc" + "A" * 600 + " lt"),
    "a line multiplied": ("nick w $1 = say " + "$1" * 6, "w " + "A" * 1400),
    "a nick of hundreds of marks": ("nick w $1 = say " + "$1" * 680, "w A", "nicks"),
    "a nick that searches for ever": (
        "nick $1a$2a$3a$4a$5a$6a zz = say $1$2$3$4$5$6",
        "say " + "a" * 1200,
    ),
    "stars that search for ever": ("nick *a*a*a*a*a*z = look", "say " + "a" * 1200),
    "a nick of things that searches for ever": (
        "nick/object $1a$2a$3a$4a$5a$6a zz = $1$2$3$4$5$6",
        "look " + "a" * 1200,
    ),
    "a nick of accounts that multiplies": (
        "nick/account w $1 = $1$1$1$1$1$1",
        "page w " + "A" * 1300 + " = hello",
    ),
    "a nick that is a template": ("nick v $1 = say {arg1:>900000000}$1", "v x"),
    "a nick that reads the insides": ("nick v $1 = say {arg1.__class__.__mro__} $1", "v x"),
    "a nick with one argument twice": ("nick $1 $1 = say $1", "say a", "say b"),
    "a set without an end": ("nick [!$1 = say $1", "[!x"),
    "nicks by the hundred": (*(f"nick n{n} $1 = say $1" for n in range(200)), "nicks"),
}


def request(length: int | None, *more: str) -> bytes:
    """Return the head of a request with a body of this length, or without an announced length."""
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    return "\r\n".join(["POST /ai/ HTTP/1.1", "Host: localhost", size, *more, "", ""]).encode()


PIECE = b"a=b&" * 16_384
CHUNK = b"10000\r\n" + PIECE + b"\r\n"
FORM = "Content-Type: application/x-www-form-urlencoded"
BODIES: dict[str, tuple[bytes, bytes, int]] = {
    "three hundred megabytes that nobody sends": (request(300_000_000), PIECE, 1),
    "sixty megabytes of a form": (request(60_000_000, FORM), PIECE, 915),
    "chunks without end": (request(None, FORM), CHUNK, 400),
    "a length that no number holds": (request(10**30), PIECE, 1),
    "a wait for a word from the game": (request(300_000_000, "Expect: 100-continue"), b"", 0),
    "a login that is none": (request(2_000_000, "Cookie: sessionid=" + "a" * 32), PIECE, 31),
    "a file without a login": (
        request(30_000_000, "Content-Type: multipart/form-data; boundary=x"),
        PIECE,
        100,
    ),
}
OPCODES: dict[str, tuple[int, bytes]] = {
    "a binary frame": (2, b"\xff\xfe\x00" * 100),
    "a text that is not UTF-8": (1, b'["text", ["\xc3\x28"], {}]'),
    "a continuation of nothing": (0, b"x"),
    "an opcode that nobody knows": (11, b"x"),
    "a ping that is too long": (9, b"x" * 500),
    "a goodbye with a code that is none": (8, b"\x00\x01"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One attack of this subject."""

    name: str
    plays: Callable[[Harbour], object]


def _lines(name: str, *lines: str) -> Attack:
    return Attack(name=name, plays=lambda harbour: harbour.newcomer("Dora").types(*lines))


def _bytes(name: str, data: bytes) -> Attack:
    def plays(harbour: Harbour) -> None:
        with harbour.at_telnet("Dora", PASSWORD) as client:
            ends_with_a_look(client, lambda: client.send_bytes(data))

    return Attack(name=f"telnet: {name}", plays=plays)


def _frame(name: str, payload: bytes, *, opcode: int = 1) -> Attack:
    def plays(harbour: Harbour) -> None:
        with harbour.at_the_web("Dora", PASSWORD) as client:
            ends_with_a_look(client, lambda: client.send_frame(payload, opcode=opcode))

    return Attack(name=f"websocket: {name}", plays=plays)


def _echo(name: str, line: str) -> Attack:
    def plays(harbour: Harbour) -> None:
        with harbour.at_the_web("Dora", PASSWORD) as client:
            client.send_frame(frame("client_options", [], {"localecho": True}))
            client.send("look")
            client.wait_for("The room of input", seconds=30)
            ends_with_a_look(client, lambda: client.send_frame(frame("text", [line], {})))

    return Attack(name=f"echo: {name}", plays=plays)


def _body(name: str, head: bytes, piece: bytes, times: int) -> Attack:
    def plays(harbour: Harbour) -> None:
        answer = b""
        with socket.create_connection((HOST, harbour.game.ports.web), timeout=300) as wire:
            with suppress(ConnectionError):
                wire.sendall(head)
                for _ in range(times):
                    wire.sendall(piece)
            with suppress(ConnectionError):
                while received := wire.recv(65_536):
                    answer += received
        assert answer.startswith(b"HTTP/1.1 413 "), answer[:200]
        assert answer.count(b"HTTP/1.1") == 1, answer[:500]

    return Attack(name=f"body: {name}", plays=plays)


ATTACKS = (
    *(_lines(f"line: {name}", line) for name, line in LINES.items()),
    *(
        _lines(f"nick: {name}", "nick/clearall", *lines, "nick/clearall")
        for name, lines in NICKS.items()
    ),
    *(_bytes(name, data) for name, data in TELNET.items()),
    *(_frame(name, payload) for name, payload in FRAMES.items()),
    *(_frame(name, payload, opcode=code) for name, (code, payload) in OPCODES.items()),
    _echo("marks of links", "|lc|lt" * 240),
    _echo("marks of links in a line that is too long", "|lc|lt" * 5_000),
    *(_body(name, *one) for name, one in BODIES.items()),
)
"""The attacks. Dora's typed lines come first, because other attacks end her connection."""

MOST_LOGGED = 100_000
"""The most bytes that one attack may add to the logs.

An unknown frame was once logged completely.
"""


def test_hostile_player_input_does_no_harm(harbour: Harbour) -> None:
    scene = harbour.scene("input", npc="Pell")
    scene.enters(harbour.newcomer("Dora"))
    bystanders = [scene.enters(harbour.newcomer("Ben", links=True)), harbour.builder]
    with audit("input", harbour) as subject:
        for attack in ATTACKS:
            logged = harbour.log_ends()
            with subject.attack(attack.name):
                for one in bystanders:
                    one.client.forget()
                attack.plays(harbour)
                for one in bystanders:
                    assert "The room of input" in one.types("look"), one.client.text
                    for line in lines_at(one):
                        assert_plain(COLOURS.sub("", line))
                log = harbour.log_since(logged)
                assert errors_of_ours(log) == []
                assert len(log) < MOST_LOGGED, f"the logs grew by {len(log)} bytes"


def ends_with_a_look(client: Client, sends: Callable[[], None]) -> None:
    """Send an attack and then a line that shows the room, unless the game has hung up."""
    with suppress(StepError, ConnectionError):
        sends()
        client.send("look")
        client.wait_for("The room of input", seconds=1.5)
