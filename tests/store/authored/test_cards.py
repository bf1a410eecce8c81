"""Test stored cards: their exact text, and which NPC plays which card."""

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import ComponentValueError, FormatError, NotStoredError
from evennia_ai.engine.prompt.components import of_npc
from evennia_ai.store.authored import cards
from evennia_ai.store.core.snapshots import forget_everything

SOURCE = '{ "name" : "Oren",\n\t"extensions": {"x": 1.50, "é": "\\u00e9"} }\n'


def test_card_text_is_stored_exactly():
    cards.save_card("oren", SOURCE, by=trusted("builder"))
    forget_everything()

    assert cards.get_card("oren").source == SOURCE


def test_new_card_text_is_a_new_revision():
    first = cards.save_card("oren", SOURCE, by=trusted("builder"))
    second = cards.save_card("oren", "{}", by=trusted("builder"))

    assert first.revision < second.revision
    assert first.sha256 != second.sha256
    assert cards.get_card("oren") == second


def test_same_card_text_changes_nothing():
    first = cards.save_card("oren", SOURCE, by=trusted("Mira"))

    assert cards.save_card("oren", SOURCE, by=trusted("Tam")) == first
    assert {change.changed_by for change in cards.CARDS.revisions("oren")} == {"Mira"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not JSON"),
        ("[1]", "must be a JSON object"),
        ('{"a": NaN}', "NaN is not a JSON value"),
        ('{"a": 1} extra', "line 1, column 10"),
        ('{"a": "\x00"}', "null characters"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "not strict JSON"),
        ("", "not JSON"),
    ],
)
def test_card_that_is_no_strict_json_object_is_refused(text, told):
    with pytest.raises(FormatError, match=told):
        cards.save_card("oren", text, by=trusted("builder"))
    assert cards.CARDS.list_keys() == ()


def test_card_over_the_limit_is_refused_with_the_limit(settings_of_ai):
    settings_of_ai(CARD_LIMITS={"text_bytes": 1000})

    with pytest.raises(FormatError, match=r"1000 \(EVENNIA_AI_CARD_LIMITS, text_bytes\)"):
        cards.save_card("oren", '{"a": "' + "x" * 1000 + '"}', by=trusted("builder"))


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 201])
def test_empty_card_name_is_refused(name):
    with pytest.raises(ComponentValueError, match="printable"):
        cards.save_card(name, "{}", by=trusted("builder"))


def test_unknown_card_error_names_the_known_ones():
    cards.save_card("oren", "{}", by=trusted("builder"))
    cards.save_card("mira", "{}", by=trusted("builder"))

    with pytest.raises(NotStoredError, match="'oran'; there are mira, oren"):
        cards.get_card("oran")


def test_npc_plays_its_assigned_card():
    cards.save_card("oren", SOURCE, by=trusted("builder"))
    cards.CARDS.assign("oren", of_npc("12"), by=trusted("builder"))
    forget_everything()

    assert cards.card_of("12").name == "oren"
    assert cards.card_of("13") is None


def test_second_assignment_replaces_the_first():
    cards.save_card("oren", "{}", by=trusted("builder"))
    cards.save_card("mira", "{}", by=trusted("builder"))
    cards.CARDS.assign("oren", of_npc("12"), by=trusted("builder"))
    cards.CARDS.assign("mira", of_npc("12"), by=trusted("builder"))

    assert cards.card_of("12").name == "mira"


def test_assigning_an_unknown_card_changes_nothing():
    with pytest.raises(NotStoredError):
        cards.CARDS.assign("oren", of_npc("12"), by=trusted("builder"))
    assert cards.card_of("12") is None


def test_npc_can_stop_playing_a_card():
    cards.save_card("oren", "{}", by=trusted("builder"))
    cards.CARDS.assign("oren", of_npc("12"), by=trusted("builder"))

    assert cards.CARDS.unassign(of_npc("12"), by=trusted("builder"))
    assert cards.card_of("12") is None
    assert not cards.CARDS.unassign(of_npc("12"), by=trusted("builder"))


def test_changed_card_reaches_its_players():
    cards.save_card("oren", "{}", by=trusted("builder"))
    cards.CARDS.assign("oren", of_npc("12"), by=trusted("builder"))
    cards.card_of("12")
    cards.save_card("oren", SOURCE, by=trusted("builder"))

    assert cards.card_of("12").source == SOURCE


def test_cached_card_is_read_without_a_query(no_queries):
    cards.save_card("oren", "{}", by=trusted("builder"))
    cards.CARDS.assign("oren", of_npc("12"), by=trusted("builder"))
    warm = cards.card_of("12"), cards.card_of("13")

    with no_queries():
        assert (cards.card_of("12"), cards.card_of("13")) == warm
