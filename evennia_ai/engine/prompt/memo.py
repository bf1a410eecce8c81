"""What makes values cheap that are made or asked by the dozen in every turn.

What was worked out from an immutable value (a message, a book, a conversation) is kept with it, in
its memo, and ends with it. Each user makes a slot of its own, which says what type stands in it.

A frozen dataclass writes each field through `object.__setattr__`, which makes creating one about
four times as dear. Where that was measured to matter (`docs/extend/decisions.md`), `typed_frozen`
gives a slotted dataclass that only the type checker keeps from being changed, and from being made
of fields in order: keywords that Python itself checks cost a sixth of making one.
`typed_frozen_thing` is the same for what is equal to itself alone.
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
    """A place in every memo; no two slots are equal, whatever they are called."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Slot({self.name!r})"


class Memo(dict[Slot[Any], Any]):
    """What is kept with one value, by slot: a dict, because messages are asked by the thousand."""

    __slots__ = ()

    if TYPE_CHECKING:

        def get(self, slot: Slot[T], /) -> T | None: ...  # type: ignore[override]

        def __setitem__(self, slot: Slot[T], value: T, /) -> None: ...

        def setdefault(self, slot: Slot[T], value: T, /) -> T: ...  # type: ignore[override]


def _refuse_memo(_: Any) -> Any:
    raise ValueError("it is no field")


KeptMemo = Annotated[Memo, Field(exclude=True), PlainValidator(_refuse_memo)]
"""The type of a memo that is a field of a value: pydantic neither writes nor reads it."""


class SpentMemo(Memo):
    """The memo of a value that is kept no more: nothing that is worked out from it is kept.

    Whoever still has the value goes on with it; what led back to it could be freed by no more than
    a search of the collector through all there is.
    """

    __slots__ = ()

    def __setitem__(self, slot: Slot[T], value: T, /) -> None:
        """Keep nothing."""

    def setdefault(self, slot: Slot[T], value: T, /) -> T:  # type: ignore[override]
        """The value, or what it was made with."""
        known = self.get(slot)
        return value if known is None else known


_MEMO: Final = attrgetter("memo")


def kept(values: Sequence[S], slot: Slot[T]) -> list[T | None]:
    """What each value keeps in the slot, None where it keeps nothing there."""
    return list(map(dict.get, map(_MEMO, values), repeat(slot)))


def each(values: Sequence[S], slot: Slot[T], make: Callable[[S], T]) -> list[T]:
    """What each value keeps in the slot; `make` makes and keeps what is not known.

    A turn asks hundreds of messages the same: calling a function for each costs more than the rest.
    """
    known = kept(values, slot)
    return [make(value) if one is None else one for value, one in zip(values, known, strict=True)]


def forget(memo: Memo, *, but: Slot[Any] | None = None) -> None:
    """Forget what was worked out from a value, and what was worked out from that in turn.

    What is needed again is worked out again.
    """
    # One by one: another thread may be at work with the value, and must find what is kept.
    made = [memo.pop(slot, None) for slot in list(memo) if slot is not but]
    for value in made:
        inner: Memo | None = getattr(value, "memo", None)
        if inner and inner is not memo:
            forget(inner)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def typed_frozen(cls: type[T]) -> type[T]:
    """`cls` as a slotted, keyword-only, hashable dataclass; never assign to its fields."""
    return dataclass(slots=True, unsafe_hash=True)(cls)


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=False)
def typed_frozen_thing(cls: type[T]) -> type[T]:
    """The same where two with equal fields are two; it is hashed by what it is, not by them."""
    return dataclass(slots=True, kw_only=True, eq=False)(cls)


@dataclass_transform(frozen_default=True)
def typed_frozen_row(cls: type[T]) -> type[T]:
    """The same, whose fields may be given in order: for what is made ten thousand at a time."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
