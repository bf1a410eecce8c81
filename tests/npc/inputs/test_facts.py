"""Facts that conditions of lore ask about: the NPC, its place, the moment, the game's own."""

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
    facts._functions.cache_clear()


def told(*names, npc=None, event=SAID):
    """The facts of a moment with these functions of a game."""
    return passing_facts(npc, event, paths=tuple(f"{HERE}.{name}" for name in names))


def at(monkeypatch, hour):
    moment = datetime(1325, 5, 3, hour, 59, tzinfo=UTC).timestamp()
    monkeypatch.setattr(gametime, "gametime", lambda absolute: moment)


def test_the_npc_is_told_by_its_name_and_its_tags(stage):
    stage.npc.tags.add("ferryman")
    stage.npc.tags.add("guild", category="faction")

    known = standing_facts(stage.npc)
    assert known["npc.key"] == "Oren"
    assert set(known["npc.tags"]) == {"ferryman", "guild"}


def test_the_room_is_told_by_its_name_its_tags_and_its_zones(stage):
    stage.room.tags.add("outdoors")
    stage.room.tags.add("harbour", category="zone")

    known = standing_facts(stage.npc)
    assert known["room.key"] == "Ferry Landing"
    assert set(known["room.tags"]) == {"harbour", "outdoors"}
    assert known["room.zones"] == ("harbour",)


def test_an_npc_that_is_nowhere_has_no_room(stage):
    stage.npc.location = None

    assert sorted(standing_facts(stage.npc)) == ["generation.kind", "npc.key", "npc.tags"]


def test_markup_in_a_name_is_no_part_of_the_fact(stage):
    stage.room.key = "|rFerry|n Landing"

    assert standing_facts(stage.npc)["room.key"] == "Ferry Landing"


def test_warm_facts_ask_the_database_nothing(stage, no_queries):
    stage.room.tags.add("harbour", category="zone")
    standing_facts(stage.npc)
    told()

    with no_queries():
        standing_facts(stage.npc)
        told()


def test_the_card_is_told_by_its_name_and_tags():
    from evennia_ai.formats.cards.card import Card

    card = Card(name="Oren Vale", nickname="Oren", tags=("ferry", "grumpy"))
    assert card_facts(card) == {
        "character.name": "Oren Vale",
        "character.tags": ("ferry", "grumpy"),
    }
    assert card_facts(None) == {}


def test_the_event_is_told_by_its_kind_and_its_speaker():
    known = told()

    assert known["event.kind"] == "whisper"
    assert known["speaker.kind"] == "player"
    assert (known["speaker.rank"], known["speaker.name"]) == ("Builder", "Anna")


def test_a_speaker_that_is_one_of_ours_is_told_as_an_npc():
    event = Event(
        kind="say", speaker_ref="8", speaker_name="Brida", speaker_rank="NPC", text="", room_ref=""
    )
    assert told(event=event)["speaker.kind"] == "npc"


def test_without_an_event_nothing_is_told_of_one():
    assert sorted(told(event=None)) == ["time.hour", "time.part"]


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
def test_the_time_is_the_game_s(monkeypatch, hour, part):
    at(monkeypatch, hour)

    assert (told()["time.hour"], told()["time.part"]) == (hour, part)


def test_a_time_that_no_calendar_has_is_left_out(monkeypatch):
    monkeypatch.setattr(gametime, "gametime", lambda absolute: 1e18)

    assert "time.hour" not in told()


def test_functions_of_the_game_tell_more(logged):
    known = told("of_the_tide")

    assert (known["tide.height"], known["tide.falls"]) == (2.5, True)
    assert known["tide.boats"] == ("ferry", "skiff")
    assert logged == []


def test_functions_of_the_game_get_the_npc_and_the_event_and_win(stage, monkeypatch):
    at(monkeypatch, 12)
    known = told("of_the_day", npc=stage.npc)

    assert known["time.part"] == "dusk"
    assert known["npc.mood"] == "Oren hears The tide?"


def test_a_function_that_fails_is_logged_and_the_others_are_asked(logged):
    known = told("broken", "of_the_tide")

    assert known["tide.height"] == 2.5
    (line,) = logged
    assert line.endswith(f"{HERE}.broken raised KeyError: 'tide'; it is ignored")


def test_what_is_no_fact_is_logged_and_left_out(stage, logged):
    known = told("of_things", npc=stage.npc)

    assert known["crew"] == ("a", "b")
    assert known.keys().isdisjoint({"harbour", "depth", 7, "mixed"})
    assert len(logged) == 4
    assert "returned 'depth' as NoneType, which cannot be a fact" in logged[1]


def test_an_answer_that_is_no_dictionary_is_logged(logged):
    told("of_nothing")

    assert logged[0].endswith("of_nothing returned NoneType instead of a dictionary; it is ignored")


@pytest.mark.parametrize(
    ("name", "why"), [("missing", "cannot be imported"), ("no_function", "is not a function")]
)
def test_a_path_that_leads_to_no_function_is_told_once(logged, name, why):
    told(name)
    told(name)

    (line,) = logged
    assert why in line
