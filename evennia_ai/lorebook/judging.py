"""Why one entry is awake or not: its conditions, asked in one fixed order.

Standard: Card V3, "Decorators". Conditions are combined with AND; `@@activate` counts in any case
but not against `enabled: false`, and wins over `@@dont_activate`. Gates bind constant entries too.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from evennia_ai.lorebook.entries import LoreEntry
from evennia_ai.lorebook.matching import Key
from evennia_ai.lorebook.scanning import Wanted, Window


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
    barred = _barred_by_keys(wanted, window, depth) if woken.awake else ""
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
    reason = f"key '{found[0].text}' {found[1]}"
    if not wanted.secondary:
        return Judgement(True, reason)
    return _secondary(entry, wanted, window, depth, reason)


def _secondary(
    entry: LoreEntry, wanted: Wanted, window: Window, depth: int, reason: str
) -> Judgement:
    """The entry's logic over its secondary keys, once a key was found."""
    there = _there(wanted.secondary, window, depth)
    missing = [key for key in wanted.secondary if key not in there]
    needs, shown, awake = {
        "any": ("one of", there, bool(there)),
        "all": ("all of", missing, not missing),
        "not_any": ("none of", there, not there),
        "not_all": ("not all of", there, bool(missing)),
    }[entry.logic]
    names = ", ".join(f"'{key.text}'" for key in wanted.secondary)
    if awake:
        return Judgement(True, f"{reason}, and {needs} {names}")
    found = ", ".join(f"'{key.text}'" for key in shown) or "none"
    state = "missing" if entry.logic == "all" else "there"
    return Judgement(False, f"{reason}, but wants {needs} {names}: {found} {state}")


def _barred_by_keys(wanted: Wanted, window: Window, depth: int) -> str:
    for line in wanted.additional:
        if window.first(line, depth=depth) is None:
            names = ", ".join(f"'{key.text}'" for key in line)
            return f"@@additional_keys: none of {names} is there"
    excluded = window.first(wanted.excluded, depth=depth)
    if excluded is not None:
        return f"@@exclude_keys: '{excluded[0].text}' {excluded[1]}"
    return ""


def _there(keys: Iterable[Key], window: Window, depth: int) -> list[Key]:
    return [key for key in keys if window.first((key,), depth=depth) is not None]


def _times(replies: int) -> str:
    return "1 reply" if replies == 1 else f"{replies} replies"


def _messages(depth: int) -> str:
    return "message" if depth == 1 else f"{depth} messages"
