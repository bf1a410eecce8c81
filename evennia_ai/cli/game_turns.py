"""Past turns of a game, for the command line: whose they are, replayed, and with an edit.

Imported after `evennia_ai.cli.game_folder.opened_game` alone, because the store needs Django.
"""

import contextlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evennia_ai.history.replay import Replay, replay
from evennia_ai.prompt.errors import EvenniaAIError, FormatError
from evennia_ai.store import conversations, past_turns, turns
from evennia_ai.store.turns import StoredTurn

with contextlib.redirect_stdout(sys.stderr):  # Evennia may print while it is imported
    from evennia.objects.models import ObjectDB

    from evennia_ai.game.edit_files import read_edit_file
    from evennia_ai.game.edits import AsOfToday, ProposedEdit
    from evennia_ai.game.past_inputs import PastReader
    from evennia_ai.game.recomposing import Comparison, compared, composed_again

_REF = re.compile(r"#([0-9]{1,18})")


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
    known = past_turns.npc_refs()
    by_ref = _REF.fullmatch(wanted)
    if by_ref is not None:
        if by_ref[1] not in known:
            raise FormatError("npc", f"the object {wanted} had no turn: nobody was answered by it")
        return by_ref[1]
    named = ObjectDB.objects.filter(db_key__iexact=wanted).values_list("id", flat=True)
    found = sorted(str(one) for one in named if str(one) in known)
    if len(found) == 1:
        return found[0]
    if found:
        which = ", ".join(f"#{one}" for one in found)
        raise FormatError("npc", f"'{wanted}' could be {which}; name one so")
    raise FormatError(
        "npc", f"nobody called '{wanted}' had a turn; name the NPC as the game does, or as #12"
    )


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
