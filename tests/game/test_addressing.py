"""Who is meant by what is said, case by case."""

from dataclasses import replace

import pytest

from evennia_ai.game.addressing import Listener, mentions, why_addressed
from evennia_ai.game.events import Event

OREN = Listener(ref="7", names=("Oren", "old ferryman"), other_names=("Brida",))


def said(text="Good evening.", **fields):
    return Event(
        **{
            "kind": "say",
            "speaker_ref": "1",
            "speaker_name": "Anna",
            "text": text,
            "room_ref": "2",
            **fields,
        }
    )


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (said("Oren, is there a ferry?"), "called by name"),
        (said("is there a ferry, OREN?"), "called by name"),
        (said("where is the Old Ferryman"), "called by name"),
        (said("the orenda rises"), None),
        (said("ask Orens"), None),
        (said(), None),
        (said(alone=True), "alone with the speaker"),
        (said("Brida, a word", alone=True), None),
        (said(kind="talk", to_ref="7"), "spoken to directly"),
        (said("Oren!", kind="talk", to_ref="8"), None),
        (said(kind="whisper", private=True), "whispered to"),
        (said("waves to Oren.", kind="pose", alone=True), None),
        (said("Oren, come", hops=3), "called by name"),
        (said("Oren, come", hops=4), None),
        (said(hops=1, alone=True), None),
    ],
)
def test_the_npc_answers_when_it_is_meant_and_only_then(event, why):
    assert why_addressed(event, OREN) == why


def test_a_conversation_goes_on_without_the_name():
    engaged = replace(OREN, is_engaged=True)
    assert why_addressed(said("And tomorrow?"), engaged) == "in conversation"


def test_a_conversation_does_not_take_what_is_said_to_somebody_else():
    engaged = replace(OREN, is_engaged=True)
    assert why_addressed(said("Brida, and you?"), engaged) is None


def test_another_npc_is_not_in_conversation_by_going_on_talking():
    assert why_addressed(said("Quite so.", hops=1), replace(OREN, is_engaged=True)) is None


def test_names_are_words_in_any_script_and_never_patterns():
    assert mentions("Hé, Zoë!", ("Zoë",))
    assert mentions("a (b) c", ("(b)",))
    assert not mentions("anything", (".*",))
    assert not mentions("anything", ("", "  "))
