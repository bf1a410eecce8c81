"""What of a history may be summarised, and as which messages a summary is made of it."""

from collections.abc import Collection

from evennia_ai.engine.history.compaction.summaries import unframed
from evennia_ai.engine.history.projection import record_of
from evennia_ai.engine.history.records import RecordKind
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message


def summarisable(
    history: History, *, opening: Message | None, unanswered: Collection[str]
) -> History:
    """What of a history may be summarised, as a value for another thread.

    Nothing from the first of the `unanswered` records on: each is in the prompt that answers it.
    `opening` is the summary that the segment begins with; it counts also where the window has left
    it behind. Frames of summaries are taken off.
    """
    stop = next((i for i, m in enumerate(history) if m.record in unanswered), len(history))
    messages = [_plain(message) for message in history.between(history.earlier, history.stop)]
    kept = messages[:stop]
    earlier = history.earlier
    if opening is not None and all(message.record != opening.record for message in history):
        kept, earlier = [unframed(opening), *kept], earlier - 1
    return History(kept, earlier=earlier, segment=history.segment)


def summaries_in(history: History) -> frozenset[str]:
    """The ids of the records of this history that are summaries."""
    return frozenset(m.record for m in history if m.record is not None and _is_summary(m))


def _plain(message: Message) -> Message:
    return unframed(message) if _is_summary(message) else message


def _is_summary(message: Message) -> bool:
    record = record_of(message)
    return record is not None and record.kind is RecordKind.SUMMARY
