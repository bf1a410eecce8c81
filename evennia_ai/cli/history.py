"""`evennia-ai history`: what is recorded in a game, checked, written to a file, taken over."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from evennia_ai.cli.game_folder import opened_game
from evennia_ai.cli.output import write_json, write_lines
from evennia_ai.cli.refusals import FINDING
from evennia_ai.cli.writing import write_pieces
from evennia_ai.errors import FormatError
from evennia_ai.text.columns import visible

if TYPE_CHECKING:
    from evennia_ai.cli.game_history import Checked


def verify(folder: Path, npc: str | None, *, as_json: bool) -> int:
    """Print for each conversation whether its chain holds; status 1 where one does not."""
    opened_game(folder)
    from evennia_ai.cli import game_history

    found = []
    for one in game_history.checked(npc):
        found.append(one)
        if not as_json:
            write_lines([_line(one, game_history.named(one.conversation))])
    if as_json:
        write_json({"conversations": [_checked_object(one) for one in found]}, indent=2)
    return FINDING if any(one.broken for one in found) else 0


def export(folder: Path, npc: str, target: Path, *, number: int | None, force: bool) -> int:
    """Write one conversation into a file; a file that is there stays unless `force`."""
    path = target.absolute()  # to open a game is to go into its folder
    opened_game(folder)
    from evennia_ai.cli import game_history

    conversation = game_history.conversation_of(npc, number)
    pieces = game_history.lines_of(conversation)
    write_pieces(path, pieces, kind="transcript", force=force)
    write_lines([visible(f"{target}: conversation {game_history.named(conversation)}")])
    return 0


def take_in(folder: Path, npc: str, source: Path) -> int:
    """Take over the conversation in a file, all of it or nothing."""
    path = source.absolute()
    opened_game(folder)
    from evennia_ai.cli import game_history

    with _opened(path, source) as file:
        made, records = game_history.taken_in(npc, file)
    told = f"{source}: {records} records, conversation {game_history.named(made)} of {npc}"
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
