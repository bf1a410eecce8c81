"""What a card gives the prompt: its fields as pluggable components, its book as a lorebook.

Card text knows macros only, whoever vouches for it: no logic of it ever runs. A card may do what it
was granted (`evennia_ai.engine.prompt.components`). Without grants its texts are role user inside
the history: its fields at the top, its note at its own depth, its instructions for after the
history near the newest messages; its system prompt is left out.
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
# The component of each field that says who the character is.
FIELDS: Final = {
    "char_description": "description",
    "char_personality": "personality",
    "scenario": "scenario",
    "dialogue_examples": "mes_example",
}

CARD_KEYS: Final = frozenset(
    {*FIELDS, "card_system_prompt", "post_history_instructions", "card_post_history"}
    | {"card_depth_prompt"}
)
"""The keys of the components that a card gives."""


def card_components(
    card: Card,
    *,
    grants: Grants = ALL_GRANTS,
    default_system_prompt: str = "",
    default_post_history: str = "",
    post_history_depth: int = DEFAULT_DEPTH,
) -> tuple[PromptComponent, ...]:
    """The card's texts as components, empty ones left out.

    The defaults are the game's own texts that the card's replace, where it may, and that
    `{{original}}` in them stands for. `post_history_depth` is where its instructions for after the
    history stand without the grant, in messages from the newest.
    """
    made = [
        *_described(card, grants),
        *_depth_prompt(card, grants),
        *_system_prompt(card, grants, default_system_prompt),
        *_post_history(card, grants, default_post_history, depth=post_history_depth),
    ]
    return tuple(sorted((c for c in made if c.content.strip()), key=lambda c: c.id))


def unsettled_texts(card: Card) -> Iterator[str]:
    """Yield a sentence for each field that is placed before the history and names what is said."""
    for component in card_components(card):
        if component.placement == "history" or component.id >= HISTORY_ID:
            continue
        if sentence := describe_dependence(component.content):
            yield f"{component.key}: {sentence}"


def containment_notices(
    card: Card, *, grants: Grants, post_history_depth: int = DEFAULT_DEPTH
) -> tuple[str, ...]:
    """What of the card does not reach its place because it was not granted."""
    notices = []
    if "fields" not in grants:
        notices.append(
            "the card has no grant for fields: they stand at the top of the history, as a user's"
        )
    if "system_prompt" not in grants and card.system_prompt.strip():
        notices.append("the card has no grant for its system_prompt: it is left out")
    if "after_history" not in grants and card.post_history_instructions.strip():
        notices.append(
            "the card has no grant for after_history: its post_history_instructions stand in the"
            f" history at depth {post_history_depth}, as a user's"
        )
    return tuple(notices)


def character_book(
    card: Card, *, grants: Grants = ALL_GRANTS, revision: int = 0
) -> Lorebook | None:
    """The card's own book, None where it has none; it is called as it names itself.

    One that cannot be read as a whole has no entries, and a notice says why: the card is good for
    all else.
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


def _described(card: Card, grants: Grants) -> list[PromptComponent]:
    """Who the character is: the fields before the history, or at its top."""
    made = [_component(key, getattr(card, field)) for key, field in FIELDS.items()]
    return made if "fields" in grants else [_contained(one, depth=MAX_DEPTH) for one in made]


def _depth_prompt(card: Card, grants: Grants) -> list[PromptComponent]:
    """SillyTavern's note of the character, `extensions.depth_prompt`."""
    found = card.extensions.get("depth_prompt")
    text = found.get("prompt") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(text, str):
        return []
    said = found.get("role")
    role = ROLES[said] if type(said) is int and 0 <= said < len(ROLES) else said
    role = next((each for each in TEXT_ROLES if each == role), "system")
    depth = _depth(found.get("depth"))
    note = _component(
        "card_depth_prompt",
        text,
        id=DEPTH_PROMPT_ID,
        role=role,
        placement="history",
        injection_depth=depth,
    )
    return [note if "roles" in grants else _contained(note, depth=depth)]


def _depth(written: Any) -> int:
    """A depth as files have it: a number, a number as text, or nothing."""
    if isinstance(written, str) and re.fullmatch(r"-?[0-9]{1,9}", written.strip()):
        written = int(written)
    if not isinstance(written, int) or isinstance(written, bool):
        return DEFAULT_DEPTH
    return min(max(written, 0), MAX_DEPTH)


def _system_prompt(card: Card, grants: Grants, default: str) -> list[PromptComponent]:
    """The card's system prompt in place of the game's default one, which stays without the grant.

    Neither is the game's own rules: those are component 0.
    """
    may = "system_prompt" in grants
    text = with_original(card.system_prompt, default) if may else default
    return [_component("card_system_prompt", text)]


def _post_history(card: Card, grants: Grants, default: str, *, depth: int) -> list[PromptComponent]:
    """The instructions for after the history; without the grant the card's stand inside it.

    The game's own then keep their ID and their key.
    """
    key, text = "post_history_instructions", card.post_history_instructions
    if "after_history" in grants:
        return [_component(key, with_original(text, default))]
    own_key = "card_post_history" if default.strip() else key
    own = _component(own_key, with_original(text, ""), id=CONTAINED_POST_HISTORY_ID)
    return [_contained(own, depth=depth), _component(key, default)]


def _contained(component: PromptComponent, *, depth: int) -> PromptComponent:
    """The component where text without a grant may stand."""
    return component.changed(
        role="user", placement="history", injection_depth=depth, priority=CONTAINED_PRIORITY
    )
