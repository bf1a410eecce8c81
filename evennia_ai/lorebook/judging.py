"""Why one entry is awake or not: its conditions, asked in one fixed order.

Standard: Card V3, "Decorators". Conditions are combined with AND; `@@activate` counts in any case
but not against `enabled: false`, and wins over `@@dont_activate`. Gates bind constant entries too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from evennia_ai.lorebook.entries import LoreEntry
from evennia_ai.lorebook.matching import Key
from evennia_ai.lorebook.scanning import Wanted, Window

_SHOWN: Final = 6
_SHOWN_LENGTH: Final = 60


class Judgement(NamedTuple):
    """Whether an entry is awake, and why or why not."""

    awake: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the gates ask for: the active greeting, and how often the character has spoken."""

    greeting_index: int
    replies: int


def judge(
    entry: LoreEntry, wanted: Wanted, window: Window, *, depth: int, facts: Facts
) -> Judgement:
    """The judgement on `entry`, whose keys are looked for in the newest `depth` messages."""
    decided = _decided(entry)
    if decided is not None:
        return decided
    if barred := _barred(entry, facts):
        return Judgement(False, barred)
    woken = _woken(entry, wanted, window, depth)
    barred = _barred_by_keys(entry, wanted, window, depth) if woken.awake else ""
    return Judgement(False, barred) if barred else woken


def _decided(entry: LoreEntry) -> Judgement | None:
    """The judgement where it does not depend on the conversation."""
    if not entry.enabled:
        return Judgement(False, "disabled")
    if entry.refused:
        return Judgement(False, entry.refused)
    if entry.gates.forced:
        return Judgement(True, "@@activate")
    return Judgement(False, "@@dont_activate") if entry.gates.forbidden else None


def _barred(entry: LoreEntry, facts: Facts) -> str:
    """Which gate is shut, "" where none is."""
    gates, replies = entry.gates, facts.replies
    if gates.greeting is not None and gates.greeting != facts.greeting_index:
        return f"@@is_greeting {gates.greeting}: the greeting is {facts.greeting_index}"
    if gates.replies_from is not None and replies < gates.replies_from:
        return f"@@activate_only_after {gates.replies_from}: {_times(replies)} so far"
    if gates.every_replies is not None and replies % gates.every_replies:
        return f"@@activate_only_every {gates.every_replies}: {_times(replies)} so far"
    return ""


def _woken(entry: LoreEntry, wanted: Wanted, window: Window, depth: int) -> Judgement:
    if entry.constant:
        return Judgement(True, "constant")
    if not entry.keys:
        return Judgement(False, "has no keys")
    if not depth:
        return Judgement(False, "scan depth is 0: nothing is scanned")
    found = window.first(wanted.keys, depth=depth)
    if found is None:
        return Judgement(False, f"no key in the newest {_messages(depth)}")
    at, place = found
    reason = f"key {_quoted((entry.keys[at],))} {place}"
    if not wanted.secondary:
        return Judgement(True, reason)
    return _secondary(entry, wanted, window, depth, reason)


def _secondary(
    entry: LoreEntry, wanted: Wanted, window: Window, depth: int, reason: str
) -> Judgement:
    """The entry's logic over its secondary keys, once a key was found."""
    there, missing = _sorted_out(entry.secondary_keys, wanted.secondary, window, depth)
    needs, state, shown, awake = {
        "any": ("one of", "there", there, bool(there)),
        "all": ("all of", "missing", missing, not missing),
        "not_any": ("none of", "there", there, not there),
        "not_all": ("not all of", "there", there, bool(missing)),
    }[entry.logic]
    wish = f"{needs} {_quoted(entry.secondary_keys)}"
    if awake:
        return Judgement(True, f"{reason}, and {wish}")
    return Judgement(False, f"{reason}, but wants {wish}: {_quoted(shown) or 'none'} {state}")


def _sorted_out(
    texts: Iterable[str], keys: Iterable[Key], window: Window, depth: int
) -> tuple[list[str], list[str]]:
    """The texts of keys that are there, and of those that are not."""
    there: list[str] = []
    missing: list[str] = []
    for text, key in zip(texts, keys, strict=True):
        (missing if window.first((key,), depth=depth) is None else there).append(text)
    return there, missing


def _barred_by_keys(entry: LoreEntry, wanted: Wanted, window: Window, depth: int) -> str:
    for texts, keys in zip(entry.gates.additional, wanted.additional, strict=True):
        if window.first(keys, depth=depth) is None:
            return f"@@additional_keys: none of {_quoted(texts)} is there"
    excluded = window.first(wanted.excluded, depth=depth)
    if excluded is None:
        return ""
    at, place = excluded
    return f"@@exclude_keys: {_quoted((entry.gates.excluded[at],))} {place}"


def _quoted(texts: Sequence[str]) -> str:
    """Keys for a reason, the first few of them."""
    few = ", ".join(f"'{text[:_SHOWN_LENGTH]}'" for text in texts[:_SHOWN])
    return few if len(texts) <= _SHOWN else f"{few} and {len(texts) - _SHOWN} more"


def _times(replies: int) -> str:
    return "1 reply" if replies == 1 else f"{replies} replies"


def _messages(depth: int) -> str:
    return "message" if depth == 1 else f"{depth} messages"
