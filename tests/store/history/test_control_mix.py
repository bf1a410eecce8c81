"""Test any mix of turns, controls, branches, compactions and crashes.

A crash ends a process before one of its writes. What it has committed stays, and another process
continues from the database, as a server does at its start. In addition to the rows, a story stores
what each turn left, so that branches can be compared with it.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count

import pytest
from django.db import connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.history.projection import record_of
from evennia_ai.engine.history.records import Record
from evennia_ai.engine.history.turn.sending import make_draft
from evennia_ai.engine.lorebook.activation.timers import LoreState, Spell
from evennia_ai.engine.prompt.history import History
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.erasing import erase_branches
from evennia_ai.store.history import branches, control, turns
from evennia_ai.store.history.branches import BranchError
from evennia_ai.store.history.conversations import (
    append_each,
    append_records,
    begin_segment,
    conversations_of,
    get_or_open_conversation,
)
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.windows import lore_states, windows
from tests.engine.history.builders import a_prompt_after
from tests.properties import up_to
from tests.store.builders import a_line, a_reply, said
from tests.store.history.test_control import SAYS, a_say, is_whole
from tests.store.history.test_windows import SUMMARY, a_result, shape

BUILDER = "7"
Left = tuple[list[str], LoreState]
"""What prompts showed at the end of a turn, and the lore state at that time."""


class Death(BaseException):
    """The process is killed."""


@contextmanager
def dying(before_write: int) -> Iterator[None]:
    """Run a step that crashes before this write (0: never), and continue in a new process."""
    writes = count(1)

    def write(execute, sql, params, many, context):
        if sql.startswith(("INSERT", "UPDATE", "DELETE")) and next(writes) == before_write:
            raise Death
        return execute(sql, params, many, context)

    try:
        with connection.execute_wrapper(write), suppress(StoreError, BranchError):
            yield
    except Death:
        forget_everything()
        turns.close_interrupted()


@dataclass
class Story:
    """A conversation, what its turns left, and a builder who opens branches of it."""

    where: ConversationRef
    left: dict[int, Left] = field(default_factory=dict)

    def talk(self, number: int) -> None:
        _turn(self.where, number)

    def act(self, number: int) -> None:
        _turn(self.where, number, acts=True)

    def overhear(self, number: int) -> None:
        append_records(self.where, [a_line(f"Overheard {number}.")])

    def reset(self, number: int) -> None:
        control.reset_conversation(self.where, by=trusted("Builder"))

    def undo(self, number: int) -> None:
        control.undo_exchanges(self.where, 1 + number % 3, by=trusted("Builder"))

    def retry(self, number: int) -> None:
        for newest in list(control.list_exchanges(self.where))[:1]:
            control.take_back_answer(self.where, newest, by=trusted("Builder"), hint="Be brief.")
            if newest.event is not None and number % 2:
                _answer(self.where, newest.event, number)

    def correct(self, number: int) -> None:
        told = [record_of(message) for message in windows(self.where.id).history]
        if told:
            one = told[number % len(told)]
            text = f"Corrected {number}."
            control.correct_utterance(self.where, one, text, by=trusted("Builder"), tools=SAYS)

    def compact(self, number: int) -> None:
        now = windows(self.where.id).history
        first_kept = now.earlier + 1 + number % max(1, len(now))
        begin_segment(self.where, SUMMARY, summarised=now, first_kept=first_kept)

    def open(self, number: int) -> None:
        """Open a branch from some turn, and check that it has what that turn left."""
        chosen = sorted(self.left)[number % max(1, len(self.left)) :][:1]
        for turn in chosen:
            branch = branches.open_branch(
                turns.get_turn("12", turn), by_ref=BUILDER, by=trusted("Builder")
            )
            assert _left(branch.conversation) == self.left[turn]

    def talk_in_branch(self, number: int) -> None:
        branch = branches.newest_branch("12", BUILDER)
        if branch is not None:
            _turn(branch.conversation, number, acts=bool(number % 2))

    def close(self, number: int) -> None:
        erase_branches("12", BUILDER, by=trusted("Builder"))

    def reload(self, number: int) -> None:
        forget_everything()

    def happens(self, step: str, number: int, *, dies: int) -> None:
        """Play a step. A step in a branch must not change the original conversation."""
        before = self._as_it_is()
        with dying(dies):
            getattr(self, step)(number)
        if step in IN_BRANCHES:
            assert self._as_it_is() == before
        last = turns.last_turn("12")
        if last is not None and last.state != "open":
            self.left.setdefault(last.number, _left(self.where))

    def _as_it_is(self) -> tuple[object, ...]:
        return shape(self.where), lore_states(self.where.id), len(self.left)


IN_BRANCHES = ("open", "talk_in_branch", "close")
STEPS: list[str] = [
    *("talk", "talk", "talk", "act", "overhear", "reset", "undo", "undo", "retry", "correct"),
    *("compact", "open", "open", "talk_in_branch", "close", "reload"),
]


def _left(where: ConversationRef) -> Left:
    return said(where), lore_states(where.id)


def _turn(where: ConversationRef, number: int, *, acts: bool = False) -> None:
    """Play a turn that answers a line and changes the lore state."""
    append_each([(where, a_line(f"Line {number}."))])
    *_, event = (record_of(message) for message in windows(where.id).history)
    _answer(where, event, number, acts=acts)


def _answer(where: ConversationRef, event: Record, number: int, *, acts: bool = False) -> None:
    before, now = lore_states(where.id), windows(where.id).history
    said_before = [message for message in now if message.record != event.id]
    after = LoreState(sticky={**before.sticky, f"book#{len(before.sticky)}": Spell(number, 99)})
    draft = make_draft(
        a_prompt_after(History(said_before, segment=now.segment), event),
        event=event,
        model="tiny",
        inputs={"lore_state": before.to_plain()},
    )
    begun = turns.begin_turn(where, draft=draft, event=event, lore=after).turn
    if acts:
        call = f"c{begun.id}"
        turns.add_records(begun, [a_say(f"Aye {number}.", call=call)])
        append_records(where, [a_line(f"Seen meanwhile {number}.")])
        turns.add_records(begun, [a_result(call, f'You say: "Aye {number}."')])
    turns.finish_turn(begun, [a_reply(f"Answer {number}.")])


A_STEP = st.tuples(
    st.sampled_from(STEPS), st.integers(0, 11), st.sampled_from([0, 0, 0, 0, 1, 2, 3, 4, 5, 7, 9])
)


@pytest.mark.long
@given(st.lists(A_STEP, min_size=4, max_size=24))
@settings(max_examples=up_to(100), deadline=None)
def test_any_mix_of_controls_keeps_turns_replayable_and_chains_valid(steps):
    forget_everything()
    with transaction.atomic():
        story = Story(get_or_open_conversation("12", kind="room", place_ref="3"))
        for step, number, dies in steps:
            story.happens(step, number, dies=dies)
        for where in (story.where, *conversations_of(branches.branch_ref("12", BUILDER))):
            assert is_whole(where)
        transaction.set_rollback(True)
    forget_everything()
