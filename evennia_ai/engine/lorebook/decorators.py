"""The `@@` lines at the head of an entry's content: parsed, chosen, cut off.

Standard: Card V3, "Decorators". A decorator that is unknown, not supported, has a value it cannot
have or is overruled by another one counts as absent, and the first usable `@@@` line under it takes
its place. Only the head block counts; player text never comes here.

Decorators win over fields, so who changes a field must change the line that overrules it; every
other line, known or not, stays as it is written. Heads of hundreds of such lines are left alone.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from evennia_ai.engine.foreign.documents import limit_notices, one_line
from evennia_ai.engine.text.normal_form import BLANK_CHARACTERS, LINE_END_CHARACTERS

# Name and values of one decorator that counts.
Decorator = tuple[str, tuple[str, ...]]

_LINE: Final = re.compile(rf"[^{LINE_END_CHARACTERS}]*(?:\r\n|[{LINE_END_CHARACTERS}]|\Z)")
_DECORATOR: Final = re.compile(r"@@(@?)(?:([A-Za-z_]+)(?:[ \t]+(.*))?)?")
_WHOLE: Final = re.compile(r"-?[0-9]+")
_LARGEST: Final = 10**18

# Values of one line of keys; what is over it makes the line count for nothing.
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
class Decorated:
    """Content taken apart: the decorators that count, in their order, and the text after them."""

    decorators: tuple[Decorator, ...]
    text: str
    notices: tuple[str, ...] = ()

    def value(self, name: str) -> str | None:
        """The value of a decorator that counts, None where it does not."""
        return next((values[0] for known, values in self.decorators if known == name), None)

    def lists(self, name: str) -> list[tuple[str, ...]]:
        """The values of each line of this name that counts."""
        return [values for known, values in self.decorators if known == name]

    def has(self, name: str) -> bool:
        """Whether a decorator of this name counts."""
        return any(known == name for known, _ in self.decorators)


@dataclass(frozen=True, slots=True)
class _Line:
    """One `@@` line as written; `problem` says why it cannot count, "" where it can."""

    name: str
    values: tuple[str, ...]
    problem: str


# Names that cannot count where a book is read, each with the reason.
Absent = Mapping[str, str]
NO_ICONS: Final[Absent] = {"is_user_icon": "needs the icon of the user, which is not known here"}
_NONE_ABSENT: Final[Absent] = {}


def read_decorators(content: str, *, absent: Absent = _NONE_ABSENT) -> Decorated:
    """`content` taken apart. Never raises: what cannot be read is a notice."""
    if not has_decorators(content):
        return Decorated((), content)
    lines, text = head_lines(content)
    chains = list(_chains(line for written in lines if (line := written.strip(BLANK_CHARACTERS))))
    if absent:
        chains = [[_without(line, absent) for line in chain] for chain in chains]
    chosen, notices = _chosen(chains, overruled=frozenset())
    overruled = _overruled({line.name for line in chosen})
    if overruled:
        chosen, notices = _chosen(chains, overruled=overruled)
    decorators = tuple((line.name, line.values) for line in chosen)
    return Decorated(decorators, text, limit_notices(notices))


def _without(line: _Line, absent: Absent) -> _Line:
    return replace(line, problem=absent[line.name]) if line.name in absent else line


def whole_number(text: str) -> int:
    """The number a checked value stands for; one of more digits than any count has is cut."""
    if len(text) > 18:
        return -_LARGEST if text.startswith("-") else _LARGEST
    return int(text)


def has_decorators(content: str) -> bool:
    """True if the content begins with a line of `@@`, after blanks and unseen characters."""
    return content.lstrip(BLANK_CHARACTERS).startswith("@@")


def head_lines(content: str) -> tuple[list[str], str]:
    """The lines of the head as they are written, blank ones too, and what comes after them."""
    lines: list[str] = []
    at = 0
    while at < len(content):
        found = _LINE.match(content, at)
        assert found is not None  # the pattern matches the empty line too
        line = found[0].strip(BLANK_CHARACTERS)
        if line and not line.startswith("@@"):
            break
        lines.append(found[0])
        at = found.end()
    return lines, content[at:]


def _chains(lines: Iterable[str]) -> Iterator[list[_Line]]:
    """Each decorator with its fallbacks, first to last; a fallback of nothing stands alone."""
    chain: list[_Line] = []
    for text in lines:
        is_fallback = text.startswith("@@@")
        if chain and not is_fallback:
            yield chain
            chain = []
        if is_fallback and not chain:
            chain = [_Line(text, (), "is a fallback of nothing")]
        else:
            chain.append(_read(text))
    if chain:
        yield chain


def _read(text: str) -> _Line:
    found = _DECORATOR.fullmatch(text)
    if found is None or found[2] is None:
        return _Line(text, (), "is no decorator")
    name, rest = found[2], (found[3] or "").strip()
    values = _values(name, rest)
    return _Line(name, values, _problem(name, values))


def _values(name: str, rest: str) -> tuple[str, ...]:
    if name in FLAGS:
        return ()
    if name in LISTS:
        parts = rest.split(",", MAX_KEYS)
        return tuple([value for part in parts if (value := part.strip())])
    return (rest,) if rest else ()


def _problem(name: str, values: tuple[str, ...]) -> str:
    if name in _UNSUPPORTED:
        return _UNSUPPORTED[name]
    wanted = _WANTED.get(name)
    if wanted is None:
        return "is not known"
    check, words = wanted
    return "" if check(values) else f"wants {words}"


def _chosen(
    chains: Iterable[list[_Line]], *, overruled: frozenset[str]
) -> tuple[list[_Line], list[str]]:
    """The lines that count: the first usable one of each chain, the first of each name."""
    chosen: list[_Line] = []
    notices: list[str] = []
    taken: set[str] = set()
    for chain in chains:
        line = _usable(chain, overruled, notices)
        if line is None:
            continue
        if line.name in taken and line.name not in REPEATABLE:
            notices.append(f"@@{line.name} is there twice; the first counts")
            continue
        taken.add(line.name)
        chosen.append(line)
    return chosen, notices


def _usable(chain: list[_Line], overruled: frozenset[str], notices: list[str]) -> _Line | None:
    for line in chain:
        if line.problem:
            notices.append(
                f"@@{one_line(line.name.lstrip('@')[:60])} {line.problem}; it is ignored"
            )
        elif line.name in overruled:
            over = " or ".join(f"@@{name}" for name in _OVERRULED_BY[line.name])
            notices.append(f"@@{line.name} is ignored beside {over}")
        else:
            return line
    return None


def _overruled(names: set[str]) -> frozenset[str]:
    return frozenset(
        name for name, over in _OVERRULED_BY.items() if name in names and not names.isdisjoint(over)
    )


ValueCheck = Callable[[tuple[str, ...]], bool]


def _whole_from(low: int | None) -> ValueCheck:
    def check(values: tuple[str, ...]) -> bool:
        if not values or not _WHOLE.fullmatch(values[0]):
            return False
        return low is None or whole_number(values[0]) >= low

    return check


def _among(choices: Iterable[str]) -> ValueCheck:
    known = frozenset(choices)
    return lambda values: bool(values) and values[0] in known


def _some(values: tuple[str, ...]) -> bool:
    return 0 < len(values) <= MAX_KEYS


def _anything(values: tuple[str, ...]) -> bool:
    return True


# What this room does: name -> check of the values, and the words for what is wanted.
_WANTED: Final[Mapping[str, tuple[ValueCheck, str]]] = {
    "activate": (_anything, ""),
    "activate_only_after": (_whole_from(0), "a whole number, 0 or more"),
    "activate_only_every": (_whole_from(1), "a whole number, 1 or more"),
    "additional_keys": (_some, f"1 to {MAX_KEYS} keys"),
    "depth": (_whole_from(None), "a whole number"),
    "dont_activate": (_anything, ""),
    "exclude_keys": (_some, f"1 to {MAX_KEYS} keys"),
    "dont_activate_after_match": (_anything, ""),
    "ignore_on_max_context": (_anything, ""),
    "is_greeting": (_whole_from(0), "a whole number, 0 or more"),
    "is_user_icon": (_some, "the name of an icon"),
    "keep_activate_after_match": (_anything, ""),
    "position": (_among(POSITIONS), "one of " + ", ".join(POSITIONS)),
    "reverse_depth": (_whole_from(None), "a whole number"),
    "role": (_among(ROLES), "one of " + ", ".join(ROLES)),
    "scan_depth": (_whole_from(0), "a whole number, 0 or more"),
}
_OTHER_KIND = "is for prompts that are one text, not messages"
# Decorators of the standard that are not done here, and why.
_UNSUPPORTED: Final[Mapping[str, str]] = {
    "disable_ui_prompt": "is never honoured: a card cannot switch off the game's own prompts",
    "instruct_depth": _OTHER_KIND,
    "instruct_scan_depth": _OTHER_KIND,
    "reverse_instruct_depth": _OTHER_KIND,
}
# Which others, where they count, make a decorator count for nothing.
_OVERRULED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "depth": ("position",),
    "reverse_depth": ("position", "depth"),
    "dont_activate": ("activate",),
}


MAX_TRIES: Final = 20


def with_value(content: str, name: str, value: str) -> str:
    """`content` where the decorator of this name that counts has another value."""
    lines, rest = head_lines(content)
    for at in islice(_candidates(lines, content, name), MAX_TRIES):
        written = lines[at]
        mark = "@@@" if written.lstrip(BLANK_CHARACTERS).startswith("@@@") else "@@"
        end = written[len(written.rstrip(LINE_END_CHARACTERS)) :]
        changed = "".join([*lines[:at], f"{mark}{name} {value}{end}", *lines[at + 1 :], rest])
        if read_decorators(changed).value(name) == value:
            return changed
    return content


def without(content: str, names: Sequence[str]) -> str:
    """`content` where no decorator of these names counts any more.

    A decorator goes with the fallbacks under it, a fallback goes alone.
    """
    for name in names:
        for _ in range(MAX_TRIES):
            shorter = _one_less(content, name)
            if shorter == content:
                break
            content = shorter
    return content


def _one_less(content: str, name: str) -> str:
    """`content` without the lines that say what the decorator of this name says that counts."""
    lines, rest = head_lines(content)
    gone = set[int]()
    for at in _candidates(lines, content, name):
        gone.update(range(at, _end(lines, at)))
    return "".join([*(line for at, line in enumerate(lines) if at not in gone), rest])


def _candidates(lines: Sequence[str], content: str, name: str) -> Iterator[int]:
    """Where the line may stand that says the decorator of this name that counts."""
    counting = [found for found in read_decorators(content).decorators if found[0] == name][:1]
    alone = ("@@" + line.strip(BLANK_CHARACTERS).lstrip("@") for line in lines)
    return (at for at, line in enumerate(alone) if name in line and _says(line, counting))


def _says(line: str, counting: Sequence[object]) -> bool:
    return bool(counting) and list(read_decorators(line).decorators) == counting


def _end(lines: Sequence[str], at: int) -> int:
    """Where what goes with the line at `at` ends."""
    end = at + 1
    if lines[at].lstrip(BLANK_CHARACTERS).startswith("@@@"):
        return end
    while end < len(lines) and (lines[end].strip(BLANK_CHARACTERS) or "@@@").startswith("@@@"):
        end += 1
    return end
