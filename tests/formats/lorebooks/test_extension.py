"""The `evennia_ai` data of lore entries, in V3 books and in world files."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.lorebook.entry import Anchor, LoreEntry, Mention
from evennia_ai.engine.prompt.conditions import (
    EVENT_KIND,
    NPC_KEY,
    NPC_TAGS,
    SPEAKER_KIND,
    ZONES,
    Condition,
)
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.formats.lorebooks.editing.edits import change_entry
from tests.engine.lorebook.builders import a_book, a_world_entry, an_entry


def read(_own: Any = None, **members: Any) -> LoreEntry:
    own = members if _own is None else _own
    extensions = {"evennia_ai": own, "sticky": 2, "group": "g"}
    [entry] = a_book(an_entry(extensions=extensions)).entries
    return entry


def test_evennia_ai_data_is_read_under_extensions_in_v3_and_from_a_world_entry_itself():
    world = read_book({"entries": {"0": a_world_entry(sticky=2, evennia_ai={"clock": "seconds"})}})
    assert world.entries[0].timing.clock == "seconds"
    assert read(clock="seconds").timing.clock == "seconds"


def test_null_in_evennia_ai_data_counts_as_missing():
    nothing = read(clock=None, when=[], npcs=[], anchor=None)
    assert (nothing.timing.clock, nothing.conditions, nothing.anchor) == (None, (), None)


def test_anchor_of_an_entry_is_a_place_next_to_a_component():
    entry = read(anchor={"component": "scenario", "side": "before"})
    assert (entry.position, entry.anchor) == ("anchor", Anchor(component="scenario", side="before"))
    assert read(anchor={"component": "scenario"}).anchor == Anchor(
        component="scenario", side="after"
    )


def test_mention_of_an_entry_has_a_side_and_a_message():
    entry = read(place="at_mention", mention={"side": "after", "message": "oldest"})
    assert entry.position == "at_mention"
    assert entry.mention == Mention(side="after", message="oldest")
    assert read(mention={"side": "after"}).mention == Mention(side="after", message="newest")
    assert read(place="at_mention").mention == Mention(side="before", message="newest")


def test_outlet_of_an_entry_is_a_place_with_a_name():
    entry = read(outlet="moods")
    assert (entry.position, entry.outlet) == ("outlet", "moods")


def test_decorators_win_over_places_of_the_extension_data():
    [entry] = a_book(
        an_entry("@@depth 3\nLore.", extensions={"evennia_ai": {"outlet": "moods"}})
    ).entries
    assert (entry.position, entry.depth, entry.outlet) == ("depth", 3, "")


def test_numbers_names_and_sources_of_evennia_ai_data_are_read():
    entry = read(group_cooldown=3, patterns="all", priority=7, sources=["room", "scenario"])
    assert (entry.grouping.cooldown, entry.patterns, entry.priority) == (3, "all", 7)
    assert entry.sources == {"room", "scenario"}


def test_condition_has_a_fact_a_test_and_values():
    entry = read(
        when=[
            {"fact": "quest.ferry", "test": "at_least", "values": [2]},
            {"fact": "weather", "test": "is_any", "values": "fog", "kept_unknown": True},
        ]
    )
    assert entry.conditions == (
        Condition(fact="quest.ferry", test="at_least", values=(2,)),
        Condition(fact="weather", test="is_any", values=("fog",), kept_unknown=True),
    )


def test_filter_values_with_an_exclamation_mark_exclude():
    entry = read(npcs=["oren", "!mara"], tags=["!guard"], zones=["harbour"])
    assert entry.conditions == (
        Condition(fact=NPC_KEY, test="is_any", values=("oren",)),
        Condition(fact=NPC_KEY, test="is_none", values=("mara",), kept_unknown=True),
        Condition(fact=NPC_TAGS, test="has_none", values=("guard",), kept_unknown=True),
        Condition(fact=ZONES, test="has_any", values=("harbour",)),
    )


def test_short_filters_are_combined_with_the_conditions_of_an_entry():
    entry = read(when=[{"events": ["say"]}, {"speakers": ["player"]}])
    assert [condition.fact for condition in entry.conditions] == [EVENT_KIND, SPEAKER_KIND]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"clok": "turns"}, "unknown member 'clok'; it may be clock"),
        ({"clock": "days"}, ".clock: must be one of turns, messages, seconds, not 'days'"),
        ({"anchor": {"component": ""}}, ".anchor.component: must be a text of 1 to 100 characters"),
        ({"anchor": {"compnent": "x"}}, ".anchor: unknown member 'compnent'; it may be component"),
        ({"place": "top"}, ".place: must be at_mention, the only value of this member, not 'top'"),
        ({"place": "at_mention", "mention": {"of": 1}}, ".mention: unknown member 'of'; it may be"),
        (
            {"place": "at_mention", "mention": {"message": "first"}},
            ".mention.message: must be one of newest, oldest, not 'first'",
        ),
        ({"group_cooldown": True}, ".group_cooldown: must be a whole number, 0 or more, not True"),
        ({"when": {}}, ".when: must be a list of at most 100, not {}"),
        ({"when": [{"fact": "x", "test": "is"}]}, ".when[0].test: must be one of is_any, "),
        ({"when": [{"fact": "x", "test": "is_any", "values": []}]}, ".when[0].values: must be one"),
        (
            {"when": [{"fact": "x", "test": "at_most", "values": ["many"]}]},
            ".when[0].values: must be numbers for the test at_most",
        ),
        ({"movement": "yes"}, ".movement: must be true or false, not 'yes'"),
        ({"npcs": "oren"}, ".npcs: must be a list of at most 100, not 'oren'"),
        ({"npcs": ["!"]}, ".npcs: must be a text of 1 to 100 characters, not '!'"),
        ({"sources": ["moon"]}, ".sources: must be one of persona, "),
    ],
)
def test_error_names_the_invalid_member_of_evennia_ai_data(members, message):
    told = message.removeprefix(".")
    assert told in read(members).refused
    with pytest.raises(FormatError) as caught:
        change_entry({"entries": [an_entry(id=1)]}, "1", {"when": [{"fact": 7}]})
    assert caught.value.message.startswith("entry 1.extensions.evennia_ai.when[0]")


def test_entry_is_never_active_when_the_evennia_ai_data_is_not_an_object():
    assert read("turns").refused.startswith("must be an object of clock, when, anchor")


def test_errors_of_evennia_ai_data_can_be_fixed_one_by_one():
    own = {"clock": "days", "group_cooldown": True}
    book = {"entries": [an_entry(id=1, extensions={"evennia_ai": own})]}
    book = change_entry(book, "1", {"clock": "turns"})
    assert "clock" not in read_book(book).entries[0].refused
    book = change_entry(book, "1", {"group_cooldown": 2})
    assert read_book(book).entries[0].is_usable


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
NAMES = st.sampled_from(
    [
        *("clock", "when", "anchor", "group_cooldown", "outlet", "npcs", "zones", "sources"),
        *("priority", "place", "mention"),
    ]
)


@given(st.dictionaries(NAMES, PLAIN, max_size=4))
def test_any_evennia_ai_data_is_read_or_refused_in_one_line(members):
    try:
        read(members)
    except FormatError as error:
        assert "\n" not in error.message
        assert len(error.message) < 400
