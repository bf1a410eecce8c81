"""Past turns of a game, for the command line: whose they are, replayed, and with an edit.

Imported after `evennia_ai.cli.game_folder.opened_game` alone, because the store needs Django.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evennia_ai.cli.game_npcs import ref_among
from evennia_ai.errors import EvenniaAIError
from evennia_ai.history.turn.replay import Replay, replay
from evennia_ai.minds.edit_files import read_edit_file
from evennia_ai.minds.edits import AsOfToday, ProposedEdit
from evennia_ai.minds.past_inputs import PastReader
from evennia_ai.minds.recomposing import Comparison, compared, composed_again
from evennia_ai.store import conversations, past_turns, turns
from evennia_ai.store.turns import StoredTurn


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A past turn rebuilt from its records; `again` says what composing it again gave."""

    turn: StoredTurn
    replay: Replay
    again: str


def npc_ref_of(wanted: str) -> str:
    """The reference of the NPC that `wanted` means: `#12`, or a name.

    FormatError: no NPC of this name had a turn, or several had one.
    """
    return ref_among(wanted, past_turns.npc_refs(), did="had a turn")


def replayed(npc_ref: str, number: int) -> Replayed:
    """One past turn; NotStoredError: there is no turn of this number."""
    turn = turns.turn(npc_ref, number)
    records = conversations.records(turn.manifest.record_ids)
    return Replayed(turn=turn, replay=replay(turn.manifest, records), again=_again(turn))


def against_today(npc_ref: str, number: int) -> Comparison:
    """What this turn's prompt would be with all that is in force today."""
    return compared(turns.turn(npc_ref, number), AsOfToday(), PastReader())


def edit_in(path: Path) -> ProposedEdit:
    """The edit in a file."""
    return read_edit_file(path)


def comparisons(
    npc_ref: str, edit: ProposedEdit, *, newest: int | None, number: int | None
) -> tuple[int, Iterator[Comparison]]:
    """How many turns are compared, and each of them with the edit, read as it is asked for.

    All of them, the `newest`, or the one of this `number`.
    """
    reader = PastReader()
    if number is not None:
        return 1, iter([compared(turns.turn(npc_ref, number), edit, reader)])
    total = past_turns.count_of_turns(npc_ref)
    stream = past_turns.turns_in_order(npc_ref, newest=newest)
    count = total if newest is None else min(newest, total)
    return count, (compared(turn, edit, reader) for turn in stream)


def _again(turn: StoredTurn) -> str:
    try:
        prompt = composed_again(turn, PastReader())
    except EvenniaAIError as error:
        return f"cannot be composed again: {error}"
    if prompt.sha256 == turn.manifest.sha256:
        return "composed again from what it was made of, it is the same bytes"
    return "composed again from what it was made of, it is another prompt"
