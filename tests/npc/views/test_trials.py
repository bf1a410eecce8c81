"""Edits that are only thought of, as lines: which are some, and what they make of a turn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.prompt.components import MAX_DEPTH
from evennia_ai.npc.views.recomposing import PastReader
from evennia_ai.npc.views.trials import (
    MOST_EDITS,
    FieldEdit,
    Trial,
    component_fields,
    entry_fields,
    places,
    read_trial,
)
from evennia_ai.store.history.past_turns import turns_in_order
from tests.npc.scripted_games import furnish, play

ORIGINS = st.sampled_from(["component:mood", "note:gulls", "lore:harbour#2", "lore:a.depth=1#x"])
EDITS = st.one_of(
    st.builds(FieldEdit, origin=ORIGINS, field=st.just("depth"), value=st.integers(0, MAX_DEPTH)),
    st.builds(FieldEdit, origin=ORIGINS, field=st.just("order"), value=st.integers(-9999, 9999)),
    st.builds(FieldEdit, origin=ORIGINS, field=st.just("off"), value=st.just(1)),
)


@given(st.lists(EDITS, max_size=12))
def test_a_trial_is_read_again_from_its_lines(edits):
    trial = Trial()
    for edit in edits:
        trial = trial.with_edit(edit)
    assert read_trial(trial.lines) == trial
    assert len({(one.origin, one.field) for one in trial.edits}) == len(trial.edits)


def test_of_two_edits_of_one_field_the_last_counts():
    trial = read_trial(["component:mood.depth=1", "note:gulls.off=yes", "component:mood.depth=4"])
    assert trial.lines == ("note:gulls.off=yes", "component:mood.depth=4")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "mood",
        "component:mood",
        "component:mood.depth",
        "component:mood.depth=",
        "component:mood.depth=one",
        "component:mood.depth=-1",
        f"component:mood.depth={MAX_DEPTH + 1}",
        "component:mood.order=1.5",
        "component:mood.off=no",
        "component:mood.content=words",
        "history.depth=1",
        "component:mood.depth=4\n",
        f"component:{'x' * 400}.depth=1",
    ],
)
def test_what_is_no_edit_is_refused(line):
    with pytest.raises(FormatError):
        read_trial([line])


def test_so_many_edits_are_refused():
    with pytest.raises(FormatError, match=str(MOST_EDITS)):
        read_trial(f"component:c{n}.depth=1" for n in range(MOST_EDITS + 1))


def test_what_an_edit_writes_into_components_and_entries():
    given = {"depth": 0, "order": 5, "off": 1}
    assert component_fields(given) == {
        "injection_depth": 0,
        "placement": "history",
        "injection_order": 5,
        "enabled": False,
    }
    assert entry_fields(given) == {"position": "depth", "depth": 0, "order": 5, "enabled": False}
    assert component_fields({}) == entry_fields({}) == {}


@pytest.fixture
def past(stage):
    furnish(stage)
    stage.talks_with(lambda request: "Aye.")
    play(stage, rounds=1)
    return PastReader().inputs(list(turns_in_order(stage.npc.ai.ref))[-1])


def test_without_edits_the_inputs_are_the_same_objects(past):
    made = Trial()(past)
    assert made.components is past.inputs.components
    assert made.notes is past.inputs.notes
    assert all(one is other for one, other in zip(made.books, past.inputs.books, strict=True))


def test_an_edit_leaves_the_turn_itself_as_it_was(past):
    before = places(past.inputs)
    trial = read_trial(
        ["note:gulls.depth=9", "component:card_depth_prompt.depth=7", "lore:harbour#2.order=3"]
    )
    after = places(trial(past))
    assert places(past.inputs) == before
    changed = {
        origin: (place.depth, place.order)
        for origin, place in after.items()
        if place != before[origin]
    }
    assert changed == {
        "note:gulls": (9, before["note:gulls"].order),
        "component:card_depth_prompt": (7, before["component:card_depth_prompt"].order),
        "lore:harbour#2": (before["lore:harbour#2"].depth, 3),
    }


@pytest.mark.parametrize(
    "origin", ["component:nowhere", "component:conversation_history", "lore:harbour#0", "note:no"]
)
def test_what_does_not_stand_in_the_history_by_a_depth_has_no_edit(past, origin):
    with pytest.raises(FormatError, match=origin):
        read_trial([f"{origin}.depth=2"])(past)
