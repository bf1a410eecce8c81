"""Prompts as somebody may see them: of a past turn, of a trial, of a turn that is only foreseen.

Commands, pages and their JSON show no prompt but by these functions.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import local
from typing import Final

from evennia_ai.engine.compose import Composition, compose, compose_with_lore
from evennia_ai.engine.history.turn.replay import turn_report
from evennia_ai.engine.inputs import Inputs
from evennia_ai.engine.prompt.report import Report, make_report
from evennia_ai.engine.prompt.trace import Verdict
from evennia_ai.npc.views.recomposing import PastInputs, PastReader
from evennia_ai.npc.views.visibility import Seer
from evennia_ai.store.history import record_rows
from evennia_ai.store.history.turns import StoredTurn


class _OfThread(local):
    """Each thread reads past turns for itself."""

    def __init__(self) -> None:
        self.reader = PastReader()


_of_thread: Final = _OfThread()


def past_reader() -> PastReader:
    """Reads past turns back for one screen: what never changes is kept from those before."""
    _of_thread.reader.forget_histories()
    return _of_thread.reader


def forget_past() -> None:
    """Read all of the past anew in this thread: what is there is another game, as in tests."""
    _of_thread.reader = PastReader()


def past_of(seer: Seer, turn: StoredTurn) -> PastInputs:
    """What a past turn was composed from, as far as it may be seen.

    NotReadBackError: something of it is gone; the text says what.
    """
    return past_seen(seer, past_reader().inputs(turn))


def sent(seer: Seer, turn: StoredTurn, reader: PastReader) -> Report:
    """The account of a past turn's prompt, as far as it may be seen.

    It is that of what was sent, or of what would have been sent without what is hidden.
    ReplayError: the prompt cannot be rebuilt. NotReadBackError: something may be hidden, and what
    the turn was composed from cannot be read back, so nobody can tell what.
    """
    records = record_rows.records(turn.manifest.record_ids)
    report = turn_report(turn.manifest, records)
    if not seer.may_hide:
        seer.note_reading(records)
        return report
    past = past_seen(seer, reader.inputs(turn))
    return make_report(compose(past.inputs), hidden=past.hidden) if past.hidden else report


def past_seen(seer: Seer, past: PastInputs) -> PastInputs:
    """What a past turn was composed from, as far as it may be seen."""
    seen = seer.seen(past.inputs)
    return replace(past, inputs=seen.inputs, hidden=seen.hidden) if seen.hidden else past


def verdicts_seen(seer: Seer, turn: StoredTurn, reader: PastReader) -> Sequence[Verdict]:
    """What a past turn tells of what was touched, kept and left out. NotReadBackError as `sent`."""
    if not seer.may_hide:
        return turn.manifest.verdicts
    past = past_seen(seer, reader.inputs(turn))
    return compose(past.inputs).touched if past.hidden else turn.manifest.verdicts


def revisions_seen(seer: Seer, turn: StoredTurn, report: Report | None) -> dict[str, str]:
    """Which revisions a past turn's prompt was made from, as far as they may be seen.

    `report` is what `sent` gave, None where nothing of the prompt can be shown: a text has a
    revision there only because it was in the prompt, which may tell what a hidden one says.
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


def tried(past: PastInputs, edit: Callable[[PastInputs], Inputs]) -> Report:
    """The account of a past turn's prompt with an edit, beside what it would be without.

    `past` is what `past_of` gave. FormatError, ComponentValueError: the edit cannot be, as far as
    who looks may see.
    """
    before = compose(past.inputs)
    return make_report(compose(edit(past)), older=before.messages, hidden=past.hidden)


def foreseen(seer: Seer, inputs: Inputs) -> tuple[Composition, Report]:
    """A prompt that is made of these inputs for who looks, and its account."""
    seen = seer.seen(inputs)
    made = compose_with_lore(seen.inputs)
    return made, make_report(made.prompt, hidden=seen.hidden)
