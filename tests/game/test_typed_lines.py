"""What clients send: links are gone and long lines are refused before Evennia looks at them.

Issue 14, Medium 14: Evennia's own search for links takes ten seconds for 6,000 characters, and the
lines of a web client it never counted.
"""

import re
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

BOMBS = ("|lc|lt", "|lu|lt", "|lc", "|lt|le", "|l|lc|lt|lec", "|lc|lu|lt")


class Playing:
    """A session as Evennia opens it, and what its input functions are called with."""

    def __init__(self) -> None:
        from evennia_ai.game.typed_lines import SessionWithoutLinks

        self.session = SessionWithoutLinks()
        self.session.init_session("websocket", "127.0.0.1", self)
        self.played: list[dict[str, Any]] = []
        self.shown: list[Any] = []

    def call_inputfuncs(self, session: Any, **kwargs: Any) -> None:
        self.played.append(kwargs)

    def data_out(self, session: Any, **kwargs: Any) -> None:
        self.shown.append(kwargs["text"])

    def types(self, line: str) -> Any:
        """The line that is played."""
        self.session.data_in(text=[[line], {}])
        return self.played.pop()["text"][0][0] if self.played else None


@pytest.fixture
def playing(db: None) -> Playing:
    return Playing()


def test_the_words_of_a_link_are_typed(playing: Playing) -> None:
    assert playing.types("say |lcquit|ltpress me|le") == "say press me"


@pytest.mark.parametrize("bomb", BOMBS)
def test_no_mark_of_a_link_is_left_to_look_for(playing: Playing, bomb: str) -> None:
    line = "say " + bomb * ((settings.MAX_CHAR_LIMIT - 4) // len(bomb))
    assert re.search(r"\|l[cute]", playing.types(line)) is None


def test_a_line_without_links_is_typed_as_it_is(playing: Playing) -> None:
    line = "say |rred|n, ||lamp, {braces} and $functions() \\|l"
    assert playing.types(line) == line


@pytest.mark.parametrize(
    ("typed", "played"),
    [
        ("say \x1b[2Ja\0b\x9b31m\r\x7f", "say [2Jab31m"),
        ("say \u202eab\u200b\ud800", "say ab"),
        ("say e" + "\u0301" * 300, "say e" + "\u0301" * 6),
        ("one\n\ttwo", "one\n    two"),
    ],
)
def test_nothing_that_acts_on_a_terminal_is_typed(
    playing: Playing, typed: str, played: str
) -> None:
    with override_settings(MXP_OUTGOING_ONLY=False):
        assert playing.types(typed) == played
    assert playing.types(typed) == played


def test_whatever_else_a_client_sends_has_no_links_either(playing: Playing) -> None:
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep, "|lc|lt"]
    playing.session.data_in(**{"a|lcb": [["|lc|lt", 5, None], {"|lu": ["|lt", deep]}]})
    assert "|l" not in str(playing.played)


def test_a_line_over_the_limit_is_refused_whatever_the_client(playing: Playing) -> None:
    assert playing.types("x" * settings.MAX_CHAR_LIMIT) is not None
    assert playing.types("x" * (settings.MAX_CHAR_LIMIT + 1)) is None
    assert settings.MAX_CHAR_LIMIT_WARNING in str(playing.shown)


def test_a_game_without_a_limit_has_none(playing: Playing) -> None:
    with override_settings(MAX_CHAR_LIMIT=0):
        assert playing.types("x" * 50_000) is not None


def test_where_players_may_make_links_they_do(playing: Playing) -> None:
    with override_settings(MXP_OUTGOING_ONLY=False):
        assert playing.types("say |lcquit|lta|le") == "say |lcquit|lta|le"


@pytest.mark.parametrize(
    "sent",
    [{"text": None}, {"text": []}, {"text": [[], {}]}, {"x": [[None], {}]}, {"text": [[7], {}]}],
)
def test_what_no_client_sends_is_passed_on(playing: Playing, sent: dict[str, Any]) -> None:
    playing.session.data_in(**sent)
    assert len(playing.played) == 1


def test_the_demo_uses_it() -> None:
    assert settings.SERVER_SESSION_CLASS == "evennia_ai.game.typed_lines.SessionWithoutLinks"
