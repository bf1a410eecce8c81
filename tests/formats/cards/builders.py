"""Builders of character cards for tests, and of the prompt that a card gives."""

from typing import Any

from evennia_ai.engine.compose import compose
from evennia_ai.engine.inputs import ComposeRules, Inputs
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.prompt.budget import BudgetRules
from evennia_ai.engine.prompt.components import ALL_GRANTS, Grants
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message, said
from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.engine.prompt.registry import with_statics
from evennia_ai.formats.cards.card import Card, macro_values, read_card
from evennia_ai.formats.cards.components import card_components, character_book


def card_data(**fields: Any) -> dict[str, Any]:
    """Return the JSON value of a valid V3 card."""
    texts = ("personality", "scenario", "first_mes", "mes_example", "creator_notes", "creator")
    more = ("system_prompt", "post_history_instructions", "character_version")
    data: dict[str, Any] = dict.fromkeys((*texts, *more), "")
    data |= {"name": "Marta", "description": "Marta keeps the lamp.", "tags": [], "extensions": {}}
    data |= {"alternate_greetings": [], "group_only_greetings": [], **fields}
    return {"spec": "chara_card_v3", "spec_version": "3.0", "data": data}


def a_card(**fields: Any) -> Card:
    return read_card(card_data(**fields))


def lore(content: str, **fields: Any) -> dict[str, Any]:
    """Return a constant lore entry for the book inside a card."""
    given = {"keys": ["unused"], "content": content, "extensions": {}, "enabled": True}
    return {**given, "insertion_order": 100, "use_regex": False, "constant": True, **fields}


def with_lore(*entries: dict[str, Any], **fields: Any) -> Card:
    return a_card(character_book={"extensions": {}, "entries": list(entries)}, **fields)


def messages_of(*lines: str) -> list[Message]:
    """Return messages for lines of the form `role: text`."""
    made = []
    for line in lines:
        role, _, content = line.partition(": ")
        made.append(said(role, content))  # type: ignore[arg-type]
    return made


def prompt_of(
    card: Card,
    *lines: str,
    grants: Grants = ALL_GRANTS,
    user: str = "Anna",
    **defaults: Any,
) -> Prompt:
    """Return the prompt of a card in the layout `classic`, without any texts of a game."""
    book = character_book(card, grants=grants)
    rules = ActivationRules(budget_percent=100, match_whole_words=False)
    return compose(
        Inputs(
            components=ComponentSet(with_statics(card_components(card, grants=grants, **defaults))),
            rules=ComposeRules(
                budget=BudgetRules(limit_tokens=100_000), layout="classic", lore=rules
            ),
            history=History(messages_of(*lines)),
            books=() if book is None else (book,),
            values=macro_values(card, user=user),
        )
    )


def shown(prompt: Prompt, *, block: str | None = None) -> list[str]:
    """Return messages as lines of the form `role: text`; a `+` marks injected ones."""
    return [
        f"{'+' if message.injected else ''}{message.role}: {message.content}"
        for message in prompt.messages
        if block is None or message.block == block
    ]
