"""Macros: a text split into what stands as it is and what is filled in, and how that is filled.

Known are those of the card standard (Card V3, "Curly braced syntaxes", and V1's `<USER>`, `<BOT>`,
`<CHAR>`) and those of SillyTavern that presets are made of: variables, `trim`, `newline`, `noop`,
dice as `{{roll 2d6}}`. Names count in any case; what is not known stays as it is written.

The standard's macros hold no others. Those of SillyTavern do, in what stands behind `::`: macros
in a `setvar`, and in a `random` or `pick` of a `::` list, are filled first and in their order. A
result is never read again: what a value says is no macro.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from evennia_ai.errors import FormatError
from evennia_ai.prompt.templates.chunks import (
    MAX_CHOICES,
    REMARKS,
    ROLLERS,
    Change,
    Choice,
    Chunk,
    Chunks,
    Roll,
    Trim,
    Value,
)
from evennia_ai.prompt.templates.value_names import OUTLET
from evennia_ai.prompt.templates.variables import Operation

_PLAIN: Final = r"(?:(?!\{\{|\}\}).)*"
# What gives no text swallows macros inside it, so that no remark of an author comes out.
_REMARK: Final = (
    r"\s*(?://|(?:comment|hidden_key)\s*:)"
    rf"(?:[^{{}}]|\{{(?!\{{)|\}}(?!\}})|\{{\{{{_PLAIN}\}}\}})*+"
)
# Most are a name and nothing else: that is tried first, in half the time.
_NAME: Final = r"\s*(?-i:[A-Za-z_][A-Za-z0-9_]*)\s*"
_MACRO: Final = re.compile(
    rf"\{{\{{(?:({_NAME})|({_REMARK}|{_PLAIN}))\}}\}}", re.DOTALL | re.IGNORECASE
)
_MACRO_OR_V1: Final = re.compile(_MACRO.pattern + r"|<(?ai:user|bot|char)>", _MACRO.flags)
# The blanks around its name are stripped afterwards: in the pattern a run of them would be gone
# through once for each of its characters.
_OUTLET: Final = re.compile(r"\s*outlet\s*::(.*)", re.IGNORECASE | re.DOTALL)
_V1_NAMES: Final = {"user": "user", "bot": "char", "char": "char"}
MAX_LEVELS: Final = 20
"""How deep macros may hold macros; those deeper inside stay as they are written."""

MAX_MACROS: Final = 2_000
"""Macros that one text may have: more than that are never filled in, and take long to read."""
MAX_MACROS_OF_FILE: Final = 10_000
"""Macros that the texts of one card or preset may have together."""
MAX_MACROS_OF_BOOK: Final = 100_000
"""Macros that the texts of all entries of one lorebook may have together."""
_V1_MARKS: Final = ("<user>", "<bot>", "<char>")


def count_macros(text: str) -> int:
    """Return how many macros a text has at most, without splitting it."""
    count = text.count("{{")
    if "<" in text:
        folded = text.lower()
        count += sum(map(folded.count, _V1_MARKS))
    return count


def check_macros(
    texts: Iterable[tuple[str, str]], *, kind: str, most: int = MAX_MACROS_OF_FILE
) -> None:
    """Refuse a file whose texts, each given with its path, have too many macros.

    Raises:
        FormatError: One text, or all together, have more than the limit; it names the text.
    """
    total = 0
    for where, text in texts:
        count = count_macros(text)
        if count > MAX_MACROS:
            raise FormatError(
                kind,
                f"{where}: has {count} macros, and {MAX_MACROS} are the limit for one text;"
                " take some out",
            )
        total += count
        if total > most:
            raise FormatError(
                kind,
                f"{where}: the texts of the file have more than {most} macros up to here, and that"
                " is the limit for one file; take some out",
            )


# Names that stand for something of their own.
_PLAIN_WORDS: Final[Mapping[str, Chunk]] = {"trim": Trim(), "newline": "\n", "noop": ""}


class Split(NamedTuple):
    """A text in chunks."""

    chunks: Chunks
    foreign: tuple[str, ...]
    """Each `{{...}}` that is no macro and stays as it is written."""


def split_macros(text: str, *, v1_names: bool) -> Split:
    """`text` in literal chunks, named values, rolls and what SillyTavern has beside them.

    `v1_names` also takes `<USER>`, `<BOT>` and `<CHAR>`, as card text has them.
    """
    foreign: list[str] = []
    made = pieces(text, _Splitting(v1_names, foreign))
    return Split(tuple([chunk for _, chunk in made]), tuple(foreign))


class _Splitting(NamedTuple):
    v1_names: bool = False
    foreign: list[str] | None = None


_PLAINLY: Final = _Splitting()


def pieces(
    text: str, how: _Splitting = _PLAINLY, *, place: int = 0, level: int = 0
) -> list[tuple[str, Chunk]]:
    """The chunks of a text that begins at `place` of the whole one, each with how it is written."""
    pattern = _MACRO_OR_V1 if how.v1_names and "<" in text else _MACRO
    made: list[tuple[str, Chunk]] = []
    done = 0
    spans = _nested_spans(text) if level < MAX_LEVELS and _HOLDS.search(text) else []
    for start, end in [*spans, (len(text), len(text))]:
        for found in pattern.finditer(text, done, start):
            if found.start() > done:
                literal = text[done : found.start()]
                made.append((literal, literal))
            written = found[0]
            chunk = _named(written) if found[2] is None else _called(found, how, place)
            made.append((written, chunk))
            done = found.end()
        if start > done:
            literal = text[done:start]
            made.append((literal, literal))
        if end > start:
            written = text[start:end]
            made.append((written, _nested(written, how, place=place + start, level=level + 1)))
        done = end
    return made


def _chunks(text: str, how: _Splitting, *, place: int, level: int) -> Chunks:
    return tuple(chunk for _, chunk in pieces(text, how, place=place, level=level))


def _as_written(written: str, how: _Splitting) -> str:
    """What is no macro."""
    if how.foreign is not None:
        how.foreign.append(written)
    return written


def _named(written: str) -> Chunk:
    """The value that a `{{name}}` or a name of V1 stands for."""
    return (_value if len(written) > _LONG_NAME else _known_value)(written)


def _value(written: str) -> Chunk:
    name = written.strip("{}<>").strip().lower()
    if written[0] == "<":
        return Value(_V1_NAMES[name], written)
    if name in _PLAIN_WORDS:
        return _PLAIN_WORDS[name]
    return Value(name, written)


_LONG_NAME: Final = 100
_known_value: Final = lru_cache(maxsize=1024)(_value)  # the same few names in all texts of a game


def _called(found: re.Match[str], how: _Splitting, place: int) -> Chunk:
    """What a macro that is more than a name stands for, or itself as it is written."""
    written, body = found.group(0, 2)
    if variable := _VARIABLE.fullmatch(body):
        change = _change(variable, lambda text, _: _names_of_v1(text, how))
        return change or _as_written(written, how)
    outlet = _OUTLET.fullmatch(body)
    if outlet and (name := outlet[1].strip()) and "\n" not in name:
        return Value(OUTLET + name, "")
    called = _function(body)
    return Roll(*called, place + found.start()) if called else _as_written(written, how)


def _names_of_v1(text: str, how: _Splitting) -> Chunks:
    """The chunks of a text without braces."""
    if "<" not in text:
        return (text,) if text else ()
    return _chunks(text, how, place=0, level=MAX_LEVELS)


def _function(body: str) -> tuple[str, str] | None:
    """Name and argument of a macro that takes one, or None."""
    if body.lstrip().startswith("//"):
        return "//", ""
    if dice := _ROLL.fullmatch(body):
        return "roll", dice[1]
    name, colon, argument = body.partition(":")
    name = name.strip().lower()
    return (name, argument) if colon and name in ROLLERS else None


_ROLL: Final = re.compile(r"\s*roll\s+([^:\s][^:]*)", re.IGNORECASE)
_VARIABLE: Final = re.compile(
    r"\s*(set|add|inc|dec|get)(global)?var\s*::(.*)", re.IGNORECASE | re.DOTALL
)


def _change(found: re.Match[str], split: Callable[[str, int], Chunks]) -> Change | None:
    """What a macro of variables says, None where it lacks a name or a value.

    `split` gives the chunks of a part that stands at an offset of it.
    """
    operation, is_global = _OPERATIONS[found[1].lower()], found[2] is not None
    takes_value = operation in ("set", "add")
    parts = list(_apart(found[3], most=2 if takes_value else 1))
    if len(parts) < 1 + takes_value or not parts[0][1].strip():
        return None
    made = [split(text, found.start(3) + offset) for offset, text in parts]
    return Change(operation, is_global, made[0], made[1] if takes_value else ())


_OPERATIONS: Final[Mapping[str, Operation]] = {
    "set": "set",
    "add": "add",
    "inc": "inc",
    "dec": "dec",
    "get": "get",
}
_BRACES: Final = re.compile(r"\{\{|\}\}")
_BRACES_OR_COLONS: Final = re.compile(r"\{\{|\}\}|::")
# The macros that may hold others.
_HOLDS: Final = re.compile(
    r"\{\{\s*(?://|(?:comment|hidden_key)\s*:"
    r"|(?:random|pick)\s*::|(?:set|add|inc|dec|get)(?:global)?var\s*::)",
    re.IGNORECASE,
)


def _nested_spans(text: str) -> list[tuple[int, int]]:
    """Where the outermost of the macros stand that hold others, in one walk over the braces."""
    opened: list[int] = []
    spans: list[tuple[int, int]] = []
    newest = -1  # where the newest closed pair began
    for brace in _BRACES.finditer(text):
        if brace[0] == "{{":
            opened.append(brace.start())
        elif opened:
            start = opened.pop()
            if newest > start and _HOLDS.match(text, start):
                while spans and spans[-1][0] > start:
                    spans.pop()
                spans.append((start, brace.end()))
            newest = max(newest, start)
    return spans


def _nested(written: str, how: _Splitting, *, place: int, level: int) -> Chunk:
    """What a macro stands for that holds others."""
    body = written[2:-2]
    called = _function(body)
    if called is not None and called[0] in REMARKS:
        return Roll(*called, place)

    def split(text: str, offset: int) -> Chunks:
        return _chunks(text, how, place=place + 2 + offset, level=level)

    if called is not None:
        start = body.index("::") + 2
        parts = list(_apart(body[start:], most=MAX_CHOICES))
        choices = (split(text, start + offset) for offset, text in parts)
        return Choice(called[0], tuple(map(_without_escapes, choices)), place)
    variable = _VARIABLE.fullmatch(body)
    change = _change(variable, split) if variable else None
    return change or _as_written(written, how)


def _apart(text: str, *, most: int) -> Iterator[tuple[int, str]]:
    """The parts of a text between its `::`, with their offsets; those in inner macros are theirs.

    The last one has all that is left where there would be more than `most`.
    """
    level = begin = count = 0
    for found in _BRACES_OR_COLONS.finditer(text):
        if count == most - 1:
            break
        if found[0] == "::" and level == 0:
            yield begin, text[begin : found.start()]
            begin, count = found.end(), count + 1
        elif found[0] != "::":
            level = max(0, level + (1 if found[0] == "{{" else -1))
    yield begin, text[begin:]


def _without_escapes(chunks: Chunks) -> Chunks:
    return tuple(c.replace("\\,", ",") if isinstance(c, str) else c for c in chunks)
