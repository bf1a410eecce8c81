"""Chunks: what a text is split into, and what each gives when the text is filled.

Each is asked once, in the order in which they are written: what one sets, those behind it read.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.memo import typed_frozen_row
from evennia_ai.engine.prompt.templates.clock import clock_text
from evennia_ai.engine.prompt.templates.value_names import CLOCK, OUTLET
from evennia_ai.engine.prompt.templates.variables import Operation, Variable, Variables
from evennia_ai.engine.prompt.templates.work import COPIED_A_UNIT, MAX_FILLED, Meter

_ESCAPED_COMMA: Final = "\x00"
HIDDEN_KEY: Final = "hidden_key"
MAX_SIDES: Final = 10**9
MAX_DICE: Final = 100
"""Dice that one `{{roll 2d6}}` throws; of more there is no result."""
MAX_CHOICES: Final = 1_000
"""Values that one `{{random}}` or `{{pick}}` chooses from; those behind them are never chosen."""


class Run(NamedTuple):
    """What a text is filled with. `kept` are the values as a variable may keep them.

    `seed` is the name of the text (`seed_of`); with a place in it, it decides how dice fall.
    """

    values: Mapping[str, str]
    dice: Dice
    seed: str
    variables: Variables
    kept: Mapping[str, str]
    meter: Meter


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

    def text(self, run: Run) -> str:
        """What the dice give."""
        return ROLLERS[self.name](self.argument, (run.seed, self.place), run.dice)


@typed_frozen_row
class Choice:
    """A `random` or `pick` among texts with macros of their own, all of which are filled."""

    name: str
    choices: tuple["Chunks", ...]
    place: int

    def text(self, run: Run) -> str:
        """The chosen one."""
        made = [joined(choice, run) for choice in self.choices]
        return _chosen(made, self.name, (run.seed, self.place), run.dice)


@typed_frozen_row
class Computed:
    """A `reverse` or `roll` of a text with macros of its own; `written` is the whole as it is.

    It stays as it is written where a macro in it does: backwards, that would be neither.
    """

    name: str
    argument: "Chunks"
    place: int
    written: str

    def text(self, run: Run) -> str:
        """What is computed from the argument once it is filled."""
        for chunk in inside(self.argument):
            if isinstance(chunk, Moment) and CLOCK not in run.values:
                return self.written
            if not isinstance(chunk, Value) or chunk.name.startswith(OUTLET):
                continue  # an outlet without a text is empty
            if chunk.name not in run.values:
                return self.written
        argument = joined(self.argument, run)
        run.meter.pay(_work_of_roll(Roll(self.name, argument, self.place)))
        return ROLLERS[self.name](argument, (run.seed, self.place), run.dice)


@typed_frozen_row
class Change:
    """A chunk that sets or reads a variable: its name and its value may hold macros."""

    operation: Operation
    is_global: bool
    name: "Chunks"
    value: "Chunks" = ()

    @property
    def variable(self) -> Variable | None:
        """Which one it is, None where its name is known only when it is filled."""
        is_plain = all(isinstance(chunk, str) for chunk in self.name)
        return Variable("".join(map(str, self.name)).strip(), self.is_global) if is_plain else None

    def text(self, run: Run) -> str:
        """What stands in its place once it is done."""
        kept = run._replace(values=run.kept)
        variable = Variable(joined(self.name, kept).strip(), self.is_global)
        if self.operation == "get":
            return run.variables.get(variable)
        if self.operation in ("inc", "dec"):
            return run.variables.add(variable, "1" if self.operation == "inc" else "-1")
        value = joined(self.value, kept)
        if self.operation == "set":
            run.variables.set(variable, value)
        else:
            run.variables.add(variable, value)
        return ""


@typed_frozen_row
class Moment:
    """The time of the turn in a format; without a clock the macro is sent as it is written."""

    pattern: str
    utc_hours: int | None
    """Hours from UTC; None for the zone of the clock."""
    written: str

    def text(self, run: Run) -> str:
        """The moment as the format says it."""
        now = run.values.get(CLOCK)
        return self.written if now is None else clock_text(now, self.pattern, self.utc_hours)


@typed_frozen_row
class Trim:
    """A chunk that takes the line breaks around it away."""

    def text(self, run: Run) -> str:
        """Nothing stands in its place."""
        return ""


@typed_frozen_row
class Noop:
    """A chunk that gives nothing, and that no `trim` takes line breaks away across."""

    def text(self, run: Run) -> str:
        """Nothing stands in its place."""
        return ""


Special = Choice | Computed | Change | Moment | Trim | Noop
Plain = str | Value | Roll
Chunk = Plain | Special
Chunks = tuple[Chunk, ...]
SPECIAL: Final = (Choice, Computed, Change, Moment, Trim, Noop)


def joined(chunks: Chunks, run: Run) -> str:
    """The chunks as text, in their order; TemplateError where they make too much."""
    texts = [
        chunk
        if isinstance(chunk, str)
        else run.values.get(chunk.name, chunk.written)
        if isinstance(chunk, Value)
        else chunk.text(run)
        for chunk in chunks
    ]
    length = sum(map(len, texts))
    if length > MAX_FILLED:
        raise TemplateError(f"makes more than {MAX_FILLED} characters; name its values less often")
    run.meter.pay(length // COPIED_A_UNIT)
    trims = [at for at, chunk in enumerate(chunks) if isinstance(chunk, Trim)]
    if not trims:
        return "".join(texts)
    noops = [at for at, chunk in enumerate(chunks) if isinstance(chunk, Noop)]
    return "".join(without_breaks(texts, trims, noops))


def without_breaks(
    texts: Iterable[str], trims: Iterable[int], noops: Iterable[int] = ()
) -> list[str]:
    """The texts without the line breaks around each `trim`, across empty ones.

    Args:
        texts: The texts, with one for each macro.
        trims: The indexes of those that are a `trim`.
        noops: The indexes of those that are a `noop`. Line breaks beyond one stay: SillyTavern's
            first engine takes `noop` out after it has trimmed, and presets count on that.
    """
    trimming, holding = frozenset(trims), frozenset(noops)
    made: list[str] = []
    held = 0  # so many of those made stay as they are
    is_trimming = False
    for at, text in enumerate(texts):
        if at in trimming:
            while len(made) > held:
                left = made.pop().rstrip(_BREAKS)
                if left:
                    made.append(left)
                    break
            is_trimming = True
        elif at in holding:
            held, is_trimming = len(made), False
        else:
            made.append(text.lstrip(_BREAKS) if is_trimming else text)
            is_trimming = is_trimming and not made[-1]
    return made


_BREAKS: Final = "\r\n"


def inside(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """The chunks, each followed by all that stand in it."""
    for chunk in chunks:
        yield chunk
        if isinstance(chunk, Change):
            yield from inside((*chunk.name, *chunk.value))
        elif isinstance(chunk, Choice):
            for choice in chunk.choices:
                yield from inside(choice)
        elif isinstance(chunk, Computed):
            yield from inside(chunk.argument)


# Units of work (`work`) for each kind of chunk, beside what stands in it.
_LITERAL_WORK: Final = 1
_VALUE_WORK: Final = 2
_TRIM_WORK: Final = 5
_MOMENT_WORK: Final = 30
_FORMATTED_WORK: Final = 10  # each character of a format, which may stand for forty
_CHOICE_WORK: Final = 60  # so much for each throw of the dice, too
_DIE_WORK: Final = 7  # each die after the first: the first is paid as the macro
_REMARK_WORK: Final = 3
_CHOSEN_FROM_A_UNIT: Final = 4  # characters of a list that is taken apart
_REVERSED_A_UNIT: Final = 20
_CHANGE_WORK: Final[Mapping[Operation, int]] = {
    "get": 25,
    "set": 40,
    "add": 45,
    "inc": 45,
    "dec": 45,
}


def work_of(chunks: Iterable[Chunk]) -> int:
    """Return the units of work that filling these chunks takes, without the length of values."""
    work = 0
    for chunk in inside(chunks):
        if isinstance(chunk, str):
            work += _LITERAL_WORK
        elif isinstance(chunk, Value):
            work += _VALUE_WORK
        elif isinstance(chunk, Roll):
            work += _work_of_roll(chunk)
        elif isinstance(chunk, Change):
            work += _CHANGE_WORK[chunk.operation]
        elif isinstance(chunk, Moment):
            work += _MOMENT_WORK + len(chunk.pattern) * _FORMATTED_WORK
        else:
            work += _CHOICE_WORK if isinstance(chunk, Choice) else _TRIM_WORK
    return work


def _work_of_roll(roll: Roll) -> int:
    if roll.name in CHOOSING:
        return _CHOICE_WORK + len(roll.argument) // _CHOSEN_FROM_A_UNIT
    if roll.name == "roll":
        found = _DICE.fullmatch(roll.argument)
        dice = min(int(found[1] or 1), MAX_DICE) if found else 0
        return _CHOICE_WORK + _DIE_WORK * dice
    return _REMARK_WORK + len(roll.argument) // _REVERSED_A_UNIT


def _choices(argument: str) -> list[str]:
    """The values of `A,B` or of the `A::B` that the standard's own example writes.

    Blanks around a comma are none of the value's, as in SillyTavern.
    """
    hidden = argument.replace("\\,", _ESCAPED_COMMA)
    if "::" in hidden:
        choices = hidden.split("::", MAX_CHOICES)
    else:
        choices = [choice.strip() for choice in hidden.split(",", MAX_CHOICES)]
    return [choice.replace(_ESCAPED_COMMA, ",") for choice in choices[:MAX_CHOICES]]


def _chosen(choices: list[str], name: str, place: tuple[object, ...], dice: Dice) -> str:
    share = dice.pick(name, *place) if name == "pick" else dice.roll(name, *place)
    return choices[int(share * len(choices))]


def _random(argument: str, place: tuple[object, ...], dice: Dice) -> str:
    return _chosen(_choices(argument), "random", place, dice)


def _pick(argument: str, place: tuple[object, ...], dice: Dice) -> str:
    return _chosen(_choices(argument), "pick", place, dice)


def _roll(argument: str, place: tuple[object, ...], dice: Dice) -> str:
    """1..N, or several dice together; nothing where it is no number of dice (Card V3, `roll`)."""
    found = _DICE.fullmatch(argument)
    if not found:
        return ""
    count, sides = int(found[1] or 1), int(found[2].replace("%", "100"))
    if not (1 <= count <= MAX_DICE and sides):
        return ""
    sides = min(sides, MAX_SIDES)
    total = sum(1 + int(thrown * sides) for thrown in dice.rolls(count, "roll", *place))
    return str(total + int(found[3] or 0))


# `6`, `d6`, `2d6`, `d%`, `2d6+1`: as the standard and SillyTavern write dice.
_DICE: Final = re.compile(
    r"\s*(?:([0-9]{1,3})?d)?(%|[0-9]{1,10})([+-][0-9]{1,6})?\s*", re.IGNORECASE
)


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
REMARKS: Final = frozenset({"//", HIDDEN_KEY, "comment"})
CHOOSING: Final = frozenset({"random", "pick"})
ROLLED: Final = CHOOSING | {"roll"}
# Those whose result may be another one in the next turn.
ROLLED_EACH_TURN: Final = ROLLED - {"pick"}
