"""Cards that are in force: what they were granted, how they change, and which NPC plays which.

An import waits until somebody approves it, grant by grant; what an earlier file was granted is not
carried over to another one. Every change is a revision, and a revision can be gone back to.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models.functions import Lower

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import (
    EditConflictError,
    NotStoredError,
    StoreError,
)
from evennia_ai.engine.prompt.components import ALL_GRANTS, NO_GRANTS, Grants
from evennia_ai.store.authored import card_revisions as log
from evennia_ai.store.authored.card_revisions import Action, CardFile, json_file, kept_file
from evennia_ai.store.core.authoring import checked_name
from evennia_ai.store.core.importing import grants_from, grants_text, in_known_case, typeable
from evennia_ai.store.core.snapshots import CARDS, Snapshots, changing, of_kind, value_of

MOST_WAITING: Final = 5_000
"""Imports that may wait at once, in the whole game: a folder's many cards, and then some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCard:
    """A card in force: the JSON text of the card, what it may do, and the hash of its file."""

    name: str
    source: str
    sha256: str
    revision: int
    grants: Grants
    carrier: str = "json"


def import_card(name: str, file: CardFile, *, by: Actor) -> int | None:
    """Let a file wait under `name` until it is approved or rejected; the number of the import.

    A file that waits already keeps its number; None where it is in force and nothing waits.
    FormatError: the card's text is no strict JSON object. StoreError: too many imports wait.
    """
    checked_name(name, what="card")
    with changing(CARDS, f"importing card '{name}'", by=by):
        before = log.waiting_names()
        number = _waiting_import(name, file, by=by)
        log.refuse_too_many(before, most=MOST_WAITING)
        return number


def approve(
    name: str, number: int, *, grants: Grants, by: Actor, newest_seen: int | None = None
) -> StoredCard:
    """Put an import in force with these grants; it answers all imports that wait.

    Whoever plays the card greets nobody until a greeting of this file is chosen.

    NotStoredError: there is no such import. StoreError: the revision is no import that waits.
    EditConflictError: another import came after the revision `newest_seen`, which would be
    answered unread.
    """
    with changing(CARDS, f"approving card '{name}'", by=by):
        log.refuse_unread(name, newest_seen)
        row = log.revision_row(name, number)
        if all(number != one.number for one in log.waiting(name)):
            raise StoreError(f"revision {number} of card '{name}' is no import that waits")
        return _put(name, row.file, action="approved", grants=grants, by=by)


def reject(name: str, *, by: Actor, newest_seen: int | None = None) -> int:
    """Let no import of this name wait any longer; how many did.

    EditConflictError: another import came after the revision `newest_seen`.
    """
    with changing(CARDS, f"rejecting imports of card '{name}'", by=by):
        log.refuse_unread(name, newest_seen)
        imports = log.waiting(name)
        if imports:
            row = log.revision_row(name, imports[-1].number)
            log.record_card_revision(name, row.file, action="rejected", grants=NO_GRANTS, by=by)
    return len(imports)


def grant(name: str, grants: Grants, *, by: Actor) -> StoredCard:
    """Give a card in force more grants; those it has already change nothing."""
    with changing(CARDS, f"granting to card '{name}'", by=by):
        card = get_card(name)
        return _regranted(card, card.grants | grants, action="granted", by=by)


def revoke(name: str, grants: Grants, *, by: Actor) -> StoredCard:
    """Take grants from a card in force; those it has not change nothing."""
    with changing(CARDS, f"revoking grants of card '{name}'", by=by):
        card = get_card(name)
        return _regranted(card, card.grants - grants, action="revoked", by=by)


def revert(name: str, number: int, *, by: Actor, seen_revision: int | None = None) -> StoredCard:
    """Put the file and the grants of an earlier revision in force again.

    Errors as `card_revisions.in_force_then`. EditConflictError: another revision is in force than
    `seen_revision`; 0 is none.
    """
    with changing(CARDS, f"reverting card '{name}'", by=by):
        _refuse_stale(name, seen_revision)
        then, _ = log.in_force_then(name, number)
        file = log.revision_row(name, number).file
        return _put(name, file, action="reverted", grants=then.grants, by=by)


def remove(name: str, *, by: Actor, seen_revision: int | None = None) -> None:
    """Let a card be in force no longer; its revisions stay, and can be gone back to.

    StoreError: an NPC plays it. EditConflictError: it was changed since `seen_revision`.
    """
    with changing(CARDS, f"removing card '{name}'", by=by):
        _refuse_stale(name, seen_revision)
        card = get_card(name)
        row = models.Card.objects.get(name=name)
        players = sorted(row.cardassignment_set.values_list("npc_ref", flat=True))
        if players:
            named = ", ".join(f"#{ref}" for ref in players[:10])
            raise StoreError(f"card '{name}' is played by {named}; give them another one first")
        log.record_card_revision(name, row.file, action="removed", grants=card.grants, by=by)
        row.delete()
        card_or_none.written(name)


def save_card(
    name: str, source: str | CardFile, *, by: Actor, grants: Grants = ALL_GRANTS
) -> StoredCard:
    """Import a card and approve it at once, for the code of a game, which vouches for its cards.

    `source` is a JSON text or a whole file. The same file with the same grants again changes
    nothing. FormatError: the card's text is no strict JSON object, or is about who speaks now where
    every prompt begins with it.
    """
    file = json_file(source) if isinstance(source, str) else source
    with changing(CARDS, f"saving card '{name}'", by=by):
        number = _waiting_import(checked_name(name, what="card"), file, by=by)
        if number is not None:
            return approve(name, number, grants=grants, by=by)
        return _regranted(get_card(name), grants, action="granted", by=by)


def create_card(name: str, file: CardFile, *, by: Actor) -> StoredCard:
    """Put a card in force that a builder wrote in the game, with every grant: the builder vouches.

    StoreError: a card of this name is in force. FormatError: as for `save_card`.
    """
    with changing(CARDS, f"creating card '{name}'", by=by):
        if models.Card.objects.filter(name=checked_name(name, what="card")).exists():
            raise StoreError(f"there is a card '{name}' already; card/set writes in it")
        row = kept_file(file, what=f"card '{name}'")
        return _put(name, row, action="created", grants=ALL_GRANTS, by=by)


def edit_card(card: StoredCard, file: CardFile, *, keeps_greetings: bool, by: Actor) -> StoredCard:
    """Put what a builder made of a card in its place, with the grants it has.

    `keeps_greetings`: every greeting that was chosen has its number still. EditConflictError:
    `card` is not what is in force any more. FormatError: as for `save_card`.
    """
    with changing(CARDS, f"editing card '{card.name}'", by=by):
        current = card_or_none(card.name)
        if current is None or current.sha256 != card.sha256:
            raise EditConflictError(
                f"card '{card.name}'",
                card.revision,
                log.newest_number(card.name),
                log.last_changed_by(card.name),
            )
        row = kept_file(file, what=f"card '{card.name}'")
        return _put(
            card.name,
            row,
            action="edited",
            grants=current.grants,
            by=by,
            keeps_greetings=keeps_greetings,
        )


def get_card(name: str) -> StoredCard:
    """The card of this name; NotStoredError names those there are."""
    card = card_or_none(name)
    if card is None:
        raise NotStoredError("card", name, card_names())
    return card


def card_then(name: str, number: int) -> StoredCard:
    """A card as a revision left it; NotStoredError: there is no such revision."""
    change, file = log.revision(name, number)
    return StoredCard(
        name=name,
        source=file.source,
        sha256=change.sha256,
        revision=number,
        grants=change.grants,
        carrier=file.carrier,
    )


def card_names() -> tuple[str, ...]:
    """Return the names of all cards in force, sorted without regard to case."""
    return tuple(models.Card.objects.order_by(Lower("name"), "name").values_list("name", flat=True))


def _refuse_stale(name: str, seen_revision: int | None) -> None:
    """Raise EditConflictError if another revision is in force than `seen_revision`; 0 is none."""
    row = models.Card.objects.filter(name=name).first()
    if seen_revision not in (None, row.revision if row else 0):
        raise EditConflictError(
            f"card '{name}'", seen_revision, log.newest_number(name), log.last_changed_by(name)
        )


def _waiting_import(name: str, file: CardFile, *, by: Actor) -> int | None:
    """Let a file wait, in the transaction that wants it."""
    row = kept_file(file, what=f"card '{name}'")
    card = models.Card.objects.filter(name=name).first()
    imports = log.waiting(name)
    if card is not None and card.file_id == row.id and not imports:
        return None
    same = [one.number for one in imports if one.sha256 == row.sha256]
    if same:
        return same[-1]
    return log.record_card_revision(name, row, action="imported", grants=NO_GRANTS, by=by)


def _regranted(card: StoredCard, grants: Grants, *, action: Action, by: Actor) -> StoredCard:
    if grants == card.grants:
        return card
    row = models.Card.objects.select_related("file").get(name=card.name)
    return _put(card.name, row.file, action=action, grants=grants, by=by)


def _put(
    name: str,
    file: models.CardFile,
    *,
    action: Action,
    grants: Grants,
    by: Actor,
    keeps_greetings: bool = False,
) -> StoredCard:
    """Put a file with these grants in force, in the transaction that wants it."""
    others = models.Card.objects.filter(name=name).exclude(file_id=file.pk)
    if not keeps_greetings and others.exists():
        _forget_greetings(name)
    number = log.record_card_revision(name, file, action=action, grants=grants, by=by)
    models.Card.objects.update_or_create(
        name=name, defaults={"file": file, "grants": grants_text(grants), "revision": number}
    )
    card_or_none.written(name)
    return get_card(name)


def _forget_greetings(name: str) -> None:
    """Let the card's players greet nobody: their greetings were chosen from another file."""
    models.CardAssignment.objects.filter(card__name=name).update(greeting=None)
    for snapshots in of_kind(CARDS):
        snapshots.all_written()


def _load_card(name: str) -> StoredCard | None:
    rows = models.Card.objects.select_related("file").defer("file__content")
    row = rows.filter(name=name).first()
    if row is None:
        return None
    return value_of(
        StoredCard,
        row,
        source=row.file.source,
        sha256=row.file.sha256,
        grants=grants_from(row.grants),
        carrier=row.file.carrier,
    )


card_or_none: Final = Snapshots(CARDS, _load_card)
"""The card of this name, None where none is in force."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The card an NPC plays."""

    card: str
    greeting: int | None
    """The index of the one it opens with, None for none."""
    assigned_by: str


def assign(npc_ref: str, card_name: str, *, by: Actor) -> StoredCard:
    """Let an NPC play a card, in place of the one it played; it opens with no greeting."""
    card = get_card(card_name)
    with changing(CARDS, f"assigning card '{card_name}'", by=by):
        row = models.Card.objects.filter(name=card_name).first()
        models.CardAssignment.objects.update_or_create(
            npc_ref=npc_ref,
            defaults={
                "card": row,
                "greeting": None,
                "assigned_by": by.name,
                "assigned_at": time.time(),
            },
        )
        assignment_of.written(npc_ref)
    return card


def unassign(npc_ref: str, *, by: Actor) -> bool:
    """Let an NPC play no card; whether it played one."""
    with changing(CARDS, f"taking the card from NPC {npc_ref} for {by}", by=by):
        removed, _ = models.CardAssignment.objects.filter(npc_ref=npc_ref).delete()
        assignment_of.written(npc_ref)
    return removed > 0


def set_greeting(
    npc_ref: str, index: int | None, *, by: Actor, seen_revision: int | None = None
) -> None:
    """Let an NPC open its conversations with a greeting of its card, or with none.

    NotStoredError: the NPC plays no card. EditConflictError: the card was changed since
    `seen_revision`, so the index may be that of another greeting.
    """
    with changing(CARDS, f"setting the greeting of NPC {npc_ref} for {by}", by=by):
        rows = models.CardAssignment.objects.filter(npc_ref=npc_ref)
        name = rows.values_list("card__name", flat=True).first()
        if name is None:
            raise NotStoredError("card that is played by NPC", npc_ref)
        _refuse_stale(name, seen_revision)
        rows.update(greeting=index)
        assignment_of.written(npc_ref)


def card_of(npc_ref: str) -> StoredCard | None:
    """The card an NPC plays; the same object until it is changed."""
    found = assignment_of(npc_ref)
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
    return _load_assigned_each([npc_ref])[npc_ref]


def _load_assigned_each(npc_refs: Sequence[str]) -> Mapping[str, Assignment | None]:
    rows = models.CardAssignment.objects.filter(npc_ref__in=npc_refs).select_related("card")
    assigned = {
        row.npc_ref: Assignment(
            card=row.card.name, greeting=row.greeting, assigned_by=row.assigned_by
        )
        for row in rows
    }
    return {npc_ref: assigned.get(npc_ref) for npc_ref in npc_refs}


assignment_of: Final = Snapshots(CARDS, _load_assigned, load_each=_load_assigned_each)
"""What an NPC plays; the same object until it is changed."""


def typeable_name(name: str) -> str:
    """`name` in one line; ComponentValueError where no command could be told it."""
    return typeable(name, what="card")


def known_name(wanted: str) -> str:
    """`wanted` in the case in which a card has that name, or had it; without one, as it is.

    A card in force goes before one that only waits or was removed.
    """
    return in_known_case(wanted, card_names(), log.names())
