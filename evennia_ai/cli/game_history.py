"""Conversations of a game, for the command line: checked, taken out and in.

Imported after `evennia_ai.cli.game_folder.opened_game` alone, because the store needs Django.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evennia_ai.cli.game_npcs import ref_among, ref_of_npc
from evennia_ai.errors import FormatError
from evennia_ai.store import chains, conversations
from evennia_ai.store.chains import Broken
from evennia_ai.store.conversations import ConversationRef
from evennia_ai.store.transcripts import export_lines, import_lines

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
            yield Checked(conversation=one, records=chains.length(one), broken=chains.verify(one))


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
    return made, chains.length(made)


def named(conversation: ConversationRef) -> str:
    """Which conversation it is."""
    if conversation.kind == "private":
        return f"{conversation.id}, in private with #{conversation.partner_ref}"
    return f"{conversation.id}, in room #{conversation.place_ref}"
