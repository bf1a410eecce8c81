"""Test that a conversation of any length costs the same.

The cost is counted in steps of SQLite's virtual machine, which depend on no clock.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from evennia_ai.engine.history.projection import record_of
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.engine.history.turn.sending import make_draft
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import record_rows, turns
from evennia_ai.store.history.conversations import append_records, get_or_open_conversation
from evennia_ai.store.history.record_rows import End, insert_records, rows_after
from evennia_ai.store.history.windows import windows
from tests.engine.history.builders import a_prompt
from tests.store.builders import a_line, a_reply

SHORT, LONG = 1_000, 30_000
_STEPS = 100

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        connection.vendor != "sqlite", reason="only SQLite lets its steps be counted"
    ),
]


@contextmanager
def counted() -> Iterator[list[int]]:
    """Count the steps of the database, in hundreds."""
    steps = [0]

    def step() -> int:
        steps[0] += 1
        return 0

    connection.ensure_connection()
    connection.connection.set_progress_handler(step, _STEPS)
    try:
        yield steps
    finally:
        connection.connection.set_progress_handler(None, _STEPS)


def a_conversation_of(npc_ref: str, count: int) -> record_rows.ConversationRef:
    """Return a conversation with this many records: what is said, and the facts of each turn."""
    where = get_or_open_conversation(npc_ref, kind="room", place_ref="3")
    facts = NewRecord(kind=RecordKind.CONTEXT_BLOCK, role="user", body="The quay, at dusk.")
    turn = [a_line("Good evening, Oren."), facts, a_reply("Evening.")]
    rows = rows_after(End(), where.id, turn * (count // 3))
    insert_records(rows)
    return where


def the_next_turn(where) -> None:
    """Play a turn: the NPC hears something, gets a prompt of the newest messages, and answers."""
    (heard,) = append_records(where, [a_line("And now?")])
    history = windows(where.id).history
    said = [record_of(history[i]) for i in range(history.stop - 6, history.stop)]
    begun = turns.begin_turn(where, draft=make_draft(a_prompt(said), event=heard), event=heard)
    turns.finish_turn(begun.turn, [a_reply()])


def prices(what: str) -> list[int]:
    """Return the cost of an action in a short and in a long conversation."""
    found = []
    for npc_ref, count in (("12", SHORT), ("13", LONG)):
        where = a_conversation_of(npc_ref, count)
        forget_everything()
        if what == "a warm turn":
            the_next_turn(where)
        with counted() as steps:
            PRICED[what](where)
        found.append(steps[0])
    return found


PRICED = {
    "opening it": lambda where: windows(where.id),
    "the first turn": the_next_turn,
    "a warm turn": the_next_turn,
}


@pytest.mark.long
@pytest.mark.parametrize("what", PRICED)
def test_long_conversation_costs_at_most_twice_a_short_one(what):
    short, long = prices(what)

    assert long <= 2 * short + 10
