"""Memos: what was worked out from a value is kept with it, so that it is worked out once.

A memo belongs to one immutable value (a message, a book, a conversation) and ends with it. Each
user makes a slot of its own, which says what type of value stands in it.
"""

from typing import TYPE_CHECKING, Any, Generic, TypeVar

T = TypeVar("T")


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
