"""The macros of the card standard, split out of a text once and filled in a single pass.

Standard: Card V3, "Curly braced syntaxes", and V1's `<USER>`, `<BOT>`, `<CHAR>`. Names are
case-insensitive, a macro's result is never expanded again, an unknown macro stays as it is written.
Player text never comes here.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.templates.operations import MAX_FILLED

_PLAIN: Final = r"(?:(?!\{\{|\}\}).)*"
# What gives no text swallows macros inside it, so that no remark of an author comes out.
_REMARK: Final = (
    r"\s*(?://|(?:comment|hidden_key)\s*:)"
    rf"(?:[^{{}}]|\{{(?!\{{)|\}}(?!\}})|\{{\{{{_PLAIN}\}}\}})*+"
)
_MACRO: Final = re.compile(rf"\{{\{{({_REMARK}|{_PLAIN})\}}\}}", re.DOTALL | re.IGNORECASE)
_MACRO_OR_V1: Final = re.compile(_MACRO.pattern + r"|<(user|bot|char)>", _MACRO.flags)
_NAME: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*")
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


@dataclass(frozen=True, slots=True)
class Value:
    """A chunk that stands for a named value; `written` is what stays where there is none."""

    name: str
    written: str


@dataclass(frozen=True, slots=True)
class Roll:
    """A chunk that is computed from its argument and the dice; `place` is its offset."""

    name: str
    argument: str
    place: int


Chunk = str | Value | Roll


class Split(NamedTuple):
    """A text in chunks; `foreign` where one `{{...}}` is no macro and stays as it is written."""

    chunks: tuple[Chunk, ...]
    foreign: bool


def split_macros(text: str, *, v1_names: bool) -> Split:
    """`text` in literal chunks, named values and rolls.

    `v1_names` also takes `<USER>`, `<BOT>` and `<CHAR>`, as card text has them.
    """
    chunks: list[Chunk] = []
    done = 0
    foreign = False
    for found in (_MACRO_OR_V1 if v1_names else _MACRO).finditer(text):
        if found.start() > done:
            chunks.append(text[done : found.start()])
        chunk = _chunk(found)
        foreign = foreign or isinstance(chunk, str)
        chunks.append(chunk)
        done = found.end()
    if done < len(text):
        chunks.append(text[done:])
    return Split(tuple(chunks), foreign)


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


def _chunk(found: re.Match[str]) -> Chunk:
    if found[1] is None:
        return Value(_V1_NAMES[found[2].lower()], found[0])
    plain = _NAME.fullmatch(found[1])
    if plain:
        return Value(plain[1].lower(), found[0])
    outlet = _OUTLET.fullmatch(found[1])
    if outlet:
        return Value(OUTLET + outlet[1], "")
    called = _function(found[1])
    return Roll(called[0], called[1], found.start()) if called else found[0]


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
