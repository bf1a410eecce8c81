"""What templates with logic can do with values, and what that costs: filters, tests, comparisons.

A value is a text, a number, a truth value, nothing, or a list of these. No function here asks an
object for anything by a name, so no template reaches a method, a class or an address.

Each pays for its work before it does it: steps stand for time and room for memory. Both are counted
and neither is measured, so a template gives the same text, or the same error, in every turn and on
every machine. The prices are such that a component takes under 5 ms of the game's thread and under
1 MB, whatever is written in it.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.prompt.templates.work import Meter

MAX_FILLED: Final = 200_000
"""Characters that a text may have when its names are filled in."""
MAX_STEPS: Final = 10_000
"""Parts of a template that one rendering may go through, as far as is known when it is saved."""
STEP_WORK: Final = 3
"""Units of work for one step."""
MAX_MADE: Final = 40_000
"""Characters that filters, `+` and loops may make on the way."""
CHARACTERS_A_STEP: Final = 20
# What a value takes beside its characters, in characters of four bytes.
_HEAD: Final = 16


class Spending:
    """What is left of one rendering, and where it stands: its line, names, loop and text."""

    __slots__ = ("_meter", "line", "loop", "names", "output", "room", "written")

    def __init__(self, names: dict[str, object], meter: Meter) -> None:
        self.names = names
        self._meter = meter
        self.room = MAX_MADE
        self.output = MAX_FILLED
        self.written: list[str] = []
        self.line: int | None = None
        self.loop = (0, 0)
        """Index in the innermost loop, and how often that runs."""

    def spend(self, steps: int) -> None:
        """Pay for work before it is done; TemplateError where it cannot be paid."""
        self._meter.pay(steps * STEP_WORK)

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


_COMPARED_A_STEP: Final = 250  # of a text that is looked for in another one
_STRIPPED_A_STEP: Final = 100
_QUOTED: Final = 3  # letters that writing a list out can make of one letter
_SORT_STEPS: Final = 4
_WORD: Final = re.compile(r"[^-\s({\[<]+")


class Missing:
    """What a name, an item or a condition without a value gives; `problem` says what is wrong."""

    __slots__ = ("problem",)

    def __init__(self, problem: str) -> None:
        self.problem = problem


Operation = Callable[..., object]
_Items = str | list[object] | tuple[object, ...] | range


def as_text(value: object, run: Spending) -> str:
    """The value as it is written into the text."""
    if isinstance(value, str):
        return value
    _pay_for_quoting(value, run)
    return str(value)


def items(value: object, what: str) -> _Items:
    """The value where it is a sequence; TemplateError that `what` needs one."""
    if isinstance(value, str | list | tuple | range):
        return value
    raise TemplateError(f"{what} needs a text or a list, and this is {_kind(value)}")


def item(value: object, index: object, run: Spending) -> object:
    """The item of a text or a list at an index; Missing where it has none there."""
    found = items(value, "[...]")
    if isinstance(index, bool) or not isinstance(index, int):
        raise TemplateError(f"[...] takes a whole number, and this is {_kind(index)}")
    if not -len(found) <= index < len(found):
        return Missing(f"there is no item {index} in {_kind(value)} of {len(found)}")
    return found[index]


def added(left: object, right: object, run: Spending) -> object:
    """The sum of two numbers, or two texts or lists one after the other."""
    if isinstance(left, str) and isinstance(right, str):
        run.make(len(left) + len(right))
        return left + right
    if isinstance(left, list) and isinstance(right, list):
        run.make(2 * (len(left) + len(right)))
        return left + right
    return _number(left, "+") + _number(right, "+")


def subtracted(left: object, right: object, run: Spending) -> object:
    """The difference of two numbers."""
    return _number(left, "-") - _number(right, "-")


def negated(value: object) -> object:
    """The number with the other sign."""
    return -_number(value, "-")


def _equal(left: object, right: object, run: Spending) -> bool:
    _pay_for_reading(left, run)
    _pay_for_reading(right, run)
    return left == right


def _contained(left: object, right: object, run: Spending) -> bool:
    found = items(right, "in")
    if isinstance(found, str):
        if not isinstance(left, str):
            raise TemplateError(f"in looks for a text in a text, and this is {_kind(left)}")
        run.spend(1 + len(left) * len(found) // _COMPARED_A_STEP)
        return left in found
    run.spend(len(found))
    return any(_equal(left, one, run) for one in found)


def _turned_round(compare: Operation) -> Operation:
    return lambda left, right, run: not compare(left, right, run)


def _ordered(compare: Callable[..., bool], sign: str) -> Operation:
    def compared(left: object, right: object, run: Spending) -> bool:
        _pay_for_reading(left, run)
        _pay_for_reading(right, run)
        try:
            return compare(left, right)
        except TypeError as error:
            kinds = f"{_kind(left)} with {_kind(right)}"
            raise TemplateError(f"{sign} cannot compare {kinds}") from error

    return compared


COMPARISONS: Final[Mapping[str, Operation]] = {
    "eq": _equal,
    "ne": _turned_round(_equal),
    "lt": _ordered(operator.lt, "<"),
    "lteq": _ordered(operator.le, "<="),
    "gt": _ordered(operator.gt, ">"),
    "gteq": _ordered(operator.ge, ">="),
    "in": _contained,
    "notin": _turned_round(_contained),
}


def _title(value: object, run: Spending) -> str:
    text = as_text(value, run)
    run.spend(len(text) // 2)
    run.make(3 * len(text))  # its words are made one by one
    return _WORD.sub(lambda found: found[0][:1].upper() + found[0][1:].lower(), text)


def _remade(text: str, change: Callable[[str], str], run: Spending) -> str:
    run.read(text)
    run.make(len(text))
    changed = change(text)
    run.make(max(0, len(changed) - len(text)))  # some letters become three
    return changed


def _by(change: Callable[[str], str]) -> Operation:
    return lambda value, run: _remade(as_text(value, run), change, run)


def _trim(value: object, run: Spending, letters: object = None) -> str:
    text = as_text(value, run)
    if letters is not None and not isinstance(letters, str):
        raise TemplateError(f"trim takes a text, and this is {_kind(letters)}")
    run.spend(len(text) * len(letters or "") // _STRIPPED_A_STEP)
    return _remade(text, lambda written: written.strip(letters), run)


def _default(value: object, run: Spending, instead: object = "") -> object:
    return instead if isinstance(value, Missing) else value


def _join(value: object, run: Spending, separator: object = "") -> str:
    found = items(value, "join")
    run.spend(len(found))
    run.make(2 * len(found))
    texts = [as_text(one, run) for one in found]
    between = as_text(separator, run)
    length = sum(map(len, texts)) + len(between) * len(texts)
    run.make(length)
    return between.join(texts)


def _length(value: object, run: Spending) -> int:
    return len(items(value, "length"))


def _end(which: str, index: int) -> Operation:
    def end(value: object, run: Spending) -> object:
        found = items(value, which)
        return found[index] if found else Missing(f"there is no {which} item, nothing is in it")

    return end


def _sort(value: object, run: Spending, backwards: object = False) -> list[object]:
    listed = _listed(value, "sort", run)
    run.spend(_SORT_STEPS * len(listed))
    try:
        return sorted(listed, key=_folded, reverse=bool(backwards))  # type: ignore[arg-type]
    except TypeError as error:
        raise TemplateError("sort cannot compare all that is in the list") from error


def _unique(value: object, run: Spending, by_case: object = False) -> list[object]:
    seen: set[object] = set()
    kept: list[object] = []
    for one in _listed(value, "unique", run):
        if isinstance(one, list | tuple):
            raise TemplateError("unique takes a list of texts and numbers, and not of lists")
        same = one if by_case else _folded(one)
        if same not in seen:
            seen.add(same)
            kept.append(one)
    return kept


def _listed(value: object, what: str, run: Spending) -> list[object]:
    """The items as a list of their own; paid twice, as they are read in lower letters too."""
    found = items(value, what)
    run.spend(len(found))
    run.make(4 * len(found))
    for one in found:
        _pay_for_reading(one, run)
        run.make(len(one) if isinstance(one, str) else 1)
    return list(found)


def _folded(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


FILTERS: Final[Mapping[str, Operation]] = {
    "upper": _by(str.upper),
    "lower": _by(str.lower),
    "title": _title,
    "capitalize": _by(str.capitalize),
    "trim": _trim,
    "default": _default,
    "d": _default,
    "join": _join,
    "length": _length,
    "count": _length,
    "first": _end("first", 0),
    "last": _end("last", -1),
    "sort": _sort,
    "unique": _unique,
}
TAKE_NOTHING: Final = frozenset(
    {"upper", "lower", "title", "capitalize", "length", "count", "first", "last"}
)
"""The filters that take no argument; the others take one at most."""


def _divides(value: object, run: Spending, by: object) -> bool:
    divisor = _number(by, "divisibleby")
    if not divisor:
        raise TemplateError("divisibleby cannot divide by 0")
    return bool(_number(value, "divisibleby") % divisor == 0)


def _of_kind(*kinds: type) -> Operation:
    return lambda value, run: isinstance(value, kinds)


def _same(wanted: object) -> Operation:
    return lambda value, run: value is wanted


_SEQUENCES: Final = (str, list, tuple, range)
LENIENT_TESTS: Final[Mapping[str, Operation]] = {
    "defined": lambda value, run: not isinstance(value, Missing),
    "undefined": _of_kind(Missing),
    "none": _same(None),
    "true": _same(True),
    "false": _same(False),
    "boolean": _of_kind(bool),
    "integer": lambda value, run: isinstance(value, int) and not isinstance(value, bool),
    "float": _of_kind(float),
    "number": _of_kind(int, float),
    "string": _of_kind(str),
    "sequence": _of_kind(*_SEQUENCES),
    "iterable": _of_kind(*_SEQUENCES),
}
"""Tests that what is missing may be put to."""
_PLAIN_TESTS: Final[Mapping[str, Operation]] = {
    "odd": lambda value, run: _number(value, "odd") % 2 == 1,
    "even": lambda value, run: _number(value, "even") % 2 == 0,
    "lower": lambda value, run: _read(value, run).islower(),
    "upper": lambda value, run: _read(value, run).isupper(),
}


def _as_test(compare: Operation) -> Operation:
    return lambda value, run, other: compare(value, other, run)


_SPELLINGS: Final[Mapping[str, Sequence[str]]] = {
    "eq": ("==", "eq", "equalto"),
    "ne": ("!=", "ne"),
    "lt": ("<", "lt", "lessthan"),
    "lteq": ("<=", "le"),
    "gt": (">", "gt", "greaterthan"),
    "gteq": (">=", "ge"),
    "in": ("in",),
}
TESTS_OF_TWO: Final[Mapping[str, Operation]] = {"divisibleby": _divides} | {
    name: _as_test(COMPARISONS[sign]) for sign, names in _SPELLINGS.items() for name in names
}
"""Tests that take one argument; the others take none."""
TESTS: Final[Mapping[str, Operation]] = {**LENIENT_TESTS, **_PLAIN_TESTS, **TESTS_OF_TWO}


def _read(value: object, run: Spending) -> str:
    text = as_text(value, run)
    run.read(text)
    return text


def _pay_for_reading(value: object, run: Spending) -> None:
    """Pay for all there is in a value; the same list may stand in it a thousand times."""
    if isinstance(value, str):
        run.read(value)
    elif isinstance(value, list | tuple):
        run.spend(len(value))
        for one in value:
            _pay_for_reading(one, run)


def _pay_for_quoting(value: object, run: Spending) -> None:
    """Pay for writing out a value that is no text."""
    if isinstance(value, str):
        run.read(value)
        run.make(_QUOTED * len(value))
    elif isinstance(value, list | tuple):
        run.spend(len(value))
        run.make(4 * len(value))
        for one in value:
            _pay_for_quoting(one, run)
    else:
        run.make(1)


def _number(value: object, what: str) -> int | float:
    if isinstance(value, int | float):
        return value
    raise TemplateError(f"{what} cannot be used here: this is {_kind(value)} and no number")


def _kind(value: object) -> str:
    """What a value is, for messages to authors."""
    if isinstance(value, str):
        return "a text"
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return "a number" if isinstance(value, int | float) else "a list"
