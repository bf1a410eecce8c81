"""Parse and edit decorators: the `@@` lines at the beginning of an entry's content.

Standard: Card V3, "Decorators".

A decorator is ignored if it is unknown or unsupported, if its value is invalid, or if another
decorator overrules it. Then the first usable `@@@` line below it, called a fallback, applies
instead. `@@` lines after other text are no decorators. Texts of players are never searched for
decorators.

A decorator overrules the field of the entry with the same meaning. So an edit of such a field must
edit the decorator. All other decorator lines stay as written. An edit tries at most `MAX_TRIES`
lines.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from evennia_ai.engine.foreign.documents import limit_notices, one_line
from evennia_ai.engine.text.normal_form import BLANK_CHARACTERS, LINE_END_CHARACTERS

# A decorator that applies to an entry: its name and its values.
Decorator = tuple[str, tuple[str, ...]]

_LINE: Final = re.compile(rf"[^{LINE_END_CHARACTERS}]*(?:\r\n|[{LINE_END_CHARACTERS}]|\Z)")
_DECORATOR: Final = re.compile(r"@@(@?)(?:([A-Za-z_]+)(?:[ \t]+(.*))?)?")
_WHOLE: Final = re.compile(r"-?[0-9]+")
_LARGEST: Final = 10**18

# The maximum number of keys on one line. A line with more keys is ignored.
MAX_KEYS: Final = 1000
POSITIONS: Final = ("before_desc", "after_desc", "personality", "scenario")
ROLES: Final = ("assistant", "system", "user")
LISTS: Final = frozenset({"additional_keys", "exclude_keys"})
REPEATABLE: Final = frozenset({"additional_keys"})
FLAGS: Final = frozenset(
    {
        "activate",
        "dont_activate",
        "dont_activate_after_match",
        "ignore_on_max_context",
        "keep_activate_after_match",
    }
)


@dataclass(frozen=True, slots=True)
class ParsedContent:
    """The content of an entry after parsing: the decorators that apply, and the text after them."""

    decorators: tuple[Decorator, ...]
    text: str
    notices: tuple[str, ...] = ()

    def value(self, name: str) -> str | None:
        """Return the first value of the decorator with this name; None if none applies."""
        return next((values[0] for known, values in self.decorators if known == name), None)

    def lists(self, name: str) -> list[tuple[str, ...]]:
        """Return the values of each decorator with this name that applies to the entry."""
        return [values for known, values in self.decorators if known == name]

    def has(self, name: str) -> bool:
        """True if a decorator with this name applies to the entry."""
        return any(known == name for known, _ in self.decorators)


@dataclass(frozen=True, slots=True)
class _Line:
    """One `@@` line as written. `problem` says why it cannot be used, or is ""."""

    name: str
    values: tuple[str, ...]
    problem: str


# Decorators to ignore because the place of use lacks what they need, each with the reason.
Absent = Mapping[str, str]
NO_ICONS: Final[Absent] = {"is_user_icon": "needs the user's icon, which is unknown here"}
_NONE_ABSENT: Final[Absent] = {}


def parse_decorators(content: str, *, absent: Absent = _NONE_ABSENT) -> ParsedContent:
    """Split an entry's content into the decorators that apply and the text after them.

    A decorator that cannot be used becomes a notice. No content raises an exception.

    Args:
        content: The content as the author wrote it.
        absent: Decorators that have no effect where the entry is used, each with the reason.
    """
    if not has_decorators(content):
        return ParsedContent((), content)
    lines, text = head_lines(content)
    chains = list(_chains(line for written in lines if (line := written.strip(BLANK_CHARACTERS))))
    if absent:
        chains = [
            [replace(one, problem=absent.get(one.name, one.problem)) for one in chain]
            for chain in chains
        ]
    chosen, notices = _applicable_lines(chains, overruled=frozenset())
    overruled = _overruled_names({line.name for line in chosen})
    if overruled:
        chosen, notices = _applicable_lines(chains, overruled=overruled)
    decorators = tuple((line.name, line.values) for line in chosen)
    return ParsedContent(decorators, text, limit_notices(notices))


def whole_number(text: str) -> int:
    """Convert the value of a numeric decorator to an int between -`_LARGEST` and `_LARGEST`.

    The caller must have checked that the value is a whole number.
    """
    if len(text) > 18:
        return -_LARGEST if text.startswith("-") else _LARGEST
    return int(text)


def has_decorators(content: str) -> bool:
    """True if the content begins with a `@@` line. Blank and invisible characters are ignored."""
    return content.lstrip(BLANK_CHARACTERS).startswith("@@")


def head_lines(content: str) -> tuple[list[str], str]:
    """Split an entry's content into the `@@` lines at its beginning and the text after them.

    Blank lines between and after the `@@` lines belong to them.
    """
    lines: list[str] = []
    at = 0
    while at < len(content):
        found = _LINE.match(content, at)
        assert found is not None  # the pattern matches anywhere, even at an empty line
        line = found[0].strip(BLANK_CHARACTERS)
        if line and not line.startswith("@@"):
            break
        lines.append(found[0])
        at = found.end()
    return lines, content[at:]


def _chains(lines: Iterable[str]) -> Iterator[list[_Line]]:
    """Yield each `@@` line with its fallbacks, which are the `@@@` lines below it.

    A `@@@` line without a `@@` line above it is yielded alone, with a problem.
    """
    chain: list[_Line] = []
    for text in lines:
        is_fallback = text.startswith("@@@")
        if chain and not is_fallback:
            yield chain
            chain = []
        if is_fallback and not chain:
            chain = [_Line(text, (), "has no decorator above it")]
        else:
            chain.append(_parse_line(text))
    if chain:
        yield chain


def _parse_line(text: str) -> _Line:
    found = _DECORATOR.fullmatch(text)
    if found is None or found[2] is None:
        return _Line(text, (), "is not a decorator")
    name, rest = found[2], (found[3] or "").strip()
    values = _split_values(name, rest)
    return _Line(name, values, _value_problem(name, values))


def _split_values(name: str, rest: str) -> tuple[str, ...]:
    if name in FLAGS:
        return ()
    if name in LISTS:
        parts = rest.split(",", MAX_KEYS)
        return tuple([value for part in parts if (value := part.strip())])
    return (rest,) if rest else ()


def _value_problem(name: str, values: tuple[str, ...]) -> str:
    if name in _UNSUPPORTED:
        return _UNSUPPORTED[name]
    wanted = _WANTED.get(name)
    if wanted is None:
        return "is unknown"
    check, words = wanted
    return "" if check(values) else f"needs {words}"


def _applicable_lines(
    chains: Iterable[list[_Line]], *, overruled: frozenset[str]
) -> tuple[list[_Line], list[str]]:
    """Return the decorator lines that apply, and notices about the other lines.

    Of a decorator and its fallbacks, the first usable line applies. Of several applicable lines
    with the same name, the first one applies.
    """
    chosen: list[_Line] = []
    notices: list[str] = []
    taken: set[str] = set()
    for chain in chains:
        line = _first_usable(chain, overruled, notices)
        if line is None:
            continue
        if line.name in taken and line.name not in REPEATABLE:
            notices.append(f"@@{line.name} occurs twice; the first one counts")
            continue
        taken.add(line.name)
        chosen.append(line)
    return chosen, notices


def _first_usable(
    chain: list[_Line], overruled: frozenset[str], notices: list[str]
) -> _Line | None:
    for line in chain:
        if line.problem:
            notices.append(
                f"@@{one_line(line.name.lstrip('@')[:60])} {line.problem}; it is ignored"
            )
        elif line.name in overruled:
            over = " or ".join(f"@@{name}" for name in _OVERRULED_BY[line.name])
            notices.append(f"@@{line.name} is ignored next to {over}")
        else:
            return line
    return None


def _overruled_names(names: set[str]) -> frozenset[str]:
    return frozenset(
        name for name, over in _OVERRULED_BY.items() if name in names and not names.isdisjoint(over)
    )


ValueCheck = Callable[[tuple[str, ...]], bool]


def _is_whole_from(low: int | None) -> ValueCheck:
    def check(values: tuple[str, ...]) -> bool:
        if not values or not _WHOLE.fullmatch(values[0]):
            return False
        return low is None or whole_number(values[0]) >= low

    return check


def _is_one_of(choices: Iterable[str]) -> ValueCheck:
    known = frozenset(choices)
    return lambda values: bool(values) and values[0] in known


def _is_list_of_keys(values: tuple[str, ...]) -> bool:
    return 0 < len(values) <= MAX_KEYS


def _accept_any(values: tuple[str, ...]) -> bool:
    return True


# The supported decorators: for each name a check of the values, and a text that describes valid
# values.
_WANTED: Final[Mapping[str, tuple[ValueCheck, str]]] = {
    "activate": (_accept_any, ""),
    "activate_only_after": (_is_whole_from(0), "a whole number, 0 or more"),
    "activate_only_every": (_is_whole_from(1), "a whole number, 1 or more"),
    "additional_keys": (_is_list_of_keys, f"1 to {MAX_KEYS} keys"),
    "depth": (_is_whole_from(None), "a whole number"),
    "dont_activate": (_accept_any, ""),
    "exclude_keys": (_is_list_of_keys, f"1 to {MAX_KEYS} keys"),
    "dont_activate_after_match": (_accept_any, ""),
    "ignore_on_max_context": (_accept_any, ""),
    "is_greeting": (_is_whole_from(0), "a whole number, 0 or more"),
    "is_user_icon": (_is_list_of_keys, "the name of an icon"),
    "keep_activate_after_match": (_accept_any, ""),
    "position": (_is_one_of(POSITIONS), "one of " + ", ".join(POSITIONS)),
    "reverse_depth": (_is_whole_from(None), "a whole number"),
    "role": (_is_one_of(ROLES), "one of " + ", ".join(ROLES)),
    "scan_depth": (_is_whole_from(0), "a whole number, 0 or more"),
}
_OTHER_KIND = "is for text completion, and this package sends chats"
# Decorators of the standard that this package does not support, each with the reason.
_UNSUPPORTED: Final[Mapping[str, str]] = {
    "disable_ui_prompt": "is not supported: a card cannot switch off the game's own prompts",
    "instruct_depth": _OTHER_KIND,
    "instruct_scan_depth": _OTHER_KIND,
    "reverse_instruct_depth": _OTHER_KIND,
}
# For each decorator, the decorators that overrule it. It is ignored if one of them applies.
_OVERRULED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "depth": ("position",),
    "reverse_depth": ("position", "depth"),
    "dont_activate": ("activate",),
}


MAX_TRIES: Final = 20


def with_decorator_value(content: str, name: str, value: str) -> str:
    """Return `content` with a new value in the line that applies the decorator of this name."""
    lines, rest = head_lines(content)
    for at in islice(_candidate_lines(lines, content, name), MAX_TRIES):
        written = lines[at]
        mark = "@@@" if written.lstrip(BLANK_CHARACTERS).startswith("@@@") else "@@"
        end = written[len(written.rstrip(LINE_END_CHARACTERS)) :]
        changed = "".join([*lines[:at], f"{mark}{name} {value}{end}", *lines[at + 1 :], rest])
        if parse_decorators(changed).value(name) == value:
            return changed
    return content


def without_decorators(content: str, names: Sequence[str]) -> str:
    """Return `content` without the lines that apply decorators of these names.

    Removing a `@@` line also removes its fallbacks. A fallback is removed without the other lines.
    """
    for name in names:
        for _ in range(MAX_TRIES):
            shorter = _remove_one(content, name)
            if shorter == content:
                break
            content = shorter
    return content


def _remove_one(content: str, name: str) -> str:
    """Return `content` without the line that applies the decorator of this name."""
    lines, rest = head_lines(content)
    gone = set[int]()
    for at in _candidate_lines(lines, content, name):
        gone.update(range(at, _end_of_chain(lines, at)))
    return "".join([*(line for at, line in enumerate(lines) if at not in gone), rest])


def _candidate_lines(lines: Sequence[str], content: str, name: str) -> Iterator[int]:
    """Yield the indexes of the lines that may apply this decorator. Only one of them does."""
    counting = [found for found in parse_decorators(content).decorators if found[0] == name][:1]
    alone = ("@@" + line.strip(BLANK_CHARACTERS).lstrip("@") for line in lines)
    return (
        at
        for at, line in enumerate(alone)
        if counting and name in line and list(parse_decorators(line).decorators) == counting
    )


def _end_of_chain(lines: Sequence[str], at: int) -> int:
    """Return the index after the line at `at` and its `@@@` fallbacks."""
    end = at + 1
    if lines[at].lstrip(BLANK_CHARACTERS).startswith("@@@"):
        return end
    while end < len(lines) and (lines[end].strip(BLANK_CHARACTERS) or "@@@").startswith("@@@"):
        end += 1
    return end
