"""Macros: splitting a text into literal parts and macros, and the rule of each macro.

The macros are those of the card standard (Card V3, "Curly braced syntaxes", and V1's `<USER>`,
`<BOT>`, `<CHAR>`) and those of the macro engine 2.0 of SillyTavern 1.19 that a game can fill in:

    {{name}} {{name::one::two}} {{name:all of it}} {{name all of it}}
    {{name}} a text, the last argument {{/name}}     a scoped macro; `{{#name}}` keeps its blanks
    {{if test}} ... {{else}} ... {{/if}}             a condition; `!` before the test inverts it
    {{.name}} {{.name = 1}} {{$name ?? none}}        short forms for local and global variables
    {{// remark}} {{//}} ... {{///}}                 remarks
    \\{ \\}                                          braces that are no macro

Names ignore case. A macro with a wrong number of arguments stays as written, and so does an unknown
one, but the macros inside it are expanded. A result is never parsed again, so the text of a value
is never a macro. Parsing is one pass over the braces, and nesting is limited.
"""

import re
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Final, NamedTuple

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.templates.chunks import (
    CHOOSING,
    COUNT,
    HIDDEN_KEY,
    MAX_CHOICES,
    REPEATED,
    ROLLED,
    ROLLERS,
    Chunk,
    Chunks,
    Computed,
    Condition,
    Roll,
    Scoped,
    TimeMacro,
    Trim,
    Value,
    VariableMacro,
    nested_chunks,
    unescape_braces,
)
from evennia_ai.engine.prompt.templates.value_names import ALIASES, OUTLET, is_known_value
from evennia_ai.engine.prompt.templates.variables import CHANGING, Operation

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


class Split(NamedTuple):
    """A text that is split into literal parts and macros, together called chunks."""

    chunks: Chunks
    foreign: tuple[str, ...]
    """The unknown macros: each `{{...}}` that stays as written."""
    unclosed: tuple[int, ...] = ()
    """The offsets of braces that are never closed."""


def split_macros(text: str, *, imported: bool) -> Split:
    """Split a text into literal parts, named values and other macros.

    Args:
        text: The text.
        imported: True for texts of other programs. In these `<USER>`, `<BOT>` and `<CHAR>` are
            macros, too, and signs after the name of a macro are ignored: `{{user's}}`.
    """
    if (chunks := _names_only(text, imported=imported)) is not None:
        return Split(chunks, ())
    parser = _Parser(text, imported=imported)
    return Split(parser.chunks(), tuple(parser.foreign), tuple(parser.unclosed))


_NAME: Final = re.compile(r"(\{\{[ ]?[A-Za-z_][A-Za-z0-9_]{0,39}[ ]?\}\})")


def _names_only(text: str, *, imported: bool) -> Chunks | None:
    """Return the chunks of a text whose macros are only names of values; None for any other text.

    Most texts are like that, and this takes a third of the time.
    """
    parts = _NAME.split(text)
    if "\\" in text or "{{{" in text or len(parts) // 2 != text.count("{{"):
        return None
    values = [_value_named(written) for written in parts[1::2]]
    if None in values:
        return None
    made: list[Chunk] = []
    for at, part in enumerate(parts):
        value = values[at // 2] if at % 2 else None
        if value is not None:
            made.append(value)
        elif part:
            made += _literal_chunks(part, imported=imported)
    return tuple(made)


@lru_cache(maxsize=1024)
def _value_named(written: str) -> Value | None:
    """Return the value that a macro names; None if the macro is more than a name."""
    name = written[2:-2].strip().lower()
    is_more = name in _ARITIES or name in _GLOBALS or _ZONE.fullmatch(name)
    return None if is_more else Value(ALIASES.get(name, name), written)


def split_chunks(text: str, *, place: int = 0) -> list[tuple[str, Chunk]]:
    """Split a text into literal parts and macros; return each after its written form.

    An unknown macro is one part, whose chunk is its written form.

    Args:
        text: The text.
        place: The offset of this text in the whole text. It decides the rolls of dice.
    """
    return _Parser(text, place=place).written_chunks()


def block_remarks(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each block remark, `{{//}} ... {{///}}`."""
    parser = _Parser(text)
    return [
        (one.start, one.end)
        for one in parser.items
        if isinstance(one, _Macro) and one.name in _REMARKS and one.scope is not None
    ]


# Finding macros: one pass over the braces of a text

_RUNS: Final = re.compile(r"\{\{+|\}\}")


class _Span(NamedTuple):
    """The range of a macro, from its first to its last brace, with the ranges of macros inside."""

    start: int
    end: int
    inner: list["_Span"]


_START: Final = attrgetter("start")


def _spans(text: str, *, imported: bool) -> tuple[list[_Span], list[int]]:
    """Return the ranges of all macros that are not inside another, and offsets of unclosed braces.

    The last two braces of a longer row open a macro, as in SillyTavern. Inside a macro, braces open
    another one only if they are an even row and a name follows. Braces that are never closed are
    literal.
    """
    head = _HEAD_BEFORE_SIGNS if imported else _HEAD
    opened: list[tuple[int, list[_Span]]] = []
    current: list[_Span] = []
    at = 0
    while run := _RUNS.search(text, at):
        start, at = run.span()
        if text[start] == "{":
            found = head.match(text, at) if (at - start) % 2 == 0 or not opened else None
            if found or not opened:
                opened.append((at - 2, current))
                current = []
            at = found.end() if found else at
        elif opened:
            begin, outer = opened.pop()
            outer.append(_Span(begin, at, current))
            current = outer
    unclosed = [start for start, _ in opened]
    while opened:
        _, outer = opened.pop()
        outer += current
        current = outer
    return current, unclosed


class _Literal(NamedTuple):
    start: int
    end: int


class _Macro(NamedTuple):
    """A macro whose name is read, but whose arguments are not."""

    start: int
    end: int
    inner: list[_Span]
    name: str = ""
    """The name in lower case; `//` for remarks, "." or "$" for the short form of a variable."""
    flags: str = ""
    begin: int = 0
    """The offset of the name."""
    after: int = 0
    """The offset after the name and the signs after it that are ignored."""
    stop: int = 0
    """The offset of the closing braces, which for a scoped macro are not those at its end."""
    scope: Sequence["_Item"] | None = None
    """The text between the macro and its end, if it has one."""


_Item = _Literal | _Macro

_HEAD: Final = re.compile(
    r"\s*(?P<flags>(?:[!?~>#]\s*)*(?P<end>/\s*(?=[A-Za-z/]))?)"
    r"(?:(?P<short>[.$])\s*(?:(?P<variable>[A-Za-z](?:[\w-]*\w)?)|(?=\s*(?:\}\}|\Z)))"
    r"|(?P<name>//|[A-Za-z_][\w-]*))",
    re.ASCII,
)
# The same, with the signs after a name that SillyTavern ignores: `{{user's}}` is `{{user}}`.
_HEAD_BEFORE_SIGNS: Final = re.compile(f"{_HEAD.pattern[:-1]}(?:(?<!/)[^\\s:|}}]+)?)", re.ASCII)
_SEPARATOR: Final = re.compile(r"\s*(::?)|\s+|(?=[|}])")
# Matches the macros `{{time_UTC+2}}` and `{{time::UTC+2}}`. `{{time::...}}` has no other zones.
_ZONE: Final = re.compile(
    r"time(?:_|\s*::?\s*|\s+)UTC([+-](?:[01]?[0-9]|2[0-3]))?\s*", re.IGNORECASE
)
_OPERATOR: Final = re.compile(r"\s*(\+\+|--|\?\?=|\|\|=|==|!=|>=|<=|\+=|-=|\?\?|\|\||=|>|<)")
_OPERATORS: Final[Mapping[str, tuple[Operation, int]]] = {
    "": ("get", 0),
    "++": ("inc", 0),
    "--": ("dec", 0),
    "=": ("set", 1),
    "+=": ("add", 1),
    "-=": ("subtract", 1),
    "||": ("or", 1),
    "??": ("default", 1),
    "||=": ("or_set", 1),
    "??=": ("default_set", 1),
    "==": ("equal", 1),
    "!=": ("unequal", 1),
    ">": ("more", 1),
    ">=": ("least", 1),
    "<": ("less", 1),
    "<=": ("most", 1),
}
# For each macro of a variable: the operation and the number of arguments after the name
_VARIABLE_MACROS: Final[Mapping[str, tuple[Operation, int]]] = {
    "setvar": ("set", 1),
    "addvar": ("add", 1),
    "incvar": ("inc", 0),
    "decvar": ("dec", 0),
    "getvar": ("get", 0),
    "hasvar": ("has", 0),
    "varexists": ("has", 0),
    "deletevar": ("delete", 0),
    "flushvar": ("delete", 0),
    "getvarkey": ("get_key", 1),
    "setvarkey": ("set_key", 2),
}
# The fewest and the most arguments of every other macro
_ANY: Final = 10**6
_ARITIES: Final[Mapping[str, tuple[int, int]]] = {
    **dict.fromkeys(CHOOSING, (0, _ANY)),
    **dict.fromkeys(("roll", "reverse", HIDDEN_KEY, "outlet", "datetimeformat"), (1, 1)),
    **dict.fromkeys(("newline", "space"), (0, 1)),
    **dict.fromkeys(("noop", "else"), (0, 0)),
    "timediff": (2, 2),
    "trim": (0, 1),
    "time": (0, 1),
    "if": (2, 2),
    **dict.fromkeys(("//", "comment"), (1, 1)),
}
_REMARKS: Final = frozenset({"//", "comment"})


class _Scopes:
    """The macros of a text whose end may still follow, by their indexes."""

    def __init__(self) -> None:
        self._opened: list[tuple[int, str]] = []
        self._counts: Counter[str] = Counter()
        self._full: defaultdict[str, deque[int]] = defaultdict(deque)

    def add(self, name: str, index: int, *, may_have_scope: bool) -> None:
        """Add a macro, which may have a scope or already has all its arguments."""
        if name == "else" and self._counts["if"]:  # a scope ends where its branch does
            while self._opened[-1][1] != "if":
                self._counts[self._opened.pop()[1]] -= 1
        if may_have_scope:
            self._opened.append((index, name))
            self._counts[name] += 1
        else:
            self._full[name].append(index)

    def close(self, name: str) -> int | None:
        """Return the innermost macro of this name, and forget all in its scope; None if none is."""
        if not self._counts[name]:
            return None
        closed = ""
        while closed != name:
            index, closed = self._opened.pop()
            self._counts[closed] -= 1
        for places in self._full.values():
            while places and places[-1] > index:
                places.pop()
        return index

    def take_full(self, name: str) -> int | None:
        """Return the first macro of this name that already has all its arguments, or None."""
        return self._full[name].popleft() if self._full[name] else None


class _Parser:
    """The parser of one text."""

    def __init__(self, text: str, *, imported: bool = False, place: int = 0) -> None:
        self._text = text
        self._imported = imported
        self._place = place
        self._unescapes = True
        self.foreign: list[str] = []
        spans, self.unclosed = _spans(text, imported=imported)
        self.items = self._items(spans, 0, len(text))

    def chunks(self) -> Chunks:
        """Return the chunks of the text."""
        return self._chunks(self.items, level=0)

    def written_chunks(self) -> list[tuple[str, Chunk]]:
        """Return the chunks of the text, each after its written form."""
        made: list[tuple[str, Chunk]] = []
        for item in self.items:
            written = self._text[item.start : item.end]
            chunk: Chunk | None = written
            if isinstance(item, _Macro):
                self._unescapes = item.name != "reverse"
                chunk = self._known_macro(item, level=0)
                self._unescapes = True
            elif "\\" in written:
                chunk = unescape_braces(written)
            made.append((written, written if chunk is None else chunk))
        return made

    # Step 1: the parts of a text, with each scoped macro as one part

    def _items(
        self, spans: Sequence[_Span], start: int, stop: int, *, scopes: bool = True
    ) -> list[_Item]:
        """Return the literal parts and the macros of a range.

        Args:
            spans: The ranges of the macros in it.
            start: The start of the range.
            stop: The end of the range.
            scopes: False if the range has no scoped macros, as the value of a short form.
        """
        made: list[_Item] = []
        opened = _Scopes()
        for span in spans:
            if span.start > start:
                made.append(_Literal(start, span.start))
            start = span.end
            macro = self._macro(span)
            is_end = macro.flags.endswith("/")
            if not scopes:
                # SillyTavern reads the end of a macro as the macro itself here.
                is_remark = is_end and macro.name == "//"
                made += [] if is_remark else [macro._replace(flags=macro.flags.rstrip("/"))]
            elif not macro.name or macro.name in (".", "$"):
                made.append(macro)
            elif not is_end:
                opened.add(macro.name, len(made), may_have_scope=self._may_have_scope(macro))
                made.append(macro)
            elif (index := opened.close(macro.name)) is not None:
                opening = made[index]
                assert isinstance(opening, _Macro)
                made[index:] = [opening._replace(end=span.end, scope=made[index + 1 :])]
            elif (index := opened.take_full(macro.name)) is not None:
                # A macro with all its arguments, and its end: both stay as written.
                for item in (made[index], macro):
                    self.foreign.append(self._text[item.start : item.end])
                made[index] = _Literal(made[index].start, made[index].end)
                made.append(_Literal(macro.start, macro.end))
            else:
                made.append(macro)
        if stop > start:
            made.append(_Literal(start, stop))
        return made

    def _macro(self, span: _Span) -> _Macro:
        head = _HEAD_BEFORE_SIGNS if self._imported else _HEAD
        limit = span.inner[0].start if span.inner else span.end - 2
        found = head.match(self._text, span.start + 2, limit)
        if found is None:
            return _Macro(*span, stop=span.end - 2)
        kind = "short" if found["short"] else "name"
        name, flags = found[kind].lower(), "".join(found["flags"].split())
        begin, after = found.start(kind), found.end()
        return _Macro(*span, name, flags, begin, after, span.end - 2)

    def _is_blank_after(self, macro: _Macro) -> bool:
        return not macro.inner and not self._text[macro.after : macro.stop].strip()

    def _may_have_scope(self, macro: _Macro) -> bool:
        """True if the macro may have one more argument, as an unknown macro may."""
        if macro.name in _GLOBALS:
            least = most = 1 + _VARIABLE_MACROS[_GLOBALS[macro.name][0]][1]
        elif macro.name in _ARITIES:
            least, most = (0, 0) if macro.name in CHOOSING else _ARITIES[macro.name]
        else:
            return not is_known_value(ALIASES.get(macro.name, macro.name))
        arguments = self._arguments(macro)
        return arguments is not None and least <= len(arguments) + 1 <= most

    # Step 2: the arguments of a macro

    def _arguments(self, macro: _Macro) -> list[tuple[int, int]] | None:
        """Return the ranges of a macro's arguments; None if it is written in no known form."""
        stop = macro.stop
        if self._is_blank_after(macro):
            return []
        limit = macro.inner[0].start if macro.inner else stop
        found = _SEPARATOR.match(self._text, macro.after, limit)
        if found is None:
            return None
        if found[1] != "::":
            return [(found.end(), stop)]
        return list(self._separate(macro.inner, found.end(), stop, "::"))

    def _separate(
        self, inner: Iterable[_Span], start: int, stop: int, separator: str
    ) -> Iterator[tuple[int, int]]:
        """Yield the ranges between separators that are not inside a macro."""
        begin = at = start
        for span in [*inner, _Span(stop, stop, [])]:
            if not start <= span.start <= stop:
                continue
            for found in _SEPARATING[separator].finditer(self._text, at, span.start):
                if found[0] == separator:
                    yield begin, found.start()
                    begin = found.end()
            at = max(at, span.end)
        yield begin, stop

    def _argument(
        self,
        macro: _Macro,
        part: tuple[int, int],
        *,
        level: int,
        is_value: bool = False,
    ) -> Chunks:
        """Return the chunks of an argument, without the blanks around it.

        Args:
            is_value: True for the value of a short form, which has no scoped macros.
        """
        start, stop = part
        inner = _spans_between(macro.inner, start, stop)
        first = inner[0].start if inner else stop
        last = inner[-1].end if inner else start
        while start < first and self._text[start].isspace():
            start += 1
        while stop > max(last, start) and self._text[stop - 1].isspace():
            stop -= 1
        items = self._items(inner, start, stop, scopes=not is_value)
        return self._chunks(items, level=level, is_value=is_value)

    # Step 3: chunks

    def _chunks(
        self,
        items: Iterable[_Item],
        *,
        level: int,
        is_value: bool = False,
        indent: str = "",
    ) -> Chunks:
        made: list[Chunk] = []
        for item in items:
            if isinstance(item, _Literal):
                text = self._text[item.start : item.end]
                if indent:
                    text = text.replace(f"\n{indent}", "\n")
                if is_value and self._imported:
                    # SillyTavern closes braces that open no macro.
                    text = _OPENS_NONE.sub(r"\g<0>}}", text)
                text = unescape_braces(text) if self._unescapes else text
                if self._unescapes and text[:1] in ("{", "}") and made:
                    before = made[-1]  # if it is a text, a macro returned it
                    made[-1] = before.removesuffix("\\") if isinstance(before, str) else before
                made += _literal_chunks(text, imported=self._imported)
                continue
            outer = self._unescapes
            # What `reverse` returns is unescaped after it is reversed.
            self._unescapes = item.name == "if" or (outer and item.name != "reverse")
            chunk = self._known_macro(item, level=level) if level <= MAX_LEVELS else None
            self._unescapes = outer
            if chunk is None:
                made += self._unknown_macro(item, level=level)
            else:
                made.append(chunk)
        return tuple(made)

    def _unknown_macro(self, macro: _Macro, *, level: int) -> Iterator[Chunk]:
        """Yield the chunks of a macro that stays as written: its text and the macros inside it."""
        end = macro.stop + 2
        self.foreign.append(self._text[macro.start : end])
        if level > MAX_LEVELS:
            yield self._text[macro.start : macro.end]
            return
        if macro.name == "if":  # its arguments are expanded only if it is one
            written = unescape_braces(self._text[macro.start : end])
            yield from _literal_chunks(written, imported=self._imported)
            return
        parts = (self._arguments(macro) if macro.name not in ("", ".", "$") else None) or []
        items: list[_Item] = []
        at = macro.start
        for start, stop in parts or [(macro.start, end)]:
            items += [_Literal(at, start)] if at < start else []
            items += self._items(_spans_between(macro.inner, start, stop), start, stop)
            at = stop
        items += [_Literal(at, end)] if at < end else []
        yield from self._chunks(items, level=level + 1)
        if macro.scope is not None:
            # SillyTavern writes braces in place of the end of a macro that it does not know.
            yield Scoped(self._chunks(macro.scope, level=level + 1), "#" in macro.flags)
            yield "}}"

    def _known_macro(self, macro: _Macro, *, level: int) -> Chunk | None:
        """Return the chunk of a macro; None if it stays as written."""
        if not macro.name or macro.flags.endswith("/"):
            return None
        if macro.name in _REMARKS:
            return self._remark(macro, level=level)
        if macro.name in (".", "$"):
            return self._short_form(macro, level=level)
        if macro.scope is not None:
            return self._scoped_macro(macro, level=level)
        return self._plain_macro(macro, level=level)

    def _remark(self, macro: _Macro, *, level: int) -> Chunk | None:
        """Return the chunk of a remark, with only those macros in it that change variables."""
        parts = self._arguments(macro) or ()
        scope = self._chunks(macro.scope or (), level=level + 1)
        if len(parts) + (macro.scope is not None) != 1:
            return None
        made = self._argument(macro, parts[0], level=level + 1) if parts else scope
        changing = tuple(
            [
                chunk
                for chunk in made
                if any(
                    isinstance(inner, VariableMacro) and inner.operation in CHANGING
                    for inner in nested_chunks((chunk,))
                )
            ]
        )
        place = self._place + macro.start
        return Computed("//", (changing,), place) if changing else Roll("//", (), place)

    def _plain_macro(self, macro: _Macro, *, level: int) -> Chunk | None:
        """Return the chunk of a macro without a scope."""
        name, written = macro.name, self._text[macro.start : macro.end]
        if zone := _ZONE.fullmatch(self._text, macro.begin, macro.stop):
            return TimeMacro("LT", int(zone[1] or 0), written)
        parts = self._arguments(macro)
        if name in _GLOBALS:
            return self._variable_macro(macro, parts or (), level=level)
        least, most = _ARITIES.get(name, (0, 0))
        if parts is None or not least <= len(parts) <= most or "-" in name:
            return None
        if name == "if":
            then = self._argument(macro, parts[1], level=level + 1)
            return self._condition(macro, parts[0], then, (), level=level)
        if name in ROLLERS:
            return self._function(macro, parts, level=level)
        return self._value_macro(macro, parts, level=level)

    def _value_macro(
        self, macro: _Macro, parts: Sequence[tuple[int, int]], *, level: int
    ) -> Chunk | None:
        """Return the chunk of a macro that names a value, the time or an outlet."""
        name, written = macro.name, self._text[macro.start : macro.end]
        chunks = self._argument(macro, parts[0], level=level + 1) if parts else ()
        text = "".join([chunk for chunk in chunks if isinstance(chunk, str)])
        is_literal = all(isinstance(chunk, str) for chunk in chunks)
        chunk: Chunk | None = Value(ALIASES.get(name, name), written)
        if name == "trim":
            chunk = Trim()
        elif name == "outlet":
            chunk = Value(OUTLET + text, "") if is_literal and "\n" not in text else None
        elif name == "datetimeformat":
            chunk = TimeMacro(text or _USUAL_TIME, None, written) if is_literal else None
        elif parts:  # the argument of `time` is not a time zone
            chunk = TimeMacro("LT", None, written)
        return chunk

    def _function(
        self, macro: _Macro, parts: Sequence[tuple[int, int]], *, level: int
    ) -> Chunk | None:
        """Return the chunk of a macro whose result depends on its arguments and on dice."""
        name, place = macro.name, self._place + macro.start
        if name in CHOOSING and len(parts) == 1:
            parts = [*self._separate(macro.inner, *parts[0], ",")]
        made = tuple([self._argument(macro, part, level=level + 1) for part in parts[:MAX_CHOICES]])
        if name in CHOOSING:
            made = tuple(map(_without_escapes, made))
        if name == "reverse":
            # SillyTavern trims last, after it has reversed the name.
            made = tuple(
                [tuple([_TRIM if isinstance(c, Trim) else c for c in chunks]) for chunks in made]
            )
        if not all(isinstance(chunk, str) for chunks in made for chunk in chunks):
            return Computed(name, made, place)
        texts = tuple(["".join(map(str, chunks)) for chunks in made])
        if name in REPEATED and not all(map(COUNT.fullmatch, texts)):
            return None
        if name in ROLLED or name == HIDDEN_KEY:
            return Roll(name, texts, place)
        return ROLLERS[name](texts, (), _NO_DICE)

    def _scoped_macro(self, opening: _Macro, *, level: int) -> Chunk | None:
        """Return the chunk of a macro whose last argument is the text up to its end."""
        name, scope, parts = opening.name, opening.scope or (), self._arguments(opening)
        if parts is None:
            return None
        if name == "if":
            branches = [
                self._scope_chunks(opening, branch, level=level)
                for branch in _split_else(scope, self._text)
            ]
            return self._condition(opening, parts[0], *branches, level=level)
        chunks = self._scope_chunks(opening, scope, level=level)
        scoped = Scoped(chunks, "#" in opening.flags)
        if name in _GLOBALS:
            return self._variable_macro(opening, parts, scope=scoped, level=level)
        if name == "trim":
            return scoped
        least, most = _ARITIES.get(name, (0, 0))
        if name not in ROLLERS or not least <= len(parts) + 1 <= most:
            return None
        made = [self._argument(opening, part, level=level + 1) for part in parts]
        return Computed(name, (*made, (scoped,)), self._place + opening.start)

    def _scope_chunks(self, opening: _Macro, scope: Sequence[_Item], *, level: int) -> Chunks:
        """Return the chunks of a scoped text, without the indent of its first line."""
        indent = ""
        if scope and isinstance(scope[0], _Literal) and "#" not in opening.flags:
            first = _INDENT.match(self._text, scope[0].start, scope[0].end)
            indent = first[1] if first else ""
        return self._chunks(scope, level=level + 1, indent=indent)

    def _condition(
        self,
        macro: _Macro,
        part: tuple[int, int],
        then: Chunks,
        otherwise: Chunks,
        *,
        level: int,
    ) -> Condition:
        """Return a condition. A test that is a name or a short form is read as that macro."""
        test = self._argument(macro, part, level=level + 1)
        is_inverted = False
        if test and isinstance(test[0], str) and test[0].startswith("!"):
            is_inverted = True
            test = (test[0][1:].lstrip(), *test[1:])
        if len(test) == 1 and isinstance(test[0], str):
            place = self._place + part[0]
            inner = _Parser(f"{{{{{test[0]}}}}}", imported=self._imported, place=place)
            if len(inner.items) == 1 and isinstance(inner.items[0], _Macro):
                chunk = inner._known_macro(inner.items[0], level=level + 1)
                is_unknown = isinstance(chunk, Value) and not is_known_value(chunk.name)
                if chunk is not None and not is_unknown:  # any other text is true
                    test = (chunk,)
        return Condition(test, is_inverted, then, otherwise, "#" in macro.flags)

    def _variable_macro(
        self,
        macro: _Macro,
        parts: Sequence[tuple[int, int]],
        *,
        level: int,
        scope: Scoped | None = None,
    ) -> VariableMacro | None:
        """Return the chunk of a macro such as `setvar`; None if it has not its arguments."""
        local, is_global = _GLOBALS[macro.name]
        operation, count = _VARIABLE_MACROS[local]
        if len(parts) + (scope is not None) != 1 + count or not parts:
            return None
        name, *made = [self._argument(macro, part, level=level + 1) for part in parts]
        if scope is not None:
            made.append((scope,))
        if not name and operation not in ("get", "get_key", "has", "delete"):
            return None
        return VariableMacro(operation, is_global, name, tuple(made))

    def _short_form(self, macro: _Macro, *, level: int) -> VariableMacro | None:
        """Return the chunk of the short form of a variable, such as `{{.name ?? none}}`."""
        head = _HEAD.match(self._text, macro.start + 2, macro.stop)
        assert head is not None  # the macro was read by it
        limit, stop = macro.inner[0].start if macro.inner else macro.stop, macro.stop
        found = _OPERATOR.match(self._text, macro.after, limit)
        operation, count = _OPERATORS[found[1] if found else ""]
        after = found.end() if found else macro.after
        if not count and not _IGNORED.fullmatch(self._text, after, stop):
            return None
        value = self._argument(macro, (after, stop), level=level + 1, is_value=True)
        if all(isinstance(chunk, str) for chunk in value):
            value = ("".join(map(str, value)).strip(),)
        else:
            value = (Scoped(value),)
        name = (head["variable"] or "",)
        return VariableMacro(operation, macro.name == "$", name, (value,) * count)


_GLOBALS: Final[Mapping[str, tuple[str, bool]]] = {
    **{name: (name, False) for name in _VARIABLE_MACROS},
    **{name.replace("var", "globalvar"): (name, True) for name in _VARIABLE_MACROS},
}
"""For each macro of a variable: the macro for a local variable, and True if it is of a global."""


def _spans_between(spans: Sequence[_Span], start: int, stop: int) -> Sequence[_Span]:
    begin = bisect_left(spans, start, key=_START)
    return spans[begin : bisect_left(spans, stop, lo=begin, key=_START)]


def _split_else(scope: Sequence[_Item], text: str) -> tuple[Sequence[_Item], Sequence[_Item]]:
    """Return the branches of a condition: the text before its first `{{else}}`, and the rest."""
    for at, item in enumerate(scope):
        if isinstance(item, _Macro) and text[item.start + 2 : item.stop].strip() == "else":
            return scope[:at], scope[at + 1 :]
    return scope, ()


def _literal_chunks(text: str, *, imported: bool) -> Iterator[Chunk]:
    """Yield a literal text, with `<USER>`, `<BOT>` and `<CHAR>` as values if these are macros."""
    done = 0
    for found in _V1_NAME.finditer(text) if imported and "<" in text else ():
        if found.start() > done:
            yield text[done : found.start()]
        yield Value(_V1_NAMES[found[1].lower()], found[0])
        done = found.end()
    if done < len(text) or not text:
        yield text[done:]


def _without_escapes(chunks: Chunks) -> Chunks:
    return tuple([c.replace("\\,", ",") if isinstance(c, str) else c for c in chunks])


_SEPARATING: Final = {"::": re.compile("::"), ",": re.compile(r"\\,|,")}
_IGNORED: Final = re.compile(r"\s*(?:[!?~>#/]|[A-Za-z][\w-]*[^\s:|}]*)?\s*", re.ASCII)
_TRIM: Final = "{{trim}}"
_USUAL_TIME: Final = "YYYY-MM-DDTHH:mm:ssZ"
_OPENS_NONE: Final = re.compile(r"\{\{(?:\s*[!?~>#/])*")
_INDENT: Final = re.compile(r"[^\S\n]*\n([^\S\n]+)")
_V1_NAME: Final = re.compile(r"<((?ai:user|bot|char))>")
_V1_NAMES: Final = {"user": "user", "bot": "char", "char": "char"}
_NO_DICE: Final = Dice(turn="", conversation="")
