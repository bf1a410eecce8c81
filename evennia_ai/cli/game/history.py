"""Conversations and past turns of a game: checked, taken out and in, replayed, and with an edit.

Which NPC is meant is told as `#12`, or by a name. Imported after
`evennia_ai.cli.game.folder.opened_game` alone, because the store needs Django.
"""

import contextlib
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evennia_ai.errors import EvenniaAIError, FormatError
from evennia_ai.history.turn.replay import Replay, replay
from evennia_ai.minds.edit_files import read_edit_file
from evennia_ai.minds.edits import AsOfToday, ProposedEdit
from evennia_ai.minds.past_inputs import PastReader
from evennia_ai.minds.recomposing import Comparison, compared, composed_again
from evennia_ai.store.history import conversations, hash_chain, past_turns, turns
from evennia_ai.store.history.conversations import ConversationRef
from evennia_ai.store.history.hash_chain import Broken
from evennia_ai.store.history.transcripts import export_lines, import_lines
from evennia_ai.store.history.turns import StoredTurn

with contextlib.redirect_stdout(sys.stderr):  # Evennia may print while it is imported
    from evennia.objects.models import ObjectDB

    from evennia_ai.game.senses.presence import HasMind

_REF = re.compile(r"#([0-9]{1,18})")


def ref_among(wanted: str, known: Collection[str], *, did: str) -> str:
    """The reference among `known` that `wanted` means; `did` says what these NPCs did.

    An NPC that is gone is known by its number. FormatError: none or several are meant.
    """
    by_ref = _REF.fullmatch(wanted)
    if by_ref is not None:
        if by_ref[1] not in known:
            raise FormatError("npc", f"the object {wanted} is none that {did}")
        return by_ref[1]
    named = ObjectDB.objects.filter(db_key__iexact=wanted).values_list("id", flat=True)
    return _only([str(one) for one in named if str(one) in known], wanted, did=did)


def ref_of_npc(wanted: str) -> str:
    """The reference of the NPC that `wanted` means, whatever it did."""
    by_ref = _REF.fullmatch(wanted)
    meant = {"id": by_ref[1]} if by_ref else {"db_key__iexact": wanted}
    there: Iterable[Any] = ObjectDB.objects.filter(**meant)
    found = [str(one.id) for one in there if _is_npc(one)]
    return _only(found, wanted, did="is an NPC with a mind")


def _is_npc(found: Any) -> bool:
    return isinstance(found, HasMind)


def _only(found: Collection[str], wanted: str, *, did: str) -> str:
    if len(found) == 1:
        return next(iter(found))
    if found:
        which = ", ".join(f"#{one}" for one in sorted(found, key=int))
        raise FormatError("npc", f"'{wanted}' could be {which}; name one so")
    raise FormatError(
        "npc", f"nobody called '{wanted}' {did}; name the NPC as the game does, or as #12"
    )


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


_DID = "had a conversation"
_MOST_NAMED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A conversation, how many records it has, and the first that is not what was written."""

    conversation: ConversationRef
    records: int
    broken: Broken | None


def checked(npc: str | None) -> Iterator[Checked]:
    """The conversations of one NPC, or of all, each checked as it is asked for."""
    known = conversations.npc_refs()
    refs = known if npc is None else (ref_among(npc, known, did=_DID),)
    for ref in refs:
        for one in conversations.conversations_of(ref):
            yield Checked(
                conversation=one, records=hash_chain.length(one), broken=hash_chain.verify(one)
            )


def conversation_of(npc: str, number: int | None) -> ConversationRef:
    """The NPC's conversation of this number, or its only one; FormatError: which there are."""
    known = conversations.conversations_of(ref_among(npc, conversations.npc_refs(), did=_DID))
    found = [one for one in known if number in (None, one.id)]
    if len(found) == 1:
        return found[0]
    problem = f"no conversation {number}" if number else "several conversations"
    which = "; ".join(named(one) for one in known[:_MOST_NAMED])
    more = f"; and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
    raise FormatError(
        "conversation", f"{npc} has {problem}; name one with --conversation: {which}{more}"
    )


def lines_of(conversation: ConversationRef) -> Iterator[bytes]:
    """The conversation as lines of a file."""
    return (f"{line}\n".encode() for line in export_lines(conversation))


def taken_in(npc: str, lines: Iterable[bytes]) -> tuple[ConversationRef, int]:
    """The conversation that the lines tell, the NPC's own now, and how many records it has."""
    made = import_lines(lines, npc_ref=ref_of_npc(npc))
    return made, hash_chain.length(made)


def named(conversation: ConversationRef) -> str:
    """Which conversation it is."""
    if conversation.kind == "private":
        return f"{conversation.id}, in private with #{conversation.partner_ref}"
    return f"{conversation.id}, in room #{conversation.place_ref}"
