"""Books of other programs in the shape of Card V3: what comes out, and what every reader needs.

A translated entry says in V3's fields, in SillyTavern's extension data and in our own what the
other program's entry says; the entry as it was stands whole under `extensions`, by the program's
name. What cannot be said is a notice.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from evennia_ai.errors import FormatError
from evennia_ai.foreign.documents import as_format_error

Object = dict[str, Any]
# A V3 entry and the notices about it.
TranslatedEntry = tuple[Object, tuple[str, ...]]

USUAL_ORDER: Final = 100


class ForeignData(BaseModel):
    """What is read of another program's data, in camel case there; other fields are left alone."""

    model_config = ConfigDict(strict=True, frozen=True, alias_generator=to_camel)

    @classmethod
    def read(cls, raw: Any, *, where: str) -> Self:
        """What is found in `raw`; FormatError names the field that is wrong."""
        if not isinstance(raw, dict):
            raise FormatError("book", f"{where}: must be an object")
        try:
            return cls.model_validate(raw)
        except ValidationError as error:
            raise as_format_error(error, kind="book", where=where) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """A book as V3 has it, with notices about it and, by their positions, about its entries."""

    book: Object
    notices: tuple[str, ...] = ()
    doubts: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


def gathered(
    head: Object, told: Iterable[TranslatedEntry], *, notices: tuple[str, ...] = ()
) -> Translation:
    """The translation of a book from what is told of its entries."""
    entries: list[Object] = []
    doubts: dict[int, tuple[str, ...]] = {}
    for entry, found in told:
        if found:
            doubts[len(entries)] = found
        entries.append(entry)
    return Translation(book={**head, "entries": entries}, notices=notices, doubts=doubts)


def without_nulls(members: Mapping[str, Any]) -> Object:
    """The members that say something."""
    return {name: value for name, value in members.items() if value is not None}
