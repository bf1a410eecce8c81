"""Test that the results of attempts to compact are read from records only."""

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import HistoryConflictError
from evennia_ai.engine.history.compaction.planning import Breaker
from evennia_ai.engine.history.compaction.summaries import (
    NO_ATTEMPT,
    Reply,
    SummaryAttempt,
    attempt_record,
)
from evennia_ai.engine.history.records import RecordKind
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.erasing import erase_conversation
from evennia_ai.store.history import record_rows
from evennia_ai.store.history.conversations import get_or_open_conversation
from evennia_ai.store.history.model_requests import (
    ask_for_summary,
    commit_attempt,
    compacted_of,
    newest_attempt,
)
from tests.store.builders import said, talked

REQUEST = (
    Message(role="system", content="Write a summary."),
    Message(role="user", content="<transcript>\n[1] Anna: Evening.\n</transcript>"),
)
REFUSED = SummaryAttempt(
    result="refused",
    asked_by="turn 7",
    reason="it is empty",
    breaker=Breaker(failures=3, opened_at=7),
)


@pytest.fixture
def quay():
    quay = get_or_open_conversation("12", kind="room", place_ref="3")
    talked(quay, 2)
    return quay


def asked(quay):
    return ask_for_summary(quay, REQUEST, asked_by="turn 7", model="tiny", messages=4, segment=1)


def test_conversation_without_attempt_has_no_failures(quay):
    assert newest_attempt(quay) is NO_ATTEMPT
    assert compacted_of("12") == ()


def test_erased_words_are_neither_committed_nor_sent(quay):
    erase_conversation(quay, by=trusted("Mira"))

    with pytest.raises(HistoryConflictError):
        asked(quay)
    assert [r.body for r in record_rows.records_of(quay) if r.body] == []


def test_attempt_is_read_back_from_its_record(quay):
    commit_attempt(
        quay, attempt_record(REFUSED, reply=Reply(asked="1.5", text="...", model="tiny"))
    )
    forget_everything()
    found = newest_attempt(quay)

    assert (found.result, found.asked_by, found.reason) == ("refused", "turn 7", "it is empty")
    assert found.breaker == REFUSED.breaker


def test_newest_attempt_counts(quay):
    commit_attempt(quay, attempt_record(REFUSED))
    commit_attempt(quay, attempt_record(NO_ATTEMPT))

    assert newest_attempt(quay).breaker == Breaker()


def test_conversation_has_no_compaction_attempt_after_the_attempt_is_erased(quay):
    commit_attempt(quay, attempt_record(REFUSED))
    erase_conversation(quay, by=trusted("Mira"))

    assert newest_attempt(quay) is NO_ATTEMPT


def test_sent_request_equals_the_committed_one(quay):
    made = asked(quay)
    by_place = {record.place: record.body for record in record_rows.records_of(quay)}

    assert [by_place[place] for place in made.record.meta["prompt"]] == [
        message.content for message in made.messages
    ]
    assert made.messages[1].content == REQUEST[1].content


def test_instructions_are_stored_once_per_segment(quay):
    first, second = asked(quay), asked(quay)

    assert first.record.meta["prompt"] == second.record.meta["prompt"]


def test_requests_are_not_part_of_the_history(quay):
    before = said(quay)
    asked(quay)
    commit_attempt(quay, attempt_record(REFUSED, reply=Reply(asked="1.5", text="Hm.")))

    assert said(quay) == before


def test_compacted_conversations_are_found_with_their_summaries(quay):
    commit_attempt(quay, attempt_record(REFUSED))
    (found,) = compacted_of("12")

    assert (found.conversation.id, found.summary) == (quay.id, None)
    assert found.attempt.breaker.failures == 3
    assert RecordKind.SUMMARY not in {r.kind for r in record_rows.records_of(quay)}
