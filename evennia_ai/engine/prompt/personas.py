"""Personas: what a player writes of their own character, for the NPCs that this player speaks to.

A persona is the player's text. It is data: never a template, never of role system, always on one
line. The prompt has the persona of the current speaker only. Usually it is among the facts of the
moment, after the history, so another speaker changes nothing that a provider has in its cache. Next
to the note it has the note's depth, whether or not the note is due.
"""

from typing import Final, Literal, get_args

from evennia_ai.engine.prompt.blocks import DynamicBlock
from evennia_ai.engine.prompt.memo import typed_frozen
from evennia_ai.engine.prompt.names import bounded

PersonaPlace = Literal["prompt", "depth", "before_note", "after_note", "none"]
PERSONA_PLACES: Final[tuple[PersonaPlace, ...]] = get_args(PersonaPlace)
NOTE_DEPTH: Final = 4
"""Where a note stands that nobody gave a depth, for an NPC without one."""
USUAL_DEPTH: Final = 2
"""As SillyTavern has it."""
MOST_DEPTH: Final = 4
"""The greatest depth that a player may choose.

A persona changes with the speaker. Everything after it in the history leaves the cache of the
provider, and all players of a room share that cache.
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
    """Messages from the newest, where the place is "depth"."""

    @property
    def is_told(self) -> bool:
        """Whether NPCs are told of it at all."""
        return bool(self.text) and self.place != "none"


@typed_frozen
class NotePlace:
    """Where the note of an NPC stands, beside which a persona may."""

    depth: int = NOTE_DEPTH
    order: float = _USUAL_ORDER


def persona_key(owner_ref: str) -> str:
    """What the block of a character's persona is called: by whose it is, so that it is found."""
    return f"{_KEY}:#{owner_ref}"


def persona_origin(owner_ref: str) -> str:
    """What the trace calls it."""
    return f"block:{persona_key(owner_ref)}"


def persona_block(
    persona: Persona, *, owner_ref: str, name: str, note: NotePlace
) -> DynamicBlock | None:
    """The persona of who speaks as a block of facts, None where there is nothing to tell."""
    if not persona.is_told:
        return None
    said = " ".join(persona.text.split())
    text = f"How {bounded(name)} is described by their player, in the player's words: {said}"
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
