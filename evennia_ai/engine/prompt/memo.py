"""Memos and cheap dataclasses, for values that every turn makes or asks by the dozen.

A memo keeps what was computed from an immutable value (a message, a book, a conversation), and ends
with it. Each user of a memo makes its own slot, which says the type of its content.

A frozen dataclass writes each field through `object.__setattr__`, which makes creating one about
four times as slow. Where that was measured to matter (`docs/extend/decisions.md`), use
`typed_frozen`. It gives a slotted dataclass that only the type checker protects from changes and
from positional arguments: a check of keywords by Python costs a sixth of making one.
`typed_frozen_thing` is for values that are only equal to themselves.
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
    """A key in every memo. No two slots are equal, even with the same name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Slot({self.name!r})"


class Memo(dict[Slot[Any], Any]):
    """The values kept with one value, by slot. A dict, because turns ask thousands of messages."""

    __slots__ = ()

    if TYPE_CHECKING:

        def get(self, slot: Slot[T], /) -> T | None: ...  # type: ignore[override]

        def __setitem__(self, slot: Slot[T], value: T, /) -> None: ...

        def setdefault(self, slot: Slot[T], value: T, /) -> T: ...  # type: ignore[override]


def _refuse_memo(_: Any) -> Any:
    raise ValueError("it is no field")


KeptMemo = Annotated[Memo, Field(exclude=True), PlainValidator(_refuse_memo)]
"""The type of a memo that is a field of a value. Pydantic neither writes nor reads it."""


class SpentMemo(Memo):
    """The memo of a value that is no longer kept. It keeps nothing new.

    A caller that still has the value can use it. A memo that referred back to it would form a
    cycle, which only the garbage collector could free.
    """

    __slots__ = ()

    def __setitem__(self, slot: Slot[T], value: T, /) -> None:
        """Keep nothing."""

    def setdefault(self, slot: Slot[T], value: T, /) -> T:  # type: ignore[override]
        """Return the kept value, or the given one."""
        known = self.get(slot)
        return value if known is None else known


_MEMO: Final = attrgetter("memo")


def kept(values: Sequence[S], slot: Slot[T]) -> list[T | None]:
    """Return the value in a slot of each memo, None where there is none."""
    return list(map(dict.get, map(_MEMO, values), repeat(slot)))


def each(values: Sequence[S], slot: Slot[T], make: Callable[[S], T]) -> list[T]:
    """Return the value in a slot of each memo; `make` makes and keeps a missing one.

    A turn asks hundreds of messages the same. A function call for each costs more than the rest.
    """
    known = kept(values, slot)
    return [make(value) if one is None else one for value, one in zip(values, known, strict=True)]


def forget(memo: Memo, *, but: Slot[Any] | None = None) -> None:
    """Forget the values in a memo, and the values computed from those in turn.

    Values that are needed again are computed again.

    Args:
        memo: The memo.
        but: A slot to keep.
    """
    # Pop one by one: another thread may be using the value, and must find the kept slot.
    made = [memo.pop(slot, None) for slot in list(memo) if slot is not but]
    for value in made:
        inner: Memo | None = getattr(value, "memo", None)
        if inner and inner is not memo:
            forget(inner)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def typed_frozen(cls: type[T]) -> type[T]:
    """Make `cls` a slotted, keyword-only, hashable dataclass. Never assign to its fields."""
    return dataclass(slots=True, unsafe_hash=True)(cls)


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=False)
def typed_frozen_thing(cls: type[T]) -> type[T]:
    """Make `cls` a slotted, keyword-only dataclass that is equal only to itself."""
    return dataclass(slots=True, kw_only=True, eq=False)(cls)


@dataclass_transform(frozen_default=True)
def typed_frozen_row(cls: type[T]) -> type[T]:
    """Make `cls` a slotted, hashable dataclass with positional fields, for rows by the thousand."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
