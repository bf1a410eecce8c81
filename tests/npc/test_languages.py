"""Players read the game's texts in their own language, and models are told which one to speak."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import override_settings
from evennia.utils.create import create_account, create_object

from evennia_ai.engine.actors import THE_GAME
from evennia_ai.engine.errors import ModelUnavailable
from evennia_ai.engine.prompt.language import NAMES
from evennia_ai.engine.text.phrases import Phrase
from evennia_ai.npc.mind import entering
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.npc.senses import choices, languages
from evennia_ai.npc.senses.languages import translate
from evennia_ai.npc.speech.output import show_item, show_pose, talk_to, tell_given
from evennia_ai.npc.views.recomposing import PastReader, compose_again
from evennia_ai.services.settings.kinds import Disclosure
from evennia_ai.store.history import turns

ENGLISH_LINE = 'Oren says, "I am lost in thought just now. Ask me again in a moment."'
GERMAN_LINE = "Oren sagt: „Ich bin gerade ganz in Gedanken. Frag mich gleich noch einmal.“"


def chooses(who: Any, code: str) -> Any:
    """Return a character whose player has chosen a language, "" for none."""
    who.account = create_account(f"player of {who.key}", "", "a-password-of-a-test")
    choices.choose_language(who.account, code)
    return who


@pytest.fixture
def anna(stage: Any) -> Any:
    return chooses(stage.anna, "de")


@contextmanager
def language_of_game(stage: Any, code: str, *script: Any, **conf: Any) -> Iterator[None]:
    with override_settings(EVENNIA_AI_LANGUAGE=code):
        stage.talks_with(*script, **conf)
        yield


@pytest.mark.parametrize("game", ["", "de", "fr"])
@pytest.mark.parametrize("own", ["", "de"])
def test_fallback_line_is_read_by_each_in_their_language_and_kept_in_the_npcs(
    stage: Any, anna: Any, game: str, own: str
) -> None:
    ben, carl = chooses(stage.ben, "en"), stage.player("Carl")
    change_settings(stage.npc, by=THE_GAME, speaks=own or None)
    down = ModelUnavailable("scripted", "no connection")
    with language_of_game(stage, game, down):
        stage.says(anna, "Oren, good evening.")
    assert stage.screen_of(anna)[-1] == GERMAN_LINE
    assert stage.screen_of(ben)[-1] == ENGLISH_LINE
    assert stage.screen_of(carl)[-1] == (GERMAN_LINE if game == "de" else ENGLISH_LINE)
    kept = [body for kind, _, body in stage.records() if kind == "fallback"]
    assert ("Gedanken" in kept[0]) == ("de" in (own, game))


def test_frames_signs_and_lines_about_npcs_are_in_the_readers_language(
    stage: Any, anna: Any
) -> None:
    told = Disclosure(meeting="")
    stage.talks_with("Aye.", "*nods*", "Aye.", disclosure=told)
    lamp = create_object("evennia.objects.objects.DefaultObject", key="lamp", location=anna)
    ben, npc, signs = stage.ben, stage.npc, stage.running.runtime().signs
    stage.says(ben, "Oren, good evening.")
    stage.says(ben, "Oren, and?")
    stage.whispers(anna, "Psst.")
    talk_to(ben, npc, "Hail.")
    show_item(ben, lamp, npc)
    show_pose(npc, Phrase("drops {thing}.", thing="a {thing} |rlamp"))
    tell_given(npc, anna, lamp)
    for sign in ("lost", "stopped", "opted_out", "withheld"):
        signs.show_to(sign, npc, anna)
    read = stage.screen_of(anna)
    for line in (
        "Oren sagt: „Aye.“",
        "Oren nods",
        "Oren flüstert dir zu: „Aye.“",
        "Ben sagt zu Oren: „Hail.“",
        "Ben zeigt Oren etwas: a lamp.",
        "Oren legt etwas hin: a {thing} |rlamp.",
        "Oren gibt dir etwas: a lamp.",
        "Oren hat den Faden verloren und nicht alles mitbekommen, was du gesagt hast.",
        "Oren steht still und antwortet nicht.",
        "Oren nickt dir freundlich zu.",
        "Oren schüttelt den Kopf und antwortet nicht.",
    ):
        assert line in read, line
    assert 'Oren says, "Aye."' in stage.screen_of(ben)
    heard = anna.screen.telnet(NOCOLOR=True, SCREENREADER=True)
    assert heard == [line.replace("|r", "") for line in read]  # Evennia strips colours twice
    assert 'You say to Oren, "Hail."' in stage.screen_of(ben)
    assert anna.at_look(npc).endswith("(OOC) Spricht durch ein Sprachmodell, eine KI.")
    assert ben.at_look(npc).endswith("(OOC) Speaks through a language model, an AI.")
    entering._on_puppet(anna)
    assert stage.screen_of(anna)[-1].startswith("(OOC) Einige Figuren sprechen hier")


def test_meeting_limit_and_thinking_lines_are_in_the_readers_language(
    stage: Any, anna: Any
) -> None:
    from evennia_ai.services.llm.quotas import Quota, Quotas

    one = Quotas(player=Quota(calls_per_minute=1), npc=Quota(), game=Quota())
    stage.talks_with(
        "Aye.", delay_seconds=9, thinking_seconds=2.0, limits=one, disclosure=Disclosure()
    )
    stage.says(anna, "Oren, good evening.")
    stage.passes(3)
    stage.passes(9)
    stage.says(anna, "Oren, and?")
    read = stage.screen_of(anna)
    assert "Oren denkt darüber nach." in read
    assert any(line.startswith("(OOC) Oren spricht durch ein Sprachmodell") for line in read)
    assert read[-1] == "Oren hebt die Hand: genug geredet für jetzt."


def told_language(stage: Any, number: int = -1) -> str:
    """Return what the model was told about the language, "" for nothing."""
    texts = [one.content for one in stage.model.requests[number].messages]
    found = [text for text in texts if "You speak " in text]
    assert len(found) <= 1
    return found[0].split("You speak ")[1].split(".")[0] if found else ""


@pytest.mark.parametrize(
    ("game", "own", "player", "in_room", "whispered"),
    [
        ("", "", "", "", ""),
        ("", "", "de", "", "German"),
        ("fr", "", "de", "French", "German"),
        ("fr", "it", "de", "Italian", "Italian"),
        ("fr", "", "", "French", "French"),
    ],
)
def test_model_is_told_the_language_of_npc_player_or_game(
    stage: Any, game: str, own: str, player: str, in_room: str, whispered: str
) -> None:
    anna = chooses(stage.anna, player)
    change_settings(stage.npc, by=THE_GAME, speaks=own or None)
    with language_of_game(stage, game, lambda _: "Aye."):
        stage.says(anna, "Oren, good evening.")
        assert told_language(stage) == in_room
        stage.whispers(anna, "Psst.")
        assert told_language(stage) == whispered
        for number in (1, 2):
            stored = turns.get_turn(stage.npc.ai.ref, number)
            again = compose_again(stored, PastReader())
            assert again.sha256 == stored.manifest.sha256
    if whispered:
        told = "\n".join(stage.npc.ai.why("component:language"))
        assert "at ID 1450" in told
        assert f"You speak {whispered}." in told


def test_prompts_of_a_room_begin_with_the_same_bytes_whoever_speaks(stage: Any, anna: Any) -> None:
    with language_of_game(stage, "fr", lambda _: "Aye."):
        stage.says(stage.ben, "Oren, good evening.")
        stage.says(anna, "Oren, guten Abend.")
    first, second = (asked.messages for asked in stage.model.requests[-2:])
    heads = [[m.content for m in asked if m.role == "system"] for asked in (first, second)]
    assert heads[0] == heads[1]
    assert "French" in heads[0][-1]


def test_words_of_players_and_models_are_never_a_format_or_looked_up(stage: Any, anna: Any) -> None:
    odd = "{npc} {speech.__class__} %s %(npc)s thinks it over."
    stage.talks_with(odd, odd)
    stage.says(anna, f"Oren, {odd}")
    assert stage.screen_of(anna)[-1] == f"Oren sagt: „{odd}“"
    stage.talks_with("thinks it over.")
    stage.says(anna, "Oren, thinks it over.")
    assert stage.screen_of(anna)[-1] == "Oren sagt: „thinks it over.“"
    assert translate("", "de") == ""


def test_translation_that_does_not_fit_is_replaced_by_english(
    monkeypatch: pytest.MonkeyPatch, logged: list[str]
) -> None:
    broken = SimpleNamespace(gettext=lambda text: "kaputt {nothing.here}")
    monkeypatch.setattr(languages.trans_real, "translation", lambda code: broken)
    assert translate(Phrase("Mind the {step}.", step="gap"), "de") == "Mind the gap."
    assert any("does not fit" in line for line in logged)


def test_every_language_has_a_name_and_is_found_by_it() -> None:
    from evennia_ai.engine.prompt.language import language_named

    assert all(language_named(name.upper()) == code for code, name in NAMES.items())
    assert language_named("PT_BR") == "pt-br"
    assert language_named("xx") == ""
