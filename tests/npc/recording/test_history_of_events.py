"""Which history a turn gets for an event, when other events wait or texts were inserted."""

import pytest

from evennia_ai.engine.history.records import RecordKind
from evennia_ai.npc.inputs import gather
from evennia_ai.npc.recording.heard import CommittedEvent
from evennia_ai.npc.senses.events import Event
from evennia_ai.store.history import conversations
from evennia_ai.store.history.conversations import begin_segment, get_or_open_conversation
from evennia_ai.store.history.windows import windows
from tests.store.builders import a_line, a_reply, a_staying_text


@pytest.fixture
def quay(stage):
    return get_or_open_conversation("12", kind="room", place_ref="3")


def heard(where, text: str) -> CommittedEvent:
    """Commit a line and return it as a committed event."""
    before = windows(where.id).history
    (record,) = conversations.append_records(where, [a_line(text)])
    event = Event(
        kind="say",
        speaker_ref="7",
        speaker_name="Anna",
        speaker_rank="Player",
        text=text,
        room_ref="3",
    )
    return CommittedEvent(event=event, conversation=where, record=record, before=before)


def said_and_before(event: CommittedEvent, *, waiting=()):
    now = windows(event.conversation.id).history
    return gather.said_and_before(event, now, waiting=waiting)


def answers(event: CommittedEvent, *, waiting=()) -> list[str]:
    """Return the texts of the history that a turn gets for this event."""
    return [m.content for m in said_and_before(event, waiting=waiting)[1]]


def test_newest_event_gets_the_whole_history_before_it(quay):
    conversations.append_records(quay, [a_line("One.")])
    event = heard(quay, "Two.")

    assert answers(event) == ["One."]
    assert said_and_before(event)[1] is event.before


def test_event_that_waited_gets_later_replies_but_not_itself(quay):
    first, second = heard(quay, "One."), heard(quay, "Two.")
    conversations.append_records(quay, [a_reply("To one.")])

    assert answers(first, waiting={second.record.id}) == ["To one."]
    assert answers(second) == ["One.", "To one."]


def test_text_inserted_earlier_does_not_change_the_rest_of_the_history(quay):
    first, second = heard(quay, "One."), heard(quay, "Two.")
    conversations.append_records(quay, [a_staying_text("Dusk.", before=first.record.place)])
    conversations.append_records(quay, [a_reply("To one.")])

    assert answers(second) == ["Dusk.", "One.", "To one."]
    assert said_and_before(second)[0].content == "Two."


def test_event_gets_the_summary_after_a_compaction(quay):
    for number in range(4):
        conversations.append_records(quay, [a_line(f"Line {number}.")])
    event = heard(quay, "And now?")
    now = windows(quay.id).history
    summary = a_line("They talked.", kind=RecordKind.SUMMARY, role="system", name="")
    begin_segment(quay, summary, summarised=now, first_kept=now.stop - 2)

    assert answers(event) == ["They talked.", "Line 3."]
    assert said_and_before(event)[0].content == "And now?"


def test_event_that_was_summarised_is_still_the_message_to_answer(quay):
    event = heard(quay, "One.")
    conversations.append_records(quay, [a_line("Two.")])
    now = windows(quay.id).history
    summary = a_line("They talked.", kind=RecordKind.SUMMARY, role="system", name="")
    begin_segment(quay, summary, summarised=now, first_kept=now.stop - 1)

    assert answers(event) == ["They talked.", "Two."]
    assert said_and_before(event)[0].content == "One."
