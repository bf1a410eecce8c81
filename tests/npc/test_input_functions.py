"""A frame of a client without an input function causes only one short line in the log."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings


class Client:
    """A session that keeps the messages it gets."""

    address = "127.0.0.1"

    def __init__(self, **flags: bool) -> None:
        self.protocol_flags = flags
        self.ndb = SimpleNamespace(unknown_frames=None)
        self.told: list[str] = []
        self.msg = self.told.append


@pytest.fixture
def logged(db: None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr("evennia_ai.npc.input_functions.log_warn", lines.append)
    return lines


def test_unknown_frame_is_a_short_line_without_what_it_holds(logged: list[str]) -> None:
    from evennia_ai.npc.input_functions import default

    client: Any = Client(INPUTDEBUG=True)
    default(client, "x" * 1_000, "secret" * 1_000, session="y", name="z" * 5_000)
    (line,) = logged
    assert len(line) < 250
    assert "1 arguments and 2 options" in line and "secret" not in line
    assert len(client.told[0]) < 100


def test_log_names_a_few_unknown_frames_of_one_connection(logged: list[str]) -> None:
    from evennia_ai.npc.input_functions import default

    client: Any = Client()
    for n in range(100):
        default(client, f"foo{n}")
    assert (len(logged), client.told) == (5, [])


def test_evennia_uses_our_default_function_unless_the_game_has_its_own(db: None) -> None:
    from evennia.server.sessionhandler import _INPUT_FUNCS

    from evennia_ai.npc.input_functions import default

    assert settings.INPUT_FUNC_MODULES[1] == "evennia_ai.npc.input_functions"
    assert _INPUT_FUNCS["default"] is default
