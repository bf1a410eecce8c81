"""Values that are made by the dozen in every turn: frozen to the type checker.

A frozen dataclass writes each field through `object.__setattr__`, which makes creating one about
four times as dear. Where that was measured to matter (`docs/decisions.md`), this decorator gives a
slotted keyword-only dataclass that only the type checker keeps from being changed.
"""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def typed_frozen(cls: type[T]) -> type[T]:
    """`cls` as a slotted, keyword-only, hashable dataclass; never assign to its fields."""
    return dataclass(slots=True, kw_only=True, unsafe_hash=True)(cls)
