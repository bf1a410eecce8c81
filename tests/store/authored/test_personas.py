"""Test stored personas: each belongs to its player, has limits, and can be erased completely."""

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import ComponentValueError
from evennia_ai.engine.prompt.personas import Persona
from evennia_ai.store.authored.personas import (
    clear_persona,
    persona_of,
    persona_owners,
    set_persona,
)
from evennia_ai.store.core.snapshots import forget_everything

TALL = Persona(text="Tall.", place="depth", depth=3)


def written(persona: Persona = TALL, *, owner: str = "7", most_characters: int = 20) -> Persona:
    return set_persona(owner, persona, most_characters=most_characters, by=trusted("Anna"))


def test_persona_is_read_by_another_process():
    written()
    forget_everything()
    assert persona_of("7") == TALL
    assert persona_of("8") is None


def test_new_persona_replaces_the_old_one():
    written()
    written(Persona(text="Short."))
    assert persona_of("7") == Persona(text="Short.")
    assert persona_owners() == ("7",)


def test_cleared_persona_is_gone():
    written()
    assert clear_persona("7", by=trusted("Anna")) is True
    assert clear_persona("7", by=trusted("Anna")) is False
    assert persona_of("7") is None


@pytest.mark.parametrize(
    ("persona", "problem"),
    [
        (Persona(text="x" * 21), "EVENNIA_AI_PERSONA_CHARACTERS"),
        (Persona(text="a\x1b[2J"), "text without control characters"),
        (Persona(text="a\x00"), "text without control characters"),
        (Persona(text="a", place="system"), "persona's place"),
        (Persona(text="a", depth=-1), "persona's depth"),
        (Persona(text="a", depth=5), "persona's depth"),
        (Persona(text="a", depth=10**10), "persona's depth"),
    ],
)
def test_oversized_or_misplaced_persona_is_refused(persona, problem):
    written()
    with pytest.raises(ComponentValueError, match=problem):
        written(persona)
    assert persona_of("7") == TALL
