"""Decide for one lore entry in one activation pass whether it may become active, and why.

`judge_entry` tests all conditions in a fixed order. Every condition must be met, also for constant
entries (Card V3, "Decorators"). Four settings decide before any condition, in this order: `enabled:
false`, `@@activate`, `@@dont_activate`, and `@@keep_activate_after_match` for an entry that was
active in an earlier turn.
"""

from collections.abc import Iterable
from typing import Final, Literal

from evennia_ai.engine.lorebook.activation.candidate import Judgement
from evennia_ai.engine.lorebook.activation.reasons import (
    EntryReason,
    cooldown_reason,
    count_replies,
    delay_reason,
    excluded_key_reason,
    key_and_logic_reason,
    key_found_reason,
    logic_unmet_reason,
    movement_only_reason,
    no_key_reason,
    plain_reason,
    quote_keys,
    sticky_reason,
)
from evennia_ai.engine.lorebook.activation.timers import Timers
from evennia_ai.engine.lorebook.entry import NO_GATES, NO_TIMING, LoreEntry
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.lorebook.scan.hit_cache import ANYWHERE, FoundKey
from evennia_ai.engine.lorebook.scan.key_index import ALWAYS, EntryKeys
from evennia_ai.engine.lorebook.scan.window import Window
from evennia_ai.engine.prompt.conditions import Facts, unmet_condition
from evennia_ai.engine.prompt.memo import typed_frozen

PassKind = Literal["first", "recursion", "widened"]


@typed_frozen
class PassView:
    """The facts by which the entries of one book are judged in one activation pass."""

    window: Window
    judged: dict[str, Judgement]
    """By the text of a key: the last judgement because of it, shared by all entries with it."""
    kind: PassKind
    level: int
    """The highest delay level that recursion has reached."""
    depth: int
    """The book's scan depth in this pass, in messages."""
    recursive: bool
    """True if any book of the run is recursive."""
    sees_fed: bool
    """True if keys in the texts of active entries activate entries of this book."""
    rules: ActivationRules
    timers: Timers
    facts: Facts
    replies: int
    """The number of replies that the character has given so far."""


_FORCED: Final = Judgement(True, plain_reason("@@activate"))
_CONSTANT: Final = Judgement(True, plain_reason("constant"))
_KEPT: Final = Judgement(True, plain_reason("@@keep_activate_after_match: was active before"))
_NO_KEYS: Final = Judgement(False, plain_reason("has no keys"))
_BLIND: Final = Judgement(False, plain_reason("scan depth is 0: nothing is scanned"))


def judge_entry(entry: LoreEntry, keys: EntryKeys, view: PassView, *, identity: str) -> Judgement:
    """Decide whether an entry may become active in this activation pass, and why.

    `identity` is the name of the entry in the stored timers.
    """
    if keys.keys_decide and not view.timers.sticky:
        return _judge_keys(entry, keys, view)  # a shortcut for most entries, which have only keys
    unconditional = _judge_unconditionally(entry, view, identity)
    if unconditional is not None:
        return unconditional
    spell = view.timers.sticky.get(identity)
    if spell is None:
        judgement = _judge_activation(entry, keys, view, identity)
    else:
        clock = entry.timing.clock or view.rules.clock
        reason = EntryReason(sticky_reason, (spell.end, view.timers.now(entry.timing), clock))
        judgement = Judgement(True, reason, sticky=True)
    if not judgement.is_candidate:
        return judgement
    problem = _unmet_condition(entry, view, identity, is_sticky=spell is not None)
    problem = problem or _unmet_key_condition(entry, keys, view)
    return judgement if problem is None else Judgement(False, problem)


def _judge_unconditionally(entry: LoreEntry, view: PassView, identity: str) -> Judgement | None:
    """Return the judgement that a setting such as `@@activate` decides alone, or None."""
    if not entry.enabled:
        return Judgement(False, plain_reason("disabled"))
    if entry.refused:
        return Judgement(False, plain_reason(entry.refused))
    gates, in_any_case = entry.gates, view.rules.flags.activate_in_any_case
    if gates.forced:
        return _FORCED if in_any_case else None
    if gates.forbidden:
        return Judgement(False, plain_reason("@@dont_activate"))
    stays = gates.kept_after_match and not gates.never_after_match
    return _KEPT if stays and in_any_case and view.timers.matched(identity) else None


# The cause of activation: constant entries, earlier turns and keys


def _judge_activation(
    entry: LoreEntry, keys: EntryKeys, view: PassView, identity: str
) -> Judgement:
    """Decide whether an entry is activated: as a constant, by an earlier turn, or by its keys."""
    if entry.constant:
        return _CONSTANT
    if entry.gates.forced:
        return _FORCED
    if entry.gates.kept_after_match and view.timers.matched(identity):
        return _KEPT
    if not keys.primary:
        return Judgement(False, plain_reason(keys.refused)) if keys.refused else _NO_KEYS
    return _judge_keys(entry, keys, view)


def _judge_keys(entry: LoreEntry, keys: EntryKeys, view: PassView) -> Judgement:
    """Decide whether the primary keys and the logic of the secondary keys activate an entry."""
    depth = _scan_depth(entry, view)
    if depth > 0 or not view.rules.flags.depth_0_is_blind:
        first = view.window.find_first(keys.primary, entry, max(depth, 0), sees_fed=view.sees_fed)
    else:  # with depth 0 no text is searched, so only a key that matches everything is found
        first = (keys.primary.index(ALWAYS), ANYWHERE) if ALWAYS in keys.primary else None
    if first is None:
        unheard = view.window.find_in_movement(keys.primary, entry, depth)
        if unheard is not None:
            return Judgement(False, EntryReason(movement_only_reason, (unheard,)))
        if depth <= 0:
            return _BLIND
        return Judgement(False, EntryReason(no_key_reason, (depth, keys.refused, keys.patterns)))
    at, found = first
    key = keys.texts[at]
    if not (keys.secondary and entry.selective):
        known = view.judged.get(key)
        if known is None or known.found is not found:
            known = view.judged[key] = Judgement(
                True, EntryReason(key_found_reason, (key, found)), found
            )
        return known

    there: list[str] = []
    missing: list[str] = []
    for text, number in zip(keys.secondary_texts, keys.secondary, strict=True):
        (there if _find_key(entry, number, view) else missing).append(text)
    agrees, shown = {
        "any": (bool(there), there),
        "all": (not missing, missing),
        "not_any": (not there, there),
        "not_all": (bool(missing), there),
    }[entry.logic]
    facts = (key, found, entry.logic, keys.secondary_texts)
    if agrees:
        return Judgement(True, EntryReason(key_and_logic_reason, facts), found)
    return Judgement(False, EntryReason(logic_unmet_reason, (*facts, tuple(shown))))


def _scan_depth(entry: LoreEntry, view: PassView) -> int:
    """Return an entry's scan depth: how many of the newest messages are searched for its keys."""
    return view.depth if entry.scan_depth is None else entry.scan_depth


def _find_key(entry: LoreEntry, number: int, view: PassView) -> FoundKey | None:
    """Return where the key with this number is in the texts that an entry searches, or None."""
    depth = _scan_depth(entry, view)
    if depth <= 0 and number != ALWAYS and view.rules.flags.depth_0_is_blind:
        return None
    return view.window.find_key(number, entry, depth, sees_fed=view.sees_fed)


# Further conditions that an entry must meet once it was activated


def _unmet_condition(
    entry: LoreEntry, view: PassView, identity: str, *, is_sticky: bool
) -> EntryReason | None:
    """Return the reason of the first unmet condition other than keys; None if all are met."""
    if entry.conditions and (problem := unmet_condition(entry.conditions, view.facts)):
        return plain_reason(problem)
    if entry.gates is not NO_GATES and (closed := _closed_gate(entry, view, identity)):
        return closed
    return _running_timer(entry, view, identity, is_sticky=is_sticky) or (
        None if is_sticky else _unmet_recursion(entry, view)
    )


def _closed_gate(entry: LoreEntry, view: PassView, identity: str) -> EntryReason | None:
    """Return the first Card V3 decorator that keeps an entry inactive; None if there is none."""
    gates, replies, rules = entry.gates, view.replies, view.rules
    greeting = rules.greeting_index
    if gates.greeting is not None and greeting is not None and gates.greeting != greeting:
        return plain_reason(f"@@is_greeting {gates.greeting}: the greeting is {greeting}")
    if gates.replies_from is not None and replies < gates.replies_from:
        so_far = f"{count_replies(replies)} so far"
        return plain_reason(f"@@activate_only_after {gates.replies_from}: {so_far}")
    if gates.every_replies is not None and replies % gates.every_replies:
        so_far = f"{count_replies(replies)} so far"
        return plain_reason(f"@@activate_only_every {gates.every_replies}: {so_far}")
    if gates.user_icon is not None and rules.user_icon not in (None, gates.user_icon):
        return plain_reason(f"@@is_user_icon {gates.user_icon}: the icon is {rules.user_icon}")
    if gates.never_after_match and view.timers.matched(identity):
        return plain_reason("@@dont_activate_after_match: was active before")
    return None


def _running_timer(
    entry: LoreEntry, view: PassView, identity: str, *, is_sticky: bool
) -> EntryReason | None:
    """Return the timer that keeps an entry inactive; None if no timer does.

    The delay is tested before the cooldown.
    """
    timing, timers = entry.timing, view.timers
    clock = timing.clock or view.rules.clock
    if timing.delay and timers.now(timing) < timing.delay:
        return EntryReason(delay_reason, (timers.now(timing), timing.delay, clock))
    if is_sticky:
        return None
    spell = timers.resting.get(identity)
    if spell:
        return EntryReason(cooldown_reason, (spell.end, timers.now(timing), clock))
    for name in entry.grouping.names if timers.resting_groups else ():
        if spell := timers.resting_groups.get(name):
            now = timers.now(NO_TIMING)
            return EntryReason(cooldown_reason, (spell.end, now, view.rules.clock, name))
    return None


def _unmet_recursion(entry: LoreEntry, view: PassView) -> EntryReason | None:
    """Return the recursion setting that keeps an entry inactive in this pass, or None."""
    recursion = entry.recursion
    level = recursion.delay_level
    if level and (view.kind != "recursion" or level > view.level):
        reached = view.level if view.kind == "recursion" else 0
        return plain_reason(f"waits for recursion level {level}; recursion is at {reached}")
    if view.kind == "recursion" and recursion.excluded and view.recursive:
        return plain_reason("texts of other entries do not activate it")
    return None


def _unmet_key_condition(entry: LoreEntry, keys: EntryKeys, view: PassView) -> EntryReason | None:
    """Return why a `@@additional_keys` or `@@exclude_keys` line is not met; None if all are met."""
    for texts, numbers in zip(entry.gates.additional, keys.additional, strict=True):
        if not any(_find_key(entry, number, view) for number in numbers):
            return plain_reason(f"@@additional_keys: none of {quote_keys(texts)} was found")
    for text, number in zip(entry.gates.excluded, keys.excluded, strict=True):
        if found := _find_key(entry, number, view):
            return EntryReason(excluded_key_reason, (text, found))
    return None


def count_found_keys(entry: LoreEntry, keys: EntryKeys, view: PassView) -> int:
    """Count the found keys of an entry, which is its score in inclusion groups.

    All found primary keys count. Secondary keys count by the logic of the entry. With `any`, each
    found one counts. With `all`, they count only if all of them are found. With other logics they
    never count.
    """

    def count(numbers: Iterable[int]) -> int:
        return sum(_find_key(entry, number, view) is not None for number in numbers)

    primary = count(keys.scored)
    if not keys.scored or not keys.scored_secondary:
        return primary
    secondary = count(keys.scored_secondary)
    wants_all = entry.logic == "all" and secondary == len(keys.scored_secondary)
    return primary + secondary if entry.logic == "any" or wants_all else primary
