"""Cards, and which NPC plays which."""

import time
from dataclasses import dataclass
from typing import Final

from evennia_ai import models
from evennia_ai.prompt.errors import ComponentValueError
from evennia_ai.prompt.grants import ALL_GRANTS, Grants
from evennia_ai.store.errors import NotStoredError
from evennia_ai.store.snapshots import Snapshots
from evennia_ai.store.sources import checked_source
from evennia_ai.store.state import CARDS, changing


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCard:
    """A card as it was given: `source` is the file's own JSON text, `grants` what it may do."""

    name: str
    source: str
    sha256: str
    revision: int
    grants: Grants = ALL_GRANTS


def save_card(name: str, source: str, *, by: str) -> StoredCard:
    """Store a card under `name`, in place of the one that has it.

    The same text again changes nothing. FormatError: the text is no strict JSON object.
    """
    checked_name(name, what="card")
    digest = checked_source(source, what=f"card '{name}'")
    with changing(CARDS, f"saving card '{name}'"):
        old = _load_card(name)
        if old is not None and old.source == source:
            return old
        revision = old.revision + 1 if old else 1
        models.Card.objects.update_or_create(
            name=name,
            defaults={
                "source": source,
                "sha256": digest,
                "revision": revision,
                "added_by": by,
                "added_at": time.time(),
            },
        )
        _cards.written(name)
    return StoredCard(name=name, source=source, sha256=digest, revision=revision)


def get_card(name: str) -> StoredCard:
    """The card of this name; NotStoredError names those there are."""
    card = _cards.read(name)
    if card is None:
        raise NotStoredError("card", name, card_names())
    return card


def card_names() -> tuple[str, ...]:
    """The names of all cards, in alphabetical order."""
    return tuple(models.Card.objects.order_by("name").values_list("name", flat=True))


def assign(npc_ref: str, card_name: str, *, by: str) -> StoredCard:
    """Let an NPC play a card, in place of the one it played."""
    card = get_card(card_name)
    with changing(CARDS, f"assigning card '{card_name}'"):
        row = models.Card.objects.filter(name=card_name).first()
        models.CardAssignment.objects.update_or_create(
            npc_ref=npc_ref,
            defaults={"card": row, "assigned_by": by, "assigned_at": time.time()},
        )
        _assigned.written(npc_ref)
    return card


def unassign(npc_ref: str, *, by: str) -> bool:
    """Let an NPC play no card; whether it played one."""
    with changing(CARDS, f"taking the card from NPC {npc_ref} for {by}"):
        removed, _ = models.CardAssignment.objects.filter(npc_ref=npc_ref).delete()
        _assigned.written(npc_ref)
    return removed > 0


def card_of(npc_ref: str) -> StoredCard | None:
    """The card an NPC plays; the same object until it is changed."""
    name = _assigned.read(npc_ref)
    return None if name is None else _cards.read(name)


def checked_name(name: str, *, what: str) -> str:
    """`name`; ComponentValueError where it cannot name a card or a lorebook."""
    if not name.strip() or len(name) > 200 or not name.isprintable():
        raise ComponentValueError(f"name of the {what}", name, "1 to 200 printable characters")
    return name


def _load_card(name: str) -> StoredCard | None:
    row = models.Card.objects.filter(name=name).first()
    if row is None:
        return None
    return StoredCard(name=row.name, source=row.source, sha256=row.sha256, revision=row.revision)


def _load_assigned(npc_ref: str) -> str | None:
    names = models.CardAssignment.objects.filter(npc_ref=npc_ref)
    name: str | None = names.values_list("card__name", flat=True).first()
    return name


_cards: Final = Snapshots(CARDS, _load_card)
_assigned: Final = Snapshots(CARDS, _load_assigned)
