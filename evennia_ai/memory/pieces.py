"""Memories in a prompt: the text of the component `semantic_memories`, at its place.

A builder's text for that component frames them, where it names `{{memories}}`; without a text they
stand under a plain heading. They are put in as they are: nothing in a memory is ever expanded.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from evennia_ai.memory.memories import Memory
from evennia_ai.memory.recalling import Recalled, line_of
from evennia_ai.prompt.blocks import as_data
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.expansion import CompiledComponent, ComponentSet, Layout
from evennia_ai.prompt.messages import Part
from evennia_ai.prompt.pieces import Piece, make_piece
from evennia_ai.prompt.tokens import TokenCounter
from evennia_ai.prompt.trace import Verdict

MEMORIES_KEY: Final = "semantic_memories"
_ORIGIN: Final = f"component:{MEMORIES_KEY}"
MEMORIES_NAME: Final = "memories"
"""The value that a builder's text names."""

HEADING: Final = "What you remember:"


class FillingRules(Protocol):
    """What of the rules of composing counts here."""

    @property
    def dice(self) -> Dice: ...

    @property
    def counter(self) -> TokenCounter: ...

    @property
    def layout(self) -> Layout: ...


def no_place(components: ComponentSet) -> str:
    """Why memories have no place among these components, "" where they have one."""
    if not components.is_on(MEMORIES_KEY):
        return f"component {MEMORIES_KEY} is disabled"
    place = components.place_of(MEMORIES_KEY)
    if place.template is None:
        return f"component {MEMORIES_KEY} has a template error"
    if _is_framed(place) and MEMORIES_NAME not in place.template.names:
        return f"component {MEMORIES_KEY} has a text that does not name {{{{{MEMORIES_NAME}}}}}"
    return ""


def needs_memories(components: ComponentSet) -> bool:
    """Whether the text of the component stands or falls with there being memories."""
    return components.reads(MEMORIES_NAME) and MEMORIES_KEY in components.reading(MEMORIES_NAME)


def with_memories(
    made: Sequence[Piece | Verdict],
    memories: Sequence[Memory],
    *,
    components: ComponentSet,
    rules: FillingRules,
    values: Mapping[str, str],
) -> list[Piece | Verdict]:
    """What the components gave, with these memories in their place."""
    if not memories and not needs_memories(components):
        return [*made]
    place, counter, layout = components.place_of(MEMORIES_KEY), rules.counter, rules.layout
    text = "\n".join(map(line_of, memories))
    told = as_data(text, place.claim(layout))
    if not memories:
        piece: Piece | Verdict = Verdict(
            stage="expand", item=_ORIGIN, kept=False, reason="nothing is remembered here"
        )
    elif _is_framed(place):
        filled = {**values, MEMORIES_NAME: told}
        piece = place.expand(filled, dice=rules.dice, counter=counter, layout=layout)
    else:
        piece = make_piece(f"{HEADING}\n{told}", place.claim(layout), counter=counter)
    if isinstance(piece, Piece):
        piece = _set_apart(piece, memories, text)
    return [*(one for one in made if _origin(one) != _ORIGIN), piece]


def shown(recalled: Recalled, placed: Iterable[Piece]) -> Recalled:
    """What was recalled, and whether it stands among the pieces that found a place."""
    return replace(recalled, is_shown=any(piece.claim.origin == _ORIGIN for piece in placed))


def _is_framed(place: CompiledComponent) -> bool:
    return bool(place.component.content.strip())


def _origin(made: Piece | Verdict) -> str:
    return made.item if isinstance(made, Verdict) else made.claim.origin


def _set_apart(piece: Piece, memories: Sequence[Memory], text: str) -> Piece:
    """The piece with a part for each memory, where its text has them as they are."""
    content = piece.message.content
    at = content.find(text)
    if at < 0:
        return piece
    revision = piece.claim.revision
    parts = [
        Part(origin=_ORIGIN, start=0, end=at, revision=revision),
        *_parts_of(memories, at),
        Part(origin=_ORIGIN, start=at + len(text), end=len(content), revision=revision),
    ]
    filled = tuple(part for part in parts if part.start < part.end)
    return piece._replace(message=replace(piece.message, joined=filled))


def _parts_of(memories: Sequence[Memory], at: int) -> Iterator[Part]:
    for memory in memories:
        end = at + len(line_of(memory))
        yield Part(origin=memory.origin, start=at, end=end, revision=memory.revision)
        at = end + 1
