"""What a card gives the prompt: its fields as pluggable components, its book as a lorebook.

Card text knows macros only, whoever vouches for it: no logic of it ever runs. A card that nobody
approved is contained: its texts are role user at the top of the history (its instructions for after
the history at the end of it), and its system prompt is left out.
"""

import re
from typing import Any, Final

from evennia_ai.cards.card import Card
from evennia_ai.lorebook.books import Lorebook, read_book
from evennia_ai.prompt.components import (
    MAX_DEPTH,
    PLUGGABLE_IDS,
    VOUCHED,
    PromptComponent,
    Trust,
)
from evennia_ai.prompt.messages import TEXT_ROLES

DEPTH_PROMPT_ID: Final = 5020
CONTAINED_POST_HISTORY_ID: Final = 5030
DEFAULT_DEPTH: Final = 4
_ORIGINAL: Final = re.compile(r"\{\{\s*original\s*\}\}", re.IGNORECASE)
_FIELDS: Final = {
    "char_description": "description",
    "char_personality": "personality",
    "scenario": "scenario",
    "dialogue_examples": "mes_example",
}


def card_components(
    card: Card,
    *,
    trust: Trust,
    default_system_prompt: str = "",
    default_post_history: str = "",
) -> tuple[PromptComponent, ...]:
    """The card's texts as components, empty ones left out.

    `trust` says who vouches for the card. The defaults are the game's own texts that the card's
    replace and that `{{original}}` in them stands for.
    """
    made = [_component(key, getattr(card, field)) for key, field in _FIELDS.items()]
    made += _depth_prompt(card)
    if trust in VOUCHED:
        system_prompt = with_original(card.system_prompt, default_system_prompt)
        post_history = with_original(card.post_history_instructions, default_post_history)
    else:
        made = [_contained(component, depth=MAX_DEPTH) for component in made]
        made += _contained_post_history(card, default_post_history)
        system_prompt, post_history = default_system_prompt, default_post_history
    made += [
        _component("card_system_prompt", system_prompt),
        _component("post_history_instructions", post_history),
    ]
    return tuple(sorted((c for c in made if c.content.strip()), key=lambda c: c.id))


def containment_notices(card: Card, *, trust: Trust) -> tuple[str, ...]:
    """What of the card does not reach its place because nobody approved it."""
    if trust in VOUCHED:
        return ()
    notices = ["nobody approved this card: its texts stand at the top of the history, as a user's"]
    if card.system_prompt.strip():
        notices.append("nobody approved this card: its system_prompt is left out")
    return tuple(notices)


def character_book(card: Card, *, trust: Trust, revision: int = 0) -> Lorebook | None:
    """The card's own book, None where it has none; it is called as it names itself."""
    if card.character_book is None:
        return None
    book: dict[str, Any] = dict(card.character_book)
    name = book.get("name")
    label = "" if isinstance(name, str) and name.strip() else card.name
    return read_book(book, label=label, attach="character", trust=trust, revision=revision)


def with_original(text: str, default: str) -> str:
    """A card's text in place of the default one; the first `{{original}}` in it is the default."""
    if not text.strip():
        return default
    before, *rest = _ORIGINAL.split(text)
    return before + (default if rest else "") + "".join(rest)


def _component(key: str, content: str, **fields: Any) -> PromptComponent:
    return PromptComponent(
        id=fields.pop("id", None) or PLUGGABLE_IDS[key],
        key=key,
        name=key.replace("_", " ").capitalize(),
        content=content,
        trust="imported",
        **fields,
    )


def _depth_prompt(card: Card) -> list[PromptComponent]:
    """SillyTavern's note of the character, `extensions.depth_prompt`."""
    found = card.extensions.get("depth_prompt")
    text = found.get("prompt") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(text, str):
        return []
    role = next((role for role in TEXT_ROLES if role == found.get("role")), "system")
    return [
        _component(
            "card_depth_prompt",
            text,
            id=DEPTH_PROMPT_ID,
            role=role,
            placement="history",
            injection_depth=_depth(found.get("depth")),
        )
    ]


def _depth(written: Any) -> int:
    """A depth as files have it: a number, a number as text, or nothing."""
    if isinstance(written, str) and re.fullmatch(r"-?[0-9]{1,9}", written.strip()):
        written = int(written)
    if not isinstance(written, int) or isinstance(written, bool):
        return DEFAULT_DEPTH
    return min(max(written, 0), MAX_DEPTH)


def _contained_post_history(card: Card, default: str) -> list[PromptComponent]:
    """The card's instructions for after the history, at its end; the game's keep their ID."""
    own = with_original(card.post_history_instructions, "")
    key = "card_post_history" if default.strip() else "post_history_instructions"
    return [_contained(_component(key, own, id=CONTAINED_POST_HISTORY_ID), depth=0)]


def _contained(component: PromptComponent, *, depth: int) -> PromptComponent:
    """The component where text that nobody approved may stand."""
    return component.changed(role="user", placement="history", injection_depth=depth)
