"""The macros of the card standard, and what one rendering of a template may cost.

Standard: Card V3, "Curly braced syntaxes", and V1's `<USER>`, `<BOT>`, `<CHAR>`; split once and
filled in a single pass. Names are case-insensitive, a macro's result is never expanded again, an
unknown macro stays as it is written. Player text never comes here.

Templates with logic pay as they go: steps stand for time and room for memory. Both are counted and
neither is measured, so a template gives the same text, or the same error, in every turn and on
every machine. The prices are such that a component takes under 5 ms of the game's thread and under
1 MB, whatever is written in it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from evennia_ai.errors import TemplateError
from evennia_ai.prompt.dice import Dice

_PLAIN: Final = r"(?:(?!\{\{|\}\}).)*"
# What gives no text swallows macros inside it, so that no remark of an author comes out.
_SILENT: Final = (
    r"\s*(?://|(?:comment|hidden_key)\s*:)"
    rf"(?:[^{{}}]|\{{(?!\{{)|\}}(?!\}})|\{{\{{{_PLAIN}\}}\}})*+"
)
_MACRO: Final = re.compile(rf"\{{\{{({_SILENT}|{_PLAIN})\}}\}}", re.DOTALL | re.IGNORECASE)
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
MAX_FILLED: Final = 200_000
"""Characters that a text may have when its names are filled in."""
# As many pieces are joined first and counted then, which is quicker; more could make too much.
_FEW: Final = 16

# Name -> result for (argument, key of this place, dice); these read no value.
Roller = Callable[[str, tuple[object, ...], Dice], str]


@dataclass(frozen=True, slots=True)
class Value:
    """A piece that stands for a named value; `written` is what stays where there is none."""

    name: str
    written: str


@dataclass(frozen=True, slots=True)
class Roll:
    """A piece that is computed from its argument and the dice; `place` is its offset."""

    name: str
    argument: str
    place: int


Piece = str | Value | Roll


class Split(NamedTuple):
    """A text in pieces; `foreign` where one `{{...}}` is no macro and stays as it is written."""

    pieces: tuple[Piece, ...]
    foreign: bool


def split(text: str, *, v1_names: bool) -> Split:
    """`text` in literal pieces, named values and rolls.

    `v1_names` also takes `<USER>`, `<BOT>` and `<CHAR>`, as card text has them.
    """
    pieces: list[Piece] = []
    done = 0
    foreign = False
    for found in (_MACRO_OR_V1 if v1_names else _MACRO).finditer(text):
        if found.start() > done:
            pieces.append(text[done : found.start()])
        piece = _piece(found)
        foreign = foreign or isinstance(piece, str)
        pieces.append(piece)
        done = found.end()
    if done < len(text):
        pieces.append(text[done:])
    return Split(tuple(pieces), foreign)


def fill(pieces: tuple[Piece, ...], *, values: Mapping[str, str], dice: Dice, source: str) -> str:
    """The pieces as text; a name without a value stays as it was written.

    TooLongError: names that stand in it many times make more than MAX_FILLED characters.
    """
    texts = [
        piece
        if isinstance(piece, str)
        else values.get(piece.name, piece.written)
        if isinstance(piece, Value)
        else ROLLERS[piece.name](piece.argument, (source, piece.place), dice)
        for piece in pieces
    ]
    if len(texts) > _FEW and sum(map(len, texts)) > MAX_FILLED:
        raise TooLongError(_within(pieces, texts))
    text = "".join(texts)
    if len(text) > MAX_FILLED:
        raise TooLongError(_within(pieces, texts))
    return text


class TooLongError(Exception):
    """Filled in, a text would have more than MAX_FILLED characters.

    `shortened` is that text with the names left as they are written which find no room in it.
    """

    def __init__(self, shortened: str) -> None:
        self.shortened = shortened
        super().__init__(f"makes more than {MAX_FILLED} characters")


def _within(pieces: tuple[Piece, ...], texts: list[str]) -> str:
    written = [p.written if isinstance(p, Value) else t for p, t in zip(pieces, texts, strict=True)]
    room = MAX_FILLED - sum(map(len, written))
    for index, text in enumerate(texts):
        grown = len(text) - len(written[index])
        if grown <= room:
            room -= grown
            written[index] = text
    return "".join(written)


def _piece(found: re.Match[str]) -> Piece:
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


MAX_STEPS: Final = 10_000
"""Parts of a template that one rendering may go through."""
MAX_MADE: Final = 40_000
"""Characters that filters, `+` and loops may make on the way."""
CHARACTERS_A_STEP: Final = 20
# What a value takes beside its characters, in characters of four bytes.
_HEAD: Final = 16


class Spending:
    """What is left of one rendering, and where it stands: its line, names, loop and text."""

    __slots__ = ("line", "loop", "names", "output", "room", "steps", "written")

    def __init__(self, names: dict[str, object]) -> None:
        self.names = names
        self.steps = MAX_STEPS
        self.room = MAX_MADE
        self.output = MAX_FILLED
        self.written: list[str] = []
        self.line: int | None = None
        self.loop = (0, 0)
        """Index in the innermost loop, and how often that runs."""

    def spend(self, steps: int) -> None:
        """Pay for work before it is done; TemplateError where it cannot be paid."""
        self.steps -= steps
        if self.steps < 0:
            raise TemplateError(
                f"takes more than {MAX_STEPS} steps; make its loops shorter, or what is in them"
            )

    def make(self, characters: int) -> None:
        """Pay for a new value of this length before it is made."""
        self.room -= characters + _HEAD
        if self.room < 0:
            raise TemplateError(
                f"makes more than {MAX_MADE} characters on the way; write values out as they are,"
                " without filters, + or a loop over their letters"
            )

    def read(self, text: str) -> None:
        """Pay for going through a text once."""
        self.spend(len(text) // CHARACTERS_A_STEP)

    def write(self, text: str) -> None:
        """Put `text` behind what is written."""
        self.output -= len(text)
        if self.output < 0:
            raise TemplateError(f"makes more than {MAX_FILLED} characters")
        self.written.append(text)
