"""What `ai` says and does about compaction: `ai/compact <npc>`, and lines of the status."""

from collections.abc import Iterator
from typing import Any

from twisted.internet.defer import Deferred

from evennia_ai.commands.called import in_words
from evennia_ai.commands.shown import day_and_time
from evennia_ai.game.compacting import Outcome
from evennia_ai.game.compacting_by_hand import compact_room
from evennia_ai.game.runtime import runtime
from evennia_ai.store import turns
from evennia_ai.store.attempts import Compacted, compacted_of


def compacting(npc: Any, *, by: str) -> "Deferred[str]":
    """Compact what the NPC remembers of its room; one line that says what came of it."""

    def told(outcome: Outcome) -> str:
        if outcome.record is None:
            return f"{npc.key} remembers its room as before: {outcome.told}."
        return f"{npc.key} remembers its room in short now: {outcome.told}."

    return compact_room(npc.ai, by=by).addCallback(told)


def compaction_lines(npc: Any) -> Iterator[str]:
    """For each conversation that was compacted: when and by whom, and whether its breaker is open.

    Also where it was only tried.
    """
    turn = turns.next_number(npc.ai.ref)
    for one in compacted_of(npc.ai.ref):
        yield f"{in_words(one.conversation)}: {', '.join(_parts(one, turn))}"


def _parts(one: Compacted, turn: int) -> Iterator[str]:
    if one.summary is not None:
        by = "an extract" if one.summary.meta["by"] == "extract" else "a model"
        yield f"compacted by {by} {day_and_time(one.summary.created_at)}"
    breaker, rules = one.attempt.breaker, runtime().conf.compaction.rules
    if breaker.is_open(turn, rules=rules):
        until = (breaker.opened_at or 0) + rules.rest_turns
        yield f"breaker open until turn {until} after {breaker.failures} failures in a row"
    elif breaker.failures:
        yield f"{breaker.failures} failures in a row"
    if one.attempt.reason:
        yield f"last: {one.attempt.reason}"
