"""A past turn as an account may see it: the report of what was sent, or of what a trial gives."""

from collections.abc import Sequence
from threading import local
from typing import Any, Final

from evennia_ai.compose import compose
from evennia_ai.history.records import Record
from evennia_ai.history.turn.replay import report_of_turn
from evennia_ai.minds.recomposing import PastInputs, PastReader
from evennia_ai.minds.trials import Trial
from evennia_ai.minds.visibility import Seer
from evennia_ai.prompt.report import Report, report_of
from evennia_ai.store.history import record_rows
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.web.site.door import door


def seer_for(account: Any, npc_ref: str) -> Seer:
    """What an account may see of one NPC: the function that the game's screens ask, too."""
    return Seer(door().viewer_of(account), npc_ref)


def records_of(turn: StoredTurn) -> tuple[Record, ...]:
    """The records that the turn's prompt shows."""
    return record_rows.records(turn.manifest.record_ids)


def sent(seer: Seer, turn: StoredTurn, records: Sequence[Record]) -> Report:
    """The account of what was sent, made from these records of it."""
    return seer.report(report_of_turn(turn.manifest, records))


class _OfThread(local):
    """Each thread of the site's reads past turns for itself."""

    def __init__(self) -> None:
        self.reader = PastReader()


_of_thread: Final = _OfThread()


def past_reader() -> PastReader:
    """Reads past turns back for one request: what never changes is kept from those before."""
    _of_thread.reader.forget_histories()
    return _of_thread.reader


def past_of(turn: StoredTurn) -> PastInputs:
    """What the turn was composed from; NotReadBackError says what of it is gone."""
    return past_reader().inputs(turn)


def tried(seer: Seer, past: PastInputs, trial: Trial) -> Report:
    """The account of the turn's prompt with the trial's edits, beside what was sent.

    FormatError, ComponentValueError: an edit cannot be.
    """
    before = compose(past.inputs)
    report = report_of(compose(trial(past)), older=before.messages)
    return seer.report(report)
