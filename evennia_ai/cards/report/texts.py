"""The texts of a card that go into prompts: what each becomes, and where it stands.

The components themselves are asked, once as they are granted and once with everything granted, so
that the report cannot say anything else than the prompt does.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from evennia_ai.cards.card import Card, greetings
from evennia_ai.cards.components import DEFAULT_DEPTH, FIELDS, card_components
from evennia_ai.cards.report.values import GreetingPart, TextPart
from evennia_ai.prompt.components import ALL_GRANTS, Grant, Grants, PromptComponent
from evennia_ai.prompt.tokens import TokenCounter

# From here on a depth is told to be the top of the history: few histories are so long.
TOP_FROM: Final = 1_000
MOST_GREETINGS: Final = 1_000
_TEXTS: Final = (
    *("name", "nickname", "description", "personality", "scenario", "first_mes", "mes_example"),
    *("system_prompt", "post_history_instructions"),
)
_POST_HISTORY: Final = "post_history_instructions"
# The component of each field, and the grant that its place depends on.
_FIELDS: Final[Mapping[str, tuple[str, Grant]]] = {
    "card_system_prompt": ("system_prompt", "system_prompt"),
    **{key: (field, "fields") for key, field in FIELDS.items()},
    _POST_HISTORY: (_POST_HISTORY, "after_history"),
    "card_depth_prompt": ("extensions.depth_prompt", "roles"),
}


def text_parts(
    card: Card, *, grants: Grants, counter: TokenCounter, post_history_depth: int = DEFAULT_DEPTH
) -> tuple[TextPart, ...]:
    """The card's texts in the order of the prompt they ask for; empty ones are left out."""
    granted_now = card_components(card, grants=grants, post_history_depth=post_history_depth)
    now = {one.key: one for one in granted_now}
    made = []
    for full in card_components(card, grants=ALL_GRANTS):
        field, grant = _FIELDS[full.key]
        place = place_of(now[full.key]) if full.key in now else ""
        granted = place_of(full)
        lacks = place != granted
        made.append(
            TextPart(
                field=field,
                key=full.key,
                id=now.get(full.key, full).id,
                tokens=counter.count(full.content),
                place=place,
                granted=granted if lacks else "",
                grant=grant if lacks else None,
            )
        )
    return tuple(made)


def greeting_parts(card: Card, *, counter: TokenCounter) -> tuple[GreetingPart, ...]:
    """The greetings that say something, by their index; of very many the first ones."""
    first_for_groups = len(greetings(card))
    return tuple(
        GreetingPart(
            index=index,
            tokens=counter.count(text),
            group_only=index >= first_for_groups,
            text=text,
        )
        for index, text in enumerate(greetings(card, group=True)[:MOST_GREETINGS])
        if text.strip()
    )


def card_texts(card: Card) -> Iterator[tuple[str, str]]:
    """The path and the text of every field that can reach a prompt, lore excepted.

    Of very many greetings these are the first ones.
    """
    yield from ((field, getattr(card, field)) for field in _TEXTS)
    for field in ("alternate_greetings", "group_only_greetings"):
        for number, text in enumerate(getattr(card, field)[:MOST_GREETINGS]):
            yield f"{field}[{number}]", text
    note = card.extensions.get("depth_prompt")
    if isinstance(note, dict) and isinstance(note.get("prompt"), str):
        yield "extensions.depth_prompt.prompt", note["prompt"]


def note_role(card: Card) -> str:
    """The role that the card's note by depth asks for, "" where it has no note."""
    made = card_components(card, grants=ALL_GRANTS)
    return next((one.role for one in made if one.key == "card_depth_prompt"), "")


def place_of(component: PromptComponent) -> str:
    """Where a component stands, in words."""
    role = as_role(component.role)
    if component.placement != "history":
        return f"ID {component.id}, {role}"
    return f"{depth_words(component.injection_depth)}, {role}"


def as_role(role: str) -> str:
    """A role in words: who the model takes the text to be from."""
    return "as a user's" if role == "user" else role


def depth_words(depth: int) -> str:
    """A depth from the newest message, in words."""
    if depth >= TOP_FROM:
        return "top of the history"
    return "end of the history" if depth <= 0 else f"depth {depth} in the history"
