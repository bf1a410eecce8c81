"""`ai/replay <npc> = <turn>`: a past prompt from its records alone."""

from collections.abc import Iterator
from typing import Any

from evennia_ai.commands.shown import day_and_time
from evennia_ai.game.viewers import seer_for
from evennia_ai.history.replay import Fault, replay
from evennia_ai.history.turns import report_of_turn
from evennia_ai.prompt.report import Report
from evennia_ai.store import conversations
from evennia_ai.store.turns import StoredTurn
from evennia_ai.text.columns import WIDTH, wrapped


def replay_lines(caller: Any, npc: Any, turn: StoredTurn) -> list[str]:
    """The turn's prompt to the letter, as `caller` may see it, and whether it is what was sent."""
    records = conversations.records(turn.manifest.record_ids)
    rebuilt = replay(turn.manifest, records)
    head = f"Turn {turn.number} of {npc.key}, {day_and_time(turn.created_at)}, {turn.state}:"
    if not rebuilt.is_same:
        return [head, *wrapped(f"It cannot be replayed: {rebuilt.problem}.", WIDTH)] + [
            line for fault in rebuilt.faults for line in _fault(fault)
        ]
    lines = [head, "the same bytes as were sent, rebuilt from records alone"]
    lines.append(f"sha256 {rebuilt.sha256}")
    seer = seer_for(caller, npc.ai.ref)
    return [*lines, *message_lines(seer.report(report_of_turn(turn.manifest, records)))]


def message_lines(report: Report) -> Iterator[str]:
    """The messages in full."""
    for index, message in enumerate(report.messages):
        name = f", {message.name}" if message.name else ""
        yield ""
        yield from wrapped(f"-- {index} {message.role}{name}, {message.tokens} tokens", WIDTH)
        yield from wrapped(message.content, WIDTH)


def _fault(fault: Fault) -> list[str]:
    return wrapped(f"  message {fault.index}: record {fault.record} {fault.problem}", WIDTH)
