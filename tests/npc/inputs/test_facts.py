"""Facts for conditions of lore: the NPC, its place, the moment, and functions of the game."""

from datetime import UTC, datetime

import pytest
from evennia.utils import gametime

from evennia_ai.npc.inputs import facts
from evennia_ai.npc.inputs.facts import passing_facts, standing_facts
from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.views.view import card_facts

HERE = "tests.npc.inputs.test_facts"
SAID = Event(
    kind="whisper",
    speaker_ref="7",
    speaker_name="Anna",
    speaker_rank="Builder",
    text="The tide?",
    room_ref="3",
)


def of_the_tide(npc, event):
    return {"tide.height": 2.5, "tide.falls": True, "tide.boats": ["ferry", "skiff"]}


def of_the_day(npc, event):
    return {"time.part": "dusk", "npc.mood": f"{npc.key} hears {event.text}"}


def of_things(npc, event):
    return {"harbour": npc, "depth": None, 7: "seven", "crew": {"b", "a"}, "mixed": ["a", 1]}


def of_nothing(npc, event):
    return None


def broken(npc, event):
    raise KeyError("tide")


no_function = 7


@pytest.fixture(autouse=True)
def _imported_anew():
    facts._import_functions.cache_clear()


def facts_with(*names, npc=None, event=SAID):
    """Return the passing facts when the game has these functions."""
    return passing_facts(npc, event, paths=tuple(f"{HERE}.{name}" for name in names))


def at(monkeypatch, hour):
    moment = datetime(1325, 5, 3, hour, 59, tzinfo=UTC).timestamp()
    monkeypatch.setattr(gametime, "gametime", lambda absolute: moment)


def test_standing_facts_have_name_and_tags_of_the_npc(stage):
    stage.npc.tags.add("ferryman")
    stage.npc.tags.add("guild", category="faction")

    known = standing_facts(stage.npc)
    assert known["npc.key"] == "Oren"
    assert set(known["npc.tags"]) == {"ferryman", "guild"}


def test_standing_facts_have_name_tags_and_zones_of_the_room(stage):
    stage.room.tags.add("outdoors")
    stage.room.tags.add("harbour", category="zone")

    known = standing_facts(stage.npc)
    assert known["room.key"] == "Ferry Landing"
    assert set(known["room.tags"]) == {"harbour", "outdoors"}
    assert known["room.zones"] == ("harbour",)


def test_standing_facts_have_no_room_when_npc_has_no_location(stage):
    stage.npc.location = None

    assert sorted(standing_facts(stage.npc)) == ["generation.kind", "npc.key", "npc.tags"]


def test_fact_of_a_room_name_has_no_markup(stage):
    stage.room.key = "|rFerry|n Landing"

    assert standing_facts(stage.npc)["room.key"] == "Ferry Landing"


def test_cached_facts_make_no_query(stage, no_queries):
    stage.room.tags.add("harbour", category="zone")
    standing_facts(stage.npc)
    facts_with()

    with no_queries():
        standing_facts(stage.npc)
        facts_with()


def test_card_facts_have_name_and_tags_of_the_card():
    from evennia_ai.formats.cards.card import Card

    card = Card(name="Oren Vale", nickname="Oren", tags=("ferry", "grumpy"))
    assert card_facts(card) == {
        "character.name": "Oren Vale",
        "character.tags": ("ferry", "grumpy"),
    }
    assert card_facts(None) == {}


def test_passing_facts_have_kind_and_speaker_of_the_event():
    known = facts_with()

    assert known["event.kind"] == "whisper"
    assert known["speaker.kind"] == "player"
    assert (known["speaker.rank"], known["speaker.name"]) == ("Builder", "Anna")


def test_speaker_kind_is_npc_when_an_npc_speaks():
    event = Event(
        kind="say", speaker_ref="8", speaker_name="Brida", speaker_rank="NPC", text="", room_ref=""
    )
    assert facts_with(event=event)["speaker.kind"] == "npc"


def test_passing_facts_have_only_the_time_without_an_event():
    assert sorted(facts_with(event=None)) == ["time.hour", "time.month", "time.part"]


@pytest.mark.parametrize(
    ("hour", "part"),
    [
        (0, "night"),
        (5, "night"),
        (6, "morning"),
        (9, "morning"),
        (10, "day"),
        (17, "day"),
        (18, "evening"),
        (21, "evening"),
        (22, "night"),
    ],
)
def test_time_facts_have_hour_and_part_of_day_in_game_time(monkeypatch, hour, part):
    at(monkeypatch, hour)

    assert (facts_with()["time.hour"], facts_with()["time.part"]) == (hour, part)


def test_time_facts_are_left_out_for_a_date_outside_the_calendar(monkeypatch):
    monkeypatch.setattr(gametime, "gametime", lambda absolute: 1e18)

    assert "time.hour" not in facts_with()


def test_function_of_the_game_adds_facts(logged):
    known = facts_with("of_the_tide")

    assert (known["tide.height"], known["tide.falls"]) == (2.5, True)
    assert known["tide.boats"] == ("ferry", "skiff")
    assert logged == []


def test_function_of_the_game_gets_npc_and_event_and_overrides_facts(stage, monkeypatch):
    at(monkeypatch, 12)
    known = facts_with("of_the_day", npc=stage.npc)

    assert known["time.part"] == "dusk"
    assert known["npc.mood"] == "Oren hears The tide?"


def test_failing_function_is_logged_and_the_others_are_called(logged):
    known = facts_with("broken", "of_the_tide")

    assert known["tide.height"] == 2.5
    (line,) = logged
    assert line.endswith(f"{HERE}.broken raised KeyError: 'tide'; it is ignored")


def test_invalid_fact_is_logged_and_left_out(stage, logged):
    known = facts_with("of_things", npc=stage.npc)

    assert known["crew"] == ("a", "b")
    assert known.keys().isdisjoint({"harbour", "depth", 7, "mixed"})
    assert len(logged) == 4
    assert "returned 'depth' as NoneType, which cannot be a fact" in logged[1]


def test_function_that_returns_no_dictionary_is_logged(logged):
    facts_with("of_nothing")

    assert logged[0].endswith("of_nothing returned NoneType instead of a dictionary; it is ignored")


@pytest.mark.parametrize(
    ("name", "why"), [("missing", "cannot be imported"), ("no_function", "is not a function")]
)
def test_path_without_a_function_is_logged_once(logged, name, why):
    facts_with(name)
    facts_with(name)

    (line,) = logged
    assert why in line
