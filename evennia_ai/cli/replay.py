"""`evennia-ai replay`: the prompt of a past turn, to the letter, and what an edit would change."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evennia_ai.cli.game_folder import opened_game
from evennia_ai.cli.output import write_json, write_lines
from evennia_ai.cli.progress_bar import shown_progress
from evennia_ai.cli.refusals import FINDING
from evennia_ai.text.columns import WIDTH, clipped, visible, wrapped

if TYPE_CHECKING:
    from evennia_ai.cli.game_turns import Replayed
    from evennia_ai.minds.recomposing import Comparison


def replay_turn(folder: Path, npc: str, number: int, *, with_diff: bool, as_json: bool) -> int:
    """Print one past turn; status 1 where it is not what was sent, or the diff shows something."""
    opened_game(folder)
    from evennia_ai.cli import game_turns

    npc_ref = game_turns.npc_ref_of(npc)
    found = game_turns.replayed(npc_ref, number)
    today = game_turns.against_today(npc_ref, number) if with_diff else None
    if as_json:
        write_json(_replayed_object(found, today), indent=2)
    else:
        write_lines(_lines(found, today))
    differs = today is not None and today.outcome != "unchanged"
    return FINDING if differs or not found.replay.is_same else 0


def replay_against(
    folder: Path,
    npc: str,
    path: Path,
    *,
    newest: int | None,
    number: int | None,
    as_json: bool,
) -> int:
    """Print what the edit in a file would change in past turns; status 1 where it is something."""
    path = path.absolute()
    opened_game(folder)
    from evennia_ai.cli import game_turns

    npc_ref = game_turns.npc_ref_of(npc)
    edit = game_turns.edit_in(path)
    total, stream = game_turns.comparisons(npc_ref, edit, newest=newest, number=number)
    write = _write_object if as_json else _write_comparison
    outcomes = {"unchanged": 0, "changed": 0, "unknown": 0}
    tokens = 0
    if not as_json:
        write_lines(visible(f"notice: {notice}") for notice in edit.notices)
    for comparison in _with_progress(stream, total):
        outcomes[comparison.outcome] += 1
        tokens += comparison.tokens - comparison.tokens_before
        write(comparison)
    summary = {"turns": sum(outcomes.values()), **outcomes, "tokens": tokens}
    if as_json:
        write_json({"summary": summary})
    else:
        write_lines([_summary(summary)])
    return FINDING if outcomes["changed"] or outcomes["unknown"] else 0


def _with_progress(stream: "Iterable[Comparison]", total: int) -> "Iterator[Comparison]":
    """The comparisons, with a bar on a terminal."""
    with shown_progress() as progress:
        for done, comparison in enumerate(stream, start=1):
            progress("turns", done, total)
            yield comparison


def _summary(summary: dict[str, int]) -> str:
    return (
        f"{summary['turns']} turns: {summary['changed']} changed, {summary['unchanged']} unchanged,"
        f" {summary['unknown']} not known; {summary['tokens']:+} tokens in all"
    )


def _lines(found: "Replayed", today: "Comparison | None") -> Iterator[str]:
    turn, rebuilt = found.turn, found.replay
    yield f"turn {turn.number}, {turn.state}, {len(turn.manifest.messages)} messages"
    if rebuilt.is_same:
        yield "the same bytes as were sent, rebuilt from records alone"
    else:
        yield from wrapped(f"cannot be replayed: {rebuilt.problem}", WIDTH)
    for fault in rebuilt.faults:
        yield from wrapped(f"  message {fault.index}: record {fault.record} {fault.problem}", WIDTH)
    yield f"sha256 {rebuilt.sha256}"
    yield from wrapped(found.again, WIDTH)
    for index, message in enumerate(rebuilt.messages):
        name = f", {message.name}" if message.name else ""
        yield ""
        yield clipped(visible(f"-- {index} {message.role}{name}"), WIDTH)
        yield from (visible(line) for line in message.content.splitlines())
    if today is not None:
        yield ""
        yield "-- with what is in force today:"
        yield from _comparison(today)


def _comparison(comparison: "Comparison") -> Iterator[str]:
    if comparison.outcome == "unknown":
        yield clipped(visible(f"turn {comparison.number}: not known: {comparison.problem}"), 600)
        return
    if comparison.outcome == "unchanged":
        yield f"turn {comparison.number}: unchanged"
        return
    yield (
        f"turn {comparison.number}: changed, {comparison.tokens_before} ->"
        f" {comparison.tokens} tokens, the first {comparison.shared_messages} messages"
        f" ({comparison.shared_tokens} tokens) stay"
    )
    for one in comparison.differences:
        of = ", ".join(one.origins)
        yield clipped(visible(f"  message {one.at} {one.change}, {one.role}: {of}"), WIDTH)
        yield from (clipped(f"    {visible(line)}", WIDTH) for line in one.lines)


def _write_comparison(comparison: "Comparison") -> None:
    write_lines(_comparison(comparison))


def _write_object(comparison: "Comparison") -> None:
    write_json(_comparison_object(comparison))


def _comparison_object(comparison: "Comparison") -> dict[str, Any]:
    told = asdict(comparison)
    return {"turn": told.pop("number"), **told}


def _replayed_object(found: "Replayed", today: "Comparison | None") -> dict[str, Any]:
    turn, rebuilt = found.turn, found.replay
    made: dict[str, Any] = {
        "turn": turn.number,
        "state": turn.state,
        "same": rebuilt.is_same,
        "problem": rebuilt.problem,
        "faults": [asdict(fault) for fault in rebuilt.faults],
        "sha256": rebuilt.sha256,
        "composed_again": found.again,
        "messages": [
            {"role": message.role, "name": message.name, "content": message.content}
            for message in rebuilt.messages
        ],
    }
    if today is not None:
        made["today"] = _comparison_object(today)
    return made
