"""Reads what the first turn of an NPC needs from the store, in the writer's thread.

Later writes update the caches that this fills. Some queries return data for many NPCs. They include
other NPCs in the room, because their first turns probably come next.
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
from evennia_ai.store.authored.regex_scripts import game_scripts
from evennia_ai.store.history import turns
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.windows import lore_states, windows

COUNTER: Final = ESTIMATE
"""The token counter that all prompts of the game use."""

MOST_BESIDE: Final = 20
"""The most other NPCs in the room for which data is read too."""

Fit = Callable[[Sequence[ChatMessage]], object]
"""A function that converts messages for a model. Each message caches its conversion."""


async def read_first(mind: Mind, heard: CommittedEvent, writer: Writer, *, fit: Fit) -> None:
    """Read the data in the writer's thread.

    Count and convert the messages of the history there too.

    The thread has committed all earlier writes before, so the data is up to date.

    Raises:
        StoreError: The store cannot be read.
    """
    speaker = heard.event.known_ref
    of_speaker = (Scope(kind="player", ref=speaker),) if speaker else ()
    reading = _Reading(
        npc_ref=mind.ref,
        beside=_unread_neighbours(mind),
        scopes=scopes_of(mind.npc) + of_speaker,
        conversation=heard.conversation.id,
        speaker=speaker,
        strangers=strangers_to(mind.npc),
        fit=fit,
    )
    mind.lately.read, older = await writer.read(reading.done)
    foresee_names(mind.npc, older)


def _unread_neighbours(mind: Mind) -> tuple[str, ...]:
    """Return the references of a few other NPCs in the room that have had no turn yet."""
    minds = (vars(one).get(MIND) for one in bystanders(mind.npc) if is_npc(one))
    unread = (one.ref for one in minds if one is not None and one.lately.read is None)
    return tuple(islice(unread, MOST_BESIDE))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What to read, as plain values for the writer's thread."""

    npc_ref: str
    beside: tuple[str, ...]
    """Other NPCs, for queries that return data for many."""
    scopes: tuple[Scope, ...]
    conversation: int
    speaker: str
    """The reference of the speaker, "" for nobody."""
    strangers: Sequence[Bearer]
    fit: Fit

    def done(self) -> tuple[tuple[ConversationRef, ...], OlderIds]:
        """Fill the caches.

        Return the NPC's recent rooms, and older characters with the strangers' names.
        """
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
        game_scripts()
        persona_of(self.speaker)
        self._read_card()
        self._read_preset()
        return rooms, older_ids(self.strangers)

    def _read_messages(self) -> None:
        """Count the tokens of the conversation's messages, and convert them for the model."""
        history = tuple(windows(self.conversation).history)
        message_tokens(history, COUNTER)
        self.fit(chat_messages(history))

    def _read_card(self) -> None:
        """Parse the card and its book, unless they are long, when `BookBuilds` parses them."""
        card = card_of(self.npc_ref)
        if card is not None and len(card.source) < LONG:
            with suppress(FormatError):  # the error is reported when the view is made
                read_ahead(card)

    def _read_preset(self) -> None:
        """Parse the preset that applies to the NPC."""
        preset = preset_for(self.scopes)
        if preset is not None:
            with suppress(FormatError):  # the error is reported when the view is made
                parsed_preset(preset)
