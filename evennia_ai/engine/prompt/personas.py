"""Personas: a player's description of their character, for NPCs to read.

A persona is a text of a player. It is data: never a template, never of role system, always on one
line. A prompt only contains the persona of the current speaker. Usually the persona is among the
facts of the moment, after the history. There a change of the speaker leaves the provider's cache
valid. A persona that is placed next to the author's note has the note's depth, whether or not the
note is due.
"""

from typing import Final, Literal, get_args

from evennia_ai.engine.prompt.blocks import DynamicBlock
from evennia_ai.engine.prompt.memo import typed_frozen
from evennia_ai.engine.prompt.names import quote_name

PersonaPlace = Literal["prompt", "depth", "before_note", "after_note", "none"]
PERSONA_PLACES: Final[tuple[PersonaPlace, ...]] = get_args(PersonaPlace)
NOTE_DEPTH: Final = 4
"""The depth of an author's note if neither the note nor the NPC sets one."""
USUAL_DEPTH: Final = 2
"""The default depth of a persona, as in SillyTavern: two messages come after it."""
MOST_DEPTH: Final = 4
"""The greatest depth that a player may choose for a persona.

A persona changes with the speaker. Then the provider's cache of everything after the persona is
lost, and all players in a room share that cache. So the persona must be close to the end.
"""
_KEY: Final = "persona"
_USUAL_ORDER: Final = 100.0
_BESIDE: Final[dict[PersonaPlace, float]] = {"before_note": -0.5, "after_note": 0.5}


@typed_frozen
class Persona:
    """A player's description of their character."""

    text: str
    place: PersonaPlace = "prompt"
    depth: int = USUAL_DEPTH
    """The number of messages after the persona, if its place is "depth"."""
    kept: str = ""
    """What SillyTavern stores about the persona, as JSON, so that an export can write it again."""

    @property
    def is_read_by_npcs(self) -> bool:
        """True if NPCs get to read the persona."""
        return bool(self.text) and self.place != "none"


@typed_frozen
class NotePlace:
    """The place of an NPC's author's note. A persona may be placed next to it."""

    depth: int = NOTE_DEPTH
    order: float = _USUAL_ORDER


def persona_key(owner_ref: str) -> str:
    """Return the key for the block of facts that has a character's persona."""
    return f"{_KEY}:#{owner_ref}"


def persona_origin(owner_ref: str) -> str:
    """Return the name of a character's persona in the trace."""
    return f"block:{persona_key(owner_ref)}"


def persona_block(
    persona: Persona, *, owner_ref: str, name: str, note: NotePlace
) -> DynamicBlock | None:
    """Return the speaker's persona as a block of facts; None if NPCs do not read it.

    Args:
        persona: The persona.
        owner_ref: The reference of the character that the persona describes.
        name: The character's name, as the NPC knows it.
        note: The place of the NPC's note.
    """
    if not persona.is_read_by_npcs:
        return None
    said = " ".join(persona.text.split())
    text = f"How {quote_name(name)} is described by their player, in the player's words: {said}"
    key = persona_key(owner_ref)
    if persona.place == "prompt":
        return DynamicBlock(key=key, text=text)
    is_beside = persona.place in _BESIDE
    return DynamicBlock(
        key=key,
        text=text,
        depth=note.depth if is_beside else min(persona.depth, MOST_DEPTH),
        order=note.order + _BESIDE[persona.place] if is_beside else _USUAL_ORDER,
    )
