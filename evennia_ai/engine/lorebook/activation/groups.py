"""Inclusion groups: at most one member of each group becomes active in an activation pass.

These rules decide a group, in this order:

1. If there are sticky members, they stay and all others lose.
2. If an entry of the group became active in an earlier pass, all members lose.
3. A scored member with fewer found keys than the best member loses.
4. If several members are left, the preferred member with the highest order wins.
5. If no member is preferred, one member is drawn at random by weight.

An entry in several groups must win, or be the only member, in each of them. An entry that lost in
one group does not compete in the next groups.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evennia_ai.engine.lorebook.activation.candidate import Candidate
from evennia_ai.engine.lorebook.book import in_javascript_order
from evennia_ai.engine.lorebook.rules import ActivationRules

_MOST_NAMED: Final = 6
# JavaScript iterates over whole-number keys of an object first. Numbers from this constant on count
# as ordinary names there.
_NO_INDEX: Final = 10**10


@dataclass(frozen=True, slots=True)
class ContestOutcome:
    """The reasons why candidates lost or won in inclusion groups, by `id()` of the candidate."""

    lost: dict[int, str]
    won: dict[int, str]


def contest_groups(
    candidates: Sequence[Candidate],
    *,
    rules: ActivationRules,
    active: Collection[Candidate],
    roll: Callable[[str], float],
    score: Callable[[Candidate], int],
) -> ContestOutcome:
    """Choose which candidates of an activation pass win in their inclusion groups.

    Args:
        candidates: The candidates in processing order.
        rules: The rules of activation.
        active: The entries that became active in earlier passes.
        roll: Returns a random number from 0 to 1 for the group with the given name.
        score: Counts the found keys of a candidate.
    """
    outcome = ContestOutcome({}, {})
    served = _served_groups(active, rules)
    for name, members in _groups(candidates).items():
        competing = members
        # In SillyTavern an entry that lost in one group still competes in its other groups. The
        # preset `evennia_ai` excludes the entry from them.
        if not rules.flags.losers_compete:
            competing = [one for one in members if id(one) not in outcome.lost]
        _contest_group(name, competing, outcome, rules=rules, served=served, roll=roll, score=score)
    return outcome


def _contest_group(
    name: str,
    members: list[Candidate],
    outcome: ContestOutcome,
    *,
    rules: ActivationRules,
    served: Mapping[str, str],
    roll: Callable[[str], float],
    score: Callable[[Candidate], int],
) -> None:
    sticky = [one for one in members if one.sticky]
    if sticky:
        _drop(members, outcome, sticky, f"group '{name}': {_render_labels(sticky)} stays (sticky)")
        if rules.flags.rest_ends_a_stay:
            resting = [one for one in sticky if one.rests]
            _drop(resting, outcome, [], f"group '{name}': its cooldown ended its sticky time")
        return
    if name in served:
        _drop(members, outcome, [], f"group '{name}' already has the active entry {served[name]}")
        return
    members = _drop_by_score(name, members, outcome, rules, score)
    if len(members) > 1:
        winner, how = _draw_winner(members, roll(name))
        of = f"group '{name}' of {len(members)}"
        _drop(members, outcome, [winner], f"lost {of} to {winner.label} ({how})")
        outcome.won[id(winner)] = f"won {of} ({how})"


def _groups(candidates: Iterable[Candidate]) -> dict[str, list[Candidate]]:
    """Map the name of each inclusion group to its members, in JavaScript's key order."""
    groups: dict[str, list[Candidate]] = {}
    for one in candidates:
        for name in dict.fromkeys(one.entry.grouping.names):
            groups.setdefault(name, []).append(one)
    return {name: groups[name] for name in in_javascript_order(groups, below=_NO_INDEX)}


def _served_groups(active: Iterable[Candidate], rules: ActivationRules) -> dict[str, str]:
    """Map the name of each group that has an active entry to the label of that entry.

    SillyTavern compares the whole group field of the active entry with the name of the group.
    """
    whole = rules.flags.served_by_whole_text
    served: dict[str, str] = {}
    for one in active:
        grouping = one.entry.grouping
        for name in (grouping.written,) if whole else grouping.names:
            served.setdefault(name, one.label)
    return served


def _drop_by_score(
    name: str,
    members: list[Candidate],
    outcome: ContestOutcome,
    rules: ActivationRules,
    score: Callable[[Candidate], int],
) -> list[Candidate]:
    """Return the members of a group that do not lose by their score (number of found keys)."""
    if not (rules.group_scoring or any(one.entry.grouping.scored for one in members)):
        return members
    scores = {id(one): score(one) for one in members}
    best = max(scores.values(), default=0)
    kept: list[Candidate] = []
    for one in members:
        scored = one.entry.grouping.scored
        is_scored = rules.group_scoring if scored is None else scored
        if is_scored and scores[id(one)] < best:
            found = f"{scores[id(one)]} of its keys were found, {best} of the best member's"
            outcome.lost.setdefault(id(one), f"group '{name}': {found}")
        else:
            kept.append(one)
    return kept


def _draw_winner(members: list[Candidate], roll: float) -> tuple[Candidate, str]:
    """Return the winner of an inclusion group, and a text that says how it won.

    The preferred member with the highest order wins. Without a preferred member, `roll` draws one
    by weight.
    """
    preferred = [one for one in members if one.entry.grouping.preferred]
    if preferred:
        return max(preferred, key=lambda one: one.entry.order), "preferred"
    total = sum(one.entry.grouping.weight for one in members)
    drawn = roll * total
    reached = 0.0
    for one in members:
        reached += one.entry.grouping.weight
        if drawn <= reached:
            break
    odds = f"weight {one.entry.grouping.weight:g} of {total:g}, rolled {roll:.2f}"
    return one, odds


def _drop(
    members: Iterable[Candidate], outcome: ContestOutcome, stay: Collection[Candidate], why: str
) -> None:
    """Record in `outcome` that all members except `stay` lost for the reason `why`.

    A member that has lost before keeps its first reason.
    """
    staying = set(map(id, stay))
    for one in members:
        if id(one) not in staying:
            outcome.lost.setdefault(id(one), why)


def _render_labels(entries: Iterable[Candidate]) -> str:
    labels = [one.label for one in entries]
    more = f" and {len(labels) - _MOST_NAMED} more" if len(labels) > _MOST_NAMED else ""
    return ", ".join(labels[:_MOST_NAMED]) + more
