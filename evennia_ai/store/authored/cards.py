"""Store character cards: imports, edits by builders, and which NPC plays which card."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import EditConflictError, NotStoredError, StoreError
from evennia_ai.engine.prompt.components import ALL_GRANTS, GAME, NO_GRANTS, Grants, Scope, of_npc
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored.files import (
    AuthoredFile,
    check_file,
    json_file,
    read_text,
    store_file,
)
from evennia_ai.store.authored.life_cycle import Action, ImportedKind, grants_from, grants_text
from evennia_ai.store.core.authoring import checked_name
from evennia_ai.store.core.snapshots import Snapshots, changing

WITH_PICTURES: Final = ("png", "apng", "charx")
"""The formats of card files that may have a picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCard:
    """A stored card: the JSON text of its file, and the grants that limit what the text may do."""

    name: str
    source: str = field(compare=False)
    sha256: str
    """The hash of the card's file."""
    revision: int
    grants: Grants
    carrier: str = "json"
    """The format of the card's file: json, png, apng or charx."""

    @property
    def has_picture(self) -> bool:
        """True if the card's file may have a picture."""
        return self.carrier in WITH_PICTURES


class CardKind(ImportedKind[StoredCard]):
    """The kind "card". Each NPC plays at most one card."""

    name = "card"
    state = "cards"
    table = models.Card
    scopes = ("npc",)
    most_waiting = 5_000  # Enough to import a whole folder of cards at once.

    def to_row(self, value: StoredCard) -> dict[str, Any]:
        return {"file": self.file_of(value), "grants": grants_text(value.grants)}

    def from_row(self, row: Any) -> StoredCard:
        return StoredCard(
            name=row.name,
            source=read_text(row.file.sha256),
            sha256=row.file.sha256,
            revision=row.revision,
            grants=grants_from(row.grants),
            carrier=row.file.carrier,
        )

    def to_json(self, value: StoredCard) -> dict[str, Any]:
        return {"grants": grants_text(value.grants)}

    def from_json(self, fields: Mapping[str, Any], row: models.Revision) -> StoredCard:
        assert row.file is not None
        return StoredCard(
            name=row.key,
            source="",
            sha256=row.file.sha256,
            revision=row.number,
            grants=grants_from(fields["grants"]),
            carrier=row.file.carrier,
        )

    def refresh(self, key: str, scope: Scope) -> None:
        card_or_none.note_change(key)

    def refresh_assigned(self, scope: Scope | None) -> None:
        if scope is None:
            assignment_of.note_any_change()
        else:
            assignment_of.note_change(scope.ref)

    def save(
        self,
        key: str,
        value: StoredCard,
        *,
        action: Action,
        by: Actor,
        scope: Scope = GAME,
        keeps_greetings: bool = False,
    ) -> StoredCard:
        """Save a card.

        If its file changes, the greetings that builders chose are unset.

        Args:
            keeps_greetings: True if each greeting has the same number in the new file. Then the
                choices stay.
        """
        old = self.current(key)
        if old is not None and old.sha256 != value.sha256 and not keeps_greetings:
            models.Assignment.objects.filter(kind=self.name, key=key).update(greeting=None)
            self.refresh_assigned(None)
        return super().save(key, value, action=action, by=by, scope=scope)


CARDS: Final = CardKind()


def import_card(name: str, file: AuthoredFile, *, by: Actor) -> int | None:
    """Store a card file as an import that waits for approval (`ImportedKind.import_file`).

    Raises:
        FormatError: the text of the card is not a strict JSON object, or it is too long.
    """
    with changing(CARDS.state, f"importing card '{name}'", by=by):
        return CARDS.import_file(name, _store_card_file(name, file, grants=NO_GRANTS), by=by)


def save_card(
    name: str, source: str | AuthoredFile, *, by: Actor, grants: Grants = ALL_GRANTS
) -> StoredCard:
    """Import a card and approve it at once. This is for the code of a game.

    The same file with the same grants changes nothing.

    Raises:
        FormatError: the text of the card is not a strict JSON object, or it is too long.
    """
    file = json_file(source) if isinstance(source, str) else source
    with changing(CARDS.state, f"saving card '{name}'", by=by):
        card = _store_card_file(name, file, grants=NO_GRANTS)
        return CARDS.approve_at_once(name, card, grants=grants, by=by)


def create_card(name: str, file: AuthoredFile, *, by: Actor) -> StoredCard:
    """Store a card that a builder wrote in the game. The card gets all grants.

    Raises:
        StoreError: a card with this name exists.
        FormatError: the text of the card is not a strict JSON object, or it is too long.
    """
    with changing(CARDS.state, f"creating card '{name}'", by=by):
        if CARDS.current(checked_name(name, what="card")) is not None:
            raise StoreError(f"a card '{name}' already exists; card/edit changes it")
        card = _store_card_file(name, file, grants=ALL_GRANTS)
        return CARDS.save(name, card, action="created", by=by)


def edit_card(
    card: StoredCard, file: AuthoredFile, *, keeps_greetings: bool, by: Actor
) -> StoredCard:
    """Replace the file of a card by an edited one, and keep the card's grants.

    Args:
        card: The card that the builder edited.
        keeps_greetings: True if each greeting has the same number in the new file.

    Raises:
        EditConflictError: the card was changed meanwhile and has another file now.
        FormatError: the text of the card is not a strict JSON object, or it is too long.
    """
    name = card.name
    with changing(CARDS.state, f"editing card '{name}'", by=by):
        now = CARDS.current(name)
        if now is None or now.sha256 != card.sha256:
            newest, by_whom = CARDS.newest_number(name), CARDS.last_changed_by(name)
            raise EditConflictError(CARDS.called(name), card.revision, newest, by_whom)
        edited = _store_card_file(name, file, grants=now.grants)
        return CARDS.save(name, edited, action="updated", by=by, keeps_greetings=keeps_greetings)


def _store_card_file(name: str, file: AuthoredFile, *, grants: Grants) -> StoredCard:
    """Store the file of a card, and return the card. The caller must save the card."""
    digest = check_file(
        file,
        what=CARDS.called(name),
        most=conf().card_limits.text_bytes,
        setting="EVENNIA_AI_CARD_LIMITS, text_bytes",
    )
    store_file(file, digest)
    return StoredCard(
        name=name,
        source=file.source,
        sha256=digest,
        revision=0,
        grants=grants,
        carrier=file.carrier,
    )


card_or_none: Final = Snapshots(CARDS.state, CARDS.current)
"""Return the card with this name, or None.

Every call returns the same object until the card is changed.
"""


def get_card(name: str) -> StoredCard:
    """Return the card with this name.

    Raises:
        NotStoredError: there is none; the message lists the names that exist.
    """
    return card_or_none(name) or CARDS.existing(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardAssignment:
    """The card that an NPC plays."""

    card: str
    greeting: int | None
    """The index of the greeting with which the NPC opens conversations, or None."""
    assigned_by: str


def set_greeting(
    npc_ref: str, index: int | None, *, by: Actor, seen_revision: int | None = None
) -> None:
    """Let an NPC open its conversations with a greeting of its card, or with none.

    Raises:
        NotStoredError: the NPC plays no card.
        EditConflictError: the card was changed after `seen_revision`, so that the index may mean
            another greeting.
    """
    scope = of_npc(npc_ref)
    with changing(CARDS.state, f"setting the greeting of {scope}", by=by):
        rows = models.Assignment.objects.filter(
            kind=CARDS.name, scope_kind=scope.kind, scope_ref=scope.ref
        )
        row = rows.first()
        if row is None:
            raise NotStoredError("card that is played by NPC", npc_ref)
        CARDS.refuse_stale(row.key, seen_revision, CARDS.current(row.key))
        rows.update(greeting=index)
        assignment_of.note_change(npc_ref)


def card_of(npc_ref: str) -> StoredCard | None:
    """Return the card that an NPC plays, or None.

    Every call returns the same object until the card is changed.
    """
    found = assignment_of(npc_ref)
    return None if found is None else card_or_none(found.card)


def players_of(card_name: str) -> tuple[str, ...]:
    """Return the references of the NPCs that play this card."""
    return tuple(scope.ref for scope in CARDS.assigned_to(card_name))


def greeters_of(card_name: str) -> tuple[str, ...]:
    """Return the references of the NPCs that play this card and have a chosen greeting."""
    rows = models.Assignment.objects.filter(kind=CARDS.name, key=card_name, greeting__isnull=False)
    return tuple(rows.order_by("scope_ref").values_list("scope_ref", flat=True))


def _load_assigned(npc_ref: str) -> CardAssignment | None:
    return _load_assigned_each([npc_ref])[npc_ref]


def _load_assigned_each(npc_refs: Sequence[str]) -> Mapping[str, CardAssignment | None]:
    rows = models.Assignment.objects.filter(
        kind=CARDS.name, scope_kind="npc", scope_ref__in=npc_refs
    )
    assigned = {
        row.scope_ref: CardAssignment(
            card=row.key, greeting=row.greeting, assigned_by=row.assigned_by
        )
        for row in rows
    }
    return {npc_ref: assigned.get(npc_ref) for npc_ref in npc_refs}


assignment_of: Final = Snapshots(CARDS.state, _load_assigned, load_each=_load_assigned_each)
"""Return the assignment of the card that an NPC plays, or None.

Every call returns the same object until it is changed.
"""
