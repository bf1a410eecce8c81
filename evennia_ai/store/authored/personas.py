"""Store the personas of players' characters.

Only the player decides about the text, and earlier texts are not kept. After a player clears a
persona, only past prompts still contain it. On request, `evennia_ai.store.erasing` removes it from
them too.
"""

import re
import time
from typing import Final

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import ComponentValueError
from evennia_ai.engine.history.records import make_storable
from evennia_ai.engine.prompt.personas import MOST_DEPTH, PERSONA_PLACES, Persona
from evennia_ai.store.core.snapshots import PERSONAS, Snapshots, changing

_CONTROL: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def set_persona(owner_ref: str, persona: Persona, *, most_characters: int, by: Actor) -> Persona:
    """Store the persona of a character. It replaces the earlier one, but not what that kept.

    Raises:
        ComponentValueError: the text is longer than `most_characters` or has control characters, or
            the place or depth is not allowed.
        NotPermittedError: `by` does not play the character.
    """
    _check(persona, most_characters)
    doing = f"writing the persona of {owner_ref}"
    with changing(PERSONAS, doing, by=by):
        by.check_own(doing, owner_ref)
        models.Persona.objects.update_or_create(
            owner_ref=owner_ref,
            defaults={
                "content": persona.text,
                "place": persona.place,
                "depth": persona.depth,
                "changed_at": time.time(),
                **({"kept": persona.kept} if persona.kept else {}),
            },
        )
        persona_of.note_change(owner_ref)
    return persona


def clear_persona(owner_ref: str, *, by: Actor) -> bool:
    """Remove a character's persona.

    Returns:
        True if there was one.

    Raises:
        NotPermittedError: `by` does not play the character.
    """
    doing = f"clearing the persona of {owner_ref}"
    with changing(PERSONAS, doing, by=by):
        by.check_own(doing, owner_ref)
        return erase_persona_text(owner_ref, by=by)


def erase_persona_text(owner_ref: str, *, by: Actor) -> bool:
    """Remove a character's persona because a builder erases the person.

    Returns:
        True if there was one.
    """
    with changing(PERSONAS, f"erasing the persona of {owner_ref}", by=by):
        removed, _ = models.Persona.objects.filter(owner_ref=owner_ref).delete()
        persona_of.note_change(owner_ref)
    return removed > 0


def persona_owners() -> tuple[str, ...]:
    """Return the references of the characters that have a persona."""
    rows = models.Persona.objects.order_by("owner_ref")
    return tuple(rows.values_list("owner_ref", flat=True))


def _check(persona: Persona, most_characters: int) -> None:
    text = persona.text
    if len(text) > most_characters:
        wanted = f"at most {most_characters} characters (EVENNIA_AI_PERSONA_CHARACTERS)"
        raise ComponentValueError("persona", f"{len(text)} characters", wanted)
    if make_storable(text) != text or _CONTROL.search(text):
        raise ComponentValueError("persona", text[:40], "text without control characters")
    if persona.place not in PERSONA_PLACES:
        raise ComponentValueError("persona's place", persona.place, ", ".join(PERSONA_PLACES))
    if not 0 <= persona.depth <= MOST_DEPTH:
        wanted = f"a whole number, 0 to {MOST_DEPTH}"
        raise ComponentValueError("persona's depth", persona.depth, wanted)


def _load(owner_ref: str) -> Persona | None:
    row = models.Persona.objects.filter(owner_ref=owner_ref).first()
    if row is None:
        return None
    return Persona(text=row.content, place=row.place, depth=row.depth, kept=row.kept)


persona_of: Final = Snapshots(PERSONAS, _load)
"""Return the persona of a character, or None.

Every call returns the same object until it is changed.
"""
