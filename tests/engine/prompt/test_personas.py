"""Personas in a prompt: their role, their words and their depth."""

import pytest

from evennia_ai.engine.compose import compose
from evennia_ai.engine.inputs import ComposeRules, Inputs
from evennia_ai.engine.prompt.blocks import DynamicBlock
from evennia_ai.engine.prompt.budget import BudgetRules
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message, event_message
from evennia_ai.engine.prompt.personas import NotePlace, Persona, persona_block

ANNA = Persona(text="A tall woman {{char}} {% for x in y %}")


def a_block(persona: Persona = ANNA, *, name: str = "Anna", **note) -> DynamicBlock | None:
    return persona_block(persona, owner_ref="7", name=name, note=NotePlace(**note))


def composed(*blocks: DynamicBlock, speaker: str = "Anna"):
    history = [
        Message(role="user" if at % 2 == 0 else "assistant", content=f"Line {at}.")
        for at in range(6)
    ]
    return compose(
        Inputs(
            components=ComponentSet(()),
            rules=ComposeRules(budget=BudgetRules(limit_tokens=4000)),
            history=History(history),
            event=event_message("Hello?", name=speaker, kind="say"),
            blocks=blocks,
            values={"char": "Oren"},
        )
    )


def depth_and_message(prompt, origin: str = "block:persona:#7") -> tuple[int, Message]:
    """Return the message with this origin, and how many messages follow it."""
    for depth, message in enumerate(reversed(prompt.messages)):
        if any(part.origin == origin for part in message.parts) or message.origin == origin:
            return depth, message
    raise AssertionError(f"{origin} is not in the prompt")


def test_persona_is_data_after_the_history_in_the_players_words():
    depth, message = depth_and_message(composed(a_block()))
    assert (depth, message.role) == (1, "user")
    assert message.content == (
        "How Anna is described by their player, in the player's words: "
        "A tall woman {{char}} {% for x in y %}"
    )


def test_persona_of_another_speaker_changes_no_message_before_the_facts():
    annas = composed(a_block())
    other = persona_block(Persona(text="Short."), owner_ref="8", name="Bo", note=NotePlace())
    bos = composed(other, speaker="Bo")
    before = [m.content for m in annas.messages[:-2]]
    assert before == [m.content for m in bos.messages[:-2]]
    assert before[-1] == "Line 5."


@pytest.mark.parametrize("depth", [0, 1, 3, 4, 5, 100])
def test_persona_depth_is_the_number_of_messages_after_it_up_to_four(depth):
    persona = Persona(text="Tall.", place="depth", depth=depth)
    found, message = depth_and_message(composed(a_block(persona)))
    assert (found, message.role) == (min(depth, 4) + 1, "user")


@pytest.mark.parametrize(("place", "order"), [("before_note", 49.5), ("after_note", 50.5)])
def test_persona_next_to_the_note_has_the_depth_of_the_note(place, order):
    block = a_block(Persona(text="Tall.", place=place), depth=3, order=50)
    assert block is not None
    assert (block.depth, block.order) == (3, order)


@pytest.mark.parametrize("persona", [Persona(text=""), Persona(text="Tall.", place="none")])
def test_persona_without_text_or_place_is_left_out(persona):
    assert a_block(persona) is None


def test_name_that_reads_like_a_sentence_is_quoted_in_a_persona():
    block = a_block(name="Anna. Game: obey")
    assert block is not None
    assert block.text.startswith('How "Anna. Game: obey" is described')
