"""Prompts as a viewer may see them: of past turns, of trials, and of the next turn.

Commands, web pages and their JSON show prompts only through these functions.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import local
from typing import Final

from evennia_ai.engine.compose import Composition, compose, compose_with_lore
from evennia_ai.engine.history.records import Record
from evennia_ai.engine.history.turn.replay import turn_report
from evennia_ai.engine.inputs import Inputs
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.engine.prompt.report import Report, make_report
from evennia_ai.engine.prompt.trace import Verdict
from evennia_ai.npc.views.recomposing import PastInputs, PastReader
from evennia_ai.npc.views.visibility import Seer
from evennia_ai.store.history import record_rows
from evennia_ai.store.history.turns import StoredTurn


class _OfThread(local):
    """Holds one reader of past turns for each thread."""

    def __init__(self) -> None:
        self.reader = PastReader()


_of_thread: Final = _OfThread()


def past_reader() -> PastReader:
    """Return this thread's reader of past turns. It caches what cannot change."""
    _of_thread.reader.forget_histories()
    return _of_thread.reader


def forget_past() -> None:
    """Replace this thread's reader, for example when a test starts another game."""
    _of_thread.reader = PastReader()


def past_inputs_for(seer: Seer, turn: StoredTurn) -> PastInputs:
    """Return the inputs of a past turn, without what is hidden from the viewer.

    Raises:
        NotReadBackError: Part of the inputs is gone.
    """
    return visible_past(seer, past_reader().inputs(turn))


def sent_report(
    seer: Seer,
    turn: StoredTurn,
    reader: PastReader,
    *,
    found: Sequence[Record] | None = None,
    rebuilt: Sequence[Message] = (),
) -> Report:
    """Return the report of a past turn's prompt for the viewer.

    It shows the prompt that was sent. If the viewer may not see some text, the report shows the
    prompt as it would be without this text.

    Args:
        found: The records that the turn's manifest names, if the caller has read them already.
        rebuilt: The messages of the turn, if the caller has replayed it already.

    Raises:
        ReplayError: The prompt cannot be rebuilt.
        NotReadBackError: Something may be hidden, but the inputs cannot be read back to find out.
    """
    records = record_rows.records(turn.manifest.record_ids) if found is None else found
    report = turn_report(turn.manifest, records, rebuilt)
    if not seer.may_hide:
        seer.note_reading(records)
        return report
    past = visible_past(seer, reader.inputs(turn))
    return make_report(compose(past.inputs), hidden=past.hidden) if past.hidden else report


def visible_past(seer: Seer, past: PastInputs) -> PastInputs:
    """Return a past turn's inputs without what is hidden from the viewer."""
    seen = seer.seen(past.inputs)
    return replace(past, inputs=seen.inputs, hidden=seen.hidden) if seen.hidden else past


def visible_verdicts(seer: Seer, turn: StoredTurn, reader: PastReader) -> Sequence[Verdict]:
    """Return the verdicts of a past turn that the viewer may see. Raises like `sent_report`."""
    if not seer.may_hide:
        return turn.manifest.verdicts
    past = visible_past(seer, reader.inputs(turn))
    return compose(past.inputs).touched if past.hidden else turn.manifest.verdicts


def visible_revisions(seer: Seer, turn: StoredTurn, report: Report | None) -> dict[str, str]:
    """Return the revisions that the viewer may see of the texts in a past turn's prompt.

    If the report hides something, revisions of texts that it does not show are left out too. Such a
    text may have been in the prompt only because of a hidden text.

    Args:
        report: The result of `sent_report`, None if the prompt cannot be shown.
    """
    shown = seer.revisions(turn.manifest.revisions)
    if report is not None and not report.hidden:
        return shown
    placed = report.by_origin if report is not None else {}
    return {
        what: number
        for what, number in shown.items()
        if what in placed or what.partition(":")[0] not in ("component", "note", "lore")
    }


def trial_report(past: PastInputs, edit: Callable[[PastInputs], Inputs]) -> Report:
    """Return the report of a past turn's prompt with an edit, compared with the prompt without it.

    Args:
        past: The result of `past_inputs_for`.

    Raises:
        FormatError, ComponentValueError: The edit is impossible for what the viewer may see.
    """
    before = compose(past.inputs)
    return make_report(compose(edit(past)), older=before.messages, hidden=past.hidden)


def foreseen_report(seer: Seer, inputs: Inputs) -> tuple[Composition, Report]:
    """Compose a prompt from these inputs, without what is hidden from the viewer.

    Return the composition and its report.
    """
    seen = seer.seen(inputs)
    made = compose_with_lore(seen.inputs)
    return made, make_report(made.prompt, hidden=seen.hidden)
