"""Which NPC plays which card and opens with which greeting; and which card a typed name means."""

import re
import time
from dataclasses import dataclass
from typing import Final

from evennia_ai import models
from evennia_ai.errors import ComponentValueError, NotStoredError
from evennia_ai.store.authored import card_revisions as log
from evennia_ai.store.authored.cards import StoredCard, card_names, card_or_none, get_card
from evennia_ai.store.core.checks import MAX_NAME
from evennia_ai.store.core.snapshots import Snapshots
from evennia_ai.store.core.state import CARDS, changing

_WANTED: Final = (
    "1 to 200 printable characters, no = and no / at its start, and no / before a number at its end"
)
# "Oren/3" is revision 3 of Oren: a card called so would be approved in its place.
_NUMBERED: Final = re.compile(r"/ ?[0-9]{1,9}\Z")
# Letters and marks that count as printable and show nothing: two names would look the same.
_UNSEEN: Final = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u3164\ufe00-\ufe0f\uffa0]")


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


def typeable_name(name: str) -> str:
    """`name` in one line; ComponentValueError where no command could be told it."""
    plain = " ".join(name.split())
    fits = plain and plain.isprintable() and len(plain) <= MAX_NAME
    is_odd = _UNSEEN.search(plain) or _NUMBERED.search(plain)
    if not fits or is_odd or "=" in plain or plain.startswith("/"):
        raise ComponentValueError("name of the card", name[:60], _WANTED)
    return plain


def known_name(wanted: str) -> str:
    """`wanted` in the case in which a card has that name, or had it; without one, as it is.

    A card in force goes before one that only waits or was removed.
    """
    for known in (card_names(), log.names()):
        if wanted in known:
            return wanted
        same = [name for name in known if name.casefold() == wanted.casefold()]
        if len(same) == 1:
            return same[0]
    return wanted
