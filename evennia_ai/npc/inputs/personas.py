"""The persona of the speaking player, as a block of facts and as a text that lore may scan."""

from dataclasses import replace
from functools import lru_cache
from typing import Final

from evennia_ai.engine.history.role_markup import neutralize_markup
from evennia_ai.engine.lorebook.entry import SourceName
from evennia_ai.engine.prompt.blocks import DynamicBlock
from evennia_ai.engine.prompt.personas import NotePlace, Persona, persona_block
from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.text import one_line
from evennia_ai.npc.views.view import NPCView
from evennia_ai.store.authored.notes import NOTE
from evennia_ai.store.authored.personas import persona_of

_OF_NPCS: Final = "NPC"


def spoken_persona(view: NPCView, event: Event | None) -> Persona | None:
    """Return the persona of the player who caused the event, None if there is none.

    Makes no query once cached.
    """
    if not view.sources.conf.persona_characters or event is None or not event.speaker_ref:
        return None
    if event.speaker_rank == _OF_NPCS or event.known_ref != event.speaker_ref:
        return None
    persona = persona_of(event.speaker_ref)
    return persona if persona is not None and persona.is_read_by_npcs else None


def persona_blocks(view: NPCView, event: Event | None) -> tuple[DynamicBlock, ...]:
    """Return the block with the speaker's persona, an empty tuple without one."""
    persona = spoken_persona(view, event)
    if persona is None or event is None:
        return ()
    block = persona_block(
        replace(persona, text=_plain(persona.text)),
        owner_ref=event.speaker_ref,
        name=event.speaker_name,
        note=_note_place(view),
    )
    return () if block is None else (block,)


@lru_cache(maxsize=256)
def _plain(text: str) -> str:
    """Return a persona on one line, without markup that could imitate facts or messages."""
    return neutralize_markup(one_line(text))


def persona_sources(view: NPCView, event: Event | None) -> dict[SourceName, str]:
    """Return the speaker's persona as a text that lore entries may scan."""
    persona = spoken_persona(view, event)
    return {} if persona is None else {"persona": persona.text}


def _note_place(view: NPCView) -> NotePlace:
    """Return the place of the NPC's author's note, next to which a persona may be placed.

    It is the note with the default key, else the first one.
    """
    notes = [note for note in view.sources.notes if note.enabled and note.content]
    notes.sort(key=lambda note: note.key != NOTE)
    return NotePlace(depth=notes[0].depth, order=notes[0].order) if notes else NotePlace()
