"""Test that a branch has what one turn left, whatever happened to the conversation since."""

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.history.turn.sending import make_draft
from evennia_ai.engine.lorebook.activation.timers import LoreState, Spell
from evennia_ai.store.history import branches, control, turns
from evennia_ai.store.history.branches import BranchError
from evennia_ai.store.history.conversations import append_records, get_or_open_conversation
from evennia_ai.store.history.past_turns import turns_in_order
from evennia_ai.store.history.transcripts import export_lines, import_lines
from evennia_ai.store.history.windows import lore_states
from tests.engine.history.builders import a_prompt
from tests.store.builders import a_line, a_reply, a_turn, said
from tests.store.history.test_control import exchanged, is_whole, tell_remembered


@pytest.fixture
def quay():
    return get_or_open_conversation("12", kind="room", place_ref="3")


def remembering(*names: str) -> LoreState:
    return LoreState(sticky={name: Spell(1, 5) for name in names})


def woken(where, *names: str) -> None:
    """Play a turn after which the lore state has entries with these names."""
    (heard,) = append_records(where, [a_line(f"What of {names[-1]}?")])
    inputs = {"lore_state": lore_states(where.id).to_plain()}
    draft = make_draft(a_prompt([heard]), event=heard, model="tiny", inputs=inputs)
    begun = turns.begin_turn(where, draft=draft, event=heard, lore=remembering(*names)).turn
    turns.finish_turn(begun, [a_reply(f"{names[-1]}!")])


def opened(npc_ref: str, number: int):
    return branches.open_branch(
        turns.get_turn(npc_ref, number), by_ref="7", by=trusted("Mira")
    ).conversation


TAKEN_BACK = {
    "undo": lambda where: control.undo_exchanges(where, 1, by=trusted("Mira")),
    "retry": lambda where: control.take_back_answer(
        where, next(control.list_exchanges(where)), by=trusted("Mira")
    ),
    "reset": lambda where: control.reset_conversation(where, by=trusted("Mira")),
}


@pytest.mark.req("S2-03")
@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize("what", TAKEN_BACK)
def test_branch_has_the_lore_state_of_the_end_of_its_turn(quay, what, goes_on):
    woken(quay, "fog")
    woken(quay, "fog", "tide")
    TAKEN_BACK[what](quay)
    if goes_on:
        woken(quay, "bell")

    assert lore_states(opened("12", 2).id) == remembering("fog", "tide")
    assert lore_states(opened("12", 1).id) == remembering("fog")


def test_branching_does_not_change_the_lore_state(quay):
    woken(quay, "fog")
    tell_remembered(quay)
    TAKEN_BACK["reset"](quay)
    woken(quay, "bell")

    assert lore_states(opened("12", 1).id) == remembering("fog")


@pytest.mark.req("S2-12")
def test_words_in_a_branch_stay_in_that_branch(quay):
    exchanged(quay, 1, 2)
    before = said(quay)
    branch = opened("12", 1)
    exchanged(branch, 9)

    assert said(branch) == ["Line 1.", "Answer 1.", "Line 9.", "Answer 9."]
    assert said(quay) == before
    assert is_whole(quay) and is_whole(branch)


def test_branch_of_an_imported_turn_has_what_the_turn_left(quay):
    exchanged(quay, 1, 2, 3)
    a_turn(get_or_open_conversation("77", kind="room", place_ref="4"), "Elsewhere.")
    import_lines(list(export_lines(quay)), npc_ref="77", by=trusted("Ada"))
    numbers = [turn.number for turn in turns_in_order("77")][1:]

    assert numbers == [2, 3, 4]
    assert [said(opened("77", number))[-1] for number in numbers] == [
        "Answer 1.",
        "Answer 2.",
        "Answer 3.",
    ]


def test_branch_needs_the_recorded_end_of_its_turn(quay):
    exchanged(quay, 1)
    a_turn(quay, "Line 2.", reply=None)
    import_lines(list(export_lines(quay)), npc_ref="77", by=trusted("Ada"))

    assert said(opened("77", 1)) == ["Line 1.", "Answer 1."]
    with pytest.raises(BranchError, match="end of turn 2 is not recorded"):
        opened("77", 2)
