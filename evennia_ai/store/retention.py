"""Retention: what nobody came back to is forgotten after a while, if the game wants that.

The setting `EVENNIA_AI_KEEP_TURN_DAYS` says after how many days; a conversation is erased as a
whole (`evennia_ai.store.erasing`), never in parts: a history with holes would be none.
"""

from django.db.models import OuterRef, Q, Subquery

from evennia_ai import models
from evennia_ai.history.records import RecordKind
from evennia_ai.store.conversations import ref_of
from evennia_ai.store.erasing import Erased, erase_conversation

_DAY_SECONDS = 24 * 60 * 60


def forget_old(now: float, *, keep_days: int) -> Erased:
    """Erase the conversations in which nothing happened for `keep_days` days; 0 keeps them all.

    `now` is in epoch seconds. Each conversation is a transaction of its own, so a game that stops
    in the middle goes on the next time.
    """
    done = Erased()
    if not keep_days:
        return done
    for row in _quiet_since(now - keep_days * _DAY_SECONDS):
        one = erase_conversation(ref_of(row), by=f"retention after {keep_days} days")
        done = Erased(
            conversations=done.conversations + one.conversations,
            records=done.records + one.records,
            turns=done.turns + one.turns,
        )
    return done


def _quiet_since(moment: float) -> list[models.Conversation]:
    """The conversations whose newest record is older, without those that are erased already."""
    newest = models.Record.objects.filter(conversation=OuterRef("pk")).order_by("-segment", "-seq")
    rows = models.Conversation.objects.annotate(
        newest_at=Subquery(newest.values("created_at")[:1]),
        newest_kind=Subquery(newest.values("kind")[:1]),
        newest_seq=Subquery(newest.values("seq")[:1]),
    )
    # An erasure of the conversation begins a segment; one of single memories does not.
    erased = Q(newest_kind=RecordKind.ERASURE.value, newest_seq=1)
    quiet = rows.filter(newest_at__lt=moment).exclude(erased)
    return list(quiet.order_by("pk"))
