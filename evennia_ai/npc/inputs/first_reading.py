"""Reads what an NPC's first turn needs from the store in the writer's thread.

From then on it is in memory and follows every write. Data that one query returns for many NPCs is
read for the NPCs in the same room too, because their first turns are likely to be next.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Final

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.engine.prompt.messages import message_tokens
from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.npc.inputs.book_builds import LONG
from evennia_ai.npc.inputs.mind import Mind
from evennia_ai.npc.recording.heard import CommittedEvent, newest_rooms
from evennia_ai.npc.recording.writer import Writer
from evennia_ai.npc.senses.labels import Bearer, OlderIds, foresee_names, older_ids, strangers_to
from evennia_ai.npc.senses.presence import MIND, bystanders, is_npc, scopes_of
from evennia_ai.npc.views.parse_cache import read_ahead
from evennia_ai.npc.views.presets import parsed_preset
from evennia_ai.services.llm.chat import ChatMessage
from evennia_ai.services.llm.roles import chat_messages
from evennia_ai.store import memories
from evennia_ai.store.authored import components, contexts
from evennia_ai.store.authored.cards import card_of
from evennia_ai.store.authored.lorebooks import load_books
from evennia_ai.store.authored.notes import notes_for
from evennia_ai.store.authored.personas import persona_of
from evennia_ai.store.authored.presets import preset_for
from evennia_ai.store.history import turns
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.windows import lore_states, windows

COUNTER: Final = ESTIMATE
"""The token counter of prompts in the game."""

MOST_BESIDE: Final = 20
"""The most NPCs of the room that are read together with the one whose turn it is."""

Fit = Callable[[Sequence[ChatMessage]], object]
"""Converts messages for a model; each message caches its conversion."""


async def read_first(mind: Mind, heard: CommittedEvent, writer: Writer, *, fit: Fit) -> None:
    """Read in the writer's thread, and convert and count the messages of the history.

    The writer has reported everything it committed before, so nothing read here is older.

    Raises:
        StoreError: The store cannot be read.
    """
    speaker = heard.event.known_ref
    of_speaker = (Scope(kind="player", ref=speaker),) if speaker else ()
    reading = _Reading(
        npc_ref=mind.ref,
        beside=_unread_beside(mind),
        scopes=scopes_of(mind.npc) + of_speaker,
        conversation=heard.conversation.id,
        speaker=speaker,
        strangers=strangers_to(mind.npc),
        fit=fit,
    )
    mind.lately.read, older = await writer.read(reading.done)
    foresee_names(mind.npc, older)


def _unread_beside(mind: Mind) -> tuple[str, ...]:
    """Return references of a few NPCs in the room that had no turn yet."""
    minds = (vars(one).get(MIND) for one in bystanders(mind.npc) if is_npc(one))
    unread = (one.ref for one in minds if one is not None and one.lately.read is None)
    return tuple(islice(unread, MOST_BESIDE))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """The plain values that say what to read."""

    npc_ref: str
    beside: tuple[str, ...]
    """Other NPCs, for data that one query returns for many."""
    scopes: tuple[Scope, ...]
    conversation: int
    speaker: str
    """The reference of the speaker, "" for nobody."""
    strangers: Sequence[Bearer]
    fit: Fit

    def done(self) -> tuple[tuple[ConversationRef, ...], OlderIds]:
        """Read it. Return the NPC's recent rooms, and who bore the strangers' names first."""
        rooms = newest_rooms(self.npc_ref)
        for known in (*(room.id for room in rooms), self.conversation):
            windows(known)
        self._read_messages()
        lore_states(self.conversation)
        turns.next_number(self.npc_ref)
        together = (self.npc_ref, *self.beside)
        memories.held_by.load_missing(together)
        notes_for.load_missing(together)
        load_books({*self.scopes, *(Scope(kind="npc", ref=ref) for ref in together)})
        components.registry()
        contexts.contexts()
        persona_of(self.speaker)
        self._read_card()
        self._read_preset()
        return rooms, older_ids(self.strangers)

    def _read_messages(self) -> None:
        """Count and convert the messages of the conversation."""
        history = tuple(windows(self.conversation).history)
        message_tokens(history, COUNTER)
        self.fit(chat_messages(history))

    def _read_card(self) -> None:
        """Parse the card and its book, unless it is long and `BookBuilds` parses it."""
        card = card_of(self.npc_ref)
        if card is not None and len(card.source) < LONG:
            with suppress(FormatError):  # reported where the view is made
                read_ahead(card)

    def _read_preset(self) -> None:
        """Parse the preset that applies to the NPC."""
        preset = preset_for(self.scopes)
        if preset is not None:
            with suppress(FormatError):  # reported where the view is made
                parsed_preset(preset)
