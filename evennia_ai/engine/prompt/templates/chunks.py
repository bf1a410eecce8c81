"""Chunks: the literal texts and macros into which a template is split, and their expansion.

Chunks are expanded once, in the order in which they are written: a later chunk can read variables
that an earlier one set.
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
"""The most dice that one `{{roll 2d6}}` throws. With more dice, its result is empty."""
MAX_CHOICES: Final = 1_000
"""The most values from which one `{{random}}` or `{{pick}}` chooses. Further values are ignored."""


class Run(NamedTuple):
    """What a macro can use while one text is expanded: values, variables, dice, clock."""

    values: Mapping[str, str]
    dice: Dice
    seed: str
    """The hash of the text. With the place of a macro it decides the macro's random numbers."""
    variables: Variables
    kept: Mapping[str, str]
    """The values in the form in which they are stored in variables."""
    meter: Meter


# A function that returns the result of a macro that reads no values. Its arguments are the macro's
# argument, the key of its place in the text, and the random numbers.
Roller = Callable[[str, tuple[object, ...], Dice], str]


@typed_frozen_row
class Value:
    """A macro that is replaced by a named value. Without a value, it stays as `written`."""

    name: str
    written: str


@typed_frozen_row
class Roll:
    """A macro whose result depends on its argument and random numbers. `place` is its offset."""

    name: str
    argument: str
    place: int

    def text(self, run: Run) -> str:
        """Return the result of the macro, after charging its work."""
        return ROLLERS[self.name](self.argument, (run.seed, self.place), run.dice)


@typed_frozen_row
class Choice:
    """A macro `random` or `pick` among texts that contain macros. All texts are expanded."""

    name: str
    choices: tuple["Chunks", ...]
    place: int

    def text(self, run: Run) -> str:
        """Return the chosen text."""
        made = [join_chunks(choice, run) for choice in self.choices]
        return _chosen(made, self.name, (run.seed, self.place), run.dice)


@typed_frozen_row
class Computed:
    """A macro `reverse` or `roll` whose argument contains macros.

    If an inner macro stays as written, the whole macro does, too. Otherwise the result would show
    the inner macro reversed.
    """

    name: str
    argument: "Chunks"
    place: int
    written: str

    def text(self, run: Run) -> str:
        """Expand the macro's argument and return the result for it."""
        for chunk in nested_chunks(self.argument):
            if isinstance(chunk, TimeMacro) and CLOCK not in run.values:
                return self.written
            if not isinstance(chunk, Value) or chunk.name.startswith(OUTLET):
                continue  # unlike other values, an outlet without entries gives an empty text
            if chunk.name not in run.values:
                return self.written
        argument = join_chunks(self.argument, run)
        run.meter.pay(_work_of_roll(Roll(self.name, argument, self.place)))
        return ROLLERS[self.name](argument, (run.seed, self.place), run.dice)


@typed_frozen_row
class VariableMacro:
    """A macro that sets or reads a variable. Its name and its value may contain macros."""

    operation: Operation
    is_global: bool
    name: "Chunks"
    value: "Chunks" = ()

    @property
    def variable(self) -> Variable | None:
        """The variable of the macro; None if its name contains macros, so it is not known yet."""
        is_plain = all(isinstance(chunk, str) for chunk in self.name)
        return Variable("".join(map(str, self.name)).strip(), self.is_global) if is_plain else None

    def text(self, run: Run) -> str:
        """Set or read the variable, and return the text that replaces the macro."""
        kept = run._replace(values=run.kept)
        variable = Variable(join_chunks(self.name, kept).strip(), self.is_global)
        if self.operation == "get":
            return run.variables.get(variable)
        if self.operation in ("inc", "dec"):
            return run.variables.add(variable, "1" if self.operation == "inc" else "-1")
        value = join_chunks(self.value, kept)
        if self.operation == "set":
            run.variables.set(variable, value)
        else:
            run.variables.add(variable, value)
        return ""


@typed_frozen_row
class TimeMacro:
    """A macro for the time of the turn in some format. Without a clock it stays as written."""

    pattern: str
    utc_hours: int | None
    """The offset from UTC in hours; None for the time zone of the clock."""
    written: str

    def text(self, run: Run) -> str:
        """Return the time of the turn in the format of the macro."""
        now = run.values.get(CLOCK)
        return self.written if now is None else clock_text(now, self.pattern, self.utc_hours)


@typed_frozen_row
class Trim:
    """The macro `{{trim}}`, which removes the line breaks around it."""

    def text(self, run: Run) -> str:
        """Return an empty text; `trim_line_breaks` does the work of `{{trim}}`."""
        return ""


@typed_frozen_row
class Noop:
    """The macro `{{noop}}`, an empty text. A `{{trim}}` removes no line breaks across it."""

    def text(self, run: Run) -> str:
        """Return the text of `{{noop}}`, which is empty."""
        return ""


Special = Choice | Computed | VariableMacro | TimeMacro | Trim | Noop
Plain = str | Value | Roll
Chunk = Plain | Special
Chunks = tuple[Chunk, ...]
SPECIAL: Final = (Choice, Computed, VariableMacro, TimeMacro, Trim, Noop)


def join_chunks(chunks: Chunks, run: Run) -> str:
    """Expand the chunks (literal texts and macros) and join them into one text.

    Raises:
        TemplateError: the text is too long.
    """
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
    return "".join(trim_line_breaks(texts, trims, noops))


def trim_line_breaks(
    texts: Iterable[str], trims: Iterable[int], noops: Iterable[int] = ()
) -> list[str]:
    """Return the texts without the line breaks around each `{{trim}}`, across empty texts.

    Args:
        texts: The texts, one for each macro.
        trims: The indexes of `trim` macros.
        noops: The indexes of `noop` macros. The line breaks before and after a `noop` stay, as in
            SillyTavern's first engine, which removes `noop` only after trimming. Presets rely on
            that.
    """
    trimming, holding = frozenset(trims), frozenset(noops)
    made: list[str] = []
    held = 0  # the number of texts before each `noop` whose line breaks are kept
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


def nested_chunks(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield all chunks (literal texts and macros), each followed by those inside it."""
    for chunk in chunks:
        yield chunk
        if isinstance(chunk, VariableMacro):
            yield from nested_chunks((*chunk.name, *chunk.value))
        elif isinstance(chunk, Choice):
            for choice in chunk.choices:
                yield from nested_chunks(choice)
        elif isinstance(chunk, Computed):
            yield from nested_chunks(chunk.argument)


# The units of work (module `work`) for expanding each kind of chunk, without the chunks inside it
_LITERAL_WORK: Final = 1
_VALUE_WORK: Final = 2
_TRIM_WORK: Final = 5
_MOMENT_WORK: Final = 30
_FORMATTED_WORK: Final = (
    10  # the work for each character of a time format, which may expand to forty characters
)
_CHOICE_WORK: Final = 60  # the work for each `random`, `pick` or throw of dice
_DIE_WORK: Final = 7  # the work for each further die of a throw
_REMARK_WORK: Final = 3
_CHOSEN_FROM_A_UNIT: Final = (
    4  # the number of characters of a list of values that one unit of work can split
)
_REVERSED_A_UNIT: Final = 20
_CHANGE_WORK: Final[Mapping[Operation, int]] = {
    "get": 25,
    "set": 40,
    "add": 45,
    "inc": 45,
    "dec": 45,
}


def work_of(chunks: Iterable[Chunk]) -> int:
    """Return the work of expanding these chunks, not counting the lengths of values."""
    work = 0
    for chunk in nested_chunks(chunks):
        if isinstance(chunk, str):
            work += _LITERAL_WORK
        elif isinstance(chunk, Value):
            work += _VALUE_WORK
        elif isinstance(chunk, Roll):
            work += _work_of_roll(chunk)
        elif isinstance(chunk, VariableMacro):
            work += _CHANGE_WORK[chunk.operation]
        elif isinstance(chunk, TimeMacro):
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
    """Split the argument `A,B` (or `A::B`) of `random` or `pick` into its values.

    Blanks around a comma are removed, as in SillyTavern.
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
    """Return the sum of the dice in a `roll` macro, such as `2d6`; "" if it names no dice."""
    found = _DICE.fullmatch(argument)
    if not found:
        return ""
    count, sides = int(found[1] or 1), int(found[2].replace("%", "100"))
    if not (1 <= count <= MAX_DICE and sides):
        return ""
    sides = min(sides, MAX_SIDES)
    total = sum(1 + int(thrown * sides) for thrown in dice.rolls(count, "roll", *place))
    return str(total + int(found[3] or 0))


# The forms of dice in the card standard and in SillyTavern: `6`, `d6`, `2d6`, `d%`, `2d6+1`
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
# The macros whose random result changes in each turn. A `pick` keeps its result.
ROLLED_EACH_TURN: Final = ROLLED - {"pick"}
