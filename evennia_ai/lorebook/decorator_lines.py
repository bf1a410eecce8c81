"""Changes to the `@@` lines at the head of an entry's content, one line at a time.

Decorators win over fields, so who changes a field must change the line that overrules it. Every
other line, known or not, stays as it is written. Heads of hundreds of such lines are left alone.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from evennia_ai.lorebook.decorators import head_lines, read_decorators

MAX_TRIES: Final = 20


def with_value(content: str, name: str, value: str) -> str:
    """`content` where the decorator of this name that counts has another value."""
    lines, rest = head_lines(content)
    for at in islice(_candidates(lines, content, name), MAX_TRIES):
        written = lines[at]
        mark = "@@@" if written.lstrip().startswith("@@@") else "@@"
        end = written[len(written.rstrip("\r\n")) :]
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
    alone = ("@@" + line.strip().lstrip("@") for line in lines)
    return (at for at, line in enumerate(alone) if name in line and _says(line, counting))


def _says(line: str, counting: Sequence[object]) -> bool:
    return bool(counting) and list(read_decorators(line).decorators) == counting


def _end(lines: Sequence[str], at: int) -> int:
    """Where what goes with the line at `at` ends."""
    end = at + 1
    if lines[at].lstrip().startswith("@@@"):
        return end
    while end < len(lines) and (lines[end].strip() or "@@@").startswith("@@@"):
        end += 1
    return end
