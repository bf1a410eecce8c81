"""Macros: splitting a text into literal parts and macros, and the rule of each macro.

The known macros are those of the card standard (Card V3, "Curly braced syntaxes", and V1's
`<USER>`, `<BOT>`, `<CHAR>`) and those of SillyTavern that presets need: variables, `trim`,
`newline`, `noop`, and dice such as `{{roll 2d6}}`. Names ignore case. An unknown macro stays as
written.

A macro is either expanded or sent exactly as written. The outermost braces are decided first. A
known macro may contain others, which are expanded first and in their order. Inside an unknown macro
nothing is expanded. A result is never parsed again, so the text of a value is never a macro.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.prompt.templates.chunks import (
    CHOOSING,
    MAX_CHOICES,
    REMARKS,
    ROLLERS,
    Choice,
    Chunk,
    Chunks,
    Computed,
    Noop,
    Roll,
    TimeMacro,
    Trim,
    Value,
    VariableMacro,
)
from evennia_ai.engine.prompt.templates.value_names import OUTLET
from evennia_ai.engine.prompt.templates.variables import Operation

# If there is an odd number of braces in a row, the first brace is literal text, as in SillyTavern:
# `{{{user}}` becomes `{Anna`.
_BRACES: Final = re.compile(r"\{\{+|\}\}")
_BRACES_OR_V1: Final = re.compile(_BRACES.pattern + r"|<(?ai:user|bot|char)>")
_SIMPLE: Final = re.compile(r"\{\{[^{}<]*\}\}")
_SIMPLE_OR_V1: Final = re.compile(_SIMPLE.pattern + r"|<(?ai:user|bot|char)>")
_NAME: Final = re.compile(r"\{\{\s*[A-Za-z_][A-Za-z0-9_]*\s*\}\}|<.*")
_REMARK: Final = re.compile(r"\{\{\s*(?://(?:\s*\}\})?|comment\s*\}\})", re.IGNORECASE)
_REMARK_END: Final = re.compile(r"\{\{\s*/\s*(?://|comment)\s*\}\}", re.IGNORECASE)
# The blanks around the name of an outlet are removed after matching. If the pattern matched them,
# a long run of blanks would take quadratic time.
_OUTLET: Final = re.compile(r"\s*outlet\s*::(.*)", re.IGNORECASE | re.DOTALL)
_V1_NAMES: Final = {"user": "user", "bot": "char", "char": "char"}
MAX_LEVELS: Final = 20
"""The deepest nesting of macros. Macros nested deeper stay as written."""

MAX_MACROS: Final = 2_000
"""The most macros in one text. A text with more is not expanded, because parsing it is slow."""
MAX_MACROS_OF_FILE: Final = 10_000
"""The most macros in all texts of one card or preset."""
MAX_MACROS_OF_BOOK: Final = 100_000
"""The most macros in all entries of one lorebook."""
_V1_MARKS: Final = ("<user>", "<bot>", "<char>")


def count_macros(text: str) -> int:
    """Return an upper bound of the number of macros in a text, without splitting it."""
    count = text.count("{{")
    if "<" in text:
        folded = text.lower()
        count += sum(map(folded.count, _V1_MARKS))
    return count


def check_macros(
    texts: Iterable[tuple[str, str]], *, kind: str, most: int = MAX_MACROS_OF_FILE
) -> None:
    """Check that the texts of a file do not have too many macros.

    Args:
        texts: The texts, each with its path in the file.
        kind: The kind of file, for the error.
        most: The most macros in all texts together.

    Raises:
        FormatError: one text has too many macros, or all texts together have. The error names the
            text.
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


# Macros that consist of one word, like named values, but have a function of their own
_PLAIN_WORDS: Final[Mapping[str, Chunk]] = {"trim": Trim(), "newline": "\n", "noop": Noop()}


class Split(NamedTuple):
    """A text that is split into literal parts and macros, together called chunks."""

    chunks: Chunks
    foreign: tuple[str, ...]
    """The unknown macros: each `{{...}}` that stays as written."""


def split_macros(text: str, *, v1_names: bool) -> Split:
    """Split a text into literal parts, named values and other macros.

    Args:
        text: The text.
        v1_names: True if `<USER>`, `<BOT>` and `<CHAR>` are macros, too, as in texts of cards.
    """
    foreign: list[str] = []
    made = split_chunks(text, _Splitting(v1_names, foreign))
    return Split(tuple([chunk for _, chunk in made]), tuple(foreign))


class _Splitting(NamedTuple):
    v1_names: bool = False
    foreign: list[str] | None = None


_PLAINLY: Final = _Splitting()


def split_chunks(
    text: str, how: _Splitting = _PLAINLY, *, place: int = 0, level: int = 0
) -> list[tuple[str, Chunk]]:
    """Split a text into literal parts and macros; return each after its written form.

    Args:
        text: The text.
        how: The rules for splitting.
        place: The offset of this text in the whole text. It decides the rolls of dice.
        level: The depth of nesting.
    """
    made: list[tuple[str, Chunk]] = []
    done = 0
    for macro in _outermost_spans(text, v1_names=how.v1_names):
        if macro.start > done:
            literal = text[done : macro.start]
            made.append((literal, literal))
        written = text[macro.start : macro.end]
        made.append(
            (written, _parse_chunk(written, macro, how, place=place + macro.start, level=level))
        )
        done = macro.end
    if done < len(text):
        made.append((text[done:], text[done:]))
    return made


class _Span(NamedTuple):
    """The range of a macro, from its first to its last brace, or of a V1 name such as `<USER>`."""

    start: int
    end: int
    holds: bool = False
    """True if the macro contains other macros."""
    is_block: bool = False
    """True if the range is a block remark: `{{//}} ... {{///}}`."""


def _outermost_spans(text: str, *, v1_names: bool) -> list[_Span]:
    """Return the ranges of all macros that are not inside another macro, in one pass."""
    has_names = v1_names and "<" in text
    # Most texts have no nested macros. For them, one regular expression finds all macros in half
    # the time.
    simple = (_SIMPLE_OR_V1 if has_names else _SIMPLE).finditer(text)
    spans = [_Span(found.start(), found.end()) for found in simple]
    count = sum(text[span.start] == "{" for span in spans) if has_names else len(spans)
    if "{{{" in text or count < text.count("{{"):
        spans = _outermost_of_nested(text, v1_names=has_names)
    return _with_blocks(text, spans) if "/" in text else spans


def _outermost_of_nested(text: str, *, v1_names: bool) -> list[_Span]:
    opened: list[int] = []
    spans: list[_Span] = []
    for found in (_BRACES_OR_V1 if v1_names else _BRACES).finditer(text):
        start, end = found.span()
        if text[start] == "{":
            opened.extend(range(start + (end - start) % 2, end, 2))
        elif text[start] == "<":
            spans.append(_Span(start, end))
        elif opened:
            start, holds = opened.pop(), False
            while spans and spans[-1].start > start:
                spans.pop()
                holds = True
            spans.append(_Span(start, end, holds))
    return spans


def block_remarks(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each block remark, `{{//}} ... {{///}}`."""
    spans = _outermost_spans(text, v1_names=False)
    return [(span.start, span.end) for span in spans if span.is_block]


def _with_blocks(text: str, spans: list[_Span]) -> list[_Span]:
    """Return the ranges of macros, each block remark as one (SillyTavern, Macros 2.0)."""
    made: list[_Span] = []
    bare: list[int] = []
    # the starts of remarks with text, which open a block only if no remark without text is open
    texts: list[int] = []
    for span in spans:
        opened = bare or texts
        is_end = _REMARK_END.fullmatch(text, span.start, span.end)
        if is_end and opened:
            first = opened.pop()
            made[first:] = [_Span(made[first].start, span.end, is_block=True)]
            while texts and texts[-1] >= first:
                texts.pop()
            continue
        if not is_end and (remark := _REMARK.match(text, span.start, span.end)):
            (bare if remark.end() == span.end else texts).append(len(made))
        made.append(span)
    return made


def _parse_chunk(written: str, span: _Span, how: _Splitting, *, place: int, level: int) -> Chunk:
    """Return the chunk of a macro, or its written form if the macro is unknown."""
    if span.is_block:
        return Roll("//", "", place)
    if not span.holds:
        named = (_parse_value if len(written) > _LONG_NAME else _known_value)(written)
        if named is not None:
            return named
    called = _parse_function(written[2:-2])
    # a comment is always empty, so skip the macros inside it
    if called is not None and called[0] in REMARKS:
        return Roll(*called, place)
    chunk: Chunk | None = None
    if not span.holds:
        chunk = Roll(*called, place) if called is not None else _parse_words(written)
    elif level < MAX_LEVELS and called is not None:
        chunk = _parse_computed(written, *called, how, place=place, level=level + 1)
    if chunk is None and (variable := _VARIABLE.fullmatch(written[2:-2])):
        chunk = _parse_variable_macro(variable, how, place=place + 2, level=level + 1)
    if chunk is None:
        if how.foreign is not None:
            how.foreign.append(written)
        return written
    return chunk


def _parse_words(written: str) -> Value | TimeMacro | None:
    """Return the chunk of an outlet or a time format, which have several words; else None."""
    body = written[2:-2]
    if outlet := _OUTLET.fullmatch(body):
        name = outlet[1].strip()
        return Value(OUTLET + name, "") if name and "\n" not in name else None
    if moment := _MOMENT.fullmatch(body):
        pattern, utc_hours = moment.groups()
        if pattern:
            return TimeMacro(pattern.strip(), None, written)
        return TimeMacro("LT", int(utc_hours or 0), written)
    return None


def _parse_computed(
    written: str, name: str, argument: str, how: _Splitting, *, place: int, level: int
) -> Choice | Computed | None:
    """Return the chunk of a `random`, `pick`, `reverse` or `roll` that contains other macros.

    Returns None if a `reverse` or a `roll` contains an unknown macro. Then the whole macro stays as
    written.
    """
    begin = place + len(written) - 2 - len(argument)
    if name in CHOOSING:
        parts = list(_split_argument(argument, most=MAX_CHOICES))
        if len(parts) == 1:
            apart = _split_argument(argument, most=MAX_CHOICES, separator=",")
            parts = [(at + len(t) - len(t.lstrip()), t.strip()) for at, t in apart]
        choices = (_chunks(t, how, place=begin + offset, level=level) for offset, t in parts)
        return Choice(name, tuple(map(_without_escapes, choices)), place)
    inner = _Splitting(how.v1_names, foreign=[])
    chunks = _chunks(argument, inner, place=begin, level=level)
    return None if inner.foreign else Computed(name, chunks, place, written)


def _chunks(text: str, how: _Splitting, *, place: int, level: int) -> Chunks:
    return tuple(chunk for _, chunk in split_chunks(text, how, place=place, level=level))


def _parse_value(written: str) -> Chunk | None:
    """Return the chunk for a name in braces or a V1 name; None for anything else."""
    if not _NAME.fullmatch(written):
        return None
    name = written.strip("{}<>").strip().lower()
    if written[0] == "<":
        return Value(_V1_NAMES[name], written)
    if name in _PLAIN_WORDS:
        return _PLAIN_WORDS[name]
    return Value(name, written)


_LONG_NAME: Final = 100
# texts use the same few names, so cache the chunks
_known_value: Final = lru_cache(maxsize=1024)(_parse_value)


def _parse_function(body: str) -> tuple[str, str] | None:
    """Return the name and the argument of a macro that takes an argument; None otherwise."""
    if body.lstrip().startswith("//"):
        return "//", ""
    if dice := _ROLL.fullmatch(body):
        return "roll", dice[1]
    name, colon, argument = body.partition(":")
    name = name.strip().lower()
    # Card V3 writes one colon before the argument, SillyTavern two.
    return (name, argument.removeprefix(":")) if colon and name in ROLLERS else None


_ROLL: Final = re.compile(r"\s*roll\s+([^:\s{][^:{]*(?:\{\{.*)?|\{\{.*)", re.IGNORECASE | re.DOTALL)
# The macros `{{datetimeformat YYYY}}`, `{{time_UTC+2}}` and `{{time::UTC+2}}` of SillyTavern
_MOMENT: Final = re.compile(
    r"\s*datetimeformat(?:\s*::|\s*:(?!:)|\s)(?=.*\S)(.*)"
    r"|\s*time(?:_|\s*::?\s*|\s+)UTC([+-](?:[01]?[0-9]|2[0-3]))?\s*",
    re.IGNORECASE | re.DOTALL,
)


_VARIABLE: Final = re.compile(
    r"\s*(set|add|inc|dec|get)(global)?var\s*::(.*)", re.IGNORECASE | re.DOTALL
)


def _parse_variable_macro(
    found: re.Match[str], how: _Splitting, *, place: int, level: int
) -> VariableMacro | None:
    """Return the chunk of a variable macro; None if it is incomplete or nested too deeply."""
    if level > MAX_LEVELS and "{{" in found[3]:
        return None
    operation, is_global = _OPERATIONS[found[1].lower()], found[2] is not None
    takes_value = operation in ("set", "add")
    parts = list(_split_argument(found[3], most=2 if takes_value else 1))
    if len(parts) < 1 + takes_value or not parts[0][1].strip():
        return None
    begin = place + found.start(3)
    made = [_chunks(text, how, place=begin + offset, level=level) for offset, text in parts]
    return VariableMacro(operation, is_global, made[0], made[1] if takes_value else ())


_OPERATIONS: Final[Mapping[str, Operation]] = {
    "set": "set",
    "add": "add",
    "inc": "inc",
    "dec": "dec",
    "get": "get",
}


def _split_argument(text: str, *, most: int, separator: str = "::") -> Iterator[tuple[int, str]]:
    """Split a macro's argument at separators; yield the offset and the text of each part.

    Separators inside inner macros are ignored, and so is a comma after a backslash. After `most` -
    1 separators, the last part has the rest of the text.
    """
    begin = count = done = 0
    for span in [*_outermost_spans(text, v1_names=False), _Span(len(text), len(text))]:
        for found in _SEPARATING[separator].finditer(text, done, span.start):
            if count == most - 1:
                break
            if found[0] == separator:
                yield begin, text[begin : found.start()]
                begin, count = found.end(), count + 1
        done = span.end
    yield begin, text[begin:]


_SEPARATING: Final = {"::": re.compile("::"), ",": re.compile(r"\\,|,")}


def _without_escapes(chunks: Chunks) -> Chunks:
    return tuple(c.replace("\\,", ",") if isinstance(c, str) else c for c in chunks)
