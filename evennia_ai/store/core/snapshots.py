"""Snapshots: immutable values made from rows, kept in memory and swapped by one assignment.

A write inside a transaction is seen at once by that transaction, by nobody else before the
commit, and by nobody at all after a rollback. Django has no hook for a rollback; but it throws
away the callbacks that were to run on commit, so a write's own callback tells whether the write
still counts.

Each kind of authored thing has one number in the database. A write raises it first, in its own
transaction: that row is the lock which makes writers take turns, and the number tells the other
processes that their snapshots are old.
"""

from collections import OrderedDict
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
from evennia_ai.store.core.locks import waiting_a_moment
from evennia_ai.store.core.refusals import reason_of

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_ABSENT: Final = object()
_NOTHING: Final = object()
_everything: "WeakSet[Snapshots[Any, Any]]" = WeakSet()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound(Generic[V]):
    """How much is kept of one kind of value; at least the newest is."""

    weight: Callable[[V], int]
    most: Callable[[], int]
    """The most that all values kept may weigh together."""
    let_go: Callable[[V], None]
    """Is told what is kept no more, or never was; who asked for it may still use it."""
    is_spent: Callable[[V], bool] = lambda _: False
    """True if it was let go, and is therefore not kept again."""


class _Kept(OrderedDict[K, V]):
    """Values by key; where there is a bound, those that were put longest ago go first.

    Another thread may read while one is put: it finds the old one or the new one.
    """

    def __init__(self, bound: Bound[V] | None) -> None:
        super().__init__()
        self._bound = bound
        self._weights: dict[K, int] = {}
        self.weight = 0
        """What all of them weigh together, 0 where there is no bound."""

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
        """Tell that none of the values is kept any more."""
        for value in self.values():
            self.let_go(value)

    def let_go(self, value: V) -> None:
        """Tell that a value is not kept, where there is a bound."""
        if self._bound is not None:
            self._bound.let_go(value)


class Snapshots(Generic[K, V]):
    """Values by key, each made by `load` when it is first asked for.

    `name` is the kind of authored thing they are made from, as in the table of state revisions.
    """

    def __init__(
        self,
        name: str,
        load: Callable[[K], V],
        *,
        load_each: Callable[[Sequence[K]], Mapping[K, V]] | None = None,
        bound: Bound[V] | None = None,
    ) -> None:
        """`load_each` makes the values of several keys at once, all of them."""
        self.name = name
        self._load = load
        self._load_each = load_each
        self._bound = bound
        self._kept: _Kept[K, V] = _Kept(bound)
        self._generation = 0
        self._lock = Lock()
        _everything.add(self)

    def __call__(self, key: K) -> V:
        """The value of `key`; a warm read makes no query. StoreError: it cannot be loaded."""
        write = self._newest_write(key)
        if write is not None:
            if key not in write.values:
                write.values[key] = self._loaded(key)
            return write.values[key]
        try:
            return self._kept[key]
        except KeyError:
            return self._fetched(key)

    def take_in(self, keys: Iterable[K]) -> None:
        """Make the values that are not there yet, all at once: for fifty keys as for one.

        StoreError: they cannot be loaded.
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
        """What the values that are kept weigh together, as their bound counts; 0 without one."""
        return self._kept.weight

    def kept(self, key: K) -> V | None:
        """The value of `key` as it was committed, where it is in memory."""
        return self._kept.get(key)

    def written(self, key: K) -> None:
        """The rows of `key` were changed in the current transaction."""
        _Write(self, key).announce()

    def wrote(self, key: K, value: V) -> None:
        """The rows of `key` were changed in the current transaction and now say `value`."""
        _Write(self, key, base=self._current(key), value=value).announce()

    def all_written(self) -> None:
        """Rows of any key may have been changed in the current transaction."""
        _Write(self, None).announce()

    def drop(self, key: K) -> None:
        """Forget one value; it is loaded again when it is read."""
        with self._lock:
            self._generation += 1
            self._kept.take_out(key)
        for write in self._writes():
            write.values.pop(key, None)

    def drop_all(self) -> None:
        """Forget every value."""
        with self._lock:
            self._empty()
        for write in self._writes():
            write.values.clear()

    def _empty(self) -> None:
        """Keep no value any more."""
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
            # What was dropped meanwhile may be older than the drop: use it, do not keep it.
            if generation == self._generation:
                if key in self._kept:  # another thread read it meanwhile
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
        return next((w for w in self._writes() if w.key is None or w.key == key), None)

    def _writes(self) -> "Iterator[_Write[K, V]]":
        """The writes of the current transaction that were not rolled back, newest first."""
        connection = transaction.get_connection()
        if connection.in_atomic_block:
            for _, callback, _ in reversed(connection.run_on_commit):
                if type(callback) is _Write and callback.snapshots is self:
                    yield callback

    def _commit(self, write: "_Write[K, V]") -> None:
        """Make a committed write count for everybody.

        Its value is kept only where it continues the one that is kept; else the rows decide.
        """
        # Callbacks that are run by hand, in a transaction that goes on, are no commit.
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
    """The one value of its kind."""

    def __init__(self, name: str, load: Callable[[], V]) -> None:
        super().__init__(name, lambda _: load())

    def __call__(self, key: None = None) -> V:
        """The value; a warm read makes no query. StoreError: it cannot be loaded."""
        return super().__call__(key)


class _Write(Generic[K, V]):
    """A write of one key (None: of any) and what its transaction sees since; runs on commit."""

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
        """True if its value is what comes after the one that is kept."""
        return self.base is kept and self.key in self.values

    def __call__(self) -> None:
        self.snapshots._commit(self)


def of_kind(name: str) -> list[Snapshots[Any, Any]]:
    """All snapshots made from this kind of authored thing."""
    return [snapshots for snapshots in _everything if snapshots.name == name]


def forget_everything() -> None:
    """Drop all snapshots of this process, for a reload by hand and for tests."""
    _seen.clear()
    for snapshots in list(_everything):
        snapshots.drop_all()


PERSONAS: Final = "personas"
MEMORIES: Final = "memories"
KNOWLEDGE: Final = "knowledge"
# Raised by a reset alone: a turn tells nobody else what its lore remembers.
LORE_STATES: Final = "lore_states"

_seen: dict[str, int] = {}
"""By kind the number up to which all changes are known here: seen by a refresh, or our own."""


_has_savepoints: Final = ContextVar("evennia_ai_has_savepoints", default=True)


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """A transaction in which what fails takes everything with it.

    `one_transaction` sets no savepoint in it: two statements less for whatever is written, and
    who fails and goes on finds a transaction that takes nothing any more.
    """
    before = _has_savepoints.set(False)
    try:
        with transaction.atomic():
            yield
    finally:
        _has_savepoints.reset(before)


@contextmanager
def one_transaction(doing: str) -> Iterator[None]:
    """A transaction; StoreError where the database refuses it, and then nothing was written."""
    try:
        with waiting_a_moment(), transaction.atomic(savepoint=_has_savepoints.get()):
            yield
    except DatabaseError as error:
        raise StoreError(f"{doing} failed, nothing was written: {reason_of(error)}") from error


@contextmanager
def one_change(doing: str, *, by: Actor) -> Iterator[None]:
    """Open a transaction for a change that somebody asked for, of things without a state revision.

    NotPermittedError: `by` may change nothing any more; then nothing was written. The check comes
    last: on SQLite a transaction that reads first may not get to write.
    """
    with one_transaction(doing):
        yield
        by.check(doing)


@contextmanager
def changing(kind: str, doing: str, *, by: Actor) -> Iterator[None]:
    """Open a transaction that writes one kind of authored thing; writers of one kind take turns.

    NotPermittedError: `by` may change nothing any more. This is where rights are checked, because
    nothing can change them between this check and the write. `doing` names the change, for errors.
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


_RAISE: Final = (
    f'UPDATE "{StateRevision._meta.db_table}" SET number = number + 1'  # noqa: S608
    " WHERE name = %s RETURNING number"
)


def _changed_here(kind: str, number: int) -> None:
    """This process made the change of this number, and its snapshots know of it.

    Where another process made the one before, that stays to be seen by a refresh.
    """
    if _seen.get(kind, 0) == number - 1:
        _seen[kind] = number


def refresh_if_changed() -> frozenset[str]:
    """Drop the snapshots that another process made old; the kinds that were dropped.

    One query. For a timer, never for a turn.
    """
    try:
        numbers = dict(StateRevision.objects.values_list("name", "number"))
    except DatabaseError as error:
        raise StoreError(f"the state revisions cannot be read: {reason_of(error)}") from error
    changed = frozenset(kind for kind, number in numbers.items() if _seen.get(kind, 0) != number)
    # Seen before dropped: what is loaded from now on is at least as new as these numbers.
    _seen.update(numbers)
    for kind in changed:
        for snapshots in of_kind(kind):
            snapshots.drop_all()
    return changed


def value_of(kind: Callable[..., V], row: Any, **given: Any) -> V:
    """The value of this kind that a row is; `given` are the fields that are no column of it."""
    told = {name: getattr(row, name) for name in _names(kind) if name not in given}
    return kind(**told, **given)


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """The fields that a value is made of; private ones only remember."""
    return tuple(one.name for one in fields(kind) if one.init and not one.name.startswith("_"))
