"""Memos (caches on values) and fast dataclasses, for values that each turn uses by the dozen.

A memo caches results that were computed from an immutable value (a message, a book, a
conversation). It is freed together with the value. Each user of a memo makes its own slot, which
defines the type of its content.

A frozen dataclass sets each field through `object.__setattr__`, which makes creating an object
about four times slower. Where a measurement showed that this matters (`docs/extend/decisions.md`),
use `typed_frozen`. It makes a slotted dataclass in which only the type checker prevents assignments
and positional arguments: a check of keywords at run time takes a sixth of the time to create an
object. `typed_frozen_thing` is for values that are only equal to themselves.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, TypeVar, dataclass_transform

from pydantic import Field, PlainValidator

T = TypeVar("T")
S = TypeVar("S")


class Slot(Generic[T]):
    """A key for one kind of cached result in memos. Two slots are never equal.

    The name is only shown to developers.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Slot({self.name!r})"


class Memo(dict[Slot[Any], Any]):
    """A cache for results computed from one immutable value, by slot.

    It is a plain dict for speed, because a turn reads the memos of thousands of messages.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def get(self, slot: Slot[T], /) -> T | None: ...  # type: ignore[override]

        def __setitem__(self, slot: Slot[T], value: T, /) -> None: ...

        def setdefault(self, slot: Slot[T], value: T, /) -> T: ...  # type: ignore[override]


def _refuse_memo(_: Any) -> Any:
    raise ValueError("is the name of an internal cache, not a field; remove it")


KeptMemo = Annotated[Memo, Field(exclude=True), PlainValidator(_refuse_memo)]
"""The type of a memo as a field of a dataclass. Pydantic neither serialises nor validates it."""


class SpentMemo(Memo):
    """A memo that accepts no new results, for a value that is no longer needed.

    Code that still holds the value can go on using it. A new result might refer back to the value.
    The two would form a reference cycle, which only the garbage collector could free.
    """

    __slots__ = ()

    def __setitem__(self, slot: Slot[T], value: T, /) -> None:
        """Ignore the value: this memo stores nothing new."""

    def setdefault(self, slot: Slot[T], value: T, /) -> T:  # type: ignore[override]
        """Return the stored value, or the given value, which is not stored."""
        known = self.get(slot)
        return value if known is None else known


_MEMO: Final = attrgetter("memo")


def cached_values(values: Sequence[S], slot: Slot[T]) -> list[T | None]:
    """Return the cached result of each value in this slot; None for a value without one."""
    return list(map(dict.get, map(_MEMO, values), repeat(slot)))


def cached_or_made(values: Sequence[S], slot: Slot[T], make: Callable[[S], T]) -> list[T]:
    """Return the cached result of each value in this slot. `make` computes missing results.

    A turn does this for hundreds of messages. One call for all of them avoids a function call for
    each, which would take longer than the rest.
    """
    known = cached_values(values, slot)
    return [make(value) if one is None else one for value, one in zip(values, known, strict=True)]


def clear_memo(memo: Memo, *, but: Slot[Any] | None = None) -> None:
    """Remove all cached results from a memo, and from the memos of these results.

    Code that needs a result later computes it again.

    Args:
        memo: The memo to clear.
        but: A slot that is not cleared.
    """
    # Pop the slots one by one instead of rebuilding the dict: another thread may use the value at
    # the same time and must always find the slot `but`.
    made = [memo.pop(slot, None) for slot in list(memo) if slot is not but]
    for value in made:
        inner: Memo | None = getattr(value, "memo", None)
        if inner and inner is not memo:
            clear_memo(inner)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def typed_frozen(cls: type[T]) -> type[T]:
    """Turn `cls` into a slotted, keyword-only, hashable dataclass. Never assign to its fields."""
    return dataclass(slots=True, unsafe_hash=True)(cls)


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=False)
def typed_frozen_thing(cls: type[T]) -> type[T]:
    """Turn `cls` into a slotted, keyword-only dataclass. Each object equals only itself."""
    return dataclass(slots=True, kw_only=True, eq=False)(cls)


@dataclass_transform(frozen_default=True)
def typed_frozen_row(cls: type[T]) -> type[T]:
    """Turn `cls` into a slotted, hashable dataclass with positional fields, fast to create."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
