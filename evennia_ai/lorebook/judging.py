"""Why one entry is awake or not in one pass: its conditions, asked in one fixed order.

Standard: Card V3, "Decorators". Conditions are combined with AND and bind constant entries too.
In any case count, one before the other: `enabled: false`, `@@activate`, `@@dont_activate`, and
`@@keep_activate_after_match` once an entry was active.
"""

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from evennia_ai.lorebook import reasons
from evennia_ai.lorebook.conditions import Facts, unmet
from evennia_ai.lorebook.entries import NO_GATES, NO_TIMING, LoreEntry
from evennia_ai.lorebook.hearing import Found
from evennia_ai.lorebook.reasons import Reason, plain
from evennia_ai.lorebook.rules import ActivationRules
from evennia_ai.lorebook.scanning import ANYWHERE, Window
from evennia_ai.lorebook.timers import Timers
from evennia_ai.lorebook.wanted import ALWAYS, Wanted
from evennia_ai.prompt.hot import hot_value

PassKind = Literal["first", "recursion", "widened"]


class Judgement(NamedTuple):
    """Whether an entry is awake and why; `found` is the key that woke it, None where none did."""

    awake: bool
    reason: Reason
    found: Found | None = None
    sticky: bool = False


@hot_value
class Sight:
    """What one entry is judged by: what of its book is in sight, in which pass.

    `depth` is the book's scan depth in this pass; `recursive` whether there is recursion at all,
    `sees_fed` whether texts of entries wake entries of this book; `level` the delay level that
    recursion has reached. `replies` is how often the character has spoken.
    """

    window: Window
    kind: PassKind
    level: int
    depth: int
    recursive: bool
    sees_fed: bool
    rules: ActivationRules
    timers: Timers
    facts: Facts
    replies: int


_FORCED: Final = Judgement(True, plain("@@activate"))
_CONSTANT: Final = Judgement(True, plain("constant"))
_KEPT: Final = Judgement(True, plain("@@keep_activate_after_match: was active before"))
_NO_KEYS: Final = Judgement(False, plain("has no keys"))
_BLIND: Final = Judgement(False, plain("scan depth is 0: nothing is scanned"))


def judge(entry: LoreEntry, wanted: Wanted, sight: Sight, *, mark: str) -> Judgement:
    """The judgement on `entry` in this pass."""
    if wanted.keys_decide and not sight.timers.sticky:
        return _woken_by_keys(entry, wanted, sight)
    decided = _decided(entry, sight, mark)
    if decided is not None:
        return decided
    spell = sight.timers.sticky.get(mark)
    woken = _STAYING if spell else _woken(entry, wanted, sight, mark)
    if not woken.awake:
        return woken
    barred = _barred(entry, sight, mark, is_sticky=spell is not None)
    barred = barred or _barred_by_keys(entry, wanted, sight)
    if barred is not None:
        return Judgement(False, barred)
    if spell is None:
        return woken
    clock = entry.timing.clock or sight.rules.clock
    reason = Reason(reasons.staying, (spell.end, sight.timers.now(entry.timing), clock))
    return Judgement(True, reason, sticky=True)


_STAYING: Final = Judgement(True, plain("sticky"), sticky=True)


def _decided(entry: LoreEntry, sight: Sight, mark: str) -> Judgement | None:
    """The judgement where it counts in any case, whatever is said."""
    if not entry.enabled:
        return Judgement(False, plain("disabled"))
    if entry.refused:
        return Judgement(False, plain(entry.refused))
    gates, in_any_case = entry.gates, sight.rules.manner.activate_in_any_case
    if gates.forced:
        return _FORCED if in_any_case else None
    if gates.forbidden:
        return Judgement(False, plain("@@dont_activate"))
    stays = gates.kept_after_match and not gates.never_after_match
    return _KEPT if stays and in_any_case and sight.timers.matched(mark) else None


def _barred(entry: LoreEntry, sight: Sight, mark: str, *, is_sticky: bool) -> Reason | None:
    """Which condition beside the keys is not met, None where all are."""
    if entry.conditions and (problem := unmet(entry.conditions, sight.facts)):
        return plain(problem)
    if entry.gates is not NO_GATES and (shut := _shut_gate(entry, sight, mark)):
        return shut
    return _timed_out(entry, sight, mark, is_sticky=is_sticky) or (
        None if is_sticky else _out_of_turn(entry, sight)
    )


def _timed_out(entry: LoreEntry, sight: Sight, mark: str, *, is_sticky: bool) -> Reason | None:
    """The timer that keeps the entry silent."""
    timing, timers = entry.timing, sight.timers
    clock = timing.clock or sight.rules.clock
    if timing.delay and not sight.rules.dry_run and timers.now(timing) < timing.delay:
        return Reason(reasons.too_early, (timers.now(timing), timing.delay, clock))
    if is_sticky:
        return None
    spell = timers.resting.get(mark)
    if spell:
        return Reason(reasons.resting, (spell.end, timers.now(timing), clock))
    for name in entry.grouping.names if timers.resting_groups else ():
        if spell := timers.resting_groups.get(name):
            now = timers.now(NO_TIMING)
            return Reason(reasons.resting, (spell.end, now, sight.rules.clock, name))
    return None


def _out_of_turn(entry: LoreEntry, sight: Sight) -> Reason | None:
    """Whether recursion keeps the entry out of this pass."""
    recursion = entry.recursion
    level = recursion.delay_level
    if level and (sight.kind != "recursion" or level > sight.level):
        reached = sight.level if sight.kind == "recursion" else 0
        return plain(f"sleeps until recursion reaches level {level}, it is at {reached}")
    if sight.kind == "recursion" and recursion.excluded and sight.recursive:
        return plain("texts of other entries do not wake it")
    return None


def _shut_gate(entry: LoreEntry, sight: Sight, mark: str) -> Reason | None:
    """Which gate of the card standard is shut, None where none is."""
    gates, replies, rules = entry.gates, sight.replies, sight.rules
    greeting = rules.greeting_index
    if gates.greeting is not None and greeting is not None and gates.greeting != greeting:
        return plain(f"@@is_greeting {gates.greeting}: the greeting is {greeting}")
    if gates.replies_from is not None and replies < gates.replies_from:
        so_far = f"{reasons.times(replies)} so far"
        return plain(f"@@activate_only_after {gates.replies_from}: {so_far}")
    if gates.every_replies is not None and replies % gates.every_replies:
        so_far = f"{reasons.times(replies)} so far"
        return plain(f"@@activate_only_every {gates.every_replies}: {so_far}")
    if gates.user_icon is not None and rules.user_icon not in (None, gates.user_icon):
        return plain(f"@@is_user_icon {gates.user_icon}: the icon is {rules.user_icon}")
    if gates.never_after_match and sight.timers.matched(mark):
        return plain("@@dont_activate_after_match: was active before")
    return None


def _woken(entry: LoreEntry, wanted: Wanted, sight: Sight, mark: str) -> Judgement:
    """Whether something wakes the entry: itself, what was before, or its keys."""
    if entry.constant:
        return _CONSTANT
    if entry.gates.forced:
        return _FORCED
    if entry.gates.kept_after_match and sight.timers.matched(mark):
        return _KEPT
    if not wanted.keys:
        return Judgement(False, plain(wanted.refused)) if wanted.refused else _NO_KEYS
    return _woken_by_keys(entry, wanted, sight)


def _woken_by_keys(entry: LoreEntry, wanted: Wanted, sight: Sight) -> Judgement:
    depth = _depth(entry, sight)
    if depth > 0:
        first = sight.window.first(wanted.keys, entry, depth, sees_fed=sight.sees_fed)
    else:
        first = _first_unseen(entry, wanted, sight)
    if first is None:
        unheard = sight.window.unheard(wanted.keys, entry, depth)
        if unheard is not None:
            return Judgement(False, Reason(reasons.only_in_movement, (unheard,)))
        no_key = Reason(reasons.no_key, (depth, wanted.refused, wanted.patterns))
        return Judgement(False, no_key) if depth > 0 else _BLIND
    at, found = first
    if wanted.secondary and entry.selective:
        return _secondary(entry, wanted, sight, wanted.texts[at], found)
    known = sight.window.judged.get(entry.index)
    if isinstance(known, Judgement) and known.found is found:
        return known
    made = Judgement(True, Reason(reasons.key_found, (wanted.texts[at], found)), found)
    sight.window.judged[entry.index] = made
    return made


def _first_unseen(entry: LoreEntry, wanted: Wanted, sight: Sight) -> tuple[int, Found] | None:
    """The same for an entry that sees no message; some manners let it see nothing else either."""
    if sight.rules.manner.depth_0_is_blind:
        return (wanted.keys.index(ALWAYS), ANYWHERE) if ALWAYS in wanted.keys else None
    return sight.window.first(wanted.keys, entry, 0, sees_fed=sight.sees_fed)


def _depth(entry: LoreEntry, sight: Sight) -> int:
    """How many messages the entry sees."""
    return sight.depth if entry.scan_depth is None else entry.scan_depth


def _secondary(
    entry: LoreEntry, wanted: Wanted, sight: Sight, text: str, found: Found
) -> Judgement:
    """The entry's logic over its secondary keys, once a key was found."""
    there, missing = _sorted_out(entry, wanted, sight)
    awake, shown = {
        "any": (bool(there), there),
        "all": (not missing, missing),
        "not_any": (not there, there),
        "not_all": (bool(missing), there),
    }[entry.logic]
    facts = (text, found, entry.logic, wanted.secondary_texts)
    if awake:
        return Judgement(True, Reason(reasons.key_and_logic, facts), found)
    return Judgement(False, Reason(reasons.logic_unmet, (*facts, tuple(shown))))


def _sorted_out(entry: LoreEntry, wanted: Wanted, sight: Sight) -> tuple[list[str], list[str]]:
    """The secondary keys that are there, and those that are not."""
    there: list[str] = []
    missing: list[str] = []
    for text, number in zip(wanted.secondary_texts, wanted.secondary, strict=True):
        (there if _found(entry, number, sight) else missing).append(text)
    return there, missing


def _found(entry: LoreEntry, number: int, sight: Sight) -> Found | None:
    """Where the key of this number stands in what the entry sees."""
    depth = _depth(entry, sight)
    if depth <= 0 and number != ALWAYS and sight.rules.manner.depth_0_is_blind:
        return None
    return sight.window.found(number, entry, depth, sees_fed=sight.sees_fed)


def _barred_by_keys(entry: LoreEntry, wanted: Wanted, sight: Sight) -> Reason | None:
    for texts, numbers in zip(entry.gates.additional, wanted.additional, strict=True):
        if not any(_found(entry, number, sight) for number in numbers):
            return plain(f"@@additional_keys: none of {reasons.quoted(texts)} is there")
    for text, number in zip(entry.gates.excluded, wanted.excluded, strict=True):
        if found := _found(entry, number, sight):
            return Reason(reasons.excluded, (text, found))
    return None


def score(entry: LoreEntry, wanted: Wanted, sight: Sight) -> int:
    """How many of its keys are found; secondary ones count where the logic wants them there."""
    keys, more = wanted.scored, wanted.scored_secondary
    primary = _count(entry, keys, sight)
    if not keys or not more:
        return primary
    secondary = _count(entry, more, sight)
    if entry.logic == "any" or (entry.logic == "all" and secondary == len(more)):
        return primary + secondary
    return primary


def _count(entry: LoreEntry, numbers: Iterable[int], sight: Sight) -> int:
    return sum(_found(entry, number, sight) is not None for number in numbers)
