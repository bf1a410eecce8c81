"""Books of other programs: told apart by their marks, and brought into the shape of Card V3.

What is none of theirs is a V3 or V2 book, or a world file of SillyTavern (`books`).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from evennia_ai.errors import FormatError
from evennia_ai.lorebook.agnai import from_agnai, is_agnai
from evennia_ai.lorebook.novelai import from_novelai, is_novelai
from evennia_ai.lorebook.risu import from_risu, is_risu
from evennia_ai.lorebook.translation import Translation


class _Translate(Protocol):
    def __call__(self, data: Mapping[str, Any], *, where: str) -> Translation: ...


class _Program(NamedTuple):
    is_its_own: Callable[[Mapping[str, Any]], bool]
    listed_in: str
    translate: _Translate


# In the order they are asked; `lorebook_v3` says what it is and goes before them.
_PROGRAMS: Final = (
    _Program(is_novelai, "entries", from_novelai),
    _Program(is_agnai, "entries", from_agnai),
    _Program(is_risu, "data", from_risu),
)


def is_of_another_program(data: Any) -> bool:
    """Whether a file's JSON value bears the marks of another program's book."""
    return _program_of(data) is not None


def translated(data: Any, *, limit_entries: int, where: str = "book") -> Translation | None:
    """The book of another program as V3 has it; None: it bears no such marks.

    `data` are plain JSON values. FormatError names the field that is wrong.
    """
    program = _program_of(data)
    if program is None:
        return None
    listed = data.get(program.listed_in)
    if not isinstance(listed, list):
        raise FormatError("book", f"{where}.{program.listed_in}: must be a list")
    if len(listed) > limit_entries:
        raise FormatError("book", f"{where}: has more than {limit_entries} entries; split it")
    return program.translate(data, where=where)


def _program_of(data: Any) -> _Program | None:
    if not isinstance(data, Mapping) or data.get("spec") == "lorebook_v3":
        return None
    return next((program for program in _PROGRAMS if program.is_its_own(data)), None)
