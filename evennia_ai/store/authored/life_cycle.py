"""The life cycle of everything that people write.

Components, notes, cards, presets and lorebooks are kinds. A kind declares its values, its table of
what is in force, and its own rules. Everything that all kinds can do is written here once:

- `Kind`: save, list revisions, go back to a revision, remove. Every change makes a revision, and a
  revision stays when the thing is removed. A change by somebody who looked at an older revision is
  refused, so nothing is overwritten unseen.
- `FileKind`: keep a file, and count in the scopes to which it is assigned. These are cards, presets
  and lorebooks.
- `ImportedKind`: wait as an import, be approved with grants, be rejected. These are cards and
  presets.

Personas have no revisions: a player who takes a text back takes it back for good. Pages of
knowledge bases have names, aliases and redirects of a wiki, and their own tables.
"""

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Generic, Literal, Protocol, TypeVar

from django.db.models import Exists, Model, OuterRef, QuerySet

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import (
    ComponentValueError,
    EditConflictError,
    NotStoredError,
    StoreError,
)
from evennia_ai.engine.history.records import canonical_json
from evennia_ai.engine.prompt.components import GAME, NO_GRANTS, Grant, Grants, Scope, in_order
from evennia_ai.store.authored.files import AuthoredFile, read_file, read_text
from evennia_ai.store.core.authoring import MAX_NAME, Change, Revisions, check_scope, checked_name
from evennia_ai.store.core.snapshots import changing, value_of

Action = Literal[
    "created",
    "updated",
    "switched",
    "reverted",
    "removed",
    "imported",
    "approved",
    "rejected",
    "granted",
    "revoked",
]
NOT_IN_FORCE: Final = frozenset({"imported", "rejected", "removed"})
"""The actions after which the value of the revision is not in force."""
_ANSWERS: Final = ("approved", "rejected", "removed")  # each ends the wait of all imports before it

_revisions: Final = Revisions(models.Revision)


class Stored(Protocol):
    """A value with the number of its revision."""

    @property
    def revision(self) -> int: ...


V = TypeVar("V", bound=Stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision(Change, Generic[V]):
    """One change of a thing, or one import that waits."""

    scope: Scope
    key: str
    action: Action
    value: V
    """The thing after the change, or before a removal.

    The text of its file is left out: see `Kind.then`.
    """

    @property
    def is_in_force(self) -> bool:
        """True if the change put its value in force."""
        return self.action not in NOT_IN_FORCE

    @property
    def after(self) -> V | None:
        """The value that the change put in force, or None."""
        return self.value if self.is_in_force else None


def with_values_before(
    revisions: Iterable[Revision[V]],
) -> Iterator[tuple[Revision[V] | None, Revision[V]]]:
    """Pair each revision of one thing, oldest first, with the revision in force before it."""
    before: Revision[V] | None = None
    for revision in revisions:
        yield before, revision
        if revision.action == "removed":
            before = None
        elif revision.is_in_force:
            before = revision


class Kind(ABC, Generic[V]):
    """One kind of thing that people write.

    A thing has a scope and a key in it. Kinds that only have names use the scope of the game.
    """

    name: ClassVar[str]
    """The word for one thing of this kind, such as "note"."""
    state: ClassVar[str]
    """The name of the number in the table of state revisions that each change raises."""
    table: ClassVar[type[Model]]
    """What is in force."""
    identity: ClassVar[tuple[str, ...]] = ("scope_kind", "scope_ref", "key")
    """The columns of `table` that identify a row. The last one has the key."""
    columns: ClassVar[Mapping[str, str]] = {}
    """The columns of `table` whose names differ from the fields in `to_json`."""

    # What a kind declares.

    @abstractmethod
    def from_row(self, row: Any) -> V:
        """Return the value of a row of `table`."""

    @abstractmethod
    def to_json(self, value: V) -> dict[str, Any]:
        """Return the fields that a revision keeps. `table` has a column for each."""

    @abstractmethod
    def from_json(self, fields: Mapping[str, Any], row: models.Revision) -> V:
        """Return the value of a revision. `fields` are from `to_json`."""

    @abstractmethod
    def refresh(self, key: str, scope: Scope) -> None:
        """Note in the snapshots that the current transaction changed a thing."""

    def check(self, old: V | None, new: V | None, *, doing: str, by: Actor) -> None:
        """Check that a change is allowed, and that `by` has the right to make it.

        Kinds override this and raise their own errors.

        Args:
            old: The thing before the change, or None if it is new.
            new: The thing after the change, or None if it is removed.
            doing: Names the change in errors.
        """

    def before_removal(self, key: str) -> None:
        """Prepare a removal, inside its transaction."""

    def restored(self, then: V, now: V | None, *, key: str) -> V:
        """Return the value that a revert puts in force. `then` is the value of the revision."""
        return then

    # What all kinds can do.

    def called(self, key: str, scope: Scope = GAME) -> str:
        """Return the name of a thing in messages, such as "note 'scene' of npc:12"."""
        return f"{self.name} '{key}'" + ("" if scope == GAME else f" of {scope}")

    def current(self, key: str, scope: Scope = GAME) -> V | None:
        """Return the value in force as the table has it now, or None."""
        row = self._rows().filter(**self._row_key(key, scope)).first()
        return None if row is None else self.from_row(row)

    def list_keys(self, scope: Scope = GAME) -> tuple[str, ...]:
        """Return the keys or names of all things in force in a scope, sorted ignoring case."""
        *_, column = self.identity
        place = self._row_key("", scope)
        del place[column]
        found = self.table._default_manager.filter(**place).values_list(column, flat=True)
        return tuple(sorted(found, key=lambda one: (one.casefold(), one)))

    def existing(self, key: str, scope: Scope = GAME) -> V:
        """Return the value in force as the table has it now.

        Raises:
            NotStoredError: there is no such thing.
        """
        value = self.current(key, scope)
        if value is None:
            raise NotStoredError(self.name, key, self.list_keys(scope))
        return value

    def save(self, key: str, value: V, *, action: Action, by: Actor, scope: Scope = GAME) -> V:
        """Put a value in force and write its revision. Call this inside the change's transaction.

        Returns:
            The value with the number of its revision.
        """
        number = self._record(key, scope, value, action=action, by=by)
        self.table._default_manager.update_or_create(
            **self._row_key(key, scope), defaults={**self.to_row(value), "revision": number}
        )
        self.refresh(key, scope)
        return replace(value, revision=number)  # type: ignore[type-var]

    def revisions(self, key: str, *, scope: Scope = GAME) -> tuple[Revision[V], ...]:
        """Return all revisions of a thing, oldest first, also of one that was removed."""
        return tuple(map(self._revision, self._revision_rows(key, scope)))

    def revision(self, key: str, number: int, *, scope: Scope = GAME) -> Revision[V]:
        """Return one revision of a thing.

        Raises:
            NotStoredError: there is no such number.
        """
        rows = self._revision_rows(key, scope)
        return self._revision(_revisions.numbered(rows, number, what=self.called(key, scope)))

    def revision_before(self, key: str, number: int, *, scope: Scope = GAME) -> Revision[V] | None:
        """Return the revision that was in force before this one, or None."""
        pairs = with_values_before(self.revisions(key, scope=scope))
        return next((before for before, one in pairs if one.number == number), None)

    def then(self, key: str, number: int, *, scope: Scope = GAME) -> V:
        """Return the complete value that a revision put in force.

        Raises:
            NotStoredError: there is no such number, or the revision removed the thing.
            StoreError: the value of this revision was never in force.
        """
        revision = self.revision(key, number, scope=scope)
        if revision.action == "removed":
            raise NotStoredError(
                f"{self.name} in revision", f"{key} {number}: that revision removed it"
            )
        if not revision.is_in_force:
            raise StoreError(
                f"revision {number} of {self.called(key, scope)} was {revision.action} and never"
                " in force; choose a revision that was"
            )
        return self.whole(revision.value)

    def whole(self, value: V) -> V:
        """Return the value of a revision, with the text that `Revision.value` leaves out."""
        return value

    def newest_number(self, key: str, scope: Scope = GAME) -> int:
        """Return the newest revision number of a thing, removals and imports included, or 0."""
        return _revisions.newest_number(**self._named(key, scope))

    def last_changed_by(self, key: str, scope: Scope = GAME) -> str:
        """Return the name of the person who made the newest revision of a thing."""
        return _revisions.last_changed_by(**self._named(key, scope))

    def refuse_stale(
        self, key: str, seen: int | None, now: V | None, *, scope: Scope = GAME
    ) -> None:
        """Refuse a change if its author saw another revision than the one in force.

        Args:
            seen: The revision that the author saw. 0 or the number of the removal means that there
                was no such thing. None: the author looked at no revision.
            now: The thing in force.

        Raises:
            EditConflictError: the author saw another revision; the message names the person who
                changed the thing.
        """
        current = 0 if now is None else now.revision
        if seen in (None, current):
            return
        newest = self.newest_number(key, scope)
        if now is not None or seen != newest:
            raise EditConflictError(
                self.called(key, scope), seen, newest, self.last_changed_by(key, scope)
            )

    def revert(
        self,
        key: str,
        number: int,
        *,
        by: Actor,
        scope: Scope = GAME,
        seen_revision: int | None = None,
    ) -> V:
        """Put the value of an earlier revision in force again, as a change of its own.

        A thing that was removed comes back. Nothing is written if the value is in force already.

        Returns:
            The value in force.

        Raises:
            NotStoredError, StoreError: see `then`.
            EditConflictError: see `refuse_stale`.
            NotPermittedError: `by` may not make this change.
        """
        doing = f"reverting {self.called(key, scope)}"
        with changing(self.state, doing, by=by):
            now = self.current(key, scope)
            self.refuse_stale(key, seen_revision, now, scope=scope)
            new = self.restored(self.then(key, number, scope=scope), now, key=key)
            self.check(now, new, doing=doing, by=by)
            if now is not None and self.is_same(now, new):
                return now
            return self.save(key, new, action="reverted", by=by, scope=scope)

    def remove(
        self, key: str, *, by: Actor, scope: Scope = GAME, seen_revision: int | None = None
    ) -> None:
        """Remove a thing. Its revisions stay, and `revert` brings it back.

        Raises:
            NotStoredError: there is no such thing.
            EditConflictError: see `refuse_stale`.
            NotPermittedError: `by` may not make this change.
        """
        doing = f"removing {self.called(key, scope)}"
        with changing(self.state, doing, by=by):
            now = self.existing(key, scope)
            self.refuse_stale(key, seen_revision, now, scope=scope)
            self.check(now, None, doing=doing, by=by)
            self.before_removal(key)
            self._record(key, scope, now, action="removed", by=by)
            self.table._default_manager.filter(**self._row_key(key, scope)).delete()
            self.refresh(key, scope)

    def to_row(self, value: V) -> dict[str, Any]:
        """Return the columns of a row, without its identity and its revision."""
        return {self.columns.get(name, name): said for name, said in self.to_json(value).items()}

    def file_of(self, value: V) -> models.SourceFile | None:
        """Return the row of the file that a value is read from, or None."""
        return None

    def _row_key(self, key: str, scope: Scope) -> dict[str, str]:
        """Return the columns of a row that identify it, with their values."""
        said = {"scope_kind": scope.kind, "scope_ref": scope.ref, "npc_ref": scope.ref}
        *places, column = self.identity
        return {**{name: said[name] for name in places}, column: key}

    def _rows(self) -> Any:
        return self.table._default_manager.all()

    def _named(self, key: str, scope: Scope) -> dict[str, str]:
        """Return the columns of a revision that identify a thing."""
        return {
            "kind": self.name,
            "scope_kind": scope.kind,
            "scope_ref": scope.ref,
            "key": key,
        }

    def _revision_rows(self, key: str, scope: Scope) -> QuerySet:
        return _without_texts(_revisions.of(**self._named(key, scope)))

    def _revision(self, row: models.Revision) -> Revision[V]:
        scope = Scope(kind=row.scope_kind, ref=row.scope_ref)
        value = self.from_json(json.loads(row.value), row)
        return value_of(Revision, row, scope=scope, value=value)

    def _record(self, key: str, scope: Scope, value: V, *, action: Action, by: Actor) -> int:
        """Write a revision and return its number."""
        named = self._named(key, scope)
        return _revisions.write(
            _revisions.next_number(least=value.revision, **named),
            action=action,
            by=by,
            value=canonical_json(self.to_json(value)),
            file=self.file_of(value),
            **named,
        )

    def is_same(self, one: V, other: V) -> bool:
        """True if two values differ in their revisions only."""
        return self.to_json(one) == self.to_json(other)


def _without_texts(rows: Any) -> Any:
    """Join the files of rows, without their texts, which may have megabytes."""
    return rows.select_related("file").defer("file__content", "file__source")


class HasFile(Stored, Protocol):
    """A value that is read from a file."""

    @property
    def sha256(self) -> str: ...
    @property
    def source(self) -> str: ...


F = TypeVar("F", bound=HasFile)


class FileKind(Kind[F]):
    """A kind whose things have names, are read from files, and count where they are assigned."""

    identity = ("name",)

    scopes: ClassVar[Sequence[str]]
    """The kinds of scopes to which a thing can be assigned, besides the game."""
    is_alone: ClassVar[bool] = True
    """True if a scope has at most one thing of this kind. A new one replaces the old one."""

    def refresh_assigned(self, scope: Scope | None) -> None:
        """Note in the snapshots that assignments changed, of one scope or of any (None)."""
        raise NotImplementedError

    def file_of(self, value: F) -> models.SourceFile:
        return models.SourceFile.objects.only("pk").get(sha256=value.sha256)

    def is_same(self, one: F, other: F) -> bool:
        return one.sha256 == other.sha256 and super().is_same(one, other)

    def _rows(self) -> Any:
        return _without_texts(super()._rows())

    def current_each(self, names: Iterable[str]) -> dict[str, F]:
        """Return the things in force that have one of these names, by name."""
        return {row.name: self.from_row(row) for row in self._rows().filter(name__in=names)}

    def revision_file(self, name: str, number: int) -> AuthoredFile:
        """Return the file of a revision, whether it was in force or not.

        Raises:
            NotStoredError: there is no such number.
        """
        return read_file(self.revision(name, number).value.sha256)

    def whole(self, value: F) -> F:
        return replace(value, source=read_text(value.sha256))  # type: ignore[type-var]

    def assign(self, name: str, scope: Scope, *, by: Actor) -> F:
        """Assign a thing to a scope.

        Returns:
            The thing.

        Raises:
            NotStoredError: there is no such thing.
            ComponentValueError: it cannot be assigned to this scope.
            NotPermittedError: `by` may not do this.
        """
        self.check_scope(scope)
        doing = f"assigning {self.called(name)}"
        with changing(self.state, doing, by=by):
            thing = self.existing(name)
            self.check(thing, thing, doing=doing, by=by)
            place = {"scope_kind": scope.kind, "scope_ref": scope.ref}
            rows = models.Assignment.objects.filter(kind=self.name, **place)
            if not rows.filter(key=name).exists():
                if self.is_alone:
                    rows.delete()
                models.Assignment.objects.create(
                    kind=self.name, key=name, assigned_by=by.name, assigned_at=time.time(), **place
                )
            elif self.is_alone:
                rows.update(greeting=None, assigned_by=by.name, assigned_at=time.time())
            self.refresh_assigned(scope)
        return thing

    def unassign(self, scope: Scope, name: str | None = None, *, by: Actor) -> bool:
        """Unassign a thing from a scope, or every thing of this kind if no name is given.

        Returns:
            True if there was one.
        """
        doing = f"taking the {self.name} from {scope}"
        with changing(self.state, doing, by=by):
            rows = models.Assignment.objects.filter(
                kind=self.name, scope_kind=scope.kind, scope_ref=scope.ref
            )
            if name is not None:
                rows = rows.filter(key=name)
                thing = self.existing(name)
                self.check(thing, thing, doing=doing, by=by)
            removed, _ = rows.delete()
            self.refresh_assigned(scope)
        return removed > 0

    def assigned_to(self, name: str) -> tuple[Scope, ...]:
        """Return the scopes to which a thing is assigned, by kind and reference."""
        rows = models.Assignment.objects.filter(kind=self.name, key=name)
        found = rows.values_list("scope_kind", "scope_ref")
        scopes = [Scope(kind=kind, ref=ref) for kind, ref in found]
        order = ("game", *self.scopes)
        return tuple(sorted(scopes, key=lambda scope: (order.index(scope.kind), scope.ref)))

    def check_scope(self, scope: Scope) -> None:
        """Check that a thing can be assigned to a scope.

        Raises:
            ComponentValueError: it cannot.
        """
        check_scope(scope, kinds=self.scopes)

    def before_removal(self, key: str) -> None:
        """Unassign the thing. A kind of which a scope has only one refuses its removal instead."""
        scopes = self.assigned_to(key)
        if scopes and self.is_alone:
            where = ", ".join(map(str, scopes[:10]))
            raise StoreError(
                f"{self.called(key)} is assigned to {where}; assign another there, or none, first"
            )
        models.Assignment.objects.filter(kind=self.name, key=key).delete()
        self.refresh_assigned(None)


class Grantable(HasFile, Protocol):
    """A value that is read from a file and has grants."""

    @property
    def grants(self) -> Grants: ...


G = TypeVar("G", bound=Grantable)

# Commands write revision 3 of Oren as "Oren/3", so no thing may have such a name.
_NUMBERED: Final = re.compile(r"/ ?[0-9]{1,9}\Z")
# Invisible characters that Python counts as printable: with them, two names look the same.
_UNSEEN: Final = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u3164\ufe00-\ufe0f\uffa0]")
_TYPEABLE: Final = (
    "1 to 200 printable characters, no = and no / at its start, and no / before a number at its end"
)


class ImportedKind(FileKind[G]):
    """A kind whose things come from files of strangers.

    An import is a revision that changes nothing. It waits under its name until a builder approves
    it, grant by grant. An approval, a rejection or a removal answers all earlier imports of the
    name. A new file does not inherit the grants of the file before.
    """

    most_waiting: ClassVar[int]
    """The most imports that may wait in the whole game."""

    def import_file(self, name: str, value: G, *, by: Actor) -> int | None:
        """Store a value as an import that waits under a name. Its file is stored already.

        Call this inside the change's transaction.

        Returns:
            The number of the import. A file that waits already keeps its number. None if the file
                is in force and nothing waits.

        Raises:
            StoreError: too many imports wait.
        """
        before = self.waiting_names()
        number = self._waiting_import(name, value, by=by)
        if self.count_waiting() > self.most_waiting:
            raise StoreError(
                f"more than {self.most_waiting} imports would wait; approve or reject some first,"
                f" such as {', '.join(before[:10])}"
            )
        return number

    def approve_at_once(self, name: str, value: G, *, grants: Grants, by: Actor) -> G:
        """Import a value and approve it. This is for the code of a game, which knows its files.

        Call this inside the change's transaction. The same file with the same grants changes
        nothing.
        """
        number = self._waiting_import(name, value, by=by)
        if number is None:
            now = self.existing(name)
            return self.set_grants(name, add=grants, take=now.grants - grants, by=by)
        return self.approve(name, number, grants=grants, by=by)

    def approve(
        self,
        name: str,
        number: int,
        *,
        grants: Grants,
        by: Actor,
        newest_seen: int | None = None,
    ) -> G:
        """Put an import in force with these grants. It answers all imports that wait.

        Args:
            newest_seen: The newest revision that the builder knew.

        Raises:
            NotStoredError: there is no such revision.
            StoreError: the revision is not an import that waits.
            EditConflictError: another import came after `newest_seen`; nobody has read it.
        """
        doing = f"approving {self.called(name)}"
        with changing(self.state, doing, by=by):
            self.refuse_unread(name, newest_seen)
            imported = self.revision(name, number)
            if all(number != one.number for one in self.waiting(name)):
                raise StoreError(
                    f"revision {number} of {self.called(name)} is not an import that waits"
                )
            value = self.whole(replace(imported.value, grants=grants))  # type: ignore[type-var]
            self.check(self.current(name), value, doing=doing, by=by)
            return self.save(name, value, action="approved", by=by)

    def reject(self, name: str, *, by: Actor, newest_seen: int | None = None) -> int:
        """Reject all imports that wait under a name.

        Returns:
            How many imports waited.

        Raises:
            EditConflictError: another import came after `newest_seen`; nobody has read it.
        """
        with changing(self.state, f"rejecting imports of {self.called(name)}", by=by):
            self.refuse_unread(name, newest_seen)
            imports = self.waiting(name)
            if imports:
                self._record(name, GAME, imports[-1].value, action="rejected", by=by)
        return len(imports)

    def grant(self, name: str, grants: Grants, *, by: Actor) -> G:
        """Give a thing in force more grants. Grants that it has change nothing.

        Raises:
            NotStoredError: there is no such thing.
        """
        return self.set_grants(name, add=grants, by=by)

    def revoke(self, name: str, grants: Grants, *, by: Actor) -> G:
        """Take grants from a thing in force. Grants that it does not have change nothing.

        Raises:
            NotStoredError: there is no such thing.
        """
        return self.set_grants(name, take=grants, by=by)

    def set_grants(
        self, name: str, *, by: Actor, add: Grants = NO_GRANTS, take: Grants = NO_GRANTS
    ) -> G:
        """Add and remove grants of a thing in force."""
        with changing(self.state, f"changing the grants of {self.called(name)}", by=by):
            now = self.existing(name)
            grants = (now.grants | add) - take
            if grants == now.grants:
                return now
            value = replace(now, grants=grants)  # type: ignore[type-var]
            return self.save(
                name, value, action="granted" if grants >= now.grants else "revoked", by=by
            )

    def waiting(self, name: str) -> tuple[Revision[G], ...]:
        """Return the imports of a name that wait for an answer, oldest first."""
        rows = _without_texts(self._unanswered().filter(key=name).order_by("number"))
        return tuple(map(self._revision, rows))

    def waiting_names(self) -> tuple[str, ...]:
        """Return the names under which imports wait, in alphabetical order."""
        return tuple(sorted(set(self._unanswered().values_list("key", flat=True))))

    def count_waiting(self) -> int:
        """Return how many imports of all names wait."""
        return int(self._unanswered().count())

    def names_ever(self) -> tuple[str, ...]:
        """Return all names that things or imports have or had, in alphabetical order."""
        rows = models.Revision.objects.filter(kind=self.name).order_by("key")
        return tuple(rows.values_list("key", flat=True).distinct())

    def is_known(self, name: str, digest: str) -> bool:
        """True if the file with this hash was ever imported or in force under a name."""
        return self._revision_rows(name, GAME).filter(file__sha256=digest).exists()

    def refuse_unread(self, name: str, newest_seen: int | None) -> None:
        """Check that nothing was changed or imported after this revision.

        Raises:
            EditConflictError: something was.
        """
        _revisions.refuse_stale(self.called(name), newest_seen, **self._named(name, GAME))

    def typeable_name(self, name: str) -> str:
        """Return a name in one line.

        Raises:
            ComponentValueError: the name cannot be typed in a command.
        """
        plain = " ".join(name.split())
        fits = plain and plain.isprintable() and len(plain) <= MAX_NAME
        is_odd = _UNSEEN.search(plain) or _NUMBERED.search(plain)
        if not fits or is_odd or "=" in plain or plain.startswith("/"):
            raise ComponentValueError(f"name of the {self.name}", name[:60], _TYPEABLE)
        return plain

    def known_name(self, wanted: str) -> str:
        """Return a known name that equals `wanted` without regard to case, or else `wanted`.

        Names of things in force go before names of imports and of removed things.
        """
        for names in (self.list_keys(), self.names_ever()):
            if wanted in names:
                return wanted
            same = [name for name in names if name.casefold() == wanted.casefold()]
            if len(same) == 1:
                return same[0]
        return wanted

    def _waiting_import(self, name: str, value: G, *, by: Actor) -> int | None:
        checked_name(name, what=self.name)
        imports = self.waiting(name)
        now = self.current(name)
        if now is not None and now.sha256 == value.sha256 and not imports:
            return None
        same = [one.number for one in imports if one.value.sha256 == value.sha256]
        return same[-1] if same else self._record(name, GAME, value, action="imported", by=by)

    def _unanswered(self) -> QuerySet:
        """Return the revisions that are imports without an answer."""
        rows: Any = models.Revision.objects.filter(kind=self.name)
        answers = rows.filter(
            key=OuterRef("key"), action__in=_ANSWERS, number__gt=OuterRef("number")
        )
        return rows.filter(~Exists(answers), action="imported")


def grant_givers(revisions: Iterable[Revision[G]]) -> dict[Grant, Revision[G]]:
    """Return the revision that gave each grant in force. `revisions` are oldest first."""
    given = dict[Grant, Revision[G]]()
    for revision in revisions:
        if revision.is_in_force:
            given = {grant: given.get(grant, revision) for grant in in_order(revision.value.grants)}
    return given


def grants_text(grants: Grants) -> str:
    """Return grants as text, in their order, with spaces between them."""
    return " ".join(in_order(grants))


def grants_from(text: str) -> Grants:
    """Return the grants in a text. Unknown words give nothing."""
    return frozenset(in_order(frozenset(text.split())))  # type: ignore[arg-type]
