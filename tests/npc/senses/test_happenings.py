"""Happenings that a game reports to NPCs with `happened`."""

import pytest

from evennia_ai.npc.senses.events import Event, asks_for_answer
from evennia_ai.npc.senses.happenings import HappeningError, happened


@pytest.fixture
def seen(stage):
    """The events that the NPC perceived so far."""
    events = []
    stage.npc.ai.hear = events.append
    return events


def test_happening_is_recorded_as_an_event_without_a_speaker(stage):
    happened(stage.room, "combat", "{actor} hits {to}.", actor=stage.anna, to=stage.ben)
    stage.passes()
    assert stage.records() == [("event", "", "Anna hits Ben.")]


def test_record_of_a_happening_keeps_all_fields_of_the_report(stage):
    from evennia_ai.store.history.conversations import conversations_of
    from evennia_ai.store.history.record_rows import records_of

    happened(
        stage.room,
        "combat",
        "{actor} hits {to} with {item}.",
        actor=stage.anna,
        to=stage.ben,
        item="a sword",
        data={"damage": 7},
    )
    stage.passes()
    (conversation,) = conversations_of(stage.npc.ai.ref)
    (record,) = records_of(conversation)
    assert record.role == "user"
    assert record.meta == {
        "event": "combat",
        "speaker": str(stage.anna.id),
        "hops": 0,
        "to": str(stage.ben.id),
        "item": "a sword",
        "data": {"damage": 7},
    }


def test_happened_returns_the_number_of_npcs_that_perceived_the_happening(stage, seen):
    other = stage.make("Brida", "evennia_ai.typeclasses.AINPC")
    others = []
    other.ai.hear = others.append
    assert happened(stage.room, "weather", "It begins to rain.") == 2
    assert [event.text for event in (*seen, *others)] == ["It begins to rain."] * 2


def test_happening_for_one_npc_reaches_only_that_npc(stage, seen):
    stage.make("Brida", "evennia_ai.typeclasses.AINPC")
    assert happened(stage.npc, "dream", "You dream of the sea.") == 1
    assert [(event.kind, event.speaker_name) for event in seen] == [("dream", "")]


def test_happening_without_a_place_reaches_no_npc(stage, seen):
    assert happened(None, "weather", "It begins to rain.") == 0


def test_actor_does_not_perceive_its_own_happening(stage, seen):
    assert happened(stage.room, "combat", "{actor} hits {to}.", actor=stage.npc) == 0
    assert seen == []


def test_text_has_the_names_that_the_npc_knows_and_you_for_itself(stage, seen):
    stage.anna.get_display_name = lambda looker=None, **kwargs: "a tall stranger"
    happened(stage.room, "combat", "{actor} hits {to}.", actor=stage.anna, to=stage.npc)
    assert [event.text for event in seen] == ["a tall stranger hits you."]


def test_happening_of_an_invisible_actor_is_not_perceived(stage, seen):
    stage.anna.locks.add("view:false()")
    assert happened(stage.room, "combat", "{actor} draws a sword.", actor=stage.anna) == 0
    assert seen == []


def test_happening_of_an_actor_without_a_name_is_not_perceived(stage, seen):
    stage.anna.get_display_name = lambda looker=None, **kwargs: ""
    assert happened(stage.room, "combat", "{actor} draws a sword.", actor=stage.anna) == 0


def test_item_that_the_npc_cannot_see_is_called_something(stage, seen):
    rope = stage.make("rope", "evennia.objects.objects.DefaultObject", place=stage.anna)
    happened(stage.room, "trade", "{actor} lifts {item}.", actor=stage.anna, item=rope)
    rope.locks.add("view:false()")
    happened(stage.room, "trade", "{actor} lifts {item}.", actor=stage.anna, item=rope)
    assert [event.text for event in seen] == ["Anna lifts a rope.", "Anna lifts something."]


def test_npc_played_by_a_player_perceives_no_happening(stage, seen):
    stage.npc.__dict__["sessions"] = stage.anna.sessions
    assert happened(stage.room, "weather", "It begins to rain.") == 0


def test_text_of_a_happening_is_one_plain_line_and_cut_to_a_limit(stage, seen):
    happened(stage.room, "sign", "|rIt reads|n\n{x} $eval(1) {actor} |lclook|ltgo|le\x1b[31m")
    assert seen[0].text == "It reads {x} $eval(1) {actor} go"
    happened(stage.room, "sign", "x" * 9000)
    assert len(seen[1].text) == 2000


@pytest.mark.parametrize(
    ("kind", "text", "data", "problem"),
    [
        ("say", "Hello.", None, "cannot be the kind of a happening"),
        ("tick", "Hello.", None, "cannot be the kind of a happening"),
        ("two words", "Hello.", None, "cannot be the kind of a happening"),
        ("x" * 41, "Hello.", None, "cannot be the kind of a happening"),
        ("weather", " \x1b[0m ", None, "has no text"),
        ("weather", "Rain.", {"by": object()}, "cannot be stored as JSON"),
        ("weather", "Rain.", {"mm": float("nan")}, "cannot be stored as JSON"),
        ("weather", "Rain.", {"long": "x" * 5000}, "4000 are allowed"),
    ],
)
def test_invalid_happening_raises_an_error_and_reaches_no_npc(
    stage, seen, kind, text, data, problem
):
    with pytest.raises(HappeningError, match=problem):
        happened(stage.room, kind, text, data=data)
    assert seen == []


def test_happening_is_answered_only_when_the_game_asks_for_it(stage):
    stage.talks_with("Oh!")
    happened(stage.room, "weather", "It begins to rain.")
    stage.passes(1)
    assert stage.records() == [("event", "", "It begins to rain.")]
    happened(stage.room, "weather", "Lightning strikes.", wants_answer=True)
    stage.passes(1)
    assert ("assistant", "", "Oh!") in stage.records()


def an_event(kind, **fields):
    values = {"speaker_ref": "7", "speaker_name": "Anna", "text": "x", "room_ref": "1"}
    return Event(kind=kind, **{**values, **fields})


@pytest.mark.parametrize(
    ("event", "react_to", "why"),
    [
        (an_event("arrive"), (), None),
        (an_event("arrive"), ("arrive",), "reacts to arrive"),
        (an_event("give", to_ref="2", wants_answer=True), (), "the game wants an answer to give"),
        (an_event("give", to_ref="3"), (), None),
        (an_event("give", to_ref="3"), ("give",), "reacts to give"),
        (an_event("tick", wants_answer=True), (), "the game wants an answer to tick"),
        (an_event("say", wants_answer=True), ("say",), None),
        (an_event("pose"), ("pose",), None),
    ],
)
def test_happening_needs_an_answer_by_react_to_or_by_wants_answer(event, react_to, why):
    assert asks_for_answer(event, react_to) == why
