"""Which NPC plays which card, and which of its greetings opens the NPC's conversations."""

import time
from dataclasses import dataclass
from typing import Final

from evennia_ai import models
from evennia_ai.errors import NotStoredError
from evennia_ai.store.cards import StoredCard, card_or_none, get_card
from evennia_ai.store.snapshots import Snapshots
from evennia_ai.store.state import CARDS, changing


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The card an NPC plays; `greeting` is the index of the one it opens with, None for none."""

    card: str
    greeting: int | None
    assigned_by: str


def assign(npc_ref: str, card_name: str, *, by: str) -> StoredCard:
    """Let an NPC play a card, in place of the one it played; it opens with no greeting."""
    card = get_card(card_name)
    with changing(CARDS, f"assigning card '{card_name}'"):
        row = models.Card.objects.filter(name=card_name).first()
        models.CardAssignment.objects.update_or_create(
            npc_ref=npc_ref,
            defaults={
                "card": row,
                "greeting": None,
                "assigned_by": by,
                "assigned_at": time.time(),
            },
        )
        _assigned.written(npc_ref)
    return card


def unassign(npc_ref: str, *, by: str) -> bool:
    """Let an NPC play no card; whether it played one."""
    with changing(CARDS, f"taking the card from NPC {npc_ref} for {by}"):
        removed, _ = models.CardAssignment.objects.filter(npc_ref=npc_ref).delete()
        _assigned.written(npc_ref)
    return removed > 0


def set_greeting(npc_ref: str, index: int | None, *, by: str) -> None:
    """Let an NPC open its conversations with a greeting of its card, or with none.

    NotStoredError: the NPC plays no card.
    """
    with changing(CARDS, f"setting the greeting of NPC {npc_ref} for {by}"):
        rows = models.CardAssignment.objects.filter(npc_ref=npc_ref)
        if not rows.update(greeting=index):
            raise NotStoredError("card that is played by NPC", npc_ref)
        _assigned.written(npc_ref)


def assignment_of(npc_ref: str) -> Assignment | None:
    """What an NPC plays; the same object until it is changed."""
    return _assigned.read(npc_ref)


def card_of(npc_ref: str) -> StoredCard | None:
    """The card an NPC plays; the same object until it is changed."""
    found = _assigned.read(npc_ref)
    return None if found is None else card_or_none(found.card)


def players_of(card_name: str) -> tuple[str, ...]:
    """The references of the NPCs that play a card, in their order."""
    rows = models.CardAssignment.objects.filter(card__name=card_name)
    return tuple(rows.order_by("npc_ref").values_list("npc_ref", flat=True))


def greeters_of(card_name: str) -> tuple[str, ...]:
    """The references of the NPCs that play a card and open with a greeting of it."""
    rows = models.CardAssignment.objects.filter(card__name=card_name, greeting__isnull=False)
    return tuple(rows.order_by("npc_ref").values_list("npc_ref", flat=True))


def _load_assigned(npc_ref: str) -> Assignment | None:
    row = models.CardAssignment.objects.filter(npc_ref=npc_ref).select_related("card").first()
    if row is None:
        return None
    return Assignment(card=row.card.name, greeting=row.greeting, assigned_by=row.assigned_by)


_assigned: Final = Snapshots(CARDS, _load_assigned)
