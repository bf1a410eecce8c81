"""Convert a card to prompt components and a lorebook, within the limits of the card's grants.

Macros in the card's text are expanded; template logic never runs. Grants are described in
`evennia_ai.engine.prompt.components`. Without any grant, the texts of a card are messages of the
user inside the history: fields at the top, the character note at its depth, post-history
instructions near the newest messages. The system prompt is left out without its grant.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import one_line
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.prompt.components import (
    ALL_GRANTS,
    CONTAINED_PRIORITY,
    HISTORY_ID,
    MAX_DEPTH,
    PLUGGABLE_IDS,
    Grants,
    PromptComponent,
)
from evennia_ai.engine.prompt.messages import TEXT_ROLES
from evennia_ai.engine.prompt.prefix_rules import describe_dependence
from evennia_ai.formats.cards.card import Card
from evennia_ai.formats.lorebooks.books import book_of_card, read_book
from evennia_ai.formats.lorebooks.entry_fields import ROLES

DEPTH_PROMPT_ID: Final = 5020
CONTAINED_POST_HISTORY_ID: Final = 5030
DEFAULT_DEPTH: Final = 4
_ORIGINAL: Final = re.compile(r"\{\{\s*original\s*\}\}", re.IGNORECASE)
FIELDS: Final = {
    "char_description": "description",
    "char_personality": "personality",
    "scenario": "scenario",
    "dialogue_examples": "mes_example",
}
"""Maps keys of prompt components to the card fields with which they describe the character."""

CARD_KEYS: Final = frozenset(
    {*FIELDS, "card_system_prompt", "post_history_instructions", "card_post_history"}
    | {"card_depth_prompt"}
)
"""The keys of all components that a card may have."""


def card_components(
    card: Card,
    *,
    grants: Grants = ALL_GRANTS,
    default_system_prompt: str = "",
    default_post_history: str = "",
    post_history_depth: int = DEFAULT_DEPTH,
) -> tuple[PromptComponent, ...]:
    """Return the texts of a card that are not empty as prompt components, sorted by ID.

    Args:
        default_system_prompt: the game's system prompt. The card's replaces it if granted, and
            `{{original}}` in the card's text then means the game's text.
        default_post_history: the game's post-history instructions, which the card's replace in the
            same way.
        post_history_depth: the depth of the card's post-history instructions if it has no grant for
            them.
    """
    made = [_component(key, getattr(card, field)) for key, field in FIELDS.items()]
    if "fields" not in grants:
        made = [_contain(one, depth=MAX_DEPTH) for one in made]
    made += _depth_prompt(card, grants)
    # The card's system prompt only becomes the component card_system_prompt. It never changes the
    # game's own rules, which are the component with ID 0.
    may_replace = "system_prompt" in grants
    system_prompt = default_system_prompt
    if may_replace:
        system_prompt = with_original(card.system_prompt, default_system_prompt)
    made.append(_component("card_system_prompt", system_prompt))
    made += _post_history(card, grants, default_post_history, depth=post_history_depth)
    return tuple(sorted((c for c in made if c.content.strip()), key=lambda c: c.id))


def describe_changing_texts(card: Card) -> Iterator[str]:
    """Yield a sentence for each text of a card that is before the history but often changes.

    Each change invalidates the prompt cache.
    """
    for component in card_components(card):
        if component.placement == "history" or component.id >= HISTORY_ID:
            continue
        if sentence := describe_dependence(component.content):
            yield f"{component.key}: {sentence}"


def containment_notices(
    card: Card, *, grants: Grants, post_history_depth: int = DEFAULT_DEPTH
) -> tuple[str, ...]:
    """Return a notice for each part of a card that is moved or left out for lack of a grant."""
    notices = []
    if "fields" not in grants:
        notices.append(
            "the card lacks the grant fields: its fields are at the top of the history, role user"
        )
    if "system_prompt" not in grants and card.system_prompt.strip():
        notices.append("the card lacks the grant system_prompt: its system_prompt is left out")
    if "after_history" not in grants and card.post_history_instructions.strip():
        notices.append(
            "the card lacks the grant after_history: its post_history_instructions are in the"
            f" history at depth {post_history_depth}, role user"
        )
    return tuple(notices)


def character_book(
    card: Card, *, grants: Grants = ALL_GRANTS, revision: int = 0
) -> Lorebook | None:
    """Return the lorebook inside the card, None if there is none.

    A book that cannot be read becomes a book without entries and with a notice, because the rest
    of the card is still usable.
    """
    if card.character_book is None:
        return None
    name = card.character_book.get("name")
    label = "" if isinstance(name, str) and name.strip() else card.name
    read = partial(read_book, label=label, attach="character", grants=grants, revision=revision)
    try:
        return read(book_of_card(card.character_book))
    except FormatError as error:
        nothing = read({"entries": []})
        notice = f"cannot be read and is left out: {error.message}"
        return replace(nothing, label=label or one_line(str(name)), notices=(notice,))


def with_original(text: str, default: str) -> str:
    """Return a card's text, or the game's text `default` if the card's text is empty.

    The first `{{original}}` in the card's text becomes the default; later ones are removed.
    """
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


def _depth_prompt(card: Card, grants: Grants) -> list[PromptComponent]:
    """Return the component of SillyTavern's character note, `extensions.depth_prompt`, if any."""
    found = card.extensions.get("depth_prompt")
    text = found.get("prompt") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(text, str):
        return []
    written = found.get("role")
    # SillyTavern also writes roles as numbers. The check uses `type`, because True is an `int` but
    # not a role number.
    role = ROLES[written] if type(written) is int and 0 <= written < len(ROLES) else written
    role = next((each for each in TEXT_ROLES if each == role), "system")
    depth = _read_depth(found.get("depth"))
    note = _component(
        "card_depth_prompt",
        text,
        id=DEPTH_PROMPT_ID,
        role=role,
        placement="history",
        injection_depth=depth,
    )
    return [note if "roles" in grants else _contain(note, depth=depth)]


def _read_depth(written: Any) -> int:
    """Parse a depth in a file, given as a number or as text; other values give the default."""
    if isinstance(written, str) and re.fullmatch(r"-?[0-9]{1,9}", written.strip()):
        written = int(written)
    if not isinstance(written, int) or isinstance(written, bool):
        return DEFAULT_DEPTH
    return min(max(written, 0), MAX_DEPTH)


def _post_history(card: Card, grants: Grants, default: str, *, depth: int) -> list[PromptComponent]:
    """Return the components of the card's and the game's post-history instructions.

    Without the grant `after_history`, the card's instructions are placed inside the history, and
    the game's instructions keep their ID and key.
    """
    key, text = "post_history_instructions", card.post_history_instructions
    if "after_history" in grants:
        return [_component(key, with_original(text, default))]
    own_key = "card_post_history" if default.strip() else key
    own = _component(own_key, with_original(text, ""), id=CONTAINED_POST_HISTORY_ID)
    return [_contain(own, depth=depth), _component(key, default)]


def _contain(component: PromptComponent, *, depth: int) -> PromptComponent:
    """Return a component that lacks its grant, moved into the history with the role user."""
    return component.changed(
        role="user", placement="history", injection_depth=depth, priority=CONTAINED_PRIORITY
    )
