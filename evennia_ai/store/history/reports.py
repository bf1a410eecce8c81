"""Reports of players about what NPCs said, for the staff.

A report copies the words, because the staff must see them even if a builder corrected the line
since. An erasure of the conversation or of the player blanks the copy. The turn and the hash of its
prompt stay.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from evennia_ai import models
from evennia_ai.engine.history.records import make_storable
from evennia_ai.store.core.snapshots import one_transaction
from evennia_ai.store.history.record_rows import ConversationRef, ref_of
from evennia_ai.store.history.turns import StoredTurn


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReport:
    """One report of a player."""

    id: int
    npc_ref: str
    turn: int
    """The number of the turn in which the NPC said the words."""
    conversation: ConversationRef
    prompt_sha256: str
    words: str
    why: str
    reporter_ref: str
    """The player's character; "" after the player had themselves forgotten."""
    reported_at: float


def add_report(turn: StoredTurn, *, words: str, why: str, reporter_ref: str) -> int:
    """Store a report about the words of a turn, and return its number."""
    with one_transaction("reporting an NPC's words"):
        row = models.PlayerReport.objects.create(
            turn_id=turn.id,
            prompt_sha256=turn.manifest.sha256,
            words=make_storable(words),
            why=make_storable(why),
            reporter_ref=reporter_ref,
            reported_at=time.time(),
        )
    return int(row.pk)


def count_reports() -> int:
    """Return how many reports there are."""
    return models.PlayerReport.objects.count()


def newest_reports(*, first: int, most: int) -> tuple[StoredReport, ...]:
    """Return `most` reports, the newest first, after leaving out the newest `first`."""
    rows = models.PlayerReport.objects.select_related("turn__conversation").order_by("-pk")
    return tuple(map(_report_from, rows[first : first + most]))


def reports_by(person_ref: str, *, npc_ref: str | None = None) -> tuple[StoredReport, ...]:
    """Return the reports of a player about one NPC or all NPCs, the oldest first."""
    rows = _rows_by(person_ref, npc_ref)
    return tuple(map(_report_from, rows.select_related("turn__conversation").order_by("pk")))


def blank_reports_by(person_ref: str, *, npc_ref: str | None = None) -> int:
    """Erase the words of a player's reports and who reported. Call inside a transaction.

    Returns:
        The number of reports.
    """
    return int(_rows_by(person_ref, npc_ref).update(words="", why="", reporter_ref=""))


def blank_reports_about(conversation_ids: Iterable[int]) -> None:
    """Erase the words of the reports about conversations. Call inside a transaction."""
    rows = models.PlayerReport.objects.filter(turn__conversation_id__in=list(conversation_ids))
    rows.update(words="", why="")


def _rows_by(person_ref: str, npc_ref: str | None) -> Any:
    rows = models.PlayerReport.objects.filter(reporter_ref=person_ref)
    return rows if npc_ref is None else rows.filter(turn__npc_ref=npc_ref)


def _report_from(row: Any) -> StoredReport:
    return StoredReport(
        id=row.pk,
        npc_ref=row.turn.npc_ref,
        turn=row.turn.number,
        conversation=ref_of(row.turn.conversation),
        prompt_sha256=row.prompt_sha256,
        words=row.words,
        why=row.why,
        reporter_ref=row.reporter_ref,
        reported_at=row.reported_at,
    )
