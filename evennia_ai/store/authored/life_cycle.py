"""The life cycle of everything that people write.

Components, notes, cards, presets and lorebooks are kinds. Each kind declares its values, its table
of current values, and its own rules. What several kinds can do is written here once:

- `Kind`: save, list revisions, go back to a revision, remove. Every change makes a revision.
  Revisions stay when the thing is removed. A builder who saw only an older revision cannot change
  the thing, so nobody overwrites what they have not seen.
- `FileKind`: in addition, a thing has a file and is used in the scopes to which it is assigned.
  These are cards, presets and lorebooks.
- `ImportedKind`: in addition, a thing waits as an import until a builder approves it with grants or
  rejects it. These are cards and presets.

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
WITHOUT_EFFECT: Final = frozenset({"imported", "rejected", "removed"})
"""The actions after which the value of a revision is not the current value."""
# Each of these actions answers all imports that waited before it.
_ANSWERS: Final = ("approved", "rejected", "removed")

_revisions: Final = Revisions(models.Revision)


class Stored(Protocol):
    """A value together with the number of its revision."""

    @property
    def revision(self) -> int: ...


V = TypeVar("V", bound=Stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision(Change, Generic[V]):
    """One change of a thing, or one import that waits for approval."""

    scope: Scope
    key: str
    action: Action
    value: V
    """The thing after the change. For a removal, the thing before it.

    The text of a file is not loaded; `Kind.then` loads it.
    """

    @property
    def takes_effect(self) -> bool:
        """True if the change made its value the current one."""
        return self.action not in WITHOUT_EFFECT

    @property
    def after(self) -> V | None:
        """The value that the change made the current one, or None."""
        return self.value if self.takes_effect else None


def with_values_before(
    revisions: Iterable[Revision[V]],
) -> Iterator[tuple[Revision[V] | None, Revision[V]]]:
    """Yield each revision of one thing, oldest first, with the revision that it replaced."""
    before: Revision[V] | None = None
    for revision in revisions:
        yield before, revision
        if revision.action == "removed":
            before = None
        elif revision.takes_effect:
            before = revision


class Kind(ABC, Generic[V]):
    """A kind of authored thing: component, note, regex script, card, preset or lorebook.

    A thing is identified by its scope and its key. Cards, presets and lorebooks have no scope of
    their own. They use the scope of the game, and their key is their name.
    """

    name: ClassVar[str]
    """The word for one thing of this kind, such as "note"."""
    state: ClassVar[str]
    """The name of this kind's number in the table of state revisions. Each change raises it."""
    table: ClassVar[type[Model]]
    """The table of current values."""
    identity: ClassVar[tuple[str, ...]] = ("scope_kind", "scope_ref", "key")
    """The columns of `table` that identify a row. The last one contains the key."""
    columns: ClassVar[Mapping[str, str]] = {}
    """The columns of `table` whose names differ from the fields in `to_json`."""

    # What each kind must declare.

    @abstractmethod
    def from_row(self, row: Any) -> V:
        """Return the value that a row of `table` contains."""

    @abstractmethod
    def to_json(self, value: V) -> dict[str, Any]:
        """Return the fields that a revision stores. `table` has a column for each."""

    @abstractmethod
    def from_json(self, fields: Mapping[str, Any], row: models.Revision) -> V:
        """Return the value that a revision stores. `fields` are from `to_json`."""

    @abstractmethod
    def refresh(self, key: str, scope: Scope) -> None:
        """Mark the snapshots of a thing as changed by the current transaction."""

    def check(self, old: V | None, new: V | None, *, doing: str, by: Actor) -> None:
        """Check that a change is allowed, and that `by` has the right to make it.

        Kinds override this and raise their own errors.

        Args:
            old: The thing before the change, or None if it is new.
            new: The thing after the change, or None if it is removed.
            doing: A description of the change for error messages.
        """

    def before_removal(self, key: str) -> None:
        """Prepare the removal of a thing, inside the transaction of the removal."""

    def restored(self, then: V, now: V | None, *, key: str) -> V:
        """Return the value to save when somebody reverts to a revision.

        `then` is the value of that revision.
        """
        return then

    # What all kinds have in common.

    def called(self, key: str, scope: Scope = GAME) -> str:
        """Return the name of a thing for messages, such as "note 'scene' of npc:12"."""
        return f"{self.name} '{key}'" + ("" if scope == GAME else f" of {scope}")

    def current(self, key: str, scope: Scope = GAME) -> V | None:
        """Return the current value, read from the table, or None."""
        row = self._rows().filter(**self._row_key(key, scope)).first()
        return None if row is None else self.from_row(row)

    def list_keys(self, scope: Scope = GAME) -> tuple[str, ...]:
        """Return the keys or names of all current things in a scope, sorted in any case."""
        *_, column = self.identity
        place = self._row_key("", scope)
        del place[column]
        found = self.table._default_manager.filter(**place).values_list(column, flat=True)
        return tuple(sorted(found, key=lambda one: (one.casefold(), one)))

    def existing(self, key: str, scope: Scope = GAME) -> V:
        """Return the current value of a thing from the database table.

        Raises:
            NotStoredError: the thing does not exist.
        """
        value = self.current(key, scope)
        if value is None:
            raise NotStoredError(self.name, key, self.list_keys(scope))
        return value

    def save(self, key: str, value: V, *, action: Action, by: Actor, scope: Scope = GAME) -> V:
        """Save a value as the current one, and write its revision.

        Call this inside the transaction of the change.

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
        """Return all revisions of a thing, oldest first, also if it was removed."""
        return tuple(map(self._revision, self._revision_rows(key, scope)))

    def revision(self, key: str, number: int, *, scope: Scope = GAME) -> Revision[V]:
        """Return one revision of a thing.

        Raises:
            NotStoredError: the thing has no revision with this number.
        """
        rows = self._revision_rows(key, scope)
        return self._revision(_revisions.numbered(rows, number, what=self.called(key, scope)))

    def revision_before(self, key: str, number: int, *, scope: Scope = GAME) -> Revision[V] | None:
        """Return the revision that was current before this one, or None."""
        pairs = with_values_before(self.revisions(key, scope=scope))
        return next((before for before, one in pairs if one.number == number), None)

    def then(self, key: str, number: int, *, scope: Scope = GAME) -> V:
        """Return the complete value that a revision made the current one.

        Raises:
            NotStoredError: the thing has no revision with this number.
            StoreError: the revision removed it, or is an import that was not approved.
        """
        revision = self.revision(key, number, scope=scope)
        if revision.action == "removed":
            raise StoreError(
                f"revision {number} removed {self.called(key, scope)}; choose another revision"
            )
        if not revision.takes_effect:
            raise StoreError(
                f"revision {number} of {self.called(key, scope)} was {revision.action} and never"
                " approved; choose another revision"
            )
        return self.whole(revision.value)

    def whole(self, value: V) -> V:
        """Return the value of a revision, including the text that `Revision.value` lacks."""
        return value

    def newest_number(self, key: str, scope: Scope = GAME) -> int:
        """Return the highest revision number of a thing, or 0 without any.

        Removals and imports have numbers too.
        """
        return _revisions.newest_number(**self._named(key, scope))

    def last_changed_by(self, key: str, scope: Scope = GAME) -> str:
        """Return the name of the person who made a thing's newest revision."""
        return _revisions.last_changed_by(**self._named(key, scope))

    def refuse_stale(
        self, key: str, seen: int | None, now: V | None, *, scope: Scope = GAME
    ) -> None:
        """Refuse a change if its author saw another revision than the current one.

        Args:
            seen: The revision that the author saw. 0, or the number of the removal, means that the
                thing did not exist. None means that the author looked at no revision, and nothing
                is checked.
            now: The current thing.

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
        """Save the value of an earlier revision again, as a new change.

        A thing that was removed comes back. Nothing is written if the value is the current one
        already.

        Returns:
            The current value.

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
        """Return a value as columns of a row, without its identity and its revision."""
        return {self.columns.get(name, name): said for name, said in self.to_json(value).items()}

    def file_of(self, value: V) -> models.SourceFile | None:
        """Return the row of the file that a value was read from, or None."""
        return None

    def _row_key(self, key: str, scope: Scope) -> dict[str, str]:
        """Return the columns of a row that identify it, with their values."""
        said = {"scope_kind": scope.kind, "scope_ref": scope.ref, "npc_ref": scope.ref}
        *places, column = self.identity
        return {**{name: said[name] for name in places}, column: key}

    def _rows(self) -> Any:
        return self.table._default_manager.all()

    def _named(self, key: str, scope: Scope) -> dict[str, str]:
        """Return the columns of the revision table that identify one authored thing."""
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
        """True if two values are equal apart from their revision numbers."""
        return self.to_json(one) == self.to_json(other)


def _without_texts(rows: Any) -> Any:
    """Join the rows' files to a query, without the files' texts, which may have megabytes."""
    return rows.select_related("file").defer("file__content", "file__source")


class HasFile(Stored, Protocol):
    """A value that is read from a file."""

    @property
    def sha256(self) -> str: ...
    @property
    def source(self) -> str: ...


F = TypeVar("F", bound=HasFile)


class FileKind(Kind[F]):
    """A kind whose things are files with a name: card, preset or lorebook.

    A thing is used in the scopes to which builders assigned it.
    """

    identity = ("name",)

    scopes: ClassVar[Sequence[str]]
    """The kinds of scopes to which a thing can be assigned, in addition to the game."""
    is_alone: ClassVar[bool] = True
    """True if a scope can have only one thing of this kind. Assigning another one replaces it."""

    def refresh_assigned(self, scope: Scope | None) -> None:
        """Mark the snapshots of assignments as changed: of one scope, or of all scopes (None)."""
        raise NotImplementedError

    def file_of(self, value: F) -> models.SourceFile:
        return models.SourceFile.objects.only("pk").get(sha256=value.sha256)

    def is_same(self, one: F, other: F) -> bool:
        return one.sha256 == other.sha256 and super().is_same(one, other)

    def _rows(self) -> Any:
        return _without_texts(super()._rows())

    def current_each(self, names: Iterable[str]) -> dict[str, F]:
        """Return the current things that have one of these names, by name."""
        return {row.name: self.from_row(row) for row in self._rows().filter(name__in=names)}

    def revision_file(self, name: str, number: int) -> AuthoredFile:
        """Return the file of a revision, even if it was never the current one.

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
            NotStoredError: no thing has this name.
            ComponentValueError: things of this kind cannot be assigned to this scope.
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
        """Remove the assignment of a thing to a scope.

        Without a name, remove all assignments of this kind.

        Returns:
            True if something was assigned.
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
        """Check that things of this kind can be assigned to a scope.

        Raises:
            ComponentValueError: they cannot.
        """
        check_scope(scope, kinds=self.scopes)

    def before_removal(self, key: str) -> None:
        """Remove the assignments of a thing before the thing is removed.

        If a scope can have only one thing of this kind, an assigned thing cannot be removed.
        """
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

# Commands write revision 3 of Oren as "Oren/3", so a name must not end like that.
_NUMBERED: Final = re.compile(r"/ ?[0-9]{1,9}\Z")
# Invisible characters that Python counts as printable. With them, different names could look the
# same.
_UNSEEN: Final = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u3164\ufe00-\ufe0f\uffa0]")
_TYPEABLE: Final = (
    "1 to 200 printable characters, no = and no / at its start, and no / before a number at its end"
)


class ImportedKind(FileKind[G]):
    """A kind whose things come from files that strangers made.

    An import is a revision that does not change the current value. It waits under its name until a
    builder approves it and chooses its grants. An approval, a rejection or a removal answers all
    earlier imports with that name. A new file does not inherit the grants of the file before.
    """

    most_waiting: ClassVar[int]
    """The most imports of all names that may wait at once."""

    def import_file(self, name: str, value: G, *, by: Actor) -> int | None:
        """Store a value as an import that waits under a name. Its file is stored already.

        Call this inside the change's transaction.

        Returns:
            The number of the import. If the same file waits already, it keeps its number. None if
                the file is the current one and nothing waits.

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
        """Import a value and approve it at once.

        This is for the code of a game, which knows its files.

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
        """Approve an import with these grants.

        It becomes the current value and answers all waiting imports.

        Args:
            newest_seen: The newest revision that the builder knew.

        Raises:
            NotStoredError: there is no such revision.
            StoreError: the revision is not an import that waits.
            EditConflictError: another import came after `newest_seen`, which the builder has not
                read.
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
            EditConflictError: another import came after `newest_seen`, which the builder has not
                read.
        """
        with changing(self.state, f"rejecting imports of {self.called(name)}", by=by):
            self.refuse_unread(name, newest_seen)
            imports = self.waiting(name)
            if imports:
                self._record(name, GAME, imports[-1].value, action="rejected", by=by)
        return len(imports)

    def grant(self, name: str, grants: Grants, *, by: Actor) -> G:
        """Add grants to the current thing. Grants that it has already change nothing.

        Raises:
            NotStoredError: there is no such thing.
        """
        return self.set_grants(name, add=grants, by=by)

    def revoke(self, name: str, grants: Grants, *, by: Actor) -> G:
        """Take grants away from the current thing. Grants that it lacks change nothing.

        Raises:
            NotStoredError: there is no such thing.
        """
        return self.set_grants(name, take=grants, by=by)

    def set_grants(
        self, name: str, *, by: Actor, add: Grants = NO_GRANTS, take: Grants = NO_GRANTS
    ) -> G:
        """Add grants to the current thing, and take others away."""
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
        """Return the imports with this name that wait for an answer, oldest first."""
        rows = _without_texts(self._unanswered().filter(key=name).order_by("number"))
        return tuple(map(self._revision, rows))

    def waiting_names(self) -> tuple[str, ...]:
        """Return the names of all waiting imports, in alphabetical order."""
        return tuple(sorted(set(self._unanswered().values_list("key", flat=True))))

    def count_waiting(self) -> int:
        """Return how many imports wait, with any name."""
        return int(self._unanswered().count())

    def names_ever(self) -> tuple[str, ...]:
        """Return all names that things or imports have now or had once, in alphabetical order."""
        rows = models.Revision.objects.filter(kind=self.name).order_by("key")
        return tuple(rows.values_list("key", flat=True).distinct())

    def is_known(self, name: str, digest: str) -> bool:
        """True if the file with this hash was ever imported or current under this name."""
        return self._revision_rows(name, GAME).filter(file__sha256=digest).exists()

    def refuse_unread(self, name: str, newest_seen: int | None) -> None:
        """Check that nothing was changed or imported after this revision.

        Raises:
            EditConflictError: the thing was changed, or something was imported.
        """
        _revisions.refuse_stale(self.called(name), newest_seen, **self._named(name, GAME))

    def typeable_name(self, name: str) -> str:
        """Return a name with its white space reduced to single spaces.

        Raises:
            ComponentValueError: nobody could type the name in a command.
        """
        plain = " ".join(name.split())
        fits = plain and plain.isprintable() and len(plain) <= MAX_NAME
        is_odd = _UNSEEN.search(plain) or _NUMBERED.search(plain)
        if not fits or is_odd or "=" in plain or plain.startswith("/"):
            raise ComponentValueError(f"name of the {self.name}", name[:60], _TYPEABLE)
        return plain

    def known_name(self, wanted: str) -> str:
        """Return a known name that equals `wanted` without regard to case, or else `wanted`.

        Names of current things are preferred to names of imports and of removed things.
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
        """Return those revisions that are imports without an answer."""
        rows: Any = models.Revision.objects.filter(kind=self.name)
        answers = rows.filter(
            key=OuterRef("key"), action__in=_ANSWERS, number__gt=OuterRef("number")
        )
        return rows.filter(~Exists(answers), action="imported")


def grant_givers(revisions: Iterable[Revision[G]]) -> dict[Grant, Revision[G]]:
    """Return, for each grant of the current thing, the revision that gave it.

    `revisions` must be oldest first.
    """
    given = dict[Grant, Revision[G]]()
    for revision in revisions:
        if revision.takes_effect:
            given = {grant: given.get(grant, revision) for grant in in_order(revision.value.grants)}
    return given


def grants_text(grants: Grants) -> str:
    """Return the names of grants as text, in a fixed order, with spaces between them."""
    return " ".join(in_order(grants))


def grants_from(text: str) -> Grants:
    """Return the grants that a text names. Unknown words are ignored."""
    return frozenset(in_order(frozenset(text.split())))  # type: ignore[arg-type]
