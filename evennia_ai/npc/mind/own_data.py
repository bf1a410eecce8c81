"""What NPCs keep of a player, as that player may read it, how it is erased, and reports of players.

A player reads their own whispers. A text that a lock hides from the player stays hidden: an NPC may
have learnt something about a player from a page that the player may not view.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

from evennia_ai.engine.history.records import Record
from evennia_ai.engine.prompt.names import wearer_of
from evennia_ai.engine.prompt.personas import Persona
from evennia_ai.engine.text.phrases import NUMBER, Phrase
from evennia_ai.npc.mind.viewers import viewer_of
from evennia_ai.npc.senses.happenings import npcs_in
from evennia_ai.npc.senses.presence import NPC, object_of, room_ref_of
from evennia_ai.npc.senses.text import plain_name
from evennia_ai.npc.views.visibility import Seer
from evennia_ai.npc.views.withheld.viewer import WHISPERED
from evennia_ai.store.erasing import Erased, Forgotten
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.past_turns import newest_words, turn_of_words
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.reports import StoredReport, newest_reports
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.store.personal_data import KeptByNPC, PersonalData

ERASED: Final = "(erased)"


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


def forget_question(found: Forgotten, *, player: str, npc: str) -> Phrase | None:
    """Return the question before an erasure of `found`, None if there is nothing to erase.

    Args:
        player: The name of the player.
        npc: The name of the NPC, "" for all NPCs.
    """
    if found == Forgotten(said=Erased(), memories=0):
        return None
    return Phrase(
        "Erase {what}: {counts}? This cannot be undone.",
        what=forgotten_things(player, npc),
        counts=counts_in_words(found),
    )


def forgotten_in_words(done: Forgotten, *, player: str, npc: str) -> Phrase:
    """Return what was erased. The arguments are those of `forget_question`."""
    told = Phrase(
        "Erased {what}: {counts}. What was said aloud in rooms stays, as do exported files and"
        " backups.",
        what=forgotten_things(player, npc),
        counts=counts_in_words(done),
    )
    if not done.calls:
        return told
    calls = Phrase(
        "{number} call of a model was made for their words; that it was for theirs is forgotten.",
        plural="{number} calls of models were made for their words; that it was for theirs is"
        " forgotten.",
        number=done.calls,
    )
    return Phrase("{told} {calls}", told=told, calls=calls)


def forgotten_things(player: str, npc: str) -> Phrase:
    """Return what an erasure is about. The arguments are those of `forget_question`."""
    return Phrase(
        "the private conversations of {player} with {npc}, and the memories of {player}",
        player=player,
        npc=npc or Phrase("every NPC"),
    )


def counts_in_words(erased: Forgotten) -> Phrase:
    """Return how much was or would be erased."""
    said = erased.said
    told: list[Phrase] = []
    if erased.memories:
        told.append(Phrase("{number} memory", plural="{number} memories", number=erased.memories))
    if erased.persona:
        told.append(Phrase("the persona and what prompts told of it"))
    if erased.unlearnt:
        told.append(Phrase("what NPCs had still to learn from their words aloud"))
    if erased.reports:
        told.append(Phrase("{number} report", plural="{number} reports", number=erased.reports))
    if said.conversations or not told:
        told[:0] = [
            Phrase(
                "{number} conversation", plural="{number} conversations", number=said.conversations
            ),
            Phrase("{number} record", plural="{number} records", number=said.records),
            Phrase("{number} turn", plural="{number} turns", number=said.turns),
        ]
    return Phrase("{counts}", counts=tuple(told))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedReport:
    """A report of a player, as one member of the staff may read it."""

    id: int
    reported_at: float
    reporter_ref: str
    """The player's character; "" after the player had themselves forgotten."""
    npc_ref: str
    npc: str
    """The name of the NPC."""
    turn: int
    prompt_sha256: str
    why: str
    words: str


def list_reports(looker: Any, *, first: int, most: int) -> tuple[ListedReport, ...]:
    """Return `most` reports, the newest first, after leaving out the newest `first`.

    Only those who may read whispers get the words of a report about private words.

    Args:
        looker: The account or character of the staff.
    """
    viewer = viewer_of(looker)
    found = []
    for report in newest_reports(first=first, most=most):
        npc = object_of(report.npc_ref)
        why, words = report.why or ERASED, report.words or ERASED
        if report.conversation.kind == "private":
            if viewer.reads_whispers:
                viewer.note_reading(f"report {report.id}")
            else:
                why = words = WHISPERED
        found.append(
            ListedReport(
                id=report.id,
                reported_at=report.reported_at,
                reporter_ref=report.reporter_ref,
                npc_ref=report.npc_ref,
                npc=plain_name(npc.key) if npc is not None else f"#{report.npc_ref}",
                turn=report.turn,
                prompt_sha256=report.prompt_sha256,
                why=why,
                words=words,
            )
        )
    return tuple(found)


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
