"""`evennia-ai history` and `evennia-ai replay`: what is recorded in a game, and its past turns.

Records are checked, written to a file, taken over; of a past turn the prompt is shown to the
letter, and what an edit would change.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from evennia_ai.cli.game.folder import opened_game
from evennia_ai.cli.output import FINDING, write_json, write_lines, write_pieces
from evennia_ai.errors import FormatError
from evennia_ai.text.columns import visible

if TYPE_CHECKING:
    from evennia_ai.cli.game.history import Checked
from collections.abc import Iterable
from typing import TYPE_CHECKING

from evennia_ai.cli.terminal import shown_progress
from evennia_ai.text.columns import WIDTH, clipped, wrapped

if TYPE_CHECKING:
    from evennia_ai.cli.game.history import Replayed
    from evennia_ai.minds.recomposing import Comparison


def verify(folder: Path, npc: str | None, *, as_json: bool) -> int:
    """Print for each conversation whether its chain holds; status 1 where one does not."""
    opened_game(folder)
    from evennia_ai.cli.game import history

    found = []
    for one in history.checked(npc):
        found.append(one)
        if not as_json:
            write_lines([_line(one, history.named(one.conversation))])
    if as_json:
        write_json({"conversations": [_checked_object(one) for one in found]}, indent=2)
    return FINDING if any(one.broken for one in found) else 0


def export(folder: Path, npc: str, target: Path, *, number: int | None, force: bool) -> int:
    """Write one conversation into a file; a file that is there stays unless `force`."""
    path = target.absolute()  # to open a game is to go into its folder
    opened_game(folder)
    from evennia_ai.cli.game import history

    conversation = history.conversation_of(npc, number)
    pieces = history.lines_of(conversation)
    write_pieces(path, pieces, kind="transcript", force=force)
    write_lines([visible(f"{target}: conversation {history.named(conversation)}")])
    return 0


def take_in(folder: Path, npc: str, source: Path) -> int:
    """Take over the conversation in a file, all of it or nothing."""
    path = source.absolute()
    opened_game(folder)
    from evennia_ai.cli.game import history

    with _opened(path, source) as file:
        made, records = history.taken_in(npc, file)
    told = f"{source}: {records} records, conversation {history.named(made)} of {npc}"
    write_lines([visible(told)])
    return 0


@contextmanager
def _opened(path: Path, source: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise FormatError("transcript", f"{source}: cannot be read: {error.strerror}") from error


def _line(one: "Checked", which: str) -> str:
    state = "the chain holds" if one.broken is None else f"BROKEN at {one.broken}"
    return f"NPC #{one.conversation.npc_ref}: {which}: {one.records} records, {state}"


def _checked_object(one: "Checked") -> dict[str, Any]:
    where = one.conversation
    return {
        "npc": where.npc_ref,
        "conversation": where.id,
        "kind": where.kind,
        "partner": where.partner_ref,
        "place": where.place_ref,
        "records": one.records,
        "broken": asdict(one.broken) if one.broken else None,
    }


def replay_turn(folder: Path, npc: str, number: int, *, with_diff: bool, as_json: bool) -> int:
    """Print one past turn; status 1 where it is not what was sent, or the diff shows something."""
    opened_game(folder)
    from evennia_ai.cli.game import history

    npc_ref = history.npc_ref_of(npc)
    found = history.replayed(npc_ref, number)
    today = history.against_today(npc_ref, number) if with_diff else None
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
    from evennia_ai.cli.game import history

    npc_ref = history.npc_ref_of(npc)
    edit = history.edit_in(path)
    total, stream = history.comparisons(npc_ref, edit, newest=newest, number=number)
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
