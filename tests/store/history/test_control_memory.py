"""Test that hidden messages are freed with the commit, without the garbage collector."""

import gc
from functools import partial

import pytest
from django.db import connection, transaction

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.history.records import RecordKind
from evennia_ai.engine.prompt.memo import SpentMemo
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.store.history import control
from evennia_ai.store.history.conversations import (
    append_records,
    begin_segment,
    get_or_open_conversation,
)
from evennia_ai.store.history.windows import windows
from tests.store.builders import a_line
from tests.store.history.test_control import exchanged, record_saying
from tests.store.history.test_windows import SUMMARY


@pytest.fixture
def quay():
    return get_or_open_conversation("12", kind="room", place_ref="3")


TAKES_OUT = {
    "compact": lambda where: begin_segment(
        where, SUMMARY, summarised=windows(where.id).history, first_kept=8
    ),
    "reset": lambda where: control.reset_conversation(where, by=trusted("Builder")),
    "undo": lambda where: control.undo_exchanges(where, 8, by=trusted("Builder")),
    "correct": lambda where: control.correct_utterance(
        where, record_saying(where, "Answer 3."), "Never.", by=trusted("Builder")
    ),
}


@pytest.mark.parametrize("what", TAKES_OUT)
def test_hidden_messages_are_freed_without_garbage_collection(quay, what):
    exchanged(quay, *range(10))
    held = {id(message) for message in windows(quay.id).history}
    gc.disable()
    try:
        TAKES_OUT[what](quay)
        counts = {id(message) for message in windows(quay.id).history}
        committing = [one for _, one, _ in connection.run_on_commit if isinstance(one, partial)]
        connection.run_on_commit.clear()  # The transaction of the test keeps all its windows.
        for callback in committing:
            callback()
        del committing, callback
        left = {id(one) for one in gc.get_objects() if type(one) is Message and id(one) in held}
    finally:
        gc.enable()

    assert len(held) == 20
    assert left == held & counts


@pytest.mark.parametrize("what", TAKES_OUT)
def test_no_message_is_released_before_the_commit(quay, what):
    """Otherwise the new window would not be cached, and the last sent prompt would be lost."""
    exchanged(quay, *range(10))
    held = list(windows(quay.id).history)
    with transaction.atomic():
        append_records(quay, [a_line("", kind=RecordKind.USAGE, role="system")])
        TAKES_OUT[what](quay)

    assert not any(isinstance(message.memo, SpentMemo) for message in held)
