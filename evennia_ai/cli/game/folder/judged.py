"""What becomes of each thing in a folder, and the report on it, as text and as JSON."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from evennia_ai.engine.text.columns import escape_controls, wrap_hanging

Fate = Literal["take", "taken", "there", "left out"]
MOST_TOLD: Final = 200
"""The most things that the text lists one by one. The JSON object lists all of them."""
_HEAD: Final = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One thing of a folder: what it would be in the game, or why it is left out."""

    kind: str
    where: str
    """The file, and which of several things in it."""
    name: str = ""
    """Its name in the game."""
    fate: Fate
    why: str = ""
    notices: tuple[str, ...] = ()
    """What in it has no effect in this program."""
    write: Callable[[], object] | None = field(default=None, repr=False, compare=False)
    """Imports the thing whole or not at all. None if there is nothing to import."""

    def without_write(self) -> "Judged":
        """Return a copy without `write`, so that the picture of a card is not kept in memory."""
        return replace(self, write=None)


def left_out(kind: str, where: str, why: object, *, name: str = "") -> Judged:
    """Return a thing that is left out, with the reason."""
    return Judged(kind=kind, where=where, name=name, fate="left out", why=str(why))


def counts_of(judged: Sequence[Judged]) -> dict[str, dict[str, int]]:
    """Return, for each kind, how many things have which fate, in the order of the kinds."""
    counts: dict[str, dict[str, int]] = {}
    for one in judged:
        fates = counts.setdefault(one.kind, {})
        fates[one.fate] = fates.get(one.fate, 0) + 1
    return counts


def report_object(folder: Path, judged: Sequence[Judged], *, is_written: bool) -> dict[str, Any]:
    """Return the report as `--json` prints it."""
    return {
        "folder": str(folder),
        "written": is_written,
        "counts": counts_of(judged),
        "items": [
            {
                "kind": one.kind,
                "file": one.where,
                "name": one.name,
                "fate": one.fate,
                "why": one.why,
                "notices": list(one.notices),
            }
            for one in judged
        ],
    }


def report_lines(folder: Path, judged: Sequence[Judged], *, is_written: bool) -> Iterator[str]:
    """Yield the report for people: the counts, then what is left out or incomplete, and why."""
    yield escape_controls(f"{folder}:")
    for kind, fates in counts_of(judged).items():
        told = ", ".join(f"{count} {_IN_WORDS.get(fate, fate)}" for fate, count in fates.items())
        yield f"  {kind:{_HEAD}}{told}"
    told_of = [one for one in judged if one.fate == "left out" or one.notices]
    if told_of:
        yield ""
        yield "Left out, or imported with a notice:"
    for one in told_of[:MOST_TOLD]:
        why = "; ".join(filter(None, (one.why, *one.notices)))
        yield from wrap_hanging(f"  {one.where}: {why}")
    if len(told_of) > MOST_TOLD:
        yield f"  and {len(told_of) - MOST_TOLD} more; --json has all"
    yield ""
    yield _END[is_written]


_IN_WORDS: Final = {"take": "to import", "taken": "imported", "there": "already there"}
_END: Final = {
    False: "Nothing was written. The same command with --yes imports what can be imported.",
    True: "Cards wait for card/approve in the game, presets for preset/approve, one by one.",
}
