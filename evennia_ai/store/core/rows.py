"""Rows as values: each field of a value is the column of its name, unless another is given."""

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

V = TypeVar("V")


def value_of(kind: Callable[..., V], row: Any, **given: Any) -> V:
    """The value of this kind that a row is; `given` are the fields that are no column of it."""
    told = {name: getattr(row, name) for name in _names(kind) if name not in given}
    return kind(**told, **given)


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """The fields that a value is made of; private ones only remember."""
    return tuple(one.name for one in fields(kind) if one.init and not one.name.startswith("_"))
