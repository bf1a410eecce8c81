"""Add texts to a request that the offline responder may quote.

The responder uses nothing but its request, so a replay gives the same answer. Requests to real
models do not contain these texts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from evennia_ai.engine.compose import Composition
from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.execution_request import ExecutionRequest
from evennia_ai.engine.lorebook.book import Lorebook, labels_of
from evennia_ai.engine.prompt.conditions import ROOM_KEY
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.templates.work import Meter
from evennia_ai.formats.cards.card import greetings, opening_message
from evennia_ai.npc.inputs.shipped_providers import belongings_of
from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.labels import label_of
from evennia_ai.npc.senses.presence import NPC, seen_here
from evennia_ai.npc.views.parse_cache import parsed_card
from evennia_ai.services.llm.chat import ChatRequest, Passage, PassageKind
from evennia_ai.store.authored.cards import StoredCard

_KINDS: Final[Mapping[str, PassageKind]] = {
    "component:char_description": "description",
    "component:dialogue_examples": "examples",
}


def with_quotable(
    request: ChatRequest,
    made: Composition,
    executed: ExecutionRequest,
    *,
    card: StoredCard | None,
    npc: NPC,
    event: Event,
) -> ChatRequest:
    """Return the request with texts to quote, the place, who is present, and what the NPC has.

    Args:
        made: The result of composing `executed`.
        card: The card that the NPC plays.
    """
    inputs = executed.inputs
    others = [who for who in seen_here(npc) if str(who.id) != event.speaker_ref]
    worn, carried = belongings_of(npc)
    return replace(
        request,
        passages=(*_lore(made, inputs.books), *_of_card(made), *_greetings(executed, card)),
        asker=event.speaker_name,
        place=str(inputs.facts.get(ROOM_KEY, "")),
        company=tuple(label_of(npc, who) for who in others),
        worn=worn,
        carried=carried,
    )


def _lore(made: Composition, books: Sequence[Lorebook]) -> Iterator[Passage]:
    """Yield the lore entries that are in the prompt."""
    kept = {piece.claim.origin for piece in made.prompt.fragments}
    active = [entry for entry in made.lore.entries if entry.origin in kept]
    # only the active ones, because the books may have ten thousand entries
    labels = {entry.label for entry in active}
    keys = {
        label: book.entries[index].keys
        for book in books
        for index, label in enumerate(labels_of(book))
        if label in labels
    }
    for entry in active:
        yield Passage(
            label=entry.origin,
            text=entry.text,
            score=float(entry.priority),
            constant=entry.constant,
            keys=keys.get(entry.label, ()),
        )


def _of_card(made: Composition) -> Iterator[Passage]:
    """Yield the texts of the card that are in the prompt."""
    for piece in made.prompt.fragments:
        if kind := _KINDS.get(piece.claim.origin):
            yield Passage(label=piece.claim.origin, text=piece.message.content, kind=kind)


def _greetings(executed: ExecutionRequest, stored: StoredCard | None) -> Iterator[Passage]:
    """Yield all greetings of the card, even if the NPC does not open with one."""
    if stored is None:
        return
    try:
        card = parsed_card(stored)
    except FormatError:  # the view already reports this to the builder
        return
    dice = Dice(turn=executed.npc_ref, conversation=executed.npc_ref)
    values, meter = executed.inputs.values, Meter()
    for index in range(len(greetings(card))):
        said = opening_message(card, index=index, values=values, dice=dice, meter=meter)
        if said is not None:
            yield Passage(label=f"greeting {index}", text=said.content, kind="greeting")
