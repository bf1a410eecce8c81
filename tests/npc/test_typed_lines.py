"""What clients send is limited and cleaned before it leaves the Portal, as is what they are shown.

Issue 14, Medium 14, and issue 35: Evennia's own search for links takes ten seconds for 6,000
characters. It does not limit lines of web clients, and it echoes lines in the Portal.
"""

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

BOMBS = ("|lc|lt", "|lu|lt", "|lc", "|lt|le", "|l|lc|lt|lec", "|lc|lu|lt", "|||n|rlc", "|l|n|n|nc")
LINK = "|lcquit|ltpress me|le"


class Portal:
    """The Portal's sessions with one client, which keep what reaches the Server and the client."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import evennia

        from evennia_ai.npc.typed_lines import BoundedSessions

        self.played: list[dict[str, Any]] = []
        self.shown: list[str] = []
        self.logged: list[str] = []
        amp = SimpleNamespace(send_MsgPortal2Server=lambda _, **sent: self.played.append(sent))
        service = SimpleNamespace(amp_protocol=amp)
        monkeypatch.setattr(evennia, "EVENNIA_PORTAL_SERVICE", service)
        monkeypatch.setattr("evennia_ai.npc.typed_lines.logger.log_warn", self.logged.append)
        self.sessions = BoundedSessions()
        self.client = SimpleNamespace(
            address="127.0.0.1",
            protocol_flags={"ENCODING": "utf-8"},
            send_text=lambda text, **_: self.shown.append(text),
            sendLine=self.shown.append,
        )

    def sends(self, **frame: Any) -> dict[str, Any]:
        """Return what reaches the Server when a client sends a frame."""
        self.client.command_counter = 0  # a client that has sent one frame in a second
        self.sessions.data_in(self.client, **frame)
        return self.played.pop() if self.played else {}

    def types(self, line: Any) -> Any:
        return next(iter(self.sends(text=[[line], {}]).get("text", [[None]])[0]))


@pytest.fixture
def portal(db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Portal]:
    yield Portal(monkeypatch)


def test_link_in_a_typed_line_becomes_its_words(portal: Portal) -> None:
    assert portal.types(f"say {LINK}") == "say press me"


@pytest.mark.parametrize("bomb", BOMBS)
def test_typed_line_keeps_no_mark_of_a_link(portal: Portal, bomb: str) -> None:
    line = "say " + bomb * ((settings.MAX_CHAR_LIMIT - 4) // len(bomb))
    assert re.search(r"\|(\|.)*l(\|.)*[cute]", portal.types(line)) is None


@pytest.mark.parametrize("strips", [False, True])
@pytest.mark.parametrize(
    "typed",
    [
        LINK,
        LINK.replace("|", "||"),
        LINK.replace("|", "|\u200b"),
        LINK.replace("|", "|\x07"),
        LINK.replace("|", "|||n"),
        LINK.replace("|", "|||500|[#00ff00|=a"),
        LINK.replace("|l", "|l|r"),
        LINK.replace("|l", "|||!Rl|[R"),
        "|l" + LINK.replace("press me", "") + "cquit|ltpress|le",
    ],
)
def test_typed_text_is_no_link_on_any_screen(portal: Portal, typed: str, strips: bool) -> None:
    from evennia.server.portal.mxp import mxp_parse
    from evennia.utils.ansi import parse_ansi
    from evennia.utils.text2html import parse_html

    line = portal.types(f"say {typed}")
    assert "mxplink" not in parse_html(line, strip_ansi=strips)
    assert "<SEND" not in mxp_parse(parse_ansi(line, strip_ansi=strips, mxp=True))


def test_typed_line_without_links_is_unchanged(portal: Portal) -> None:
    line = "say |rred|n, ||lamp, {braces} and $functions() \\|l"
    assert portal.types(line) == line


@pytest.mark.parametrize(
    ("typed", "played"),
    [
        ("say \x1b[2Ja\0b\x9b31m\r\x7f", "say [2Jab31m"),
        ("say \u202eab\u200b\ud800", "say ab"),
        ("say e" + "\u0301" * 300, "say e" + "\u0301" * 6),
        ("one\n\ttwo", "one\n    two"),
    ],
)
def test_control_characters_are_removed_from_typed_lines(
    portal: Portal, typed: str, played: str
) -> None:
    with override_settings(MXP_OUTGOING_ONLY=False):
        assert portal.types(typed) == played
    assert portal.types(typed) == played


def test_links_are_removed_from_other_frames(portal: Portal) -> None:
    sent = portal.sends(**{"a|lcb": [["|lc|lt", 5, None], {"|lu": ["|lt", ["|le"]]}]})
    assert sent and "|l" not in str(sent)


@pytest.mark.parametrize("name", ["text", "TEXT", " Text\n"])
def test_line_over_the_limit_is_refused_under_any_name_of_its_frame(
    portal: Portal, name: str
) -> None:
    most = settings.MAX_CHAR_LIMIT
    assert portal.sends(**{name: [["x" * most], {}]})["text"][0] == ["x" * most]
    assert portal.shown == []
    assert portal.sends(**{name: [["x" * (most + 1)], {}]}) == {}
    assert portal.shown == [settings.MAX_CHAR_LIMIT_WARNING]


def test_line_has_no_limit_in_a_game_without_one(portal: Portal) -> None:
    with override_settings(MAX_CHAR_LIMIT=0):
        assert portal.types("x" * 50_000) is not None


def test_telnet_line_is_decoded_and_counted_in_characters(portal: Portal) -> None:
    assert portal.sends(text="say ä |lcx|ltb|le\n".encode())["text"][0] == ["say ä b\n"]


def test_links_in_typed_lines_stay_when_players_may_make_links(portal: Portal) -> None:
    with override_settings(MXP_OUTGOING_ONLY=False):
        assert portal.types(f"say {LINK}") == f"say {LINK}"


def test_only_the_line_of_a_text_frame_reaches_the_server(portal: Portal) -> None:
    sent = portal.sends(text=[["look", "py 1"], {"cmdobj": "py", "raw_string": "py 1"}])
    assert sent["text"][0] == ["look"]
    assert set(sent["text"][1]) <= {"options"}


@pytest.mark.parametrize(
    "data",
    [
        [["x" * 6_000], {}],
        [[], {"client": "é\t" * 3_000}],
        [[], {"x" * 6_000: 1}],
        [[0] * 6_000, {}],
        [[], {str(n): n for n in range(3_000)}],
        [[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]], {}],
    ],
)
@pytest.mark.parametrize("name", ["client_options", "foo", "bot_data_in", "x" * 300])
def test_other_frame_is_dropped_with_a_short_line_when_it_is_too_large(
    portal: Portal, name: str, data: Any
) -> None:
    assert portal.sends(**{name: data}) == {}
    (line,) = portal.logged
    assert "127.0.0.1" in line and "was dropped" in line
    assert len(line) < 200


def test_deep_text_frame_is_dropped(portal: Portal) -> None:
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep]
    assert portal.sends(text=[deep, {}]) == {}
    assert portal.types({"a": 1}) is None
    assert len(portal.logged) == 2


def test_only_a_few_frames_of_one_connection_are_logged(portal: Portal) -> None:
    for _ in range(100):
        assert portal.sends(foo=[["x" * 9_000], {}]) == {}
    assert len(portal.logged) == 5


@pytest.mark.parametrize("frame", [{"text": None}, {"text": []}, {"text": [[], {}]}, {"x": []}])
def test_empty_frame_is_passed_on(portal: Portal, frame: dict[str, Any]) -> None:
    portal.sessions.data_in(portal.client, **frame)
    assert len(portal.played) == 1
    assert portal.logged == []


def shows(portal: Portal, text: str, **options: Any) -> str:
    portal.sessions.data_out(portal.client, text=[[text], options])
    return portal.shown.pop()


def test_link_of_the_game_is_shown(portal: Portal) -> None:
    helped = "|lchelp look|lt|wlook|n|le, |luhttps://evennia.com|ltthe docs|le"
    assert shows(portal, helped) == helped
    assert shows(portal, helped, type="look") == helped


@pytest.mark.parametrize("kind", ["say", "whisper", "pose"])
def test_link_in_the_words_of_a_player_is_not_shown(portal: Portal, kind: str) -> None:
    assert shows(portal, f'Mallory says, "{LINK}"', type=kind) == 'Mallory says, "press me"'
    with override_settings(MXP_OUTGOING_ONLY=False):
        assert LINK in shows(portal, f'Mallory says, "{LINK}"', type=kind)


@pytest.mark.parametrize("bomb", BOMBS)
def test_marks_of_broken_links_are_not_shown(portal: Portal, bomb: str) -> None:
    from evennia.utils.ansi import ANSI_PARSER

    shown = shows(portal, LINK + bomb * 5_000 + LINK)
    assert shown.startswith(LINK) and shown.endswith(LINK)
    # Evennia removes links from what it shows to a client without links.
    assert re.search(r"\|l[cute]", ANSI_PARSER.strip_mxp(shown)) is None


def test_echo_of_the_portal_is_clean(portal: Portal) -> None:
    portal.client.protocol_flags["LOCALECHO"] = True
    portal.types("say " + "|lc|lt" * 200)
    assert "|l" not in portal.shown[0]


def test_demo_uses_the_bounded_sessions() -> None:
    assert settings.PORTAL_SESSION_HANDLER_CLASS == "evennia_ai.npc.typed_lines.BoundedSessions"
