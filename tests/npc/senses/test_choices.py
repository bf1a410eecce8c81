"""`ai off` and `ignore`: NPCs keep nothing of a player, and a player reads nothing of an NPC."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from evennia.utils.create import create_account

from evennia_ai import happened
from evennia_ai.npc.senses import choices
from evennia_ai.npc.speech.output import show_item, talk_to
from evennia_ai.npc.tools.targets import Refused, person
from evennia_ai.npc.watch.request_log import RequestLog
from evennia_ai.services.settings.conf import conf

CANARY = "quicksilver"
NOD = "Oren gives you a friendly nod."


def with_account(who: Any) -> Any:
    """Return the account of a character, which it gets here."""
    who.account = create_account(f"player of {who.key}", "", "a-password-of-a-test")
    return who.account


@pytest.fixture
def anna(stage: Any) -> Any:
    """Anna, whose player typed `ai off`."""
    choices.opt_out(with_account(stage.anna))
    return stage.anna


def in_tables() -> str:
    """Return all rows of our tables as text."""
    tables = apps.get_app_config("evennia_ai").get_models()
    return "\n".join(json.dumps(row, default=str) for one in tables for row in one.objects.values())


def _says(stage: Any, anna: Any, words: str) -> None:
    stage.says(anna, f"Oren, {words}")


def _whispers(stage: Any, anna: Any, words: str) -> None:
    stage.whispers(anna, words)


def _poses(stage: Any, anna: Any, words: str) -> None:
    stage.room.msg_contents((f"Anna {words}", {"type": "pose"}), from_obj=anna)
    stage.passes()


def _talks(stage: Any, anna: Any, words: str) -> None:
    talk_to(anna, stage.npc, words)
    stage.passes()


def _is_rendered(stage: Any, anna: Any, words: str) -> None:
    stage.npc.msg(text=(f'Anna shouts: "Oren, {words}"', {"type": "say"}), from_obj=anna)
    stage.passes()


def _shows(stage: Any, anna: Any, words: str) -> None:
    item = stage.make(f"a {words}"[:60], "evennia.objects.objects.DefaultObject", anna)
    assert not show_item(anna, item, stage.npc)
    stage.passes()


def _is_reported(stage: Any, anna: Any, words: str) -> None:
    assert happened(stage.room, "song", f"{{actor}} sings: {words}", actor=anna) == 0
    stage.passes()


def _comes_and_goes(stage: Any, anna: Any, words: str) -> None:
    anna.key = words
    anna.move_to(None, to_none=True)
    anna.move_to(stage.room)
    stage.passes(1)


WAYS: dict[str, Callable[[Any, Any, str], None]] = {
    "say": _says,
    "whisper": _whispers,
    "pose": _poses,
    "talk": _talks,
    "a line of the game": _is_rendered,
    "show": _shows,
    "a happening": _is_reported,
    "move": _comes_and_goes,
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_of_a_player_who_opted_out_reaches_a_record_or_a_model(
    way: str, stage: Any, anna: Any
) -> None:
    stage.talks_with(lambda _: "Aye.")
    WAYS[way](stage, anna, CANARY)
    assert CANARY not in in_tables()
    assert stage.model.requests == []
    assert stage.records() == stage.records("private") == []


@pytest.mark.parametrize("way", ["say", "whisper", "pose", "talk", "a line of the game"])
def test_words_of_a_player_are_recorded_again_after_ai_on(way: str, stage: Any, anna: Any) -> None:
    stage.talks_with(lambda _: "Aye.")
    choices.opt_in(anna.account)
    WAYS[way](stage, anna, f"{CANARY}, Oren")
    assert CANARY in in_tables()


FRAMES = (('Anna says, "{}"', "say"), ('Anna whispers: "{}"', "whisper"), ("Anna {}", "pose"))


@pytest.mark.long
def test_ten_thousand_lines_of_a_player_who_opted_out_are_kept_nowhere(
    stage: Any, anna: Any, logged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ben is heard meanwhile, so the requests, rows and logs that are searched are not empty."""
    watchers = [RequestLog(in_full=True)]
    monkeypatch.setattr("evennia_ai.npc.runtime.watchers_of", lambda *_, **__: watchers)
    stage.talks_with(lambda _: "Aye.", memory=replace(conf().memory, after_messages=2))
    brida = stage.make("Brida", "evennia_ai.typeclasses.AINPC")
    random = Random(48)
    for number in range(10_000):
        line, kind = random.choice(FRAMES)
        words = f"{random.choice(['Oren, ', 'Brida, ', ''])}{CANARY} {number}"
        listener = random.choice([stage.npc, brida])
        listener.msg(text=(line.format(words), {"type": kind}), from_obj=anna)
        if number % 2_500 == 0:
            stage.says(stage.ben, f"Oren, who was here at {number}?")
    stage.passes(3600)

    asked = [message.content for one in stage.model.requests for message in one.messages]
    logs = [path.read_text(errors="replace") for path in Path(settings.LOG_DIR).glob("*.log*")]
    places = {"requests": "\n".join(asked), "tables": in_tables(), "log": "\n".join(logged)}
    assert {place for place, text in places.items() if CANARY in text} == set()
    assert not any(CANARY in text for text in logs)
    assert all("who was here at 7500" in text for text in places.values())


def test_npc_names_nobody_who_opted_out_as_present(stage: Any, anna: Any) -> None:
    stage.talks_with("Aye.")
    stage.says(stage.ben, "Oren, who is here?")
    (request,) = stage.model.requests
    assert not any("Anna" in message.content for message in request.messages)
    with pytest.raises(Refused):
        person(stage.npc, "Anna")


def test_player_who_opted_out_sees_one_nod_of_the_npc_that_they_speak_to(
    stage: Any, anna: Any
) -> None:
    brida = stage.make("Brida", "evennia_ai.typeclasses.AINPC")
    for _ in range(3):
        stage.says(anna, "Oren, good evening.")
        stage.whispers(anna, "Good evening.")
    stage.says(anna, "Good evening.")
    assert [line for line in stage.screen_of(anna) if "nod" in line] == [NOD]
    assert not any("nod" in line for line in stage.screen_of(stage.ben))
    stage.whispers(anna, "Good evening.", to=brida)
    assert stage.screen_of(anna)[-1] == "Brida gives you a friendly nod."
    assert stage.records() == []


def test_only_the_player_who_ignores_an_npc_reads_nothing_of_it(stage: Any) -> None:
    choices.ignore(with_account(stage.anna), str(stage.npc.id))
    stage.talks_with("Aye. *looks up*", "Psst.", "Aye again.")
    brida = stage.make("Brida", "evennia_ai.typeclasses.AINPC")
    stage.says(stage.ben, "Oren, hello?")
    stage.whispers(stage.anna, "Oren?")
    assert not any(line.startswith("Oren") for line in stage.screen_of(stage.anna))
    assert any('Oren says, "Aye' in line for line in stage.screen_of(stage.ben))
    assert len(stage.model.requests) == 2
    assert choices.ignored_npcs(stage.anna.account) == (str(stage.npc.id),)
    assert not choices.ignores(stage.anna, str(brida.id))
    choices.stop_ignoring(stage.anna.account, str(stage.npc.id))
    stage.says(stage.ben, "Oren, again?")
    assert stage.screen_of(stage.anna)[-1] == 'Oren says, "Aye again."'
