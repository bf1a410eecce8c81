"""Snapshots: immutable values made from rows, cached in memory and replaced by one assignment.

A transaction sees its own writes at once. Other readers see them after the commit, and nobody sees
them after a rollback. Django has no hook for a rollback, but it discards the callbacks that were to
run on commit. So a write counts while its own callback is still in that list.

Each kind of thing has one number in the database. A write raises this number first, in its own
transaction. The row of the number is the lock that makes writers take turns. The number also shows
other processes that their snapshots are outdated.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from functools import cache, partial
from threading import Lock
from typing import Any, Final, Generic, TypeVar
from weakref import WeakSet

from django.db import DatabaseError, connection, transaction

from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import StoreError
from evennia_ai.models import StateRevision
from evennia_ai.store.core.locks import short_lock_wait
from evennia_ai.store.core.refusals import reason_of

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_ABSENT: Final = object()
_NOTHING: Final = object()
_everything: "WeakSet[Snapshots[Any, Any]]" = WeakSet()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound(Generic[V]):
    """A limit on how many values of one kind are cached. The newest value is always cached."""

    weight: Callable[[V], int]
    most: Callable[[], int]
    """The highest total weight of the cached values."""
    let_go: Callable[[V], None]
    """Called with a value that leaves the cache or never entered it.

    Readers may still use the value.
    """
    is_spent: Callable[[V], bool] = lambda _: False
    """True if the value has left the cache before, so that it is not cached again."""


class _Kept(OrderedDict[K, V]):
    """The cached values by key.

    With a bound, the values that were added first are removed first.

    Another thread may read during a `put`: it finds the old value or the new one.
    """

    def __init__(self, bound: Bound[V] | None) -> None:
        super().__init__()
        self._bound = bound
        self._weights: dict[K, int] = {}
        self.weight = 0
        """The total weight of the values; 0 without a bound."""

    def put(self, key: K, value: V) -> None:
        if self._bound is not None and self._bound.is_spent(value):
            self.take_out(key)
            return
        self[key] = value
        if self._bound is None:
            return
        self.move_to_end(key)
        weight = self._bound.weight(value)
        self.weight += weight - self._weights.get(key, 0)
        self._weights[key] = weight
        while self.weight > self._bound.most() and len(self) > 1:
            self.take_out(next(iter(self)))

    def take_out(self, key: K) -> None:
        gone = self.pop(key, None)
        self.weight -= self._weights.pop(key, 0)
        if gone is not None:
            self.let_go(gone)

    def let_go_all(self) -> None:
        """Report to the limit (`bound`) that all values are dropped."""
        for value in self.values():
            self.let_go(value)

    def let_go(self, value: V) -> None:
        """Report to the limit (`bound`), if there is one, that a value is dropped."""
        if self._bound is not None:
            self._bound.let_go(value)


class Snapshots(Generic[K, V]):
    """A cache of values by key. `load` makes each value when it is first read."""

    def __init__(
        self,
        name: str,
        load: Callable[[K], V],
        *,
        load_each: Callable[[Sequence[K]], Mapping[K, V]] | None = None,
        bound: Bound[V] | None = None,
    ) -> None:
        """Create an empty set of snapshots.

        Args:
            name: The kind of thing, as in the table of state revisions.
            load: Returns the value of one key.
            load_each: Returns the values of several keys at once.
            bound: The limit on cached values, or None for no limit.
        """
        self.name = name
        self._load = load
        self._load_each = load_each
        self._bound = bound
        self._kept: _Kept[K, V] = _Kept(bound)
        self._generation = 0
        self._lock = Lock()
        _everything.add(self)

    def __call__(self, key: K) -> V:
        """Return the value of `key`. No query is made if the value is in memory.

        Raises:
            StoreError: the value cannot be loaded.
        """
        write = self._newest_write(key)
        if write is not None:
            if key not in write.values:
                write.values[key] = self._loaded(key)
            return write.values[key]
        try:
            return self._kept[key]
        except KeyError:
            return self._fetched(key)

    def load_missing(self, keys: Iterable[K]) -> None:
        """Load the values of those keys that are not in memory, all at once.

        Raises:
            StoreError: the values cannot be loaded.
        """
        assert self._load_each is not None
        missing = [key for key in keys if self._current(key) is _ABSENT]
        if not missing:
            return
        generation = self._generation
        try:
            values = self._load_each(missing)
        except DatabaseError as error:
            raise StoreError(
                f"the database cannot be read ({self.name}): {reason_of(error)}"
            ) from error
        with self._lock:
            for key in missing:
                write = self._newest_write(key)
                if write is not None:
                    write.values.setdefault(key, values[key])
                elif generation == self._generation and key not in self._kept:
                    self._kept.put(key, values[key])

    @property
    def weight(self) -> int:
        """The total weight of the values in memory; 0 if this kind has no limit of weight."""
        return self._kept.weight

    def get_committed(self, key: K) -> V | None:
        """Return the committed value of `key` if it is in memory, else None."""
        return self._kept.get(key)

    def note_change(self, key: K) -> None:
        """Note that the current transaction has changed the rows of `key`."""
        _Write(self, key).announce()

    def note_value(self, key: K, value: V) -> None:
        """Note that the current transaction has changed the rows of `key` to mean `value`."""
        _Write(self, key, base=self._current(key), value=value).announce()

    def note_any_change(self) -> None:
        """Note that the current transaction may have changed rows of any key."""
        _Write(self, None).announce()

    def drop(self, key: K) -> None:
        """Drop the value of one key. The next read loads it again."""
        with self._lock:
            self._generation += 1
            self._kept.take_out(key)
        for write in self._writes():
            write.values.pop(key, None)

    def drop_all(self) -> None:
        """Drop every value."""
        with self._lock:
            self._empty()
        for write in self._writes():
            write.values.clear()

    def _empty(self) -> None:
        """Drop every committed value."""
        self._generation += 1
        gone, self._kept = self._kept, _Kept(self._bound)
        gone.let_go_all()

    def _current(self, key: K) -> object:
        write = self._newest_write(key)
        if write is not None:
            return write.values.get(key, _ABSENT)
        return self._kept.get(key, _ABSENT)

    def _fetched(self, key: K) -> V:
        generation = self._generation
        value = self._loaded(key)
        with self._lock:
            # If any value was dropped while this one was loaded, the loaded value may be outdated.
            # Then it is returned without being cached.
            if generation == self._generation:
                if key in self._kept:  # Another thread loaded the value meanwhile.
                    self._kept.let_go(value)
                    return self._kept[key]
                self._kept.put(key, value)
        return value

    def _loaded(self, key: K) -> V:
        try:
            return self._load(key)
        except DatabaseError as error:
            raise StoreError(
                f"the database cannot be read ({self.name}): {reason_of(error)}"
            ) from error

    def _newest_write(self, key: K) -> "_Write[K, V] | None":
        for write in self._writes():
            if write.key is None or write.key == key:
                return write
        return None

    def _writes(self) -> "list[_Write[K, V]]":
        """Return the writes of the current transaction that were not rolled back, newest first."""
        connection = transaction.get_connection()
        if not connection.in_atomic_block:
            return []
        callbacks = [callback for _, callback, _ in reversed(connection.run_on_commit)]
        return [one for one in callbacks if type(one) is _Write and one.snapshots is self]

    def _commit(self, write: "_Write[K, V]") -> None:
        """Apply a committed write, so that all readers see it.

        Its value is kept only if it was made from the value in memory. Otherwise the value is
        dropped, and the next read loads the rows.
        """
        # A test may run the callbacks while the transaction is still open. That is not a commit.
        real = not transaction.get_connection().in_atomic_block
        with self._lock:
            self._generation += 1
            key = write.key
            if key is None:
                self._empty()
            elif real and write.continues(self._kept.get(key, _ABSENT)):
                self._kept.put(key, write.values[key])
            else:
                self._kept.take_out(key)
                if key in write.values:
                    self._kept.let_go(write.values[key])


class Snapshot(Snapshots[None, V]):
    """A cache for a kind that has a single value."""

    def __init__(self, name: str, load: Callable[[], V]) -> None:
        super().__init__(name, lambda _: load())

    def __call__(self, key: None = None) -> V:
        """Return the value. No query is made if the value is in memory.

        Raises:
            StoreError: the value cannot be loaded.
        """
        return super().__call__(key)


class _Write(Generic[K, V]):
    """A write of one key, or of any key (None), with the values that its transaction sees.

    Django calls it after the commit.
    """

    __slots__ = ("base", "key", "snapshots", "values")

    def __init__(
        self,
        snapshots: Snapshots[K, V],
        key: K | None,
        *,
        base: object = _NOTHING,
        value: Any = None,
    ) -> None:
        self.snapshots = snapshots
        self.key = key
        self.base = base
        self.values: dict[K, V] = {} if base is _NOTHING or key is None else {key: value}

    def announce(self) -> None:
        transaction.on_commit(self)

    def continues(self, kept: object) -> bool:
        """True if the written value was made from the cached one."""
        return self.base is kept and self.key in self.values

    def __call__(self) -> None:
        self.snapshots._commit(self)


def of_kind(name: str) -> list[Snapshots[Any, Any]]:
    """Return all snapshots that are made from this kind of thing."""
    return [snapshots for snapshots in _everything if snapshots.name == name]


def forget_everything() -> None:
    """Drop all snapshots of this process, for a manual reload and in tests."""
    _seen.clear()
    for snapshots in list(_everything):
        snapshots.drop_all()


PERSONAS: Final = "personas"
MEMORIES: Final = "memories"
KNOWLEDGE: Final = "knowledge"
# Only a reset raises this number, because a turn's own change concerns no other process.
LORE_STATES: Final = "lore_states"

_seen: dict[str, int] = {}
"""For each kind: the state revision up to which this process knows all changes."""


_has_savepoints: Final = ContextVar("evennia_ai_has_savepoints", default=True)


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """Open a transaction in which `one_transaction` sets no savepoint.

    This saves two statements per write. After a failed write the whole transaction is unusable, so
    the caller must not catch the error and continue.
    """
    before = _has_savepoints.set(False)
    try:
        with transaction.atomic():
            yield
    finally:
        _has_savepoints.reset(before)


@contextmanager
def one_transaction(doing: str) -> Iterator[None]:
    """Open a transaction.

    Raises:
        StoreError: the database refused the transaction, and nothing was written.
    """
    try:
        with short_lock_wait(), transaction.atomic(savepoint=_has_savepoints.get()):
            yield
    except DatabaseError as error:
        raise StoreError(f"{doing} failed, nothing was written: {reason_of(error)}") from error


@contextmanager
def one_change(doing: str, *, by: Actor) -> Iterator[None]:
    """Open a transaction for a change by `by`, of things that have no state revision.

    The right to change is checked last, because on SQLite a transaction that reads first may be
    refused the write.

    Raises:
        NotPermittedError: `by` has lost the right to change things; nothing was written.
    """
    with one_transaction(doing):
        yield
        by.check(doing)


@contextmanager
def changing(kind: str, doing: str, *, by: Actor) -> Iterator[None]:
    """Open a transaction that writes one kind of authored thing. Writers of one kind take turns.

    Rights are checked inside the transaction, so that they cannot change between the check and the
    write.

    Args:
        doing: A description of the change for error messages.

    Raises:
        NotPermittedError: `by` has lost the right to change things.
    """
    with one_transaction(doing):
        with connection.cursor() as cursor:
            cursor.execute(_RAISE, [kind])
            raised = cursor.fetchone()
        if raised is None:
            StateRevision.objects.create(name=kind, number=1)
        by.check(doing)
        transaction.on_commit(partial(_changed_here, kind, 1 if raised is None else raised[0]))
        yield
        _made[kind] += 1


_RAISE: Final = (
    f'UPDATE "{StateRevision._meta.db_table}" SET number = number + 1'  # noqa: S608
    " WHERE name = %s RETURNING number"
)


_made: Final[Counter[str]] = Counter()
"""For each kind: how many changes this process has made."""


def changes_made(kinds: Iterable[str]) -> int:
    """Return how many changes of these kinds this process has made since its start.

    A change that was rolled back afterwards counts too.
    """
    return sum(_made[kind] for kind in kinds)


def _changed_here(kind: str, number: int) -> None:
    """Note that this process made the change with this number.

    If another process made the change before it, the next refresh must still notice that change.
    """
    if _seen.get(kind, 0) == number - 1:
        _seen[kind] = number


def refresh_if_changed() -> frozenset[str]:
    """Drop the snapshots that changes of other processes made outdated, and return their kinds.

    This makes one query. Call it from a timer, never in a turn.
    """
    try:
        numbers = dict(StateRevision.objects.values_list("name", "number"))
    except DatabaseError as error:
        raise StoreError(f"the state revisions cannot be read: {reason_of(error)}") from error
    changed = frozenset(kind for kind, number in numbers.items() if _seen.get(kind, 0) != number)
    # The order matters: store the revision numbers first, drop the snapshots then. A value that is
    # loaded between the two steps is dropped. A value that is loaded later is at least as new as
    # the stored number.
    _seen.update(numbers)
    for kind in changed:
        for snapshots in of_kind(kind):
            snapshots.drop_all()
    return changed


def value_of(kind: Callable[..., V], row: Any, **given: Any) -> V:
    """Return the value of class `kind` that a row contains.

    `given` are the fields that have no column.
    """
    told = {name: getattr(row, name) for name in _names(kind) if name not in given}
    return kind(**told, **given)


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """Return the names of a value's public fields. Private fields contain caches."""
    return tuple(one.name for one in fields(kind) if one.init and not one.name.startswith("_"))
