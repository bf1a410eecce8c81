"""What templates with logic can do with values: filters, tests, comparisons, items, sums.

A value is a text, a number, a truth value, nothing, or a list of these. No function here asks an
object for anything by a name, so no template reaches a method, a class or an address; each pays
for its work before it does it.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from evennia_ai.errors import TemplateError
from evennia_ai.prompt.templates.macros import Spending

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


def _unequal(left: object, right: object, run: Spending) -> bool:
    return not _equal(left, right, run)


def _contained(left: object, right: object, run: Spending) -> bool:
    found = items(right, "in")
    if isinstance(found, str):
        if not isinstance(left, str):
            raise TemplateError(f"in looks for a text in a text, and this is {_kind(left)}")
        run.spend(1 + len(left) * len(found) // _COMPARED_A_STEP)
        return left in found
    run.spend(len(found))
    return any(_equal(left, one, run) for one in found)


def _not_contained(left: object, right: object, run: Spending) -> bool:
    return not _contained(left, right, run)


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


COMPARISONS: Final[Mapping[str, Operation]] = MappingProxyType(
    {
        "eq": _equal,
        "ne": _unequal,
        "lt": _ordered(operator.lt, "<"),
        "lteq": _ordered(operator.le, "<="),
        "gt": _ordered(operator.gt, ">"),
        "gteq": _ordered(operator.ge, ">="),
        "in": _contained,
        "notin": _not_contained,
    }
)


def _upper(value: object, run: Spending) -> str:
    return _remade(as_text(value, run), str.upper, run)


def _lower(value: object, run: Spending) -> str:
    return _remade(as_text(value, run), str.lower, run)


def _capitalize(value: object, run: Spending) -> str:
    return _remade(as_text(value, run), str.capitalize, run)


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


def _first(value: object, run: Spending) -> object:
    found = items(value, "first")
    return found[0] if found else Missing("there is no first item, nothing is in it")


def _last(value: object, run: Spending) -> object:
    found = items(value, "last")
    return found[-1] if found else Missing("there is no last item, nothing is in it")


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


FILTERS: Final[Mapping[str, Operation]] = MappingProxyType(
    {
        "upper": _upper,
        "lower": _lower,
        "title": _title,
        "capitalize": _capitalize,
        "trim": _trim,
        "default": _default,
        "d": _default,
        "join": _join,
        "length": _length,
        "count": _length,
        "first": _first,
        "last": _last,
        "sort": _sort,
        "unique": _unique,
    }
)
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
    def is_one(value: object, run: Spending) -> bool:
        return isinstance(value, kinds)

    return is_one


def _same(wanted: object) -> Operation:
    def is_same(value: object, run: Spending) -> bool:
        return value is wanted

    return is_same


def _is_integer(value: object, run: Spending) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_lower(value: object, run: Spending) -> bool:
    return _read(value, run).islower()


def _is_upper(value: object, run: Spending) -> bool:
    return _read(value, run).isupper()


def _is_odd(value: object, run: Spending) -> bool:
    return bool(_number(value, "odd") % 2 == 1)


def _is_even(value: object, run: Spending) -> bool:
    return bool(_number(value, "even") % 2 == 0)


def _is_defined(value: object, run: Spending) -> bool:
    return not isinstance(value, Missing)


_SEQUENCES: Final = (str, list, tuple, range)
LENIENT_TESTS: Final[Mapping[str, Operation]] = MappingProxyType(
    {
        "defined": _is_defined,
        "undefined": _of_kind(Missing),
        "none": _same(None),
        "true": _same(True),
        "false": _same(False),
        "boolean": _of_kind(bool),
        "integer": _is_integer,
        "float": _of_kind(float),
        "number": _of_kind(int, float),
        "string": _of_kind(str),
        "sequence": _of_kind(*_SEQUENCES),
        "iterable": _of_kind(*_SEQUENCES),
    }
)
"""Tests that what is missing may be put to."""
_PLAIN_TESTS: Final[Mapping[str, Operation]] = {
    "odd": _is_odd,
    "even": _is_even,
    "lower": _is_lower,
    "upper": _is_upper,
}


def _turned(compare: Operation) -> Operation:
    def test(value: object, run: Spending, other: object) -> object:
        return compare(value, other, run)

    return test


_SPELLINGS: Final[Mapping[str, Sequence[str]]] = {
    "eq": ("==", "eq", "equalto"),
    "ne": ("!=", "ne"),
    "lt": ("<", "lt", "lessthan"),
    "lteq": ("<=", "le"),
    "gt": (">", "gt", "greaterthan"),
    "gteq": (">=", "ge"),
    "in": ("in",),
}
TESTS_OF_TWO: Final[Mapping[str, Operation]] = MappingProxyType(
    {"divisibleby": _divides}
    | {name: _turned(COMPARISONS[sign]) for sign, names in _SPELLINGS.items() for name in names}
)
"""Tests that take one argument; the others take none."""
TESTS: Final[Mapping[str, Operation]] = MappingProxyType(
    {**LENIENT_TESTS, **_PLAIN_TESTS, **TESTS_OF_TWO}
)


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
