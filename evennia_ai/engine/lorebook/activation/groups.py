"""Inclusion groups: of the candidates of one pass, one member a group goes on.

For each group: a sticky member keeps its place against the others; else a group that is served
already takes nobody; else members with fewer keys found go (where they are scored), then those
that are preferred win by order, then one is drawn by weight. An entry of several groups must win
or be alone in each; who was put out once is out, and stands in nobody's way in the next group.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evennia_ai.engine.lorebook.activation.candidate import Candidate
from evennia_ai.engine.lorebook.book import as_javascript_walks
from evennia_ai.engine.lorebook.rules import ActivationRules

_MOST_NAMED: Final = 6
# A longer number is no index in JavaScript.
_NO_INDEX: Final = 10**10


@dataclass(frozen=True, slots=True)
class ContestOutcome:
    """How a contest ended: why each loser lost (by `id`), and what each winner won."""

    lost: dict[int, str]
    won: dict[int, str]


def contest(
    candidates: Sequence[Candidate],
    *,
    rules: ActivationRules,
    active: Collection[Candidate],
    roll: Callable[[str], float],
    score: Callable[[Candidate], int],
) -> ContestOutcome:
    """The contest of all groups among the candidates, given in processing order.

    `active` are the entries of earlier passes, `roll` the dice of a group, `score` how many keys
    of an entry were found.
    """
    outcome = ContestOutcome({}, {})
    served = _served(active, rules)
    for name, members in _groups(candidates).items():
        # The application lets one that is out win a further group; here, too, as its rule.
        standing = members if rules.flags.losers_compete else _still_in(members, outcome)
        _one_group(name, standing, outcome, rules=rules, served=served, roll=roll, score=score)
    return outcome


def _one_group(
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
        _put_out(members, outcome, sticky, f"group '{name}': {_labels(sticky)} stays (sticky)")
        if rules.flags.rest_ends_a_stay:
            tired = [one for one in sticky if one.rests]
            _put_out(tired, outcome, [], f"group '{name}': its cooldown ends its stay")
        return
    if name in served:
        _put_out(members, outcome, [], f"group '{name}' is served by {served[name]}")
        return
    members = _scored(name, members, outcome, rules, score)
    if len(members) > 1:
        winner, how = _winner(members, rules, roll(name))
        of = f"group '{name}' of {len(members)}"
        _put_out(members, outcome, [winner], f"lost {of} to {winner.label} ({how})")
        outcome.won[id(winner)] = f"won {of} ({how})"


def _groups(candidates: Iterable[Candidate]) -> dict[str, list[Candidate]]:
    """The members of each group, the groups in the order a JavaScript object would have them."""
    groups: dict[str, list[Candidate]] = {}
    for one in candidates:
        for name in dict.fromkeys(one.entry.grouping.names):
            groups.setdefault(name, []).append(one)
    return {name: groups[name] for name in as_javascript_walks(groups, below=_NO_INDEX)}


def _still_in(members: Iterable[Candidate], outcome: ContestOutcome) -> list[Candidate]:
    return [one for one in members if id(one) not in outcome.lost]


def _served(active: Iterable[Candidate], rules: ActivationRules) -> dict[str, str]:
    """For each group that is served, the first active entry that serves it."""
    whole = rules.flags.served_by_whole_text
    served: dict[str, str] = {}
    for one in active:
        grouping = one.entry.grouping
        for name in (grouping.written,) if whole else grouping.names:
            served.setdefault(name, one.label)
    return served


def _scored(
    name: str,
    members: list[Candidate],
    outcome: ContestOutcome,
    rules: ActivationRules,
    score: Callable[[Candidate], int],
) -> list[Candidate]:
    """The members without those that are scored and have fewer keys found than the best."""
    if not (rules.group_scoring or any(one.entry.grouping.scored for one in members)):
        return members
    scores = {id(one): score(one) for one in members}
    best = max(scores.values(), default=0)
    kept: list[Candidate] = []
    for one in members:
        scored = one.entry.grouping.scored
        is_scored = rules.group_scoring if scored is None else scored
        if is_scored and scores[id(one)] < best:
            found = f"{scores[id(one)]} keys were found, {best} of the best"
            outcome.lost.setdefault(id(one), f"group '{name}': {found}")
        else:
            kept.append(one)
    return kept


def _winner(members: list[Candidate], rules: ActivationRules, roll: float) -> tuple[Candidate, str]:
    """Who wins, and how: the preferred one of the highest order, else by weight."""
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


def _put_out(
    members: Iterable[Candidate], outcome: ContestOutcome, stay: Collection[Candidate], why: str
) -> None:
    staying = set(map(id, stay))
    for one in members:
        if id(one) not in staying:
            outcome.lost.setdefault(id(one), why)


def _labels(entries: Iterable[Candidate]) -> str:
    labels = [one.label for one in entries]
    more = f" and {len(labels) - _MOST_NAMED} more" if len(labels) > _MOST_NAMED else ""
    return ", ".join(labels[:_MOST_NAMED]) + more
