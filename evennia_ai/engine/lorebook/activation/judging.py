"""The judgement of one entry in one pass: may it be active, and why.

`judge` asks the conditions in one fixed order. All of them must hold, for constant entries too
(Card V3, "Decorators"). Four things count in any case, each before the next: `enabled: false`,
`@@activate`, `@@dont_activate`, and `@@keep_activate_after_match` once an entry was active.
"""

from collections.abc import Iterable
from typing import Final, Literal

from evennia_ai.engine.lorebook.activation.candidate import (
    EntryReason,
    Judgement,
    excluded,
    key_and_logic,
    key_found,
    logic_unmet,
    no_key,
    only_in_movement,
    plain,
    quoted,
    resting,
    staying,
    times,
    too_early,
)
from evennia_ai.engine.lorebook.activation.timers import Timers
from evennia_ai.engine.lorebook.conditions import Facts, unmet
from evennia_ai.engine.lorebook.entry import NO_GATES, NO_TIMING, LoreEntry
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.lorebook.scan.entry_keys import ALWAYS, EntryKeys
from evennia_ai.engine.lorebook.scan.hit_cache import ANYWHERE, FoundKey
from evennia_ai.engine.lorebook.scan.window import Window
from evennia_ai.engine.prompt.memo import typed_frozen

PassKind = Literal["first", "recursion", "widened"]


@typed_frozen
class PassView:
    """What one entry is judged by: what of its book is in view, in which pass."""

    window: Window
    judged: dict[str, Judgement]
    """The last judgement that each key led to; all entries that have the key share it."""
    kind: PassKind
    level: int
    """The delay level that recursion has reached."""
    depth: int
    """The book's scan depth in this pass."""
    recursive: bool
    """Whether there is recursion at all."""
    sees_fed: bool
    """Whether texts of entries wake entries of this book."""
    rules: ActivationRules
    timers: Timers
    facts: Facts
    replies: int
    """How often the character has spoken."""


_FORCED: Final = Judgement(True, plain("@@activate"))
_CONSTANT: Final = Judgement(True, plain("constant"))
_KEPT: Final = Judgement(True, plain("@@keep_activate_after_match: was active before"))
_NO_KEYS: Final = Judgement(False, plain("has no keys"))
_BLIND: Final = Judgement(False, plain("scan depth is 0: nothing is scanned"))


def judge(entry: LoreEntry, keys: EntryKeys, view: PassView, *, identity: str) -> Judgement:
    """The judgement on `entry` in this pass."""
    if keys.keys_decide and not view.timers.sticky:
        return _woken_by_keys(entry, keys, view)
    decided = _decided(entry, view, identity)
    if decided is not None:
        return decided
    spell = view.timers.sticky.get(identity)
    woken = _STAYING if spell else _woken(entry, keys, view, identity)
    if not woken.is_candidate:
        return woken
    barred = _barred(entry, view, identity, is_sticky=spell is not None)
    barred = barred or _barred_by_keys(entry, keys, view)
    if barred is not None:
        return Judgement(False, barred)
    if spell is None:
        return woken
    clock = entry.timing.clock or view.rules.clock
    reason = EntryReason(staying, (spell.end, view.timers.now(entry.timing), clock))
    return Judgement(True, reason, sticky=True)


_STAYING: Final = Judgement(True, plain("sticky"), sticky=True)


def _decided(entry: LoreEntry, view: PassView, identity: str) -> Judgement | None:
    """The judgement where it counts in any case, whatever is said."""
    if not entry.enabled:
        return Judgement(False, plain("disabled"))
    if entry.refused:
        return Judgement(False, plain(entry.refused))
    gates, in_any_case = entry.gates, view.rules.flags.activate_in_any_case
    if gates.forced:
        return _FORCED if in_any_case else None
    if gates.forbidden:
        return Judgement(False, plain("@@dont_activate"))
    stays = gates.kept_after_match and not gates.never_after_match
    return _KEPT if stays and in_any_case and view.timers.matched(identity) else None


def _barred(
    entry: LoreEntry, view: PassView, identity: str, *, is_sticky: bool
) -> EntryReason | None:
    """Which condition beside the keys is not met, None where all are."""
    if entry.conditions and (problem := unmet(entry.conditions, view.facts)):
        return plain(problem)
    if entry.gates is not NO_GATES and (shut := _shut_gate(entry, view, identity)):
        return shut
    return _timed_out(entry, view, identity, is_sticky=is_sticky) or (
        None if is_sticky else _out_of_turn(entry, view)
    )


def _timed_out(
    entry: LoreEntry, view: PassView, identity: str, *, is_sticky: bool
) -> EntryReason | None:
    """The timer that keeps the entry silent."""
    timing, timers = entry.timing, view.timers
    clock = timing.clock or view.rules.clock
    if timing.delay and not view.rules.dry_run and timers.now(timing) < timing.delay:
        return EntryReason(too_early, (timers.now(timing), timing.delay, clock))
    if is_sticky:
        return None
    spell = timers.resting.get(identity)
    if spell:
        return EntryReason(resting, (spell.end, timers.now(timing), clock))
    for name in entry.grouping.names if timers.resting_groups else ():
        if spell := timers.resting_groups.get(name):
            now = timers.now(NO_TIMING)
            return EntryReason(resting, (spell.end, now, view.rules.clock, name))
    return None


def _out_of_turn(entry: LoreEntry, view: PassView) -> EntryReason | None:
    """Whether recursion keeps the entry out of this pass."""
    recursion = entry.recursion
    level = recursion.delay_level
    if level and (view.kind != "recursion" or level > view.level):
        reached = view.level if view.kind == "recursion" else 0
        return plain(f"sleeps until recursion reaches level {level}, it is at {reached}")
    if view.kind == "recursion" and recursion.excluded and view.recursive:
        return plain("texts of other entries do not wake it")
    return None


def _shut_gate(entry: LoreEntry, view: PassView, identity: str) -> EntryReason | None:
    """Which gate of the card standard is shut, None where none is."""
    gates, replies, rules = entry.gates, view.replies, view.rules
    greeting = rules.greeting_index
    if gates.greeting is not None and greeting is not None and gates.greeting != greeting:
        return plain(f"@@is_greeting {gates.greeting}: the greeting is {greeting}")
    if gates.replies_from is not None and replies < gates.replies_from:
        so_far = f"{times(replies)} so far"
        return plain(f"@@activate_only_after {gates.replies_from}: {so_far}")
    if gates.every_replies is not None and replies % gates.every_replies:
        so_far = f"{times(replies)} so far"
        return plain(f"@@activate_only_every {gates.every_replies}: {so_far}")
    if gates.user_icon is not None and rules.user_icon not in (None, gates.user_icon):
        return plain(f"@@is_user_icon {gates.user_icon}: the icon is {rules.user_icon}")
    if gates.never_after_match and view.timers.matched(identity):
        return plain("@@dont_activate_after_match: was active before")
    return None


def _woken(entry: LoreEntry, keys: EntryKeys, view: PassView, identity: str) -> Judgement:
    """Whether something wakes the entry: itself, what was before, or its keys."""
    if entry.constant:
        return _CONSTANT
    if entry.gates.forced:
        return _FORCED
    if entry.gates.kept_after_match and view.timers.matched(identity):
        return _KEPT
    if not keys.primary:
        return Judgement(False, plain(keys.refused)) if keys.refused else _NO_KEYS
    return _woken_by_keys(entry, keys, view)


def _woken_by_keys(entry: LoreEntry, keys: EntryKeys, view: PassView) -> Judgement:
    depth = _depth(entry, view)
    if depth > 0:
        first = view.window.first(keys.primary, entry, depth, sees_fed=view.sees_fed)
    else:
        first = _first_unseen(entry, keys, view)
    if first is None:
        unheard = view.window.unheard(keys.primary, entry, depth)
        if unheard is not None:
            return Judgement(False, EntryReason(only_in_movement, (unheard,)))
        if depth <= 0:
            return _BLIND
        return Judgement(False, EntryReason(no_key, (depth, keys.refused, keys.patterns)))
    at, found = first
    if keys.secondary and entry.selective:
        return _secondary(entry, keys, view, keys.texts[at], found)
    key = keys.texts[at]
    known = view.judged.get(key)
    if known is None or known.found is not found:
        known = view.judged[key] = Judgement(True, EntryReason(key_found, (key, found)), found)
    return known


def _first_unseen(entry: LoreEntry, keys: EntryKeys, view: PassView) -> tuple[int, FoundKey] | None:
    """The same for an entry that sees no message; some presets let it see nothing else either."""
    if view.rules.flags.depth_0_is_blind:
        return (keys.primary.index(ALWAYS), ANYWHERE) if ALWAYS in keys.primary else None
    return view.window.first(keys.primary, entry, 0, sees_fed=view.sees_fed)


def _depth(entry: LoreEntry, view: PassView) -> int:
    """How many messages the entry sees."""
    return view.depth if entry.scan_depth is None else entry.scan_depth


def _secondary(
    entry: LoreEntry, keys: EntryKeys, view: PassView, text: str, found: FoundKey
) -> Judgement:
    """The entry's logic over its secondary keys, once a key was found."""
    there, missing = _sorted_out(entry, keys, view)
    agrees, shown = {
        "any": (bool(there), there),
        "all": (not missing, missing),
        "not_any": (not there, there),
        "not_all": (bool(missing), there),
    }[entry.logic]
    facts = (text, found, entry.logic, keys.secondary_texts)
    if agrees:
        return Judgement(True, EntryReason(key_and_logic, facts), found)
    return Judgement(False, EntryReason(logic_unmet, (*facts, tuple(shown))))


def _sorted_out(entry: LoreEntry, keys: EntryKeys, view: PassView) -> tuple[list[str], list[str]]:
    """The secondary keys that are there, and those that are not."""
    there: list[str] = []
    missing: list[str] = []
    for text, number in zip(keys.secondary_texts, keys.secondary, strict=True):
        (there if _found(entry, number, view) else missing).append(text)
    return there, missing


def _found(entry: LoreEntry, number: int, view: PassView) -> FoundKey | None:
    """Where the key of this number stands in what the entry sees."""
    depth = _depth(entry, view)
    if depth <= 0 and number != ALWAYS and view.rules.flags.depth_0_is_blind:
        return None
    return view.window.found(number, entry, depth, sees_fed=view.sees_fed)


def _barred_by_keys(entry: LoreEntry, keys: EntryKeys, view: PassView) -> EntryReason | None:
    for texts, numbers in zip(entry.gates.additional, keys.additional, strict=True):
        if not any(_found(entry, number, view) for number in numbers):
            return plain(f"@@additional_keys: none of {quoted(texts)} is there")
    for text, number in zip(entry.gates.excluded, keys.excluded, strict=True):
        if found := _found(entry, number, view):
            return EntryReason(excluded, (text, found))
    return None


def score(entry: LoreEntry, keys: EntryKeys, view: PassView) -> int:
    """How many of its keys are found; secondary ones count where the logic wants them there."""
    scored, more = keys.scored, keys.scored_secondary
    primary = _count(entry, scored, view)
    if not scored or not more:
        return primary
    secondary = _count(entry, more, view)
    if entry.logic == "any" or (entry.logic == "all" and secondary == len(more)):
        return primary + secondary
    return primary


def _count(entry: LoreEntry, numbers: Iterable[int], view: PassView) -> int:
    return sum(_found(entry, number, view) is not None for number in numbers)
