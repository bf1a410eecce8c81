"""Writing authored things, and noticing that another process wrote them.

Each kind of authored thing has one number in the database. A write raises it first, in its own
transaction: that row is the lock which makes writers take turns, and the number tells the other
processes that their snapshots are old.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import DatabaseError, transaction
from django.db.models import F

from evennia_ai.errors import StoreError
from evennia_ai.models import StateRevision
from evennia_ai.store.core.snapshots import of_kind

COMPONENTS: Final = "components"
CARDS: Final = "cards"
LOREBOOKS: Final = "lorebooks"
NOTES: Final = "notes"
MEMORIES: Final = "memories"
KNOWLEDGE: Final = "knowledge"
# Raised by a reset alone: a turn tells nobody else what its lore remembers.
LORE_STATES: Final = "lore_states"

_seen: dict[str, int] = {}


@contextmanager
def one_transaction(doing: str) -> Iterator[None]:
    """A transaction; StoreError where the database refuses it, and then nothing was written."""
    try:
        with transaction.atomic():
            yield
    except DatabaseError as error:
        raise StoreError(f"{doing} failed, nothing was written: {error}") from error


@contextmanager
def changing(kind: str, doing: str) -> Iterator[None]:
    """A transaction that writes one kind of authored thing; writers of one kind take turns."""
    with one_transaction(doing):
        if not StateRevision.objects.filter(name=kind).update(number=F("number") + 1):
            StateRevision.objects.create(name=kind, number=1)
        yield


def refresh_if_changed() -> frozenset[str]:
    """Drop the snapshots that another process made old; the kinds that were dropped.

    One query. For a timer, never for a turn.
    """
    try:
        numbers = dict(StateRevision.objects.values_list("name", "number"))
    except DatabaseError as error:
        raise StoreError(f"the state revisions cannot be read: {error}") from error
    changed = frozenset(kind for kind, number in numbers.items() if _seen.get(kind) != number)
    # Seen before dropped: what is loaded from now on is at least as new as these numbers.
    _seen.update(numbers)
    for kind in changed:
        for snapshots in of_kind(kind):
            snapshots.drop_all()
    return changed
