"""What NPCs keep of a player, as that player may read it, and the words that a player may report.

A player reads their own whispers. A text that a lock hides from the player stays hidden: an NPC may
have learnt something about a player from a page that the player may not view.
"""

from dataclasses import dataclass, replace
from typing import Any

from evennia_ai.engine.history.records import Record
from evennia_ai.engine.prompt.names import wearer_of
from evennia_ai.engine.prompt.personas import Persona
from evennia_ai.engine.text.phrases import NUMBER, Phrase
from evennia_ai.npc.mind.viewers import viewer_of
from evennia_ai.npc.senses.happenings import npcs_in
from evennia_ai.npc.senses.presence import NPC, object_of, room_ref_of
from evennia_ai.npc.senses.text import plain_name
from evennia_ai.npc.views.visibility import Seer
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.past_turns import newest_words, turn_of_words
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.reports import StoredReport
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.store.personal_data import KeptByNPC, PersonalData


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLine:
    """A line that was said."""

    said_at: float
    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnDataOfNPC:
    """What one NPC keeps of a player."""

    npc_ref: str
    name: str
    memories: tuple[str, ...]
    private: tuple[KeptLine, ...]
    aloud: tuple[KeptLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnData:
    """What is kept of a player, as the player may read it."""

    persona: Persona | None
    npcs: tuple[OwnDataOfNPC, ...]
    reports: tuple[StoredReport, ...]


def kept_in_words(npc: OwnDataOfNPC) -> Phrase:
    """Return how much an NPC keeps of a player."""
    memories, private, aloud = len(npc.memories), len(npc.private), len(npc.aloud)
    counts = (
        Phrase("{number} memory", plural="{number} memories", number=memories),
        Phrase("{number} line in private", plural="{number} lines in private", number=private),
        Phrase("{number} line aloud", plural="{number} lines aloud", number=aloud),
    )
    return Phrase("{kept}", kept=tuple(one for one in counts if one.values[NUMBER]))


def own_data(player: Any, data: PersonalData) -> OwnData:
    """Return what is kept of a player without what locks hide from them.

    Args:
        player: The player's character.
    """
    viewer = replace(viewer_of(player), reads_whispers=True, note_reading=lambda _: None)
    return OwnData(
        persona=data.persona,
        npcs=tuple(_of_npc(Seer(viewer, one.npc_ref), one) for one in data.npcs),
        reports=data.reports,
    )


def _of_npc(seer: Seer, kept: KeptByNPC) -> OwnDataOfNPC:
    npc = object_of(kept.npc_ref)
    name = plain_name(npc.key) if npc is not None else f"#{kept.npc_ref}"
    return OwnDataOfNPC(
        npc_ref=kept.npc_ref,
        name=name,
        memories=tuple(seer.memory(one) or one.text for one in kept.memories),
        private=tuple(_line(seer, one, name) for one in kept.private),
        aloud=tuple(_line(seer, one, name) for one in kept.aloud),
    )


def _line(seer: Seer, record: Record, npc_name: str) -> KeptLine:
    name = record.name or npc_name
    return KeptLine(said_at=record.created_at, name=name, text=seer.record(record).body)


def newest_words_to(player: Any, npc: NPC | None = None) -> tuple[StoredTurn, Record] | None:
    """Return the newest words that an NPC said to a player or in their room, with the turn.

    Args:
        player: The player's character.
        npc: The NPC; None: any NPC in the room.
    """
    npcs = npcs_in(player.location) if npc is None else [npc]
    newest: tuple[str, Record] | None = None
    for ref in (one.ai.ref for one in npcs):
        said = _newest_of(player, ref)
        if said is not None and (newest is None or int(said.id) > int(newest[1].id)):
            newest = ref, said
    if newest is None:
        return None
    turn = turn_of_words(*newest)
    return None if turn is None else (turn, newest[1])


def _newest_of(player: Any, npc_ref: str) -> Record | None:
    could_hear = {one.id for one in conversations_of(npc_ref) if _hears(player, one)}
    return next((one for one in newest_words(npc_ref) if one.conversation in could_hear), None)


def _hears(player: Any, where: ConversationRef) -> bool:
    """True if a player who is in their present room could hear a conversation."""
    if where.kind == "private":
        return wearer_of(where.partner_ref) == str(player.id)
    return where.place_ref == room_ref_of(player)
