"""Chunks: the literal texts and macros into which a template is split, and their expansion.

Chunks are expanded once, in the order in which they are written: a later chunk can read variables
that an earlier one set. Of a condition only the chosen branch is expanded, and of `??` and `||`
only the value that is used. The result of a macro is never parsed again.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.memo import typed_frozen_row
from evennia_ai.engine.prompt.templates.clock import clock_text, time_between
from evennia_ai.engine.prompt.templates.value_names import CLOCK
from evennia_ai.engine.prompt.templates.variables import (
    Operation,
    Variable,
    Variables,
    is_true,
    operate,
)
from evennia_ai.engine.prompt.templates.work import COPIED_A_UNIT, MAX_FILLED, Meter

HIDDEN_KEY: Final = "hidden_key"
MAX_SIDES: Final = 10**9
MAX_DICE: Final = 100
"""The most dice that one `{{roll 2d6}}` throws. With more dice, its result is empty."""
MAX_CHOICES: Final = 1_000
"""The most values from which one `{{random}}` or `{{pick}}` chooses. Further values are ignored."""
MAX_REPEATED: Final = 1_000
"""The most blanks or line breaks that one `{{space::4}}` or `{{newline::2}}` makes."""


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
# arguments, the key of its place in the text, and the random numbers.
Roller = Callable[[Sequence[str], tuple[object, ...], Dice], str]


@typed_frozen_row
class Value:
    """A macro that is replaced by a named value. Without a value, it stays as `written`."""

    name: str
    written: str


@typed_frozen_row
class Roll:
    """A macro whose result depends on its arguments and random numbers. `place` is its offset."""

    name: str
    arguments: tuple[str, ...]
    place: int

    @property
    def inner(self) -> tuple["Chunks", ...]:
        """The chunks inside the macro: none."""
        return ()

    def text(self, run: Run) -> str:
        """Return the result of the macro."""
        return ROLLERS[self.name](self.arguments, (run.seed, self.place), run.dice)


@typed_frozen_row
class Computed:
    """A macro such as `reverse`, `roll` or `random` whose arguments contain macros."""

    name: str
    inner: tuple["Chunks", ...]
    place: int

    def text(self, run: Run) -> str:
        """Expand the macro's arguments and return the result for them."""
        arguments = tuple([join_chunks(chunks, run) for chunks in self.inner])
        run.meter.pay(_work_of_roll(Roll(self.name, arguments, self.place)))
        return ROLLERS[self.name](arguments, (run.seed, self.place), run.dice)


@typed_frozen_row
class VariableMacro:
    """A macro that sets or reads a variable. Its name and its arguments may contain macros."""

    operation: Operation
    is_global: bool
    name: "Chunks"
    arguments: tuple["Chunks", ...] = ()

    @property
    def inner(self) -> tuple["Chunks", ...]:
        """The chunks inside the macro."""
        return (self.name, *self.arguments)

    @property
    def variable(self) -> Variable | None:
        """The variable of the macro; None if its name contains macros, so it is not known yet."""
        is_plain = all(isinstance(chunk, str) for chunk in self.name)
        return Variable("".join(map(str, self.name)).strip(), self.is_global) if is_plain else None

    def text(self, run: Run) -> str:
        """Do the operation on the variable, and return the text that replaces the macro."""
        kept = run._replace(values=run.kept)
        variable = Variable(join_chunks(self.name, kept).strip(), self.is_global)

        def expand_argument(index: int) -> str:
            return join_chunks(self.arguments[index], kept)

        return operate(self.operation, run.variables, variable, expand_argument)


@typed_frozen_row
class Condition:
    """The macro `{{if test}}...{{else}}...{{/if}}`. Only the chosen branch is expanded."""

    test: "Chunks"
    is_inverted: bool
    then: "Chunks"
    otherwise: "Chunks" = ()
    keeps_blanks: bool = False
    """True if blanks around a branch are kept (`{{#if}}`)."""

    @property
    def inner(self) -> tuple["Chunks", ...]:
        """The chunks inside the macro."""
        return self.test, self.then, self.otherwise

    def text(self, run: Run) -> str:
        """Return the branch that the test chooses."""
        is_met = is_true(join_chunks(self.test, run)) is not self.is_inverted
        text = join_chunks(self.then if is_met else self.otherwise, run)
        return text if self.keeps_blanks else text.strip()


@typed_frozen_row
class Scoped:
    """A text between a macro such as `{{reverse}}` and its end, without the blanks around it."""

    chunks: "Chunks"
    keeps_blanks: bool = False

    @property
    def inner(self) -> tuple["Chunks", ...]:
        """The chunks inside the macro."""
        return (self.chunks,)

    def text(self, run: Run) -> str:
        """Return the expanded text."""
        text = join_chunks(self.chunks, run)
        return text if self.keeps_blanks else text.strip()


@typed_frozen_row
class TimeMacro:
    """A macro for the time of the turn in some format. Without a clock it stays as written."""

    pattern: str
    utc_hours: int | None
    """The offset from UTC in hours; None for the time zone of the clock."""
    written: str
    inner: tuple["Chunks", ...] = ()

    def text(self, run: Run) -> str:
        """Return the time of the turn in the format of the macro."""
        now = run.values.get(CLOCK)
        return self.written if now is None else clock_text(now, self.pattern, self.utc_hours)


@typed_frozen_row
class Trim:
    """The macro `{{trim}}`, which removes the line breaks around it."""

    inner: tuple["Chunks", ...] = ()

    def text(self, run: Run) -> str:
        """Return an empty text; `trim_line_breaks` does the work of `{{trim}}`."""
        return ""


Special = Computed | VariableMacro | Condition | Scoped | TimeMacro | Trim
Plain = str | Value | Roll
Chunk = Plain | Special
Chunks = tuple[Chunk, ...]
SPECIAL: Final = (Computed, VariableMacro, Condition, Scoped, TimeMacro, Trim)


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
    return "".join(trim_line_breaks(texts, trims) if trims else texts)


def trim_line_breaks(texts: Iterable[str], trims: Iterable[int]) -> list[str]:
    """Return the texts without the line breaks around each `{{trim}}`, across empty texts.

    Args:
        texts: The texts, one for each macro.
        trims: The indexes of `trim` macros.
    """
    trimming = frozenset(trims)
    made: list[str] = []
    is_trimming = False
    for at, text in enumerate(texts):
        if at in trimming:
            while made:
                left = made.pop().rstrip(_BREAKS)
                if left:
                    made.append(left)
                    break
            is_trimming = True
        else:
            made.append(text.lstrip(_BREAKS) if is_trimming else text)
            is_trimming = is_trimming and not made[-1]
    return made


_BREAKS: Final = "\r\n"


def nested_chunks(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield all chunks (literal texts and macros), each followed by those inside it."""
    for chunk in chunks:
        yield chunk
        if isinstance(chunk, SPECIAL):
            for inner in chunk.inner:
                yield from nested_chunks(inner)


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
    4  # the number of characters of a list of values that one unit of work can read
)
_REVERSED_A_UNIT: Final = 20
_READ_WORK: Final = 25  # the work for reading a variable or testing a condition
_CHANGE_WORK: Final = 45  # the work for any other operation on a variable


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
            work += _READ_WORK if chunk.operation == "get" else _CHANGE_WORK
        elif isinstance(chunk, Condition):
            work += _READ_WORK
        elif isinstance(chunk, TimeMacro):
            work += _MOMENT_WORK + len(chunk.pattern) * _FORMATTED_WORK
        else:
            work += _CHOICE_WORK if isinstance(chunk, Computed) else _TRIM_WORK
    return work


def _work_of_roll(roll: Roll) -> int:
    length = sum(map(len, roll.arguments))
    if roll.name in CHOOSING:
        return _CHOICE_WORK + length // _CHOSEN_FROM_A_UNIT
    if roll.name == "roll":
        found = _DICE.fullmatch(roll.arguments[0])
        dice = min(int(found[1] or 1), MAX_DICE) if found else 0
        return _CHOICE_WORK + _DIE_WORK * dice
    if roll.name == "timediff":
        return 2 * _MOMENT_WORK
    return _REMARK_WORK + length // _REVERSED_A_UNIT


def _chosen(choices: Sequence[str], share: float) -> str:
    return choices[int(share * len(choices))] if choices else ""


def _random(arguments: Sequence[str], place: tuple[object, ...], dice: Dice) -> str:
    return _chosen(arguments, dice.roll("random", *place))


def _pick(arguments: Sequence[str], place: tuple[object, ...], dice: Dice) -> str:
    return _chosen(arguments, dice.pick("pick", *place))


def _roll(arguments: Sequence[str], place: tuple[object, ...], dice: Dice) -> str:
    """Return the sum of the dice in a `roll` macro, such as `2d6`; "" if it names no dice."""
    found = _DICE.fullmatch(arguments[0])
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
COUNT: Final = re.compile(r"\s*([0-9]{1,6})\s*")
"""The number of blanks or line breaks in `{{space::4}}`."""


def _repeat(name: str, text: str) -> Roller:
    """Return a macro that repeats a text: once, or as often as its argument says."""

    def repeat(arguments: Sequence[str], place: tuple[object, ...], dice: Dice) -> str:
        found = COUNT.fullmatch(arguments[0]) if arguments else None
        if arguments and not found:
            return f"{{{{{name}::{arguments[0]}}}}}"  # a wrong count: keep the macro as written
        return text * (min(int(found[1]), MAX_REPEATED) if found else 1)

    return repeat


def _reverse(arguments: Sequence[str], place: tuple[object, ...], dice: Dice) -> str:
    return unescape_braces(arguments[0][::-1])


def unescape_braces(text: str) -> str:
    """Return a text with its escaped braces as braces."""
    return text.replace("\\{", "{").replace("\\}", "}") if "\\" in text else text


def _timediff(arguments: Sequence[str], place: tuple[object, ...], dice: Dice) -> str:
    return time_between(arguments[0], arguments[1])


def _nothing(arguments: Sequence[str], place: tuple[object, ...], dice: Dice) -> str:
    return ""


ROLLERS: Final[Mapping[str, Roller]] = {
    "random": _random,
    "pick": _pick,
    "roll": _roll,
    "reverse": _reverse,
    "newline": _repeat("newline", "\n"),
    "space": _repeat("space", " "),
    "noop": _nothing,
    "else": _nothing,
    "timediff": _timediff,
    "//": _nothing,
    HIDDEN_KEY: _nothing,
}
REPEATED: Final = frozenset({"newline", "space"})
CHOOSING: Final = frozenset({"random", "pick"})
ROLLED: Final = CHOOSING | {"roll"}
# The macros whose random result changes in each turn. A `pick` keeps its result.
ROLLED_EACH_TURN: Final = ROLLED - {"pick"}
