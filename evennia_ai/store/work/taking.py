"""Count what workers use of the token limits of NPCs and of the game, and store open breakers.

Both are rows of the database, so that limits and breakers hold for all processes.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from django.db import transaction

from evennia_ai import models
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.services.llm.quotas import MINUTE_SECONDS
from evennia_ai.store import model_calls
from evennia_ai.store.model_calls import GAME_REF

BREAKER_OPEN: Final = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Tokens and calls in one minute.

    They are the use, or the limit; then None means no limit.
    """

    tokens: int | None = None
    calls: int | None = None


def take_tokens(now: float, *, tokens: int, most: Mapping[str, Taken]) -> str | None:
    """Take tokens for a call from the limits of the minute of `now`.

    The rows are locked, so two processes cannot take the same last tokens. The game's own use
    counts too.

    Args:
        most: The limits, by NPC; GAME_REF is the key for the whole game.

    Returns:
        The reference whose limit is exhausted, or None if the tokens were taken.
    """
    minute = int(now // MINUTE_SECONDS)
    _make_rows(minute, most.keys(), now)
    with transaction.atomic():
        rows = models.TokenLease.objects.select_for_update().filter(minute=minute)
        found = list(rows.filter(npc_ref__in=most).order_by("npc_ref"))
        for row in found:
            row.tokens, row.calls = row.tokens + tokens, row.calls + 1
            bound = most[row.npc_ref]
            if bound.tokens is not None and row.game_tokens + row.tokens > bound.tokens:
                return row.npc_ref
            if bound.calls is not None and row.game_calls + row.calls > bound.calls:
                return row.npc_ref
        for row in found:
            row.save(update_fields=["tokens", "calls"])
    return None


def _make_rows(minute: int, refs: Collection[str], now: float) -> None:
    """Create the rows of this minute that do not exist yet.

    The row of an NPC starts with its recorded calls, until the game reports its own use.
    """
    rows = models.TokenLease.objects
    known = set(rows.filter(minute=minute, npc_ref__in=refs).values_list("npc_ref", flat=True))
    for ref in refs:
        if ref in known:
            continue
        used = model_calls.NOTHING
        if ref != GAME_REF:
            used = model_calls.use_since(now - MINUTE_SECONDS, Scope(kind="npc", ref=ref))
        new = models.TokenLease(
            minute=minute, npc_ref=ref, game_tokens=used.tokens, game_calls=used.calls
        )
        rows.bulk_create([new], ignore_conflicts=True)  # Another process may create the row first.


def report_game_use(minute: int, used: Mapping[str, Taken]) -> Mapping[str, Taken]:
    """Tell workers what the game used in the last minute, and return what they used in this one.

    Both are by NPC, with GAME_REF as the key for the whole game. NPCs for which workers used
    nothing are left out.
    """
    rows = models.TokenLease.objects.filter(minute=minute)
    rows.get_or_create(minute=minute, npc_ref=GAME_REF)
    for ref, one in used.items():
        rows.filter(npc_ref=ref).update(game_tokens=one.tokens, game_calls=one.calls)
    models.TokenLease.objects.filter(minute__lt=minute - 10).delete()
    taken = rows.values_list("npc_ref", "tokens", "calls")
    return {ref: Taken(tokens=tokens, calls=calls) for ref, tokens, calls in taken}


def store_open_breaker(name: str, at: float) -> None:
    """Store that a model fails, so that no worker calls it for a while."""
    models.BreakerRow.objects.update_or_create(
        name=name, defaults={"state": BREAKER_OPEN, "since": at}
    )


def remove_breaker(name: str) -> None:
    """Store that a model answers again."""
    models.BreakerRow.objects.filter(name=name).delete()


def open_since(name: str) -> float | None:
    """Return when a worker last found that a model fails, or None."""
    found: float | None = (
        models.BreakerRow.objects.filter(name=name).values_list("since", flat=True).first()
    )
    return found
