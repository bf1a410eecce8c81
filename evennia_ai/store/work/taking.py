"""What workers may take of the game's tokens, and which models they leave alone.

Both are rows, so that limits and breakers hold over processes.
"""

from dataclasses import dataclass
from typing import Final

from django.db import transaction

from evennia_ai import models

BREAKER_OPEN: Final = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What was taken of a minute, or is in all."""

    tokens: int | None = None
    calls: int | None = None


def lease(minute: int, *, tokens: int, most: Taken) -> bool:
    """Take tokens for a call in this minute (since 1970) of the whole game; False: none are left.

    The row is locked meanwhile, so that no two processes take the last ones. What the game itself
    used counts too.
    """
    models.TokenLease.objects.get_or_create(minute=minute)
    with transaction.atomic():
        row = models.TokenLease.objects.select_for_update().get(minute=minute)
        tokens_then, calls_then = row.tokens + tokens, row.calls + 1
        if most.tokens is not None and row.game_tokens + tokens_then > most.tokens:
            return False
        if most.calls is not None and row.game_calls + calls_then > most.calls:
            return False
        row.tokens, row.calls = tokens_then, calls_then
        row.save(update_fields=["tokens", "calls"])
    return True


def tell_of_game(minute: int, *, tokens: int, calls: int) -> Taken:
    """Have workers know what the game used in the last minute; what they took in this one."""
    row, _ = models.TokenLease.objects.get_or_create(minute=minute)
    models.TokenLease.objects.filter(pk=row.pk).update(game_tokens=tokens, game_calls=calls)
    models.TokenLease.objects.filter(minute__lt=minute - 10).delete()
    return Taken(tokens=row.tokens, calls=row.calls)


def breaker_opened(name: str, at: float) -> None:
    """A model was found failing; every worker leaves it alone for a while."""
    models.BreakerRow.objects.update_or_create(
        name=name, defaults={"state": BREAKER_OPEN, "since": at}
    )


def breaker_closed(name: str) -> None:
    """A model answered again."""
    models.BreakerRow.objects.filter(name=name).delete()


def open_since(name: str) -> float | None:
    """When a worker last found this model failing; None: it is not known to."""
    found: float | None = (
        models.BreakerRow.objects.filter(name=name).values_list("since", flat=True).first()
    )
    return found
