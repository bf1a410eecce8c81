"""Trials: edits of a past turn, written as lines and never stored."""

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
def test_read_trial_parses_the_lines_of_a_trial(edits):
    trial = Trial()
    for edit in edits:
        trial = trial.with_edit(edit)
    assert read_trial(trial.lines) == trial
    assert len({(one.origin, one.field) for one in trial.edits}) == len(trial.edits)


def test_last_edit_of_a_field_replaces_earlier_ones():
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
def test_read_trial_refuses_an_invalid_line(line):
    with pytest.raises(FormatError):
        read_trial([line])


def test_read_trial_refuses_too_many_edits():
    with pytest.raises(FormatError, match=str(MOST_EDITS)):
        read_trial(f"component:c{n}.depth=1" for n in range(MOST_EDITS + 1))


def test_component_fields_and_entry_fields_for_depth_order_and_off():
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


def test_trial_without_edits_returns_the_same_objects(past):
    made = Trial()(past)
    assert made.components is past.inputs.components
    assert made.notes is past.inputs.notes
    assert all(one is other for one, other in zip(made.books, past.inputs.books, strict=True))


def test_trial_does_not_change_the_inputs_of_the_turn(past):
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
def test_trial_refuses_a_text_without_a_depth_in_the_history(past, origin):
    with pytest.raises(FormatError, match=origin):
        read_trial([f"{origin}.depth=2"])(past)
