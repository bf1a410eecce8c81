"""Templates: a component's or an entry's text, compiled once, rendered over plain values.

Trust decides the language. Imported text (cards, lore) knows the card standard's macros alone
(Card V3, "Curly braced syntaxes", and V1's `<USER>`, `<BOT>`, `<CHAR>`): they are split out once
and filled in a single pass, names are case-insensitive, a macro's result is never expanded again,
an unknown macro stays as it is written. Builders' and authors' text may have the syntax of Jinja2
as well: its tree is checked when it is saved, and our own code renders it within limits of steps
and characters. Jinja2 parses, and no more: its own rendering reaches methods of texts, prints
addresses and knows no limit of time or memory (its sandbox lets nested loops of 100,000 hang a
server, `'a' * 2e9` and `'%2000000000d' is odd` take gigabytes). Text without logic never reaches
Jinja, and player text is never a template.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from evennia_ai.errors import TemplateError
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.memo import typed_frozen, typed_frozen_row
from evennia_ai.prompt.messages import Trust
from evennia_ai.prompt.templates.logic import CheckedLogic, compile_logic
from evennia_ai.prompt.templates.operations import MAX_FILLED

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
_LOGIC: Final = re.compile(r"\{[%#]")
_OUTLET: Final = re.compile(r"\s*outlet\s*::\s*(\S.*?)\s*", re.IGNORECASE)
# What the name of a value begins with that is the text of an outlet of lore.
OUTLET: Final = "outlet::"
_V1_NAMES: Final = {"user": "user", "bot": "char", "char": "char"}
_ESCAPED_COMMA: Final = "\x00"
HIDDEN_KEY: Final = "hidden_key"
MAX_SIDES: Final = 10**9
MAX_CHOICES: Final = 1_000
"""Values that one `{{random}}` or `{{pick}}` chooses from; those behind them are never chosen."""
# As many chunks are joined first and counted then, which is quicker; more could make too much.
_FEW: Final = 16

# Name -> result for (argument, key of this place, dice); these read no value.
Roller = Callable[[str, tuple[object, ...], Dice], str]


@typed_frozen_row
class Value:
    """A chunk that stands for a named value; `written` is what stays where there is none."""

    name: str
    written: str


@typed_frozen_row
class Roll:
    """A chunk that is computed from its argument and the dice; `place` is its offset."""

    name: str
    argument: str
    place: int


Chunk = str | Value | Roll


class Split(NamedTuple):
    """A text in chunks, and what was seen on the way."""

    chunks: tuple[Chunk, ...]
    names: tuple[str, ...]
    """Of its values, each once."""
    rolls: bool
    """Whether it asks the dice."""
    foreign: bool
    """Whether one `{{...}}` is no macro and stays as it is written."""


def split_macros(text: str, *, v1_names: bool) -> Split:
    """`text` in literal chunks, named values and rolls.

    `v1_names` also takes `<USER>`, `<BOT>` and `<CHAR>`, as card text has them.
    """
    chunks: list[Chunk] = []
    names: dict[str, None] = {}
    rolls = foreign = False
    done = 0
    for found in (_MACRO_OR_V1 if v1_names and "<" in text else _MACRO).finditer(text):
        start, end = found.span()
        if start > done:
            chunks.append(text[done:start])
        chunk = _named(found[0]) if found[2] is None else _called(found)
        chunks.append(chunk)
        if isinstance(chunk, Value):
            names[chunk.name] = None
        elif isinstance(chunk, Roll):
            rolls = rolls or chunk.name in ROLLED
        else:
            foreign = True
        done = end
    if done < len(text):
        chunks.append(text[done:])
    return Split(tuple(chunks), tuple(names), rolls, foreign)


def filled(chunks: tuple[Chunk, ...], *, values: Mapping[str, str], dice: Dice, source: str) -> str:
    """The chunks as text; a name without a value stays as it was written.

    TooLongError: names that stand in it many times make more than MAX_FILLED characters.
    """
    texts = [
        chunk
        if isinstance(chunk, str)
        else values.get(chunk.name, chunk.written)
        if isinstance(chunk, Value)
        else ROLLERS[chunk.name](chunk.argument, (source, chunk.place), dice)
        for chunk in chunks
    ]
    if len(texts) > _FEW and sum(map(len, texts)) > MAX_FILLED:
        raise TooLongError(_within(chunks, texts))
    text = "".join(texts)
    if len(text) > MAX_FILLED:
        raise TooLongError(_within(chunks, texts))
    return text


class TooLongError(Exception):
    """Filled in, a text would have more than MAX_FILLED characters.

    `shortened` is that text with the names left as they are written which find no room in it.
    """

    def __init__(self, shortened: str) -> None:
        self.shortened = shortened
        super().__init__(f"makes more than {MAX_FILLED} characters")


def _within(chunks: tuple[Chunk, ...], texts: list[str]) -> str:
    written = [p.written if isinstance(p, Value) else t for p, t in zip(chunks, texts, strict=True)]
    room = MAX_FILLED - sum(map(len, written))
    for index, text in enumerate(texts):
        grown = len(text) - len(written[index])
        if grown <= room:
            room -= grown
            written[index] = text
    return "".join(written)


def _named(written: str) -> Value:
    """The value that a `{{name}}` or a name of V1 stands for."""
    return (_value if len(written) > _LONG_NAME else _known_value)(written)


def _value(written: str) -> Value:
    name = written.strip("{}<>").strip().lower()
    return Value(_V1_NAMES[name] if written[0] == "<" else name, written)


_LONG_NAME: Final = 100
_known_value: Final = lru_cache(maxsize=1024)(_value)  # the same few names in all texts of a game


def _called(found: re.Match[str]) -> Chunk:
    """What a macro that is more than a name stands for, or itself as it is written."""
    written, body = found.group(0, 2)
    outlet = _OUTLET.fullmatch(body)
    if outlet:
        return Value(OUTLET + outlet[1], "")
    called = _function(body)
    return Roll(*called, found.start()) if called else written


def _function(body: str) -> tuple[str, str] | None:
    """Name and argument of a macro that takes one, or None."""
    if body.lstrip().startswith("//"):
        return "//", ""
    name, colon, argument = body.partition(":")
    name = name.strip().lower()
    return (name, argument) if colon and name in ROLLERS else None


def _choices(argument: str) -> list[str]:
    """The values of `A,B` or of the `A::B` that the standard's own example writes."""
    if argument.startswith(":"):
        argument = argument[1:]
    hidden = argument.replace("\\,", _ESCAPED_COMMA)
    separator = "::" if "::" in hidden else ","
    return [
        choice.replace(_ESCAPED_COMMA, ",")
        for choice in hidden.split(separator, MAX_CHOICES)[:MAX_CHOICES]
    ]


def _random(argument: str, place: tuple[object, ...], dice: Dice) -> str:
    choices = _choices(argument)
    return choices[int(dice.roll("random", *place) * len(choices))]


def _pick(argument: str, place: tuple[object, ...], dice: Dice) -> str:
    choices = _choices(argument)
    return choices[int(dice.pick("pick", *place) * len(choices))]


def _roll(argument: str, place: tuple[object, ...], dice: Dice) -> str:
    """1..N; nothing where N is no number from 1 on (Card V3, `roll`)."""
    sides = argument.strip().lower().removeprefix("d")
    if not (sides.isascii() and sides.isdecimal() and len(sides) <= 10 and int(sides)):
        return ""
    return str(1 + int(dice.roll("roll", *place) * min(int(sides), MAX_SIDES)))


def _reverse(argument: str, place: tuple[object, ...], dice: Dice) -> str:
    return argument[::-1]


def _nothing(argument: str, place: tuple[object, ...], dice: Dice) -> str:
    return ""


ROLLERS: Final[Mapping[str, Roller]] = {
    "random": _random,
    "pick": _pick,
    "roll": _roll,
    "reverse": _reverse,
    "//": _nothing,
    HIDDEN_KEY: _nothing,
    "comment": _nothing,
}
ROLLED: Final = frozenset({"random", "pick", "roll"})
# Those whose result may be another one in the next turn.
ROLLED_EACH_TURN: Final = ROLLED - {"pick"}


MAX_SOURCE: Final = 50_000
"""Characters that a builder's or an author's text may have: more than most models can read."""


@typed_frozen
class Template:
    """A compiled text. `names` are the values it reads; `rolls` says whether it asks the dice."""

    source: str
    names: tuple[str, ...] = ()
    rolls: bool = False
    chunks: tuple[Chunk, ...] = ()
    logic: CheckedLogic | None = None
    is_checked: bool = False
    """Whether its author is told what does not fit; in imported text it stays as it is written."""

    def render(self, values: Mapping[str, str], dice: Dice) -> str:
        """The text for these values; TemplateError where a builder's text cannot be rendered."""
        if self.logic is not None:
            return self.logic.render(values)
        try:
            return filled(self.chunks, values=values, dice=dice, source=self.source)
        except TooLongError as error:
            if self.is_checked:
                raise TemplateError(f"{error}; name its values less often") from error
            return error.shortened

    @property
    def reads(self) -> bool:
        """Whether its text depends on anything but itself."""
        return bool(self.names) or self.rolls or self.logic is not None

    @property
    def differs_by_turn(self) -> bool:
        """Whether it says who speaks or rolls anew each turn."""
        if any(name == "speaker" or name.startswith(OUTLET) for name in self.names):
            return True
        return any(
            isinstance(chunk, Roll) and chunk.name in ROLLED_EACH_TURN for chunk in self.chunks
        )

    @property
    def hidden_keys(self) -> tuple[str, ...]:
        """What `{{hidden_key:...}}` in it holds: seen by recursive scanning alone (Card V3)."""
        return tuple(
            chunk.argument.strip()
            for chunk in self.chunks
            if isinstance(chunk, Roll) and chunk.name == HIDDEN_KEY
        )

    def unknown(self, values: Mapping[str, str]) -> tuple[str, ...]:
        """Names this template reads that `values` does not have; they stay as written."""
        return tuple([n for n in self.names if n not in values and not n.startswith(OUTLET)])


MOST_COMPILED: Final = 1_024
"""Texts that are kept compiled for all who use them: components of many NPCs have the same."""
LONG_SOURCE: Final = 20_000
"""Characters of a text that is compiled anew each time, so that what is kept has a bound."""


def compile_template(source: str, *, trust: Trust) -> Template:
    """`source` ready to render; equal texts share what is compiled.

    TemplateError: the text is no valid template, or uses what templates may not use. Imported
    text and player text never raise.
    """
    return (_compiled if len(source) > LONG_SOURCE else _known_template)(source, trust)


def _compiled(source: str, trust: Trust) -> Template:
    if trust == "player":
        return Template(source=source, chunks=(source,))
    imported = trust == "imported"
    if imported and "{{" not in source and "<" not in source:  # most have nothing to fill in
        return Template(source=source, chunks=(source,) if source else ())
    if not imported and len(source) > MAX_SOURCE:
        raise TemplateError(
            f"has {len(source)} characters, and {MAX_SOURCE} are the limit; split it into several"
        )
    text = split_macros(source, v1_names=imported)
    if not imported and (text.foreign or _LOGIC.search(source)):
        logic = compile_logic(source)
        return Template(source=source, names=logic.names, logic=logic)
    return Template(
        source=source,
        names=text.names,
        rolls=text.rolls,
        chunks=text.chunks,
        is_checked=not imported,
    )


_known_template: Final = lru_cache(maxsize=MOST_COMPILED)(_compiled)
