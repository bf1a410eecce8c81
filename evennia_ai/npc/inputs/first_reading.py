"""What the first turn of an NPC asks the store for is read beside the reactor.

From then on it is in memory, and kept in step with whatever is written. What is one query for six
NPCs as for one is read for those beside it as well, whose first turns are likely to be next.
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
from evennia_ai.npc.senses.labels import Bearer, OlderIds, foresee, older_ids, strangers_to
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
"""What counts the tokens of prompts in the game."""

MOST_BESIDE: Final = 20
"""NPCs that are read with the one whose turn it is."""

Fit = Callable[[Sequence[ChatMessage]], object]
"""Makes messages what a model takes; what it makes of each is kept with it."""


async def read_first(mind: Mind, heard: CommittedEvent, writer: Writer, *, fit: Fit) -> None:
    """Have the thread of the writer read it, and work out of each message what stays known of it.

    The thread has told the reactor all that it had committed before, so nothing that is read is
    older. StoreError: it cannot be read.
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
    foresee(mind.npc, older)


def _unread_beside(mind: Mind) -> tuple[str, ...]:
    """The references of NPCs beside it that had no turn yet, a few of them."""
    minds = (vars(one).get(MIND) for one in bystanders(mind.npc) if is_npc(one))
    unread = (one.ref for one in minds if one is not None and one.lately.read is None)
    return tuple(islice(unread, MOST_BESIDE))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What is to be read, as plain values."""

    npc_ref: str
    beside: tuple[str, ...]
    """Of these is read what is read together."""
    scopes: tuple[Scope, ...]
    conversation: int
    speaker: str
    """The reference of who speaks, "" for nobody."""
    strangers: Sequence[Bearer]
    fit: Fit

    def done(self) -> tuple[tuple[ConversationRef, ...], OlderIds]:
        """Where the NPC was lately, and who bore the names of the strangers before them."""
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
        """Count and fit what the prompt will have of the conversation."""
        history = tuple(windows(self.conversation).history)
        message_tokens(history, COUNTER)
        self.fit(chat_messages(history))

    def _read_card(self) -> None:
        """Parse the card and the book in it; a long one is waited for beside."""
        card = card_of(self.npc_ref)
        if card is not None and len(card.source) < LONG:
            with suppress(FormatError):  # told where the view is made
                read_ahead(card)

    def _read_preset(self) -> None:
        """Parse the preset that counts for the NPC."""
        preset = preset_for(self.scopes)
        if preset is not None:
            with suppress(FormatError):  # told where the view is made
                parsed_preset(preset)
